package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/turn"
)

// TestF4StoppedByPerson proves that a person's stop ends the turn at its next call,
// whatever it did before, and that its trigger is recorded and settled, not
// deferred: the person does not want it to go on, here or at a successor's. That
// the seat moved counts more: then the successor is entitled to it (F4, F5).
func TestF4StoppedByPerson(t *testing.T) {
	for name, c := range map[string]struct {
		fence    error
		recorded bool
	}{
		"stopped":   {&seat.StoppedError{Handle: "dev"}, true},
		"not owned": {&seat.NotHeldError{Handle: "dev", Epoch: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleetOf(t)
				a := &agent{}
				d := sit(t, f, a)
				a.set(func(ctx context.Context, _ turn.Request, calls turn.Calls) (turn.Reply, error) {
					d.trip(c.fence)
					_, err := calls.Call(ctx, "1", turn.ToolSend, json.RawMessage(`{"to":"ops"}`))
					if !errors.Is(err, turn.ErrFenced) || errors.Is(err, turn.ErrStoppedByPerson) != c.recorded {
						t.Errorf("the call behind the fence: got %v", err)
					}
					d.trip(nil)
					d.admit(errStale) // nothing is run again before it is looked at
					return turn.Reply{}, err
				})
				send(t, f, "e1")
				f.Advance(time.Minute)
				done, ok := completed(t, f, "e1")
				if ok != c.recorded || ok && (done.Outcome != events.OutcomeStopped || done.Attempts != 1) {
					t.Errorf("recorded: %t, %+v", ok, done)
				}
				if open := len(cursor(t, f).Open); open != map[bool]int{true: 0, false: 1}[c.recorded] {
					t.Errorf("%d messages are open", open)
				}
				if n, _ := f.Conn.Stream(events.StreamMail).Subjects(t.Context(), f.Subjects.Mail("ops", events.Inbox)); len(n) != 0 {
					t.Errorf("the call behind the fence reached: %v", n)
				}
				if stopped := d.log.Count("turn_stopped_by_person"); (stopped == 1) != c.recorded {
					t.Errorf("%d stops logged:\n%s", stopped, d.log)
				}
			})
		})
	}
}
