package aggregates_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// TestPause tells what each command makes of a seat that runs, is paused, or is
// paused with its turn stopped (H3).
func TestPause(t *testing.T) {
	runs, paused, stopped := aggregates.Pause{}, aggregates.Pause{Paused: true}, aggregates.Pause{Paused: true, StopTurn: true}
	pause := aggregates.PauseSeat{Handle: "dev", By: "ops", Reason: "review"}
	stop := pause
	stop.StopTurn = true
	resume := aggregates.ResumeSeat{Handle: "dev", By: "ops", Reason: "reviewed"}
	isPaused := events.SeatPaused{Handle: "dev", By: "ops", Reason: "review"}
	isStopped := isPaused
	isStopped.StopTurn = true
	isResumed := events.SeatResumed{Handle: "dev", By: "ops", Reason: "reviewed"}
	for name, c := range map[string]struct {
		state aggregates.Pause
		cmd   aggregates.PauseCommand
		then  events.Event
	}{
		"pause what runs":               {runs, pause, isPaused},
		"pause what runs, and stop it":  {runs, stop, isStopped},
		"resume what runs":              {runs, resume, nil},
		"pause again":                   {paused, pause, nil},
		"stop the turn, too":            {paused, stop, isStopped},
		"stop the turn again":           {stopped, stop, nil},
		"pause what is stopped already": {stopped, pause, nil},
		"resume":                        {stopped, resume, isResumed},
	} {
		var want []events.Event
		if c.then != nil {
			want = []events.Event{c.then}
		}
		if got := aggregates.DecidePause(c.state, c.cmd); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decided %+v, want %+v", name, got, want)
		}
	}
}

// TestPauseProperties proves, for any order of commands and of a holder's
// reports between them, that a command repeated changes nothing, that an event
// repeated by a writer whose read model lagged changes nothing either, and that
// no report of a holder, of whichever tenure, begins or ends a pause (H3).
func TestPauseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s aggregates.Pause
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			report := rapid.SampledFrom([]events.Event{
				events.SeatEstablished{Handle: "dev", Epoch: 2, Owner: beta}, events.SeatUnproven{Handle: "dev", Epoch: 1, Owner: alpha},
				events.SeatProven{Handle: "dev", Epoch: 1, Owner: alpha}, events.TriggerSkipped{Handle: "dev", Epoch: 1, Owner: alpha},
			}).Draw(t, "report")
			if got := aggregates.EvolvePause(s, report); got != s {
				t.Fatalf("%T made %+v of %+v", report, got, s)
			}
			cmd := rapid.SampledFrom([]aggregates.PauseCommand{
				aggregates.PauseSeat{Handle: "dev", By: "o", Reason: "r"}, aggregates.PauseSeat{Handle: "dev", By: "o", Reason: "r", StopTurn: true},
				aggregates.ResumeSeat{Handle: "dev", By: "o", Reason: "r"},
			}).Draw(t, "cmd")
			for _, e := range aggregates.DecidePause(s, cmd) {
				s = aggregates.EvolvePause(s, e)
				if again := aggregates.EvolvePause(s, e); again != s {
					t.Fatalf("%T again made %+v of %+v", e, again, s)
				}
			}
			if _, pause := cmd.(aggregates.PauseSeat); s.Paused != pause {
				t.Fatalf("%+v left %+v", cmd, s)
			}
			if more := aggregates.DecidePause(s, cmd); len(more) > 0 {
				t.Fatalf("%+v again decided %+v", cmd, more)
			}
		}
	})
}
