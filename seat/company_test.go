package seat_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// passes is how many passes a node has finished: each is logged, at whatever
// level (P14).
func passes(n *seattest.Node) int { return n.Log.Count("seat_sweep") }

// TestP5OneEarlyPass proves that an apply is acted upon at once; that a second
// one within the interval waits for the regular pass, which has it, and that no
// pass is spent on it once more; and that the next interval has an early pass of
// its own (P5).
func TestP5OneEarlyPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev", "ops", "qa")
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 3)
		f.Advance(time.Minute)
		interval := 5 * time.Second
		regular := passes(a)
		f.Until(func() bool { return passes(a) > regular }) // the interval begins
		apply := func(handles ...string) {
			f.Seats(handles...) // which wakes the node once its view has it
			f.Advance(200 * time.Millisecond)
		}
		begin := passes(a)
		apply("dev", "ops")
		if got := a.Host.Held(); !slices.Equal(got, []string{"dev", "ops"}) || passes(a) != begin+1 {
			t.Fatalf("right after the first apply: held %v after %d passes", got, passes(a)-begin)
		}
		apply("dev")
		if got := a.Host.Held(); !slices.Equal(got, []string{"dev", "ops"}) || passes(a) != begin+1 {
			t.Fatalf("right after the second apply: held %v after %d passes", got, passes(a)-begin)
		}
		f.Advance(interval)
		if got := a.Host.Held(); !slices.Equal(got, []string{"dev"}) || passes(a) != begin+2 {
			t.Fatalf("after the regular pass: held %v after %d passes", got, passes(a)-begin)
		}
		apply("dev", "new")
		if got := a.Host.Held(); !slices.Equal(got, []string{"dev", "new"}) || passes(a) != begin+3 {
			t.Errorf("in the next interval: held %v after %d passes", got, passes(a)-begin)
		}
	})
}

// TestNodeSaysItsRevision proves that a presence says which revision its node has
// applied: with its claim, at once with each apply, and with the next pass where
// the report failed; and never an older one than it said.
func TestNodeSaysItsRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := f.Start(seattest.Config{ID: "a"})
		f.Until(func() bool { return a.Host.Ready() == nil })
		said := func() (revision uint64) {
			for _, r := range f.History(events.StreamFleet) {
				switch e := r.Event.(type) {
				case events.LeaseClaimed:
					if e.Node != nil {
						revision = e.Node.CompanyRevision
					}
				case events.NodeReported:
					revision = e.Node.CompanyRevision
				}
			}
			return revision
		}
		a.Host.Applied(t.Context(), 2)
		if got := said(); got != 2 {
			t.Errorf("it says %d, want 2", got)
		}
		a.Host.Applied(t.Context(), 1) // a batch that comes again
		if got := said(); got != 2 {
			t.Errorf("it says %d after an older one, want 2", got)
		}
		a.Conn.Faults.Refuse(events.StreamFleet, f.Subjects.Tenure(events.NodeLease("a")), 1, errors.New("not now"))
		a.Host.Applied(t.Context(), 3)
		if got := said(); got != 2 {
			t.Fatalf("it says %d, and could not have", got)
		}
		f.Until(func() bool { return said() == 3 })
	})
}

// TestMovedSeatFollowsItsPlacement proves that a seat whose new placement a live
// node matches goes there by a handoff, for that reason, in the pass that the
// apply asks for (H4, P5); and that one that no live node matches is given back,
// named unplaceable, and taken as soon as such a node comes (P3, P9).
func TestMovedSeatFollowsItsPlacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Roster(events.RosterSeat{Handle: "dev", Node: "a"}, events.RosterSeat{Handle: "qa", Node: "a"})
		a, b := f.Start(seattest.Config{ID: "a"}), f.Start(seattest.Config{ID: "b"})
		holds(f, []*seattest.Node{a, b}, 2, 0)
		f.Advance(time.Minute)
		f.Roster(events.RosterSeat{Handle: "dev", Node: "b"}, events.RosterSeat{Handle: "qa", Node: "c"})
		if took := holds(f, []*seattest.Node{a, b}, 0, 1); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		f.Until(func() bool { return slices.Equal(f.Reasons("dev"), []events.Reason{events.ReasonMoved}) })
		if got := f.Reasons("qa"); !slices.Equal(got, []events.Reason{events.ReasonMoved}) {
			t.Errorf("the seat that nobody may run was given back for %v", got)
		}
		handoffs := 0
		for _, r := range f.History(events.StreamFleet) {
			if e, is := r.Event.(events.HandoffRequested); is && e.Handle == "dev" && e.Reason == events.HandoffMove {
				handoffs++
			}
		}
		if handoffs != 1 {
			t.Errorf("%d handoffs, want 1", handoffs)
		}
		if a.Log.Count("seats_unplaceable")+b.Log.Count("seats_unplaceable") == 0 {
			t.Error("nobody names the seat that no node may run")
		}
		c := f.Start(seattest.Config{ID: "c"})
		holds(f, []*seattest.Node{a, b, c}, 0, 1, 1)
	})
}

// TestSeatComesBack proves that a seat that left the company and is back is
// claimed under its next epoch, over nobody (R1, L2).
func TestSeatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev", "ops")
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 2)
		f.Advance(time.Minute)
		f.Seats("dev")
		holds(f, []*seattest.Node{a}, 1)
		f.Seats("dev", "ops")
		holds(f, []*seattest.Node{a}, 2)
		if got := f.Tenures("ops"); len(got) != 2 || got[1].Epoch != 2 || got[1].Over != nil {
			t.Errorf("the seat that is back has the tenures %+v", got)
		}
	})
}
