package seat_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestF4OwnershipFirst proves that a person's stop shuts the fence of a seat that
// is held, and nothing else of it, until it is lifted, and that a fence says first
// that the seat is not held any more: its successor is entitled to the work (F4).
func TestF4OwnershipFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 1)
		_, epoch := standing(t, f, "dev")
		var stopped *seat.StoppedError
		var gone *seat.NotHeldError
		a.Host.StopTurn("dev")
		if err := a.Host.Fence("dev", epoch); !errors.As(err, &stopped) || !admitted(a, "dev") {
			t.Errorf("the fence of a stopped seat: %v", err)
		}
		if err := a.Host.Fence("dev", epoch+1); !errors.As(err, &gone) {
			t.Errorf("the fence under another epoch: %v", err)
		}
		a.Host.ResumeTurns("dev")
		if err := a.Host.Fence("dev", epoch); err != nil {
			t.Errorf("the fence after the stop was lifted: %v", err)
		}
		a.Host.StopTurn("dev")
		a.Conn.Faults.CutOff(true)
		f.Advance(lapses)
		if err := a.Host.Fence("dev", epoch); !errors.As(err, &gone) {
			t.Errorf("the fence after a TTL without a renewal: %v", err)
		}
	})
}
