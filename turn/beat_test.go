package turn_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/turn"
)

// heard is a watchdog's ear.
type heard struct {
	mu    sync.Mutex
	beats int
	ended bool
}

func (h *heard) Waits(time.Duration) { h.mu.Lock(); h.beats++; h.mu.Unlock() }

func (*heard) Cadence() time.Duration { return time.Second }

func (h *heard) Done() { h.mu.Lock(); h.ended = true; h.mu.Unlock() }

// TestInboxesBeat proves that the loop which looks for lost wake-ups is a duty of
// the watchdog's: it beats while it has nothing to do, and ends with its loop (X1).
func TestInboxesBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ear := &heard{}
		inboxes := turn.NewInboxes(&turn.Worker{}, broker.NewMailboxes(fleetOf(t).Conn), turn.Mark{}, slog.New(slog.DiscardHandler))
		inboxes.Watch = func(string) turn.Beat { return ear }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := inboxes.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if ear.beats < 50 || !ear.ended {
			t.Errorf("%d beats in a minute, ended %t; want one a second, and an end", ear.beats, ear.ended)
		}
	})
}
