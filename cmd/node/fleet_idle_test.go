package main

import (
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
)

// TestIdleNodeHearsLittle: beside a node that holds 2,000 seats, one that may run
// none of them gets at most ten messages from the broker in a sweep of five
// seconds, the presences that it reads not counted: what a fleet costs its nodes
// does not grow with its seats (P11).
func TestIdleNodeHearsLittle(t *testing.T) {
	t.Parallel()
	n, sweeps := times(50, 2000), times(3, 12)
	url := natstest.R1(t).Server(0).NodeURL()
	cfg := func(id string) Config {
		c := hostedConfig(t, id, url)
		c.Coordination.LeaseTTLSeconds = DefaultConfig().Coordination.LeaseTTLSeconds
		c.Seat = DefaultConfig().Seat
		return c
	}
	busy := cfg("busy")
	busy.Node.Labels = map[string]string{"zone": "a"}
	a := hostNode(t, busy, echoes(n, "zone: a"))
	awaitShares(t, 8*time.Minute, []*hosted{a}, n)
	b := hostNode(t, cfg("idle"), nil)
	eventually(t, 30*time.Second, "the idle node is ready", func() bool { return len(b.NotReady()) == 0 })
	<-time.After(b.cfg.Seat.SweepInterval)

	before, began := b.store.Received(), time.Now()
	<-time.After(time.Duration(sweeps) * b.cfg.Seat.SweepInterval)
	got := float64(b.store.Received()-before) * float64(b.cfg.Seat.SweepInterval) / float64(time.Since(began))
	// Two nodes, a claim and a renewal of each, and the end of the list.
	const presences = 2*2 + 1
	t.Logf("beside %d held seats: %.1f messages a sweep, %d of them for the presences", n, got, presences)
	if got > 10+presences {
		t.Errorf("an idle node got %.1f messages a sweep beside %d held seats, want at most 10 beyond the presences", got, n)
	}
}
