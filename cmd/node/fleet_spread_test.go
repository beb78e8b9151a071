package main

import (
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// spread lets a node take 2n seats and a second one join it, with the default
// timings, and returns both and how long it took until each had n.
func spread(tb testing.TB, n int) (nodes []*hosted, took time.Duration) {
	tb.Helper()
	url := natstest.R1(tb).Server(0).NodeURL()
	cfg := func(id string) Config {
		c := hostedConfig(tb, id, url)
		c.Coordination.LeaseTTLSeconds = DefaultConfig().Coordination.LeaseTTLSeconds
		c.Seat = DefaultConfig().Seat
		return c
	}
	nodes = []*hosted{hostNode(tb, cfg("a"), echoes(2*n, ""))}
	awaitShares(tb, 3*time.Minute, nodes, 2*n)
	nodes = append(nodes, hostNode(tb, cfg("b"), nil))
	return nodes, awaitShares(tb, 3*time.Minute, nodes, n, n)
}

// TestSurplusSpreads: the surplus of a node goes to one that joins within a
// minute, whatever its size, each seat by one handoff (P4, design §5).
func TestSurplusSpreads(t *testing.T) {
	t.Parallel()
	n := times(40, 900)
	nodes, took := spread(t, n)
	dark, bySeat := darkFor(nodes[1].history(t, events.StreamFleet))
	t.Logf("%d seats spread in %v, dark for p50 %v, p99 %v", n, took, percentile(dark, 50), percentile(dark, 99))
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if len(bySeat) != n || len(dark) != n {
		t.Errorf("%d handoffs of %d seats completed, want %d of as many", len(dark), len(bySeat), n)
	}
	audited(t, nodes[1].url())
}
