package robust_test

import (
	"os"
	"testing"
)

// agentArg makes the test binary behave as the seats' program.
const agentArg = "robust-agent"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == agentArg {
		os.Exit(runAgent(os.Args[2]))
	}
	// Where ip and nft are, and users other than root do not look.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
