package broker_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, nonServer...)
}

// nonServer leaves out what nats-server keeps running for the whole process.
var nonServer = []goleak.Option{}

// rounds is how often a race is run: the short form, or the full one of the
// "must show" lists.
func rounds(short, full int) int {
	if os.Getenv("TENURE_CASES") == "full" {
		return full
	}
	return short
}
