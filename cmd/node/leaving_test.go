package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRefusedMidMove: a seat that is on its way is not moved, given back or moved
// again until it has arrived; a node that takes no seats is no target; and a node
// whose file names another lease TTL than its fleet has takes the fleet's and says
// so (design §5, P6, L7).
func TestRefusedMidMove(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a fleet")
	}
	dir, url := agentDir(t), externalBroker(t)
	company := gated(t, "gate", dir)
	a := startFleetNode(t, "a", url, company)
	a.awaitHeld(0, 2, startLimit)
	a.must(nil, "send", "worker", "--id", "job-1")
	awaitNote(t, dir, "worker started")
	b := startNode(t, "run", "--node-id", "b", "--data-dir", t.TempDir(), "--api-listen", "127.0.0.1:0",
		"--stream-type", "external", "--stream-urls", url, "--coordination-type", "embedded-kv",
		"--coordination-lease-ttl-seconds", "7", "--seat-sweep-interval", "1s")
	b.await(startLimit, `msg=lease_ttl_adopted fleet=3s file=7s`)
	b.await(startLimit, `msg=seat_attached .*seat=sink`) // its share; worker's turn is not over
	p := &pair{t: t, nodes: map[string]*process{"a": a, "b": b}}
	b.must(nil, "node", "cordon", "b", "--reason", "test")
	p.refused("NOT_ELIGIBLE", "seat", "move", "worker", "--to", "b", "--reason", "cordoned")
	b.must(nil, "node", "uncordon", "b", "--reason", "test")

	mark, drained := b.mark(), make(chan struct{})
	go func() {
		defer close(drained)
		b.tenure("node", "drain", "a", "--deadline", "60s", "--reason", "test")
	}()
	a.await(startLimit, `msg=seat_handoff_requested .*seat=worker`)
	for _, again := range [][]string{{"seat", "move", "worker", "--to", "b"}, {"seat", "release", "worker"}} {
		p.refused("MOVING", append(again, "--reason", "again")...)
	}
	openGate(t, dir, 1)
	b.awaitFrom(mark, startLimit, `msg=seat_attached .*seat=worker`)
	<-drained
	b.must(nil, "audit")
}

// TestThreeSignals: told to stop, a node waits for the turn in flight; told again
// it gives the turn up; told a third time, while a program still does not go, it
// ends there and then, with an exit code of its own, and nothing of it stays
// behind (H7).
func TestThreeSignals(t *testing.T) {
	dir := agentDir(t)
	node := startFleetNode(t, "a", externalBroker(t), gated(t, "stubborn", dir))
	node.awaitHeld(0, 2, startLimit)
	node.must(nil, "send", "worker", "--id", "job-1")
	awaitNote(t, dir, "worker stays")
	for _, told := range []string{"node_stopping", "node_stopping_at_once", "node_stopped_by_force"} {
		node.signal(syscall.SIGTERM)
		node.await(30*time.Second, `msg=`+told+`( |$)`)
	}
	<-node.done
	if code := node.cmd.ProcessState.ExitCode(); code != exitForced {
		t.Errorf("exit code %d, want %d", code, exitForced)
	}
	if strings.Contains(notes(t, dir), "done") {
		t.Errorf("the turn went on:\n%s", notes(t, dir))
	}
}
