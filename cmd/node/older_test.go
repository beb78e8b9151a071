package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// olderBuild builds the program as it was one lease protocol ago.
func olderBuild(t *testing.T) (program string) {
	t.Helper()
	return buildProgram(t, "-tags", "tenure_protocol_3")
}

// buildProgram builds the program as it is released, without the race detector:
// for tests that start so many processes that they measure little else than it.
func buildProgram(t *testing.T, args ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "tenure")
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-buildvcs=false"}, args...), "-o", program, ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // shares what `make build` compiled
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// TestOlderBuildIsWaitedFor: in a rolling upgrade the newer node takes no seat while
// one of the older build lives, also none that the older would hand it while it is
// told to stop, and says why; the older one serves meanwhile; and once it is gone
// the newer has everything (V1).
func TestOlderBuildIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	url, company, program := externalBroker(t), echoCompany(t, 4), olderBuild(t)
	args := func(id string) []string {
		return []string{
			"run", "--node-id", id, "--data-dir", t.TempDir(), "--api-listen", "127.0.0.1:0",
			"--stream-type", "external", "--stream-urls", url, "--coordination-type", "embedded-kv",
			"--coordination-lease-ttl-seconds", "3", "--seat-sweep-interval", "1s", "--company", company,
		}
	}
	a := launchProgram(t, program, "", nil, args("a")...)
	a.url = apiLine.FindStringSubmatch(a.await(startLimit, apiLine.String()))[1]
	a.awaitHeld(0, 4, startLimit)
	b := startNode(t, args("b")...)
	b.await(startLimit, `msg=seat_claims_blocked_by_older_protocol .*floor=3 owner=a:`)
	b.must(nil, "send", "s1", "--id", "while-it-waits", "--wait=30s")
	if n := b.logs.count(`msg=seat_claimed`); n != 0 {
		t.Errorf("the newer node claimed %d seats beside the older one", n)
	}
	a.signal(syscall.SIGTERM)
	b.awaitHeld(0, 4, startLimit)
	<-a.done
	if n := a.logs.count(`msg=turn_completed .*event=while-it-waits`); n != 1 {
		t.Errorf("the older node completed %d turns on the mail, want 1", n)
	}
	b.must(nil, "audit")
}
