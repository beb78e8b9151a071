package seat_test

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestPresenceClaimedAgain proves that a node which lost its presence while it was
// cut off, and claims it again under the same incarnation, gets its share back by
// handoffs: it has not ended, though its presence had (P6, design §5).
func TestPresenceClaimedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats(handles(4)...)
		a := f.Start(seattest.Config{ID: "a"})
		b := f.Start(seattest.Config{ID: "b"})
		nodes := []*seattest.Node{a, b}
		holds(f, nodes, 2, 2)
		b.Conn.Faults.CutOff(true)
		f.Until(func() bool { return len(a.Host.Held()) == 4 })
		b.Conn.Faults.CutOff(false)
		holds(f, nodes, 2, 2)
		for _, r := range f.History(events.StreamFleet) {
			if e, is := r.Event.(events.HandoffAbandoned); is {
				t.Errorf("a handoff was abandoned for want of its target: %+v", e)
			}
		}
	})
}

// TestTimerOfAForgottenHandoff proves that a pause which is over when its handoff is
// over too, and forgotten, runs nothing: there is nothing to run it on.
func TestTimerOfAForgottenHandoff(t *testing.T) {
	h := seat.New(seat.Config{NodeID: "a"}, seat.Deps{Log: slog.New(slog.DiscardHandler)})
	h.Live()
	if due := h.FireLate("dev"); due != 0 {
		t.Errorf("%d handoffs are to be run", due)
	}
}
