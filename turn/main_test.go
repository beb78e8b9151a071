package turn_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/turn"
)

// The test binary plays four parts: the tests, the keeper of a program, the
// programs under test and a node that is killed.
func TestMain(m *testing.M) {
	if os.Getenv(withoutKeeper) != "" && len(os.Args) > 0 && os.Args[0] == "tenure-keeper" {
		os.Exit(2) // a main that never heard of keepers refuses its arguments
	}
	turn.KeepIfAsked()
	if len(os.Args) > 2 && os.Args[1] == "behave" {
		behave(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	// A program built with the race detector sleeps for a second when it exits, and
	// these tests start some hundred.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	goleak.VerifyTestMain(m, natstest.Leaks()...)
}
