package seat_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// causes counts why handoffs were declined.
func causes(f *seattest.Fleet) map[events.DeclineReason]int {
	count := map[events.DeclineReason]int{}
	for _, r := range f.History(events.StreamFleet) {
		if e, ok := r.Event.(events.HandoffDeclined); ok {
			count[e.Cause]++
		}
	}
	return count
}

// TestBehindTargetDeclines proves that a node that is behind takes no seat that a
// peer would hand it, that the seat goes on where it is, that the node is not
// asked again in every pass, and that it gets its share once it is level (P10,
// design §5).
func TestBehindTargetDeclines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(4)
		f.Seats(all...)
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 4)
		claims := claimsOf(f, all)
		var behind atomic.Bool
		behind.Store(true)
		b := f.Start(seattest.Config{ID: "b", Behind: behind.Load})
		f.Until(func() bool { return causes(f)[events.DeclineBehind] > 0 })
		f.Advance(2 * ttl)
		if n := len(a.Host.Held()); n != 4 || claimsOf(f, all) != claims {
			t.Errorf("a holds %d seats, and %d were claimed anew; want all 4 untouched", n, claimsOf(f, all)-claims)
		}
		// Two at first; then two in each TTL, where a pass every 5 s would make 18 times as many.
		if n := causes(f)[events.DeclineBehind]; n > 6 {
			t.Errorf("the node was asked %d times in two TTLs", n)
		}
		behind.Store(false)
		holds(f, []*seattest.Node{a, b}, 2, 2)
	})
}

// TestReplacedTargetDeclines proves that a node does not take a seat that the
// company has placed elsewhere since it was offered (design §5).
func TestReplacedTargetDeclines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := f.Start(seattest.Config{ID: "a", Handoffs: func(h seat.Handoffs) seat.Handoffs {
			return &applying{Handoffs: h, before: func() {
				f.Roster(events.RosterSeat{Handle: "dev", Node: "c"})
			}}
		}})
		holds(f, []*seattest.Node{a}, 1)
		b := f.Start(seattest.Config{ID: "b"})
		f.Until(func() bool { return b.Host.Ready() == nil })
		f.Advance(6 * time.Second)
		if _, _, err := a.Host.Move(t.Context(), "dev", "b", "ops@acme.example"); err != nil {
			t.Fatal(err)
		}
		f.Until(func() bool { return causes(f)[events.DeclineReplaced] == 1 })
		if got := seattest.Holders("dev", b); len(got) != 0 {
			t.Errorf("b took a seat that is pinned to c")
		}
		c := f.Start(seattest.Config{ID: "c"})
		holds(f, []*seattest.Node{c}, 1)
	})
}

// applying runs before once, ahead of the first handoff that is asked for.
type applying struct {
	seat.Handoffs
	before func()
	done   atomic.Bool
}

func (a *applying) Handoff(ctx context.Context, handle string, command func(sagas.Handoff, aggregates.Lease) sagas.HandoffCommand) (sagas.Handoff, error) {
	if !a.done.Swap(true) {
		a.before()
	}
	return a.Handoffs.Handoff(ctx, handle, command)
}
