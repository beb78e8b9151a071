package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/seat-tenure/tenure/turn"
)

// TestMain makes the test binary the program, or a keeper of a runner's program,
// when it was started as one; else it runs the tests and looks for goroutines
// that nobody waited for.
func TestMain(m *testing.M) {
	turn.KeepIfAsked()
	if code, is := programCode(); is {
		os.Exit(code)
	}
	if code, is := agentCode(); is {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}
