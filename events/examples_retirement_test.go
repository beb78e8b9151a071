package events_test

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// addRetirements adds the events of a mailbox's retirement.
func addRetirements(all map[string]example) {
	full, bare := retirementFull, retirementMin
	for _, e := range []example{
		{events.MailboxAbsent{RetirementBody: full(events.RetireAbsent)}, events.MailboxAbsent{RetirementBody: bare(events.RetireAbsent)}},
		{events.MailboxReturned{RetirementBody: full(events.RetireReturned)}, events.MailboxReturned{RetirementBody: bare(events.RetireReturned)}},
		{events.RetirementTicked{RetirementBody: full(events.RetireAbsent)}, events.RetirementTicked{RetirementBody: bare(events.RetireAbsent)}},
		{events.RetirementMarked{RetirementBody: full(events.RetireMarked)}, events.RetirementMarked{RetirementBody: marked(events.RetireMarked)}},
		{events.RetirementResumed{RetirementBody: full(events.RetireMarked)}, events.RetirementResumed{RetirementBody: marked(events.RetireMarked)}},
		{events.RetirementUnmarked{RetirementBody: full(events.RetireAbsent)}, events.RetirementUnmarked{RetirementBody: bare(events.RetireAbsent)}},
		{events.RetirementTakenOver{RetirementBody: full(events.RetireTakenOver)}, events.RetirementTakenOver{RetirementBody: marked(events.RetireTakenOver)}},
		{events.RetirementRunsEnded{RetirementBody: full(events.RetireRunsEnded)}, events.RetirementRunsEnded{RetirementBody: marked(events.RetireRunsEnded)}},
		{events.RetirementPurged{RetirementBody: full(events.RetirePurged)}, events.RetirementPurged{RetirementBody: marked(events.RetirePurged)}},
		{events.RetirementCompleted{RetirementBody: full(events.RetireCompleted)}, events.RetirementCompleted{RetirementBody: marked(events.RetireCompleted)}},
	} {
		add(all, e)
	}
}

func retirementFull(step events.RetirementStep) events.RetirementBody {
	return events.RetirementBody{
		Handle: "dev-2", Number: 2, Step: step, By: beta, Company: 4711,
		Since:     time.Date(2026, 3, 4, 5, 6, 7, 345000000, time.UTC),
		RetiresAt: time.Date(2026, 3, 5, 5, 6, 7, 345000000, time.UTC),
		Grace:     86400000, Absent: 86400017, Refused: events.RefusedHeld,
		Epoch: 8, Owner: "node-1:0ddba11e", Marks: &events.Marks{Inbox: 120, Control: 4, Reflect: 99}, Now: true,
	}
}

func retirementMin(step events.RetirementStep) events.RetirementBody {
	return events.RetirementBody{Handle: "a", Number: 1, Step: step, By: alpha, Company: 1, Grace: 1}
}

func marked(step events.RetirementStep) events.RetirementBody {
	b := retirementMin(step)
	b.Epoch, b.Owner, b.Marks = 1, alpha, &events.Marks{}
	return b
}
