package broker_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seat-tenure/tenure/broker/natstest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockHelperEnv); dir != "" {
		os.Exit(holdLock(dir))
	}
	goleak.VerifyTestMain(m, natstest.Leaks()...)
}

// rounds is how often a race is run: the short form, or the full one of the
// "must show" lists.
func rounds(short, full int) int {
	if os.Getenv("TENURE_CASES") == "full" {
		return full
	}
	return short
}

// pass lets that much of a bubble's virtual time go by.
func pass(d time.Duration) { <-time.After(d) }
