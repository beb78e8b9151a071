package sagas

import (
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// DecideRetirement says what cmd makes happen. No event means that it has
// happened already, or is not for now; any error is a typed refusal.
//
// The first event is the saga's, to be written under the literal check of its
// subject at s.Last. A second one is the mailbox record's, IN THE SAME ATOMIC
// BATCH: a MailboxRetiring is checked against the company's subject at the
// command's Company, so that no revision that has the seat stands before the
// mark; any other against the record itself.
func DecideRetirement(s Retirement, cmd RetirementCommand) ([]events.Event, error) {
	switch cmd := cmd.(type) {
	case ObserveAbsent:
		return decideAbsent(s, cmd), nil
	case ObserveReturned:
		if s.Step != events.RetireAbsent {
			return nil, nil
		}
		b := s.by(cmd.By, cmd.Company)
		b.Step, b.Refused = events.RetireReturned, ""
		return []events.Event{events.MailboxReturned{RetirementBody: b}}, nil
	case HoldRetirement:
		if s.Step != events.RetireAbsent || s.Refused == cmd.Refused {
			return nil, nil
		}
		b := s.by(cmd.By, s.Company)
		b.Refused = cmd.Refused
		return []events.Event{events.RetirementTicked{RetirementBody: b}}, nil
	case MarkRetirement:
		return decideMark(s, cmd)
	case ResumeRetirement:
		return decideResume(s, cmd)
	case EndRuns:
		b, done, err := s.advance(cmd.Owner, cmd.Epoch, events.RetireMarked, events.RetireRunsEnded)
		if done || err != nil {
			return nil, err
		}
		return []events.Event{events.RetirementRunsEnded{RetirementBody: b}}, nil
	case MarkPurged:
		b, done, err := s.advance(cmd.Owner, cmd.Epoch, events.RetireRunsEnded, events.RetirePurged)
		if done || err != nil {
			return nil, err
		}
		return []events.Event{events.RetirementPurged{RetirementBody: b}}, nil
	case CompleteRetirement:
		b, done, err := s.advance(cmd.Owner, cmd.Epoch, events.RetirePurged, events.RetireCompleted)
		if done || err != nil {
			return nil, err
		}
		return []events.Event{
			events.RetirementCompleted{RetirementBody: b},
			events.MailboxRetired{Handle: b.Handle, AgentID: cmd.Mailbox.AgentID, Saga: b.ID()},
		}, nil
	case UnmarkRetirement:
		return decideUnmark(s, cmd)
	case TakeOverRetirement:
		return decideTakeOver(s, cmd)
	default:
		panic(fmt.Sprintf("sagas: no retirement command %T", cmd))
	}
}

// by is the body that this incarnation writes next.
func (s Retirement) by(by events.Incarnation, company uint64) events.RetirementBody {
	b := s.RetirementBody
	b.By, b.Company = by, max(company, b.Company)
	return b
}

func decideAbsent(s Retirement, cmd ObserveAbsent) []events.Event {
	if s.Marked() {
		return nil // it is being retired: nothing is left to count
	}
	grace := events.MillisOf(cmd.Grace)
	fresh := s.Step != events.RetireAbsent
	b := s.by(cmd.By, cmd.Company)
	if fresh {
		b = events.RetirementBody{
			Handle: cmd.Handle, Number: s.Number + 1, Step: events.RetireAbsent, By: cmd.By, Company: cmd.Company,
			Kept: s.Kept,
		}
	}
	switch {
	case fresh, cmd.Restart:
		b.Absent, b.Since, b.Grace = 0, cmd.Now.UTC(), 0
	case s.By == cmd.By:
		// Nobody else has judged since, so all that time was observed.
		b.Absent += events.MillisOf(max(cmd.Passed, 0))
	}
	// Of nodes that were told differently the most patient one counts: a mailbox is
	// never deleted before the time that was announced for it (R4, Case22).
	b.Grace, b.Refused = max(b.Grace, grace), ""
	if b.Absent < b.Grace {
		b.RetiresAt = cmd.Now.Add(wholeTicks((b.Grace - b.Absent).Duration(), cmd.Tick)).UTC()
	}
	if fresh {
		return []events.Event{events.MailboxAbsent{RetirementBody: b}}
	}
	return []events.Event{events.RetirementTicked{RetirementBody: b}}
}

// wholeTicks is when the tick falls that finds the grace over.
func wholeTicks(left, tick time.Duration) time.Duration {
	if tick <= 0 {
		return left
	}
	return (left + tick - 1) / tick * tick
}

func decideMark(s Retirement, cmd MarkRetirement) ([]events.Event, error) {
	switch {
	case s.Marked() && s.Owner == cmd.Owner && s.Epoch == cmd.Epoch:
		return nil, nil
	case s.Marked():
		return nil, &RetiringError{s.Handle, s.Step, s.Owner}
	case s.Step != events.RetireAbsent:
		return nil, &NotAbsentError{s.Handle, s.Step}
	case !cmd.Now && !s.Due():
		return nil, &GraceError{s.Handle, s.Absent.Duration(), s.Grace.Duration()}
	}
	return s.mark(cmd, func(b events.RetirementBody) events.Event { return events.RetirementMarked{RetirementBody: b} }), nil
}

func (s Retirement) mark(cmd MarkRetirement, event func(events.RetirementBody) events.Event) []events.Event {
	b := s.by(cmd.By, cmd.Company)
	b.Step, b.Refused, b.Owner, b.Epoch, b.Claimed, b.Marks = events.RetireMarked, "", cmd.Owner, cmd.Epoch, cmd.Claimed, &cmd.Marks
	b.Now = b.Now || cmd.Now
	return []events.Event{event(b), events.MailboxRetiring{Handle: b.Handle, AgentID: cmd.Mailbox.AgentID, Saga: b.ID()}}
}

func decideResume(s Retirement, cmd ResumeRetirement) ([]events.Event, error) {
	switch {
	case !s.Marked():
		return nil, &NotMarkedError{s.Handle, s.Step}
	case s.Owner == cmd.Owner && s.Epoch == cmd.Epoch:
		return nil, nil
	case cmd.Unseen < cmd.Stale:
		return nil, &RetiringError{s.Handle, s.Step, s.Owner}
	}
	if cmd.Back {
		s.Absent = 0
	}
	return s.mark(cmd.MarkRetirement, func(b events.RetirementBody) events.Event { return events.RetirementResumed{RetirementBody: b} }), nil
}

// advance takes the retirement from one step to the next, for the tenure that
// the mark rests on and no other.
func (s Retirement) advance(owner events.Incarnation, epoch uint64, from, to events.RetirementStep) (b events.RetirementBody, done bool, err error) {
	switch {
	case s.Owner != owner || s.Epoch != epoch:
		return b, false, &NotMineError{s.Handle, s.Step, s.By}
	case s.Step == to:
		return b, true, nil
	case s.Step != from:
		return b, false, &NotMineError{s.Handle, s.Step, s.By}
	}
	b = s.RetirementBody
	b.Step = to
	return b, false, nil
}

func decideUnmark(s Retirement, cmd UnmarkRetirement) ([]events.Event, error) {
	switch {
	case s.Owner != cmd.Owner || s.Epoch != cmd.Epoch:
		return nil, &NotMineError{s.Handle, s.Step, s.By}
	case s.Step == events.RetireAbsent:
		return nil, nil
	case !s.Marked():
		return nil, &NotMineError{s.Handle, s.Step, s.By}
	}
	b := s.RetirementBody
	b.Step, b.Marks, b.Now = events.RetireAbsent, nil, false
	return []events.Event{
		events.RetirementUnmarked{RetirementBody: b},
		events.MailboxRegistered{Handle: b.Handle, AgentID: cmd.Mailbox.AgentID},
	}, nil
}

func decideTakeOver(s Retirement, cmd TakeOverRetirement) ([]events.Event, error) {
	switch {
	case !s.Marked():
		return nil, &NotMarkedError{s.Handle, s.Step}
	case cmd.Unseen < cmd.Patient:
		return nil, &RetiringError{s.Handle, s.Step, s.Owner}
	}
	b := s.by(cmd.By, s.Company)
	b.Step = events.RetireTakenOver
	return []events.Event{
		events.RetirementTakenOver{RetirementBody: b},
		events.MailboxRegistered{Handle: b.Handle, AgentID: cmd.AgentID},
	}, nil
}
