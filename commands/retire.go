package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// ErrCompanyMoved: another revision of the company was applied since the one that
// a retirement judged by. Nothing was marked (R5).
var ErrCompanyMoved = errors.New("the company moved on to another revision meanwhile")

// Purger removes mail up to a position; *broker.Mailboxes does.
type Purger interface {
	Purge(ctx context.Context, handle string, box events.Mailbox, upTo uint64) error
}

// RetirementNow reads the newest retirement of a mailbox and its record from the
// leader.
func (s *Shell) RetirementNow(ctx context.Context, handle string) (now sagas.Retirement, box aggregates.Mailbox, err error) {
	if box, err = s.mailbox(ctx, handle); err != nil {
		return now, box, err
	}
	r, ok, err := s.newest(ctx, events.StreamFleet, s.subjects.Retirement(handle))
	if err != nil || !ok {
		return now, box, err
	}
	return sagas.EvolveRetirement(now, r.Seq, r.Event.(events.RetirementEvent)), box, nil
}

// Retire decides one step of the newest retirement of a mailbox on what the log
// has now, and returns the retirement as it stands after it. command makes the
// command from that state. Errors are the decider's typed refusals,
// ErrCompanyMoved, and the log's.
//
// What also changes the mailbox's record is one atomic batch. A mark's other half
// is checked against the company's subject, so no revision that has the seat can
// stand before the mark: mail for a seat that was added back is above it.
func (s *Shell) Retire(ctx context.Context, handle string, command func(sagas.Retirement, aggregates.Mailbox) sagas.RetirementCommand) (sagas.Retirement, error) {
	var after sagas.Retirement
	err := tries(events.SeatLease(handle), func() error {
		now, box, err := s.RetirementNow(ctx, handle)
		if err != nil {
			return err
		}
		after = now
		decided, err := sagas.DecideRetirement(now, command(now, box))
		if err != nil || len(decided) == 0 {
			return err
		}
		after, err = s.appendRetirement(ctx, handle, now, box, decided)
		return err
	})
	return after, err
}

func (s *Shell) appendRetirement(ctx context.Context, handle string, now sagas.Retirement, box aggregates.Mailbox, decided []events.Event) (sagas.Retirement, error) {
	step := decided[0].(events.RetirementEvent)
	m := signed(ctx, s.meta())
	m.Epoch = step.Retirement().Epoch
	own, err := s.write(m, step, &events.Check{Subject: s.subjects.Retirement(handle), Last: now.Last})
	if err != nil {
		return now, err
	}
	if len(decided) == 1 {
		r, err := s.log.Append(ctx, events.StreamFleet, own)
		if err != nil {
			return now, err
		}
		return sagas.EvolveRetirement(now, r.Seq, step), nil
	}
	check := s.recordCheck(handle, box.Last)
	_, marks := decided[1].(events.MailboxRetiring)
	if marks {
		check = &events.Check{Subject: s.subjects.Company(), Last: step.Retirement().Company}
	}
	m.ID += "-mailbox" // one command, two events
	record, err := s.write(m, decided[1], check)
	if err != nil {
		return now, err
	}
	r, err := s.log.AppendBatch(ctx, events.StreamFleet, []events.Write{own, record})
	if marks && errors.Is(err, events.ErrConflict) {
		return now, s.whyNotMarked(ctx, step.Retirement().Company, err)
	}
	if err != nil {
		return now, err
	}
	return sagas.EvolveRetirement(now, r.Seq-1, step), nil // a batch takes consecutive sequences
}

// whyNotMarked tells a company that moved on, which no repeat of the same judgement
// can do anything about, from a retirement that did.
func (s *Shell) whyNotMarked(ctx context.Context, company uint64, conflict error) error {
	msg, err := s.log.Last(ctx, events.StreamFleet, s.subjects.Company())
	if err != nil {
		return err
	}
	if msg.Seq != company {
		return fmt.Errorf("%w: it is at position %d, the judgement at %d", ErrCompanyMoved, msg.Seq, company)
	}
	return conflict
}

// Marks reads where the seat's subjects end in MAIL, from the leader. Mail that is
// stored later is above them.
func (c *Cursors) Marks(ctx context.Context, handle string) (m events.Marks, err error) {
	for _, box := range events.Mailboxes {
		msg, err := c.shell.log.Last(ctx, events.StreamMail, c.shell.subjects.Mail(handle, box))
		if errors.Is(err, events.ErrNotFound) {
			continue
		}
		if err != nil {
			return m, err
		}
		m.Set(box, msg.Seq)
	}
	return m, nil
}

// Empty deletes what the mark of a retirement covers: the cursors move to the
// marks, in one batch and under the mark's tenure, then the mail up to them goes.
// Whoever does it, and however late, nothing above a mark is touched (Schedule9).
// *aggregates.FencedError: a later tenure has the mailbox, and nothing was purged.
func (c *Cursors) Empty(ctx context.Context, mail Purger, s sagas.Retirement) error {
	if err := tries(events.SeatLease(s.Handle), func() error { return c.moveToMarks(ctx, s) }); err != nil {
		return fmt.Errorf("move the cursors of %s to the marks: %w", s.Handle, err)
	}
	for _, box := range events.Mailboxes {
		if mark := s.Marks.Of(box); mark > 0 {
			if err := mail.Purge(ctx, s.Handle, box, mark); err != nil {
				return fmt.Errorf("purge the %s of %s up to %d: %w", box, s.Handle, mark, err)
			}
		}
	}
	return nil
}

func (c *Cursors) moveToMarks(ctx context.Context, s sagas.Retirement) error {
	var ws []events.Write
	for _, box := range events.Mailboxes {
		now, err := c.read(ctx, s.Handle, box)
		if err != nil {
			return err
		}
		cmd := aggregates.RetireMail{Epoch: s.Epoch, Owner: s.Owner, Mark: s.Marks.Of(box), Mail: now.Mail}
		if now.Exists {
			if err := c.identify(ctx, now, s.Now, &cmd); err != nil {
				return err
			}
		}
		decided, err := aggregates.DecideCursor(s.Handle, box, now, cmd)
		if err != nil {
			return err
		}
		if len(decided) == 0 {
			continue
		}
		m := c.shell.meta()
		m.Epoch, m.FleetSeq = s.Epoch, s.Claimed
		w, err := c.shell.write(m, decided[0], &events.Check{Subject: c.shell.subjects.Cursor(s.Handle, box), Last: now.Last})
		if err != nil {
			return err
		}
		ws = append(ws, w)
	}
	if len(ws) == 0 {
		return nil
	}
	_, err := c.shell.log.AppendBatch(ctx, events.StreamCursor, ws)
	return err
}

// identify says what MAIL is to a cursor that is moved to a mark. A stream that was
// swapped has other mail under these sequences, and nothing is deleted by them
// (Schedule10), unless an operator retires the mailbox himself: the seat's old mail
// is lost with the old stream then, and its mailbox begins anew in this one.
func (c *Cursors) identify(ctx context.Context, now aggregates.Cursor, operators bool, cmd *aggregates.RetireMail) error {
	err := c.mail.Check(ctx, now.Mail, now.Read)
	known := now.Mail
	switch {
	case err == nil && cmd.Mark <= now.Read:
		return nil
	case err == nil:
	case operators && errors.Is(err, events.ErrSwapped):
		known, cmd.Anew = events.StreamIdentity{}, true
	default:
		return err
	}
	cmd.Mail, err = c.mail.Advance(ctx, known, cmd.Mark)
	return err
}

// TakeOverRetirement finishes the deletion that another began and registers the
// mailbox anew, for a seat that was added back (R8). unseen is how long the caller
// has seen the retirement stand still, patient how long it must. The mailbox
// begins empty: what is above the marks is the returned seat's.
func (c *Cursors) TakeOverRetirement(ctx context.Context, mail Purger, handle, agentID string, unseen, patient time.Duration) (sagas.Retirement, error) {
	now, _, err := c.shell.RetirementNow(ctx, handle)
	if err != nil {
		return now, err
	}
	cmd := sagas.TakeOverRetirement{By: c.shell.self, AgentID: agentID, Unseen: unseen, Patient: patient}
	if _, err := sagas.DecideRetirement(now, cmd); err != nil {
		return now, err
	}
	var fenced *aggregates.FencedError // the seat runs already, and has its mail
	if err := c.Empty(ctx, mail, now); err != nil && !errors.As(err, &fenced) {
		return now, err
	}
	return c.shell.Retire(ctx, handle, func(s sagas.Retirement, _ aggregates.Mailbox) sagas.RetirementCommand {
		if s.Last != now.Last { // it moved: what was emptied is not what stands now
			cmd.Unseen = 0
		}
		return cmd
	})
}
