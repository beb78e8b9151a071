package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/seat"
)

// claims counts the claims of seats in a history.
func claims(all []events.Recorded) (n int) {
	for _, r := range all {
		if e, ok := r.Event.(events.LeaseClaimed); ok && e.Lease.Kind == events.KindSeat {
			n++
		}
	}
	return n
}

// admitting counts the seats on which these nodes admit turns.
func admitting(nodes []*hosted) (n int) {
	for _, h := range nodes {
		n += h.held()
	}
	return n
}

// justRenewed waits until each node's newest renewal is not older than that: an
// outage that begins then is survived by the same margin in every run.
func justRenewed(t *testing.T, nodes []*hosted, within time.Duration) {
	t.Helper()
	eventually(t, time.Minute, "all nodes have renewed at about the same time", func() bool {
		for _, h := range nodes {
			family := h.store.Subjects().Family(events.NodeLease(h.cfg.Node.ID))
			msg, err := h.store.Stream(events.StreamFleet).Last(t.Context(), family)
			if err != nil || time.Since(msg.At) > within {
				return false
			}
		}
		return true
	})
}

// TestQuorumLostForAHeartbeatAndAHalf: two of three brokers stop while 200 seats (60 in short)
// are held on three nodes, and are started again one and a half heartbeats later.
// Meanwhile no turn is admitted anywhere; afterwards on every seat again, and none
// has changed its holder: no claim was made (A2, A3, P10).
func TestQuorumLostForAHeartbeatAndAHalf(t *testing.T) {
	t.Parallel()
	seats := times(60, 200)
	brokers := natstest.R3(t)
	var urls []string
	for i := range brokers.Len() {
		urls = append(urls, brokers.Server(i).NodeURL())
	}
	ttl := time.Duration(times(30, 45)) * time.Second
	var nodes []*hosted
	for _, id := range []string{"c", "b", "a"} {
		cfg := hostedConfig(t, id, urls...)
		cfg.Stream.Replicas, cfg.Coordination.LeaseTTLSeconds = 3, int(ttl.Seconds())
		var doc []byte
		if id == "a" { // the last brings the company: each of them takes its share of it
			doc = echoes(seats, "")
		}
		nodes = append(nodes, hostNode(t, cfg, doc))
	}
	eventually(t, 2*time.Minute, "all seats are held", func() bool { return admitting(nodes) == seats })
	before := claims(nodes[0].history(t, events.StreamFleet))

	justRenewed(t, nodes, ttl/10)
	stopped := time.Now()
	brokers.Stop(1)
	brokers.Stop(2)
	back := time.After(ttl/3 + ttl/6 - time.Since(stopped))
	closed := eventually(t, ttl/2, "no turn is admitted", func() bool { return admitting(nodes) == 0 })
	<-back
	brokers.Start(1)
	brokers.Start(2)
	eventually(t, ttl, "turns are admitted on every seat", func() bool { return admitting(nodes) == seats })
	t.Logf("admission closed %v after the brokers had stopped and was open on all seats %v after that moment", closed, time.Since(stopped))

	if now := claims(nodes[0].history(t, events.StreamFleet)); now != before {
		t.Errorf("%d seats were claimed in the outage", now-before)
	}
	for _, h := range nodes {
		if h.logs.count(`msg=seat_admission_stale`) == 0 || h.logs.count(`msg=seat_admission_restored`) == 0 {
			t.Errorf("%s did not log both edges of admission", h.cfg.Node.ID)
		}
		if n := h.logs.count(`msg=seat_detached`); n > 0 {
			t.Errorf("%s gave %d seats up", h.cfg.Node.ID, n)
		}
	}
}

// TestCase33BrokerRestarts: the broker is restarted again and again, at random
// intervals. A lease that changes afterwards is in each node's view within two
// seconds, or the view says that it is not current, and becomes so; the streams
// have one consumer for each reader all along (case 33, design §7).
func TestCase33BrokerRestarts(t *testing.T) {
	t.Parallel()
	brokers := natstest.R1(t)
	url := brokers.Server(0).NodeURL()
	var nodes []*hosted
	for _, id := range []string{"a", "b"} {
		cfg := hostedConfig(t, id, url)
		cfg.Coordination.LeaseTTLSeconds = DefaultConfig().Coordination.LeaseTTLSeconds
		nodes = append(nodes, hostNode(t, cfg, echoes(4, "")))
	}
	eventually(t, time.Minute, "all seats are held", func() bool { return admitting(nodes) == 4 })
	store := brokers.Store(0)
	op := outsider(store)
	never := func(uint64) (time.Duration, bool) { return 0, false }
	cfg := broker.Config{Prefix: natstest.Prefix}
	var worst time.Duration
	marked := 0
	for i := range times(5, 50) {
		<-time.After(time.Duration(rand.IntN(500)) * time.Millisecond)
		brokers.Stop(0)
		<-time.After(time.Duration(rand.IntN(300)) * time.Millisecond)
		brokers.Start(0)
		eventually(t, 30*time.Second, "the broker answers", func() bool {
			_, err := store.Stream(events.StreamFleet).Info(t.Context())
			return err == nil
		})
		lease := events.Lease{Kind: events.KindWorker, ID: fmt.Sprintf("probe-%d", i)}
		tenure, err := op.Claim(t.Context(), lease, commands.Claim{Preferred: "op", TTL: time.Minute, Protocol: seat.Protocol}, never)
		if err != nil {
			t.Fatal(err)
		}
		changed := time.Now()
		shows := func(h *hosted) bool { return h.views.Copy(events.StreamFleet).Position >= tenure.Claimed }
		for _, h := range nodes {
			eventually(t, 2*time.Second, h.cfg.Node.ID+"'s view shows the lease, or is marked", func() bool {
				if shows(h) {
					return true
				}
				if h.views.Copy(events.StreamFleet).State == projections.CopyCurrent {
					return false
				}
				marked++
				return true
			})
			eventually(t, 30*time.Second, h.cfg.Node.ID+"'s view shows the lease", func() bool { return shows(h) })
		}
		worst = max(worst, time.Since(changed))
		for _, st := range []events.Stream{events.StreamFleet, events.StreamWork} {
			eventually(t, 10*time.Second, "one consumer for each node", func() bool { return brokers.Consumers(t, cfg, st) == len(nodes) })
		}
	}
	t.Logf("a change was seen after %v at worst; %d views were marked meanwhile", worst, marked)
}
