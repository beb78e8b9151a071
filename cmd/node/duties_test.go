package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// asks puts a question to the node again and again, until stop is called, and
// returns how often it was answered. An answer that is not so fails the test.
func (h *hosted) asks(t *testing.T, so func(nodeSeats) error) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	answered := 0
	asking.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			got, err := h.fleetSeats(context.WithoutCancel(ctx))
			if err == nil {
				err = so(got)
			}
			if err != nil {
				t.Errorf("%s: %v", h.cfg.Node.ID, err)
				return
			}
			answered++
		}
	})
	end := sync.OnceFunc(func() { cancel(); asking.Wait() })
	t.Cleanup(end)
	return func() int { end(); return answered }
}

// TestCase26DutiesMoveUnderLoad: the maintenance duty is moved to and fro between
// two nodes on a real broker, by fencing whoever has it, while mail flows to their
// seats and both are asked about the fleet. Every seat stays where it was, in its
// first tenure, every mail takes one turn, every question is answered alike, and
// each node has the duty again and again (case 26).
func TestCase26DutiesMoveUnderLoad(t *testing.T) {
	onlyInFull(t)
	t.Parallel()
	const seats = 4
	url := natstest.R1(t).Server(0).NodeURL()
	var nodes []*hosted
	for _, id := range []string{"a", "b"} {
		cfg := hostedConfig(t, id, url)
		cfg.Coordination.LeaseTTLSeconds = 2 * minTTLSeconds // what moves a seat here is to be the duty, not a busy machine
		cfg.Mailbox.Tick = 200 * time.Millisecond
		nodes = append(nodes, hostNode(t, cfg, echoes(seats, "")))
	}
	awaitShares(t, 30*time.Second, nodes, seats/2, seats/2)
	a := nodes[0]
	flow := a.flow(t, seats, 20*time.Millisecond)
	marks := map[string]int{}
	var stops []func() int
	for _, h := range nodes {
		var first nodeSeats
		eventually(t, 20*time.Second, "it shows both nodes' seats", func() bool {
			first = h.queryFleet(t)
			return len(first["a"]) == seats/2 && len(first["b"]) == seats/2
		})
		lines, _ := h.logs.from(0)
		marks[h.cfg.Node.ID] = len(lines)
		stops = append(stops, h.asks(t, func(now nodeSeats) error {
			if !slices.Equal(now["a"], first["a"]) || !slices.Equal(now["b"], first["b"]) {
				return fmt.Errorf("the seats are %v, were %v", now, first)
			}
			return nil
		}))
	}
	before := claims(a.history(t, events.StreamFleet))

	op, lease := outsider(a.store), events.Lease{Kind: events.KindWorker, ID: dutyMaintenance}
	owned := func() (now aggregates.Lease) {
		t.Helper()
		eventually(t, 30*time.Second, "somebody has the duty", func() bool {
			var err error
			now, err = op.Lease(t.Context(), lease)
			return err == nil && now.Status == aggregates.LeaseHeld
		})
		return now
	}
	terms := map[string]int{owned().Owner.NodeID(): 1}
	for range times(2, 50) {
		now := owned()
		if _, err := op.Fence(t.Context(), lease, now.Epoch, "moved away", "ops"); err != nil && !errors.As(err, new(*aggregates.EndedError)) {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "somebody has it after that", func() bool { return owned().Epoch > now.Epoch })
		terms[owned().Owner.NodeID()]++
	}
	done := flow.answered(t, a, time.Minute)
	for id, c := range done {
		if c.Attempts != 1 {
			t.Errorf("%s took %d turns", id, c.Attempts)
		}
	}
	for i, stop := range stops {
		if stop() == 0 {
			t.Errorf("%s was asked nothing", nodes[i].cfg.Node.ID)
		}
	}
	if now := claims(a.history(t, events.StreamFleet)); now != before {
		t.Errorf("%d seats were claimed meanwhile", now-before)
	}
	for _, h := range nodes {
		lines, _ := h.logs.from(marks[h.cfg.Node.ID])
		for _, line := range lines {
			if strings.Contains(line, "msg=seat_detached ") || strings.Contains(line, "msg=seat_admission_stale ") {
				t.Errorf("%s let go of a seat, or refused turns: %s", h.cfg.Node.ID, line)
			}
		}
		if h.logs.count(`msg=duty_lost .*duty=maintenance`) == 0 && terms[h.cfg.Node.ID] > 1 {
			t.Errorf("%s lost the duty and does not say so", h.cfg.Node.ID)
		}
	}
	t.Logf("%d mails; terms of the duty by node: %v", len(done), terms)
	audited(t, a.url())
}
