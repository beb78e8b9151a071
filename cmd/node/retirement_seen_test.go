package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
)

// heldOpen is a retirement that stands still between its mark and the deletion.
type heldOpen struct {
	duty.Boxes
	at, goOn chan struct{}
}

// Empty implements duty.Boxes.
func (h heldOpen) Empty(ctx context.Context, mail commands.Purger, s sagas.Retirement) error {
	close(h.at)
	select {
	case <-h.goOn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return h.Boxes.Empty(ctx, mail, s)
}

// holdRetirements makes the node's next retirement stand still.
func (h *hosted) holdRetirements(t *testing.T) heldOpen {
	t.Helper()
	self, err := mintIncarnation(h.cfg.Node.ID)
	if err != nil {
		t.Fatal(err)
	}
	shell := commands.New(broker.NewLog(h.store), h.store.Subjects(), self)
	held := heldOpen{shell.Cursors(h.mail), make(chan struct{}), make(chan struct{})}
	h.duties.mailboxes = duty.NewMailboxes(
		duty.Config{NodeID: h.cfg.Node.ID, TTL: h.store.LeaseTTL(), Protocol: seat.Protocol}, h.cfg.Mailbox.timings(),
		duty.MailboxesDeps{
			Self: self, Leases: shell, Steps: shell, Boxes: held, Mail: h.mail, Fleet: fleetSight{h.node},
			Unseen: h.logClock.UnseenFor, Now: clock.System, Log: h.log,
		})
	return held
}

// nodeSeats is who has which seats, as an answer says.
type nodeSeats map[string][]string

// fleetSeats asks GET /query/fleet.
func (h *hosted) fleetSeats(ctx context.Context) (nodeSeats, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url()+"/query/fleet", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var got struct {
		Nodes []struct {
			ID    string
			Seats []string
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %w", resp.Status, err)
	}
	all := nodeSeats{}
	for _, n := range got.Nodes {
		all[n.ID] = n.Seats
	}
	return all, nil
}

// queryFleet is fleetSeats, which must be answered.
func (h *hosted) queryFleet(t *testing.T) nodeSeats {
	t.Helper()
	got, err := h.fleetSeats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// graphFleet asks GraphQL for the same, and for who owns that seat.
func (h *hosted) graphFleet(t *testing.T, handle string) (all nodeSeats, owner, state string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"query":     `query($h: ID!) { fleet { nodes { id seats { edges { node { handle } } } } } seat(handle: $h) { state owner } }`,
		"variables": map[string]string{"h": handle},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url()+graphPath, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Data struct {
			Fleet struct {
				Nodes []struct {
					ID    string
					Seats struct {
						Edges []struct{ Node struct{ Handle string } }
					}
				}
			}
			Seat struct{ State, Owner string }
		}
		Errors []apiError
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || len(got.Errors) > 0 {
		t.Fatalf("%v, %+v", err, got.Errors)
	}
	all = nodeSeats{}
	for _, n := range got.Data.Fleet.Nodes {
		all[n.ID] = []string{}
		for _, e := range n.Seats.Edges {
			all[n.ID] = append(all[n.ID], e.Node.Handle)
		}
	}
	return all, got.Data.Seat.Owner, got.Data.Seat.State
}

// TestFleetShowsARetirementsHolder proves O2 on a running fleet: while the mailbox
// of a removed seat is being deleted, both nodes' fleet views name the node whose
// duty does it as the seat's holder, under an incarnation that is nobody's host; no
// host runs the seat or takes its lease for one that it forgot; and once the
// retirement is over nobody has it.
func TestFleetShowsARetirementsHolder(t *testing.T) {
	t.Parallel()
	url := natstest.R1(t).Server(0).NodeURL()
	var nodes []*hosted
	for _, id := range []string{"a", "b"} {
		cfg := hostedConfig(t, id, url)
		cfg.Coordination.LeaseTTLSeconds = 30 // a retirement may act for half of it
		nodes = append(nodes, hostNode(t, cfg, echoes(3, "")))
	}
	a, gone := nodes[0], seatName(2)
	eventually(t, time.Minute, "all seats are held", func() bool { return admitting(nodes) == 3 })
	_, next, err := packCompany("company.yaml", echoes(2, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.shell.Apply(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	var released uint64
	eventually(t, 20*time.Second, "the removed seat is given up", func() bool {
		l, err := a.shell.Lease(t.Context(), events.SeatLease(gone))
		released = l.Last
		return err == nil && l.Owner == "" && admitting(nodes) == 2
	})
	if err := a.views.AwaitPosition(t.Context(), events.StreamFleet, released); err != nil {
		t.Fatal(err)
	}
	held := a.holdRetirements(t)
	ended := make(chan error, 1)
	go func() {
		_, err := a.operator.Operate(t.Context(), graph.Act{Actor: "ops", Reason: "gone for good"}, graph.RetireMailbox{Handle: gone, Now: true})
		ended <- err
	}()
	<-held.at
	// Passes come and go meanwhile: none of them may take the lease for its own.
	passed := time.NewTimer(3 * a.cfg.Seat.SweepInterval)
	<-passed.C

	for _, h := range nodes {
		eventually(t, 20*time.Second, h.cfg.Node.ID+" shows the retirement's holder", func() bool {
			return slices.Contains(h.queryFleet(t)["a"], gone)
		})
		byREST := h.queryFleet(t)
		byGraph, owner, state := h.graphFleet(t, gone)
		for way, got := range map[string]nodeSeats{"/query/fleet": byREST, "GraphQL": byGraph} {
			if !slices.Contains(got["a"], gone) || slices.Contains(got["b"], gone) {
				t.Errorf("%s of %s: %v; want %s with a", way, h.cfg.Node.ID, got, gone)
			}
		}
		if node := events.Incarnation(owner).NodeID(); node != "a" || events.Incarnation(owner) == a.self || state != "REMOVED" {
			t.Errorf("%s says that the seat is %s and %s's; want it removed, and the duty's on a, which is not %s", h.cfg.Node.ID, state, owner, a.self)
		}
	}
	for _, h := range nodes {
		if slices.Contains(h.host.Held(), gone) {
			t.Errorf("the host of %s runs the seat", h.cfg.Node.ID)
		}
		if n := h.logs.count(`msg=(seat_given_back|seat_claimed) .*seat=` + gone + ` epoch=2`); n > 0 {
			t.Errorf("the host of %s touched the lease of the retirement", h.cfg.Node.ID)
		}
	}
	close(held.goOn)
	if err := <-ended; err != nil {
		t.Fatalf("the retirement: %v", err)
	}
	for _, h := range nodes {
		eventually(t, 20*time.Second, h.cfg.Node.ID+" shows no holder any more", func() bool {
			_, owner, _ := h.graphFleet(t, gone)
			return owner == "" && !slices.Contains(h.queryFleet(t)["a"], gone)
		})
	}
}
