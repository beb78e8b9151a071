package projections_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// TestParkedMailAndWhatWasDecided proves that parked mail is listed with what an
// operator made of it, from two streams that are read in any order; that what was
// decided about counts no longer and stays readable; and that a decision about
// mail which DEAD has dropped, or about another's in its place, counts nothing.
func TestParkedMailAndWhatWasDecided(t *testing.T) {
	first, second, third := parked("dev", "e1", 1), parked("dev", "e2", 2), parked("dev", "e1", 9) // e1 came back, and failed again
	third.History = []events.Tried{{Epoch: 3, End: events.AttemptFailed, Count: 25, Why: "no"}}
	about := func(p events.MailParked, deadSeq uint64) events.ParkedBody {
		return events.ParkedBody{Handle: p.Handle, Key: p.Key(), DeadSeq: deadSeq, EventID: p.EventID, By: "ann", Reason: "r"}
	}
	dead := []events.Recorded{at(events.StreamDead, 2, first), at(events.StreamDead, 4, second), at(events.StreamDead, 6, third)}
	fleet := []events.Recorded{
		at(events.StreamFleet, 11, events.MailReplayed{ParkedBody: about(first, 2)}),
		at(events.StreamFleet, 12, events.MailReturned{ParkedBody: about(first, 2), MailSeq: 9}),
		at(events.StreamFleet, 13, events.MailDropped{ParkedBody: about(second, 4)}),
		at(events.StreamFleet, 14, events.MailDropped{ParkedBody: about(parked("dev", "gone", 7), 6)}), // of a DEAD that was recreated
	}
	for name, log := range map[string][]events.Recorded{"dead first": slices.Concat(dead, fleet), "fleet first": slices.Concat(fleet, dead)} {
		v := given(t, log...)
		if n := must(v.ParkedCount("dev")); n != 1 {
			t.Errorf("%s: %d are parked, want 1", name, n)
		}
		open := must(v.Parked("dev", false, 0, 10)).Items
		if len(open) != 1 || open[0].Position != 6 || open[0].Decided != nil || len(open[0].History) != 1 {
			t.Errorf("%s: undecided: %+v", name, open)
		}
		all := must(v.Parked("dev", true, 0, 10)).Items
		if len(all) != 3 || all[1].Decided.How != projections.DecidedDropped || all[2].Decided.How != projections.DecidedReturned ||
			all[2].Decided.MailSeq != 9 || all[2].Decided.By != "ann" || all[2].Decided.Position != 12 {
			t.Errorf("%s: all of it: %+v", name, all)
		}
		if n := must(v.ParkedCount("dev-2")); n != 0 {
			t.Errorf("%s: %d of dev-2 are parked", name, n)
		}
	}
	if long := must(given(t, at(events.StreamDead, 1, events.MailParked{Handle: "dev", MailSeq: 1, Epoch: 1, Owner: nodeA, Reason: strings.Repeat("x", 5000), Bytes: 7})).Parked("dev", false, 0, 1)).Items[0]; len(long.Reason) > 1<<10 || long.Bytes != 7 {
		t.Errorf("a row keeps %d bytes of a reason", len(long.Reason))
	}
}
