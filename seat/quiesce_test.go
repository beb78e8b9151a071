package seat_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestFewSeatsAreDarkAtOnce proves that a node that empties does not make its
// seats wait for each other in the dark: by the log never more than two are
// between quiesced and established, and all of them arrive (design §5).
func TestFewSeatsAreDarkAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(12)
		f.Seats(all...)
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 12)
		b := f.Start(seattest.Config{ID: "b"})
		holds(f, []*seattest.Node{a, b}, 6, 6)
		f.Advance(time.Minute)
		for _, n := range []*seattest.Node{a, b} {
			n.Conn.Faults.Delay(20 * time.Millisecond)
		}
		before, _ := handoffs(f)
		a.Stop()
		f.Until(func() bool { return len(b.Host.Held()) == 12 })
		f.Advance(time.Second)
		after, _ := handoffs(f)
		if n := after[events.NameHandoffCompleted] - before[events.NameHandoffCompleted]; n != 6 {
			t.Errorf("%d handoffs completed, want 6: %v", n, after)
		}
		dark, most := 0, 0
		for _, r := range f.History(events.StreamFleet) {
			switch r.Event.(type) {
			case events.HandoffQuiesced:
				dark++
			case events.HandoffCompleted, events.HandoffAbandoned:
				dark--
			}
			most = max(most, dark)
		}
		if most != 2 {
			t.Errorf("%d seats were dark at once, want 2", most)
		}
	})
}
