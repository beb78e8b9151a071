package audit

import (
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// company is the newest revision that the history has shown.
type company struct {
	seq   uint64
	seats map[string]bool
}

func companyOf(seq uint64, e events.CompanyApplied) company {
	c := company{seq, make(map[string]bool, len(e.Seats))}
	for _, s := range e.Seats {
		c.seats[s.Handle] = true
	}
	return c
}

// retired judges an event of a mailbox's retirement against the one before: that
// it takes a step which there is, that a deletion begins only when the grace is
// over or waived, under a revision without the seat that is the newest there, and
// on a tenure of the seat that its owner claimed (R1, R5, R6, R8).
func (a *Auditor) retired(rec events.Recorded, e events.RetirementEvent) {
	now, name := e.Retirement(), events.SeatLease(e.Retirement().Handle)
	before, known := a.retirements[now.Handle]
	a.retirements[now.Handle] = sagas.EvolveRetirement(before, rec.Seq, e)
	if !known && now.Number > 1 {
		return // the history begins in the middle of the story
	}
	bad := func(format string, args ...any) {
		a.violation(name, RuleRetirement, "%s: "+format, append([]any{now.ID()}, args...)...)
	}
	same := before.Owner == now.Owner && before.Epoch == now.Epoch
	switch e.(type) {
	case events.MailboxAbsent:
		if before.Open() || now.Number != before.Number+1 {
			bad("begins while %s goes on, or out of turn", before.ID())
		}
	case events.RetirementTicked, events.MailboxReturned:
		if before.Step != events.RetireAbsent {
			bad("is judged at step %q", before.Step)
		}
		if now.Absent > before.Absent && before.By != now.By {
			bad("%s counts time that %s observed", now.By, before.By)
		}
	case events.RetirementMarked:
		if before.Step != events.RetireAbsent || !now.Now && before.Absent < before.Grace {
			bad("deletes at step %q, after %v of %v", before.Step, before.Absent.Duration(), before.Grace.Duration())
		}
		a.marked(name, now)
	case events.RetirementResumed:
		if !before.Marked() || same {
			bad("is resumed at step %q", before.Step)
		}
		a.marked(name, now)
	case events.RetirementRunsEnded:
		if before.Step != events.RetireMarked || !same {
			bad("ends runs at step %q, on another's mark or none", before.Step)
		}
	case events.RetirementPurged:
		if before.Step != events.RetireRunsEnded || !same {
			bad("purges at step %q, on another's mark or none", before.Step)
		}
	case events.RetirementCompleted:
		if before.Step != events.RetirePurged || !same {
			bad("is completed at step %q, on another's mark or none", before.Step)
		}
	case events.RetirementUnmarked, events.RetirementTakenOver:
		if !before.Marked() || !same {
			bad("takes a mark back at step %q", before.Step)
		}
	}
}

// marked judges what a mark rests on.
func (a *Auditor) marked(name events.Lease, now events.RetirementBody) {
	if a.company.seq != 0 && (now.Company != a.company.seq || a.company.seats[now.Handle]) {
		a.violation(name, RuleRetirement, "%s deletes by the revision at %d, and the newest, at %d, has the seat: %t",
			now.ID(), now.Company, a.company.seq, a.company.seats[now.Handle])
	}
	if l := a.lease(name); !l.holes && !l.claimedAt(now.Epoch, now.Owner) {
		a.violation(name, RuleRetirement, "%s deletes on epoch %d of %s, which never claimed it", now.ID(), now.Epoch, now.Owner)
	}
}
