package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// presenceRenewals are when each node renewed its presence after that moment, by
// the broker's stamps.
func presenceRenewals(all []events.Recorded, after time.Time) map[string][]time.Time {
	renewed := map[string][]time.Time{}
	for _, r := range all {
		if e, ok := r.Event.(events.LeaseRenewed); ok && e.Lease.Kind == events.KindNode && r.At.After(after) {
			renewed[e.Lease.ID] = append(renewed[e.Lease.ID], r.At)
		}
	}
	return renewed
}

// TestCase34HeartbeatsAfterAnOutage: the broker of a whole fleet is away for most
// of what the leases have left, and every node has renewals to make up for when it
// is back. No healthy node loses a seat or its presence: not one claim is made. And
// two heartbeats on, the nodes renew at moments of their own again, not in the one
// instant that the broker came back in (case 34, A2, A4).
func TestCase34HeartbeatsAfterAnOutage(t *testing.T) {
	t.Parallel()
	nodeCount, seats := times(5, 20), times(100, 2000)
	ttl, away := time.Duration(times(6, 30))*time.Second, time.Duration(times(2, 10))*time.Second
	brokers := natstest.R1(t)
	url := brokers.Server(0).NodeURL()
	var nodes []*hosted
	for i := range nodeCount {
		cfg := hostedConfig(t, fmt.Sprintf("n%02d", i), url)
		cfg.Coordination.LeaseTTLSeconds = int(ttl.Seconds())
		cfg.Seat.ClaimLimitPerSweep = seats
		var doc []byte
		if i == nodeCount-1 { // the last brings the company: each takes its share of it
			doc = echoes(seats, "")
		}
		nodes = append(nodes, hostNode(t, cfg, doc))
	}
	eventually(t, 5*time.Minute, "all seats are held", func() bool { return admitting(nodes) == seats })
	before := nodes[0].history(t, events.StreamFleet)

	justRenewed(t, nodes, ttl/3)
	brokers.Stop(0)
	<-time.After(away)
	brokers.Start(0)
	back := time.Now()
	took := eventually(t, ttl, "turns are admitted on every seat again", func() bool { return admitting(nodes) == seats })
	var renewed map[string][]time.Time
	eventually(t, 2*ttl, "each node has renewed three times since", func() bool {
		renewed = presenceRenewals(nodes[0].history(t, events.StreamFleet), back)
		few := func(times []time.Time) bool { return len(times) < 3 }
		return len(renewed) == nodeCount && !slices.ContainsFunc(values(renewed), few)
	})

	after := nodes[0].history(t, events.StreamFleet)
	if was, is := claims(before), claims(after); is != was {
		t.Errorf("%d claims of seats were made over an outage of %v", is-was, away)
	}
	for _, h := range nodes {
		if n := h.logs.count(`msg=node_presence_lost`); n != 0 {
			t.Errorf("%s lost its presence", h.cfg.Node.ID)
		}
	}
	var third []time.Time
	for _, all := range renewed {
		third = append(third, all[2])
	}
	slices.SortFunc(third, time.Time.Compare)
	spread := third[len(third)-1].Sub(third[0])
	t.Logf("%d nodes, %d seats: all admitted %v after the broker was back; the third renewals are spread over %v of a heartbeat of %v",
		nodeCount, seats, took, spread, ttl/3)
	if spread < ttl/3/50 {
		t.Errorf("the nodes' renewals lie within %v of each other", spread)
	}
}

// values are a map's, in no order.
func values[K comparable, V any](m map[K]V) (all []V) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}
