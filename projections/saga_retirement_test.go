package projections_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// A retirement is a saga among the others: where it stands after each event, what
// holds it, and how it ended; one that is unmarked stands at absent again, and the
// seat's next one is another (R4, R6, R8).
func TestRetirementsAreSagas(t *testing.T) {
	body := func(number uint64, step events.RetirementStep) events.RetirementBody {
		b := absence("dev", step)
		b.Number, b.RetiresAt, b.Refused = number, start.Add(24*time.Hour), ""
		return b
	}
	held := body(1, events.RetireAbsent)
	held.Refused = events.RefusedHeld
	log := []events.Event{
		events.MailboxRegistered{Handle: "dev", AgentID: "x"},
		events.MailboxAbsent{RetirementBody: body(1, events.RetireAbsent)},
		events.RetirementTicked{RetirementBody: held},
		events.RetirementMarked{RetirementBody: body(1, events.RetireMarked)},
		events.RetirementUnmarked{RetirementBody: body(1, events.RetireAbsent)},
		events.RetirementMarked{RetirementBody: body(1, events.RetireMarked)},
		events.RetirementRunsEnded{RetirementBody: body(1, events.RetireRunsEnded)},
		events.RetirementPurged{RetirementBody: body(1, events.RetirePurged)},
		events.RetirementCompleted{RetirementBody: body(1, events.RetireCompleted)},
		events.MailboxAbsent{RetirementBody: body(2, events.RetireAbsent)},
		events.MailboxReturned{RetirementBody: body(2, events.RetireReturned)},
		events.MailboxAbsent{RetirementBody: body(3, events.RetireAbsent)},
		events.RetirementMarked{RetirementBody: body(3, events.RetireMarked)},
		events.RetirementTakenOver{RetirementBody: body(3, events.RetireTakenOver)},
	}
	for i, want := range []string{
		"", "1 absent", "1 absent held", "1 marked", "1 absent", "1 marked", "1 runs_ended", "1 purged", "1 completed COMPLETED",
		"2 absent", "2 absent RETURNED", "3 absent", "3 marked", "3 marked TAKEN_OVER",
	} {
		page, err := given(t, fleet(log[:i+1]...)...).Sagas(projections.SagaFilter{Kind: projections.SagaRetirement}, 0, 9)
		if err != nil {
			t.Fatal(err)
		}
		if got := newest(page.Items); got != want {
			t.Errorf("after %s: %q, want %q", events.Name(log[i]), got, want)
		}
	}
	v := given(t, fleet(log...)...)
	first, found, err := v.Saga("dev.retirement-1")
	if err != nil || !found || first.Requested != 2 || !first.RequestedAt.Equal(start.Add(2*time.Second)) || first.Last != 9 || first.By != string(nodeA) || !first.RetiresAt.Equal(start.Add(24*time.Hour)) {
		t.Errorf("the first: %+v, found %v, %v", first, found, err)
	}
	if open := must(v.Sagas(projections.SagaFilter{Open: new(true)}, 0, 9)); len(open.Items) > 0 {
		t.Errorf("open: %+v", open.Items)
	}
	if handoffs := must(v.Sagas(projections.SagaFilter{Kind: projections.SagaHandoff}, 0, 9)); len(handoffs.Items) > 0 {
		t.Errorf("handoffs: %+v", handoffs.Items)
	}
}

// newest is the first saga of a list in words.
func newest(list []projections.Saga) string {
	if len(list) == 0 {
		return ""
	}
	s := list[0]
	words := []string{strings.TrimPrefix(s.ID, "dev.retirement-"), string(s.Step), s.Cause, string(s.Outcome)}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
