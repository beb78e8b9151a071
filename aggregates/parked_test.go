package aggregates_test

import (
	"errors"
	"testing"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// TestParkedMailIsDecidedOnce proves that parked mail is either replayed or
// dropped, never both, that asking again for what was decided changes nothing,
// and that mail which is not whole in DEAD is not sent again.
func TestParkedMailIsDecidedOnce(t *testing.T) {
	body := events.ParkedBody{Handle: "dev", Key: "k", DeadSeq: 7, EventID: "e", By: "ops", Reason: "r"}
	replay, sent, drop := aggregates.ReplayMail{Body: body}, aggregates.ReturnMail{Body: body, MailSeq: 9}, aggregates.DropMail{Body: body}
	clipped := aggregates.ReplayMail{Body: body, Clipped: true}
	replayed, returned, dropped := events.MailReplayed{ParkedBody: body}, events.MailReturned{ParkedBody: body, MailSeq: 9}, events.MailDropped{ParkedBody: body}
	for name, c := range map[string]struct {
		now     events.ParkedEvent
		cmd     aggregates.ParkedCommand
		want    string // wire name; "": nothing happens
		refused bool
	}{
		"replay":                   {nil, replay, events.NameMailReplayed, false},
		"replay again":             {replayed, replay, "", false},
		"replay what is back":      {returned, replay, "", false},
		"replay what was dropped":  {dropped, replay, "", true},
		"replay a part":            {nil, clipped, "", true},
		"note":                     {replayed, sent, events.NameMailReturned, false},
		"note again":               {returned, sent, "", false},
		"note without a replay":    {nil, sent, "", false},
		"drop":                     {nil, drop, events.NameMailDropped, false},
		"drop again":               {dropped, drop, "", false},
		"drop what is sent again":  {replayed, drop, "", true},
		"drop what has come again": {returned, drop, "", true},
	} {
		s := aggregates.ParkedMail{}
		if c.now != nil {
			s = aggregates.EvolveParked(s, 40, c.now)
		}
		decided, err := aggregates.DecideParked(s, c.cmd)
		var twice *aggregates.DecidedError
		var part *aggregates.ClippedError
		got := ""
		if len(decided) == 1 {
			got = events.Name(decided[0])
		}
		if got != c.want || len(decided) > 1 || (err != nil) != c.refused || err != nil && !errors.As(err, &twice) && !errors.As(err, &part) {
			t.Errorf("%s: decided %q (%v), want %q, refused %t", name, got, err, c.want, c.refused)
		}
	}
}
