package broker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

// TestSourceStops proves what a source's reader may rest on although it reads ahead:
// events come in order and none is left out, what cannot be read is told of behind
// all that stands before it, and once the reader has said why it stops, or its
// context has ended, nothing more is handed over and nothing goes on reading.
func TestSourceStops(t *testing.T) {
	const n = 3000 // several batches more than are read ahead
	enough := errors.New("enough")
	for _, tt := range []struct {
		name string
		bad  bool // the last message is no event
		// stop is called with each batch; it may end ctx.
		stop func(handed int, cancel context.CancelCauseFunc) error
		all  bool
		want error // nil: *events.UnknownError
	}{
		{"reader stops at the first batch", false, func(int, context.CancelCauseFunc) error { return enough }, false, enough},
		{"reader stops later", false, func(handed int, _ context.CancelCauseFunc) error {
			if handed >= n/2 {
				return enough
			}
			return nil
		}, false, enough},
		{"context ends under a batch", false, func(_ int, cancel context.CancelCauseFunc) error { cancel(enough); return nil }, false, enough},
		{"context ends once all is read", false, func(handed int, cancel context.CancelCauseFunc) error {
			if handed == n {
				cancel(enough)
			}
			return nil
		}, true, enough},
		{"unreadable behind all", true, func(int, context.CancelCauseFunc) error { return nil }, true, nil},
		{"reader stops before the unreadable", true, func(int, context.CancelCauseFunc) error { return enough }, false, enough},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left over
				m, err := broker.NewMemory(broker.Config{Prefix: "crewlet", LeaseTTL: 45 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = m.Close() }()
				for i := range n {
					e := events.SeatPaused{Handle: fmt.Sprintf("s%d", i%7), By: "ops", Reason: "test"}
					w, err := events.Encode(m.Subjects(), events.Meta{ID: fmt.Sprint(i), Command: fmt.Sprint(i), Source: "a:0000000a", Time: time.Now()}, e)
					if err != nil {
						t.Fatal(err)
					}
					mustAppend(t, m.Stream(events.StreamFleet), w)
				}
				if tt.bad {
					mustAppend(t, m.Stream(events.StreamFleet), write("crewlet.fleet.host.s0", "{}", nil))
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				handed, stopped := 0, false
				err = broker.NewSource(m).Follow(ctx, events.StreamFleet, 1, func(batch []events.Recorded, _ bool) error {
					if stopped || ctx.Err() != nil {
						t.Error("a batch after the end")
					}
					for _, r := range batch {
						if handed++; r.Seq != uint64(handed) {
							t.Fatalf("event %d comes as number %d", r.Seq, handed)
						}
					}
					time.Sleep(time.Second) // the reading goes ahead as far as it may
					err := tt.stop(handed, cancel)
					stopped = err != nil
					return err
				})
				var unknown *events.UnknownError
				if tt.want == nil && !errors.As(err, &unknown) || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("it ended with %v", err)
				}
				if all := handed == n; all != tt.all {
					t.Errorf("%d of %d events were handed over", handed, n)
				}
			})
		})
	}
}
