package turn_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoAgentCostsNoAttempt proves that mail of a seat that has no agent here, as
// between a revision that removes it and its release, waits without an attempt,
// and runs once there is one (D3).
func TestNoAgentCostsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		d := sit(t, f, a)
		a.leave(errors.New("no such role"))
		send(t, f, "e1")
		for range 40 { // more heartbeats than the budget has attempts
			f.Advance(deskTTL / 3)
			d.admit(nil)
		}
		if open := cursor(t, f).Open; len(open) != 0 || len(a.ids()) != 0 {
			t.Errorf("without an agent %v ran, and open is %+v", a.ids(), open)
		}
		a.leave(nil)
		d.admit(nil)
		f.Advance(time.Second)
		if got := a.ids(); !slices.Equal(got, []string{"e1"}) {
			t.Errorf("with an agent again %v ran, want e1", got)
		}
		if done, ok := completed(t, f, "e1"); !ok || done.Attempts != 1 {
			t.Errorf("recorded %t, %+v, want one attempt", ok, done)
		}
	})
}
