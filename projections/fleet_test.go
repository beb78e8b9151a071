package projections_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// The in-memory rows keep the contract that every store's rows keep.
func TestMemoryRows(t *testing.T) {
	rows := rowstest.Memory{}
	update := func(fn func(projections.Rows) error) error {
		trial := rowstest.Memory{}
		for k, v := range rows {
			trial[k] = v
		}
		err := fn(trial)
		if err == nil {
			rows = trial
		}
		return err
	}
	rowstest.Contract(t, update, func(fn func(projections.Rows) error) error { return fn(rows) })
}

// A seat's row after each kind of history: state, epoch, holder and end.
func TestSeatRow(t *testing.T) {
	over := claim("dev", 2, nodeB)
	over.Over = &events.Over{Epoch: 1, Owner: nodeA, LastSeq: 1, Unseen: 46000}
	for _, tt := range []struct {
		name  string
		given []events.Event
		state projections.SeatState
		epoch uint64
		owner events.Incarnation
		end   projections.End
	}{
		{"listed", []events.Event{company(1, "dev")}, "UNOWNED", 0, "", ""},
		{"claimed", []events.Event{company(1, "dev"), claim("dev", 1, nodeA)}, "ESTABLISHING", 1, nodeA, ""},
		{"established", []events.Event{claim("dev", 1, nodeA), established("dev", 1, nodeA)}, "HELD", 1, nodeA, ""},
		{"released", []events.Event{claim("dev", 1, nodeA), established("dev", 1, nodeA), release("dev", 1, nodeA)}, "UNOWNED", 1, "", "RELEASED"},
		{"fenced", []events.Event{claim("dev", 1, nodeA), fence("dev", 1, nodeA)}, "UNOWNED", 1, "", "FENCED"},
		{"released after the fence", []events.Event{claim("dev", 1, nodeA), fence("dev", 1, nodeA), release("dev", 1, nodeA)}, "UNOWNED", 1, "", "FENCED"},
		{"taken over: the established mark is the old tenure's", []events.Event{claim("dev", 1, nodeA), established("dev", 1, nodeA), over}, "ESTABLISHING", 2, nodeB, ""},
		{"a late edge of the old tenure", []events.Event{claim("dev", 1, nodeA), over, established("dev", 1, nodeA), release("dev", 1, nodeA)}, "ESTABLISHING", 2, nodeB, ""},
		{"removed while held", []events.Event{company(1, "dev"), claim("dev", 1, nodeA), company(2, "pm")}, "REMOVED", 1, nodeA, ""},
		{"returned", []events.Event{company(1, "dev"), company(2, "pm"), company(3, "dev")}, "UNOWNED", 0, "", ""},
		{"claimed though the company never had it", []events.Event{company(1, "pm"), claim("dev", 1, nodeA)}, "REMOVED", 1, nodeA, ""},
		{"renewals change nothing", []events.Event{claim("dev", 1, nodeA), events.LeaseRenewed{Lease: events.SeatLease("dev"), Epoch: 1, Owner: nodeA}}, "ESTABLISHING", 1, nodeA, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, found, err := given(t, fleet(tt.given...)...).Seat("dev")
			if err != nil || !found {
				t.Fatalf("seat: found %v, err %v", found, err)
			}
			if s.State() != tt.state || s.Epoch != tt.epoch {
				t.Errorf("got %s at epoch %d, want %s at %d", s.State(), s.Epoch, tt.state, tt.epoch)
			}
			var owner events.Incarnation
			if s.Holder != nil {
				owner = s.Holder.Owner
			}
			var end projections.End
			if s.Ended != nil {
				end = s.Ended.End
			}
			if owner != tt.owner || end != tt.end {
				t.Errorf("got holder %q end %q, want %q %q", owner, end, tt.owner, tt.end)
			}
		})
	}
}

// L5: since is the stamp of the claim; it changes exactly when the epoch does,
// whatever else happens in the tenure, and every kind of lease has one.
func TestSinceIsTheStampOfTheClaim(t *testing.T) {
	v := given(t, fleet(
		claim("dev", 1, nodeA),
		established("dev", 1, nodeA),
		events.LeaseRenewed{Lease: events.SeatLease("dev"), Epoch: 1, Owner: nodeA},
		company(1, "dev"),
		events.LeaseClaimed{Lease: events.NodeLease("node-a"), Epoch: 1, Owner: nodeA, TTL: 1, Protocol: 4},
		events.LeaseClaimed{Lease: events.Lease{Kind: events.KindWorker, ID: "retention"}, Epoch: 1, Owner: nodeA, TTL: 1, Protocol: 4},
	)...)
	s, _, _ := v.Seat("dev")
	if want := start.Add(time.Second); !s.Holder.Since.Equal(want) || s.Holder.Claimed != 1 {
		t.Errorf("seat: since %v at position %d, want %v at 1", s.Holder.Since, s.Holder.Claimed, want)
	}
	f := must(v.Fleet())
	if got, want := f.Nodes[0].Holder.Since, start.Add(5*time.Second); !got.Equal(want) {
		t.Errorf("node: since %v, want %v", got, want)
	}
	if got, want := f.Duties[0].Holder.Since, start.Add(6*time.Second); !got.Equal(want) {
		t.Errorf("duty: since %v, want %v", got, want)
	}
}

// O1: the fleet view shows each node with its roles, labels, protocol and seats,
// and the counts are those of the seats.
func TestFleetView(t *testing.T) {
	presence := events.LeaseClaimed{Lease: events.NodeLease("node-a"), Epoch: 3, Owner: nodeA, TTL: 45000, Protocol: 4,
		Node: &events.NodeFacts{Roles: []string{"seats"}, Labels: map[string]string{"zone": "a"}}}
	gone := events.LeaseClaimed{Lease: events.NodeLease("node-b"), Epoch: 1, Owner: nodeB, TTL: 45000, Protocol: 4}
	v := given(t, fleet(
		company(1, "dev", "pm", "qa"), presence, gone,
		events.LeaseReleased{Lease: events.NodeLease("node-b"), Epoch: 1, Owner: nodeB, Reason: events.ReasonDrain},
		claim("dev", 1, nodeA), established("dev", 1, nodeA), claim("pm", 1, nodeA), claim("qa", 1, nodeB),
		company(2, "dev", "pm"), claim("qa", 2, nodeA),
	)...)
	f := must(v.Fleet())
	if want := (projections.Counts{Seats: 2, Held: 3, Established: 1}); f.Counts != want {
		t.Errorf("counts: got %+v, want %+v", f.Counts, want)
	}
	if f.Position != 10 || f.First != 1 || !f.At.Equal(start.Add(10*time.Second)) {
		t.Errorf("as of: got %+v", f.AsOf)
	}
	a, b := f.Nodes[0], f.Nodes[1]
	if a.ID != "node-a" || a.Holder.Owner != nodeA || a.Roles[0] != "seats" || a.Labels["zone"] != "a" || a.Holder.Protocol != 4 || a.SeatsHeld != 3 {
		t.Errorf("node-a: got %+v", a)
	}
	if b.Holder != nil || b.Ended.End != projections.EndReleased || b.SeatsHeld != 0 {
		t.Errorf("node-b: got %+v", b)
	}
	if _, found, err := v.Node("node-c"); found || err != nil {
		t.Errorf("a node nobody saw: found %v, err %v", found, err)
	}
}

// Filters and keyset cursors: every page continues the last, and none repeats.
func TestSeatsPages(t *testing.T) {
	v := given(t, fleet(company(1, "a1", "a2", "b1", "b2", "c1"), company(2, "a1", "a2", "b1", "b2"),
		claim("a2", 1, nodeA), claim("b1", 1, nodeA), claim("b2", 1, nodeB))...)
	list := func(f projections.SeatFilter, after string, limit int) string {
		p := must(v.Seats(f, after, limit))
		var hs []string
		for _, s := range p.Items {
			hs = append(hs, s.Handle)
		}
		if p.More {
			hs = append(hs, "…")
		}
		return strings.Join(hs, " ")
	}
	for _, tt := range []struct {
		f     projections.SeatFilter
		after string
		limit int
		want  string
	}{
		{projections.SeatFilter{}, "", 3, "a1 a2 b1 …"},
		{projections.SeatFilter{}, "b1", 3, "b2 c1"},
		{projections.SeatFilter{Listed: true}, "a1", 3, "a2 b1 b2"},
		{projections.SeatFilter{State: projections.SeatRemoved}, "", 9, "c1"},
		{projections.SeatFilter{State: projections.SeatEstablishing}, "", 2, "a2 b1 …"},
		{projections.SeatFilter{Node: "node-a"}, "", 9, "a2 b1"},
		{projections.SeatFilter{Node: "node-a"}, "a2", 9, "b1"},
		{projections.SeatFilter{HandlePrefix: "b"}, "", 9, "b1 b2"},
		{projections.SeatFilter{HandlePrefix: "b"}, "a2", 1, "b1 …"},
		{projections.SeatFilter{HandlePrefix: "b"}, "c1", 9, ""},
		{projections.SeatFilter{HandlePrefix: "b", Node: "node-b"}, "", 9, "b2"},
		{projections.SeatFilter{}, "", -1, "…"},
	} {
		if got := list(tt.f, tt.after, tt.limit); got != tt.want {
			t.Errorf("%+v after %q: got %q, want %q", tt.f, tt.after, got, tt.want)
		}
	}
}

// Revisions are listed newest first, in pages, each with who applied it and why;
// what one of them said is found under its number for ever.
func TestCompanyRevisions(t *testing.T) {
	log := fleet(company(1, "dev"), company(2, "dev", "ops"), company(3))
	log[1].Meta = events.Meta{Source: nodeA, Actor: "ops@acme.example", Reason: "more hands"}
	v := given(t, log...)
	page, err := v.CompanyRevisions(0, 2)
	if err != nil || len(page.Items) != 2 || !page.More || page.Items[0].Revision != 3 || page.Items[0].Actor != "" {
		t.Fatalf("first page: %+v, %v", page, err)
	}
	second := page.Items[1]
	if second.Revision != 2 || second.Seats != 2 || second.Source != nodeA || second.Actor != "ops@acme.example" || second.Reason != "more hands" {
		t.Errorf("second revision: %+v", second)
	}
	page, err = v.CompanyRevisions(second.Revision, 2)
	if err != nil || len(page.Items) != 1 || page.More || page.Items[0].Revision != 1 {
		t.Errorf("second page: %+v, %v", page, err)
	}
	if got, found, err := v.CompanyRevision(2); err != nil || !found || got != second {
		t.Errorf("by number: %+v, %v, %v", got, found, err)
	}
	if _, found, err := v.CompanyRevision(4); err != nil || found {
		t.Errorf("a revision to come: found %v, %v", found, err)
	}
}

// The company view is the active revision, whole, and a stale title is gone.
func TestCompanyView(t *testing.T) {
	second := company(2, "dev")
	second.Seats[0].Title, second.Seats[0].Labels = "Renamed", map[string]string{"gpu": "yes"}
	v := given(t, fleet(company(1, "dev"), second)...)
	c, found, err := v.Company()
	if err != nil || !found || c.Revision != 2 || c.Name != "Acme" || c.Digest != "d2" || c.Position != 2 {
		t.Errorf("got %+v, found %v, err %v", c, found, err)
	}
	s, _, _ := v.Seat("dev")
	if s.Title != "Renamed" || s.Labels["gpu"] != "yes" || s.AgentID != "agent-dev" {
		t.Errorf("seat: got %+v", s)
	}
	if _, found, _ := given(t).Company(); found {
		t.Error("an empty log has a company")
	}
}

// Mailboxes are listed as registered; mail without a registration is not there.
func TestMailboxes(t *testing.T) {
	v := given(t, fleet(events.MailboxRegistered{Handle: "dev", AgentID: "x"}, events.MailboxRegistered{Handle: "pm", AgentID: "y"})...)
	p := must(v.Mailboxes("", 1))
	if len(p.Items) != 1 || !p.More || p.Items[0].Handle != "dev" || p.Items[0].Position != 1 {
		t.Errorf("got %+v", p)
	}
	if m, found, _ := v.Mailbox("pm"); !found || m.AgentID != "y" {
		t.Errorf("pm: got %+v, found %v", m, found)
	}
	if _, found, _ := v.Mailbox("qa"); found {
		t.Error("an unregistered mailbox was found")
	}
}

// Apply knows every event type there is: those of the three streams change rows
// or are known to keep none, and the others are refused by name.
func TestEveryEventIsKnown(t *testing.T) {
	kinds := []events.LeaseKind{events.KindSeat, events.KindNode, events.KindWorker}
	fits := map[events.Stream][]events.Event{
		events.StreamFleet: {established("dev", 1, nodeA), events.TriggerSkipped{Handle: "dev"}, events.MailboxRegistered{Handle: "dev"}, company(1), events.StreamMarked{},
			events.NodeReported{Lease: events.NodeLease("x")}, events.SeatPaused{Handle: "dev"}, events.SeatResumed{Handle: "dev"},
			events.SeatUnproven{Handle: "dev"}, events.SeatProven{Handle: "dev"}, events.LeaseDeclined{Lease: events.SeatLease("dev")},
			events.HandoffRequested{}, events.HandoffWarmed{}, events.HandoffQuiesced{}, events.HandoffFlushed{}, events.HandoffReleased{},
			events.HandoffCompleted{}, events.HandoffDeclined{}, events.HandoffAbandoned{},
			events.MailReplayed{}, events.MailReturned{}, events.MailDropped{}},
		events.StreamWork: {done("dev", "e", "k"), events.StreamMarked{}},
		events.StreamDead: {parked("dev", "e", 1), events.StreamMarked{}},
	}
	for _, k := range kinds {
		l := events.Lease{Kind: k, ID: "x"}
		fits[events.StreamFleet] = append(fits[events.StreamFleet], events.LeaseClaimed{Lease: l}, events.LeaseRenewed{Lease: l}, events.LeaseReleased{Lease: l}, events.LeaseFenced{Lease: l})
	}
	all := append([]events.Event{events.CursorCreated{}, events.CursorOpened{}, events.CursorAttempted{}, events.CursorSettled{}, events.CursorHeld{}, events.CursorFreed{}}, fits[events.StreamFleet]...)
	all = append(all, done("dev", "e", "k"), parked("dev", "e", 1))
	for _, st := range []events.Stream{events.StreamFleet, events.StreamWork, events.StreamDead, events.StreamCursor, events.StreamMail} {
		allowed := map[string]bool{}
		for _, e := range fits[st] {
			allowed[events.Name(e)] = true
		}
		for _, e := range all {
			rows := rowstest.Memory{}
			err := projections.Apply(rows, at(st, 7, e))
			var misplaced *projections.MisplacedError
			if allowed[events.Name(e)] != (err == nil) || (err != nil && !errors.As(err, &misplaced)) {
				t.Errorf("%s on %s: got %v, allowed %v", events.Name(e), st, err, allowed[events.Name(e)])
			}
			if err != nil && len(rows) != 0 {
				t.Errorf("%s on %s was refused and left rows:\n%s", events.Name(e), st, rows.Dump())
			}
		}
	}
}
