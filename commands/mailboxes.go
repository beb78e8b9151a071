package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// Register makes the seat's mailbox known: its cursors first, then the event
// that says so, after which a missing cursor is an alarm and is never made anew
// (design §2). Idempotent, so that any node may do it, at any boot (U1).
// *aggregates.RetiringError: its retirement has begun to delete (R8).
func (c *Cursors) Register(ctx context.Context, handle, agentID string) error {
	return c.register(ctx, handle, agentID, true)
}

// register is Register; without over it leaves alone a mailbox that is registered
// already, under whichever agent's id.
func (c *Cursors) register(ctx context.Context, handle, agentID string, over bool) error {
	sh := c.shell
	return tries(events.SeatLease(handle), func() error {
		now, err := sh.mailbox(ctx, handle)
		if err != nil || !over && now.State == aggregates.MailboxRegistered {
			return err
		}
		decided, err := aggregates.DecideRegister(now, handle, agentID)
		if err != nil || len(decided) == 0 {
			return err
		}
		if now.State != aggregates.MailboxRegistered {
			if err := c.create(ctx, handle); err != nil {
				return err
			}
		}
		w, err := sh.write(sh.meta(), decided[0], sh.recordCheck(handle, now.Last))
		if err != nil {
			return err
		}
		_, err = sh.log.Append(ctx, events.StreamFleet, w)
		return err
	})
}

// mailbox reads the record of a mailbox from the leader.
func (s *Shell) mailbox(ctx context.Context, handle string) (now aggregates.Mailbox, err error) {
	r, ok, err := s.newest(ctx, events.StreamFleet, s.subjects.MailboxRecord(handle))
	if err != nil || !ok {
		return now, err
	}
	return aggregates.EvolveMailbox(now, r.Seq, r.Event), nil
}

// recordCheck is the condition of every write of a mailbox's record but the one
// that a mark makes: form (a), its own literal subject.
func (s *Shell) recordCheck(handle string, last uint64) *events.Check {
	return &events.Check{Subject: s.subjects.MailboxRecord(handle), Last: last}
}

// create makes the cursors that are not there yet.
func (c *Cursors) create(ctx context.Context, handle string) error {
	mail, err := c.mail.Advance(ctx, events.StreamIdentity{}, 0)
	if err != nil {
		return err
	}
	for _, box := range events.Mailboxes {
		_, _, err := c.apply(ctx, c.shell.meta(), handle, box, aggregates.Cursor{}, aggregates.CreateCursor{Mail: mail})
		if err != nil && !errors.Is(err, events.ErrConflict) { // a conflict: it is there
			return fmt.Errorf("create the %s cursor of %s: %w", box, handle, err)
		}
	}
	return nil
}

// Registration asks for one mailbox to be registered. What the caller last saw of it
// is a hint, which the appends check: a wrong one costs time. Where many are old,
// as when two nodes boot at once, read them anew before each call.
type Registration struct {
	Handle, AgentID string
	Known           aggregates.Mailbox // its record
	HasCursors      bool
}

// RegisterAll is Register for many, in batches: a company of 10,000 seats must not
// cost 50,000 answers to wait for (U1). The answers stand at the places of the
// registrations.
//
// A mailbox that somebody registered behind the caller's back stays as it is: it may
// be under an agent's id that a newer revision of the company gave it.
func (c *Cursors) RegisterAll(ctx context.Context, all []Registration) []error {
	errs := make([]error, len(all))
	mail, err := c.mail.Advance(ctx, events.StreamIdentity{}, 0)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	c.createAll(ctx, mail, all, errs)
	var ws []events.Write
	var of []int // ws[k] registers all[of[k]]
	for i, r := range all {
		if errs[i] != nil {
			continue
		}
		decided, err := aggregates.DecideRegister(r.Known, r.Handle, r.AgentID)
		if err != nil || len(decided) == 0 {
			errs[i] = err
			continue
		}
		w, err := c.shell.write(c.shell.meta(), decided[0], c.shell.recordCheck(r.Handle, r.Known.Last))
		if err != nil {
			errs[i] = err
			continue
		}
		ws, of = append(ws, w), append(of, i)
	}
	for k, r := range c.shell.log.AppendEach(ctx, events.StreamFleet, ws) {
		i := of[k]
		if errs[i] = r.Err; errors.Is(r.Err, events.ErrConflict) { // the hint was old: on what the leader has
			errs[i] = c.register(ctx, all[i].Handle, all[i].AgentID, false)
		}
	}
	return errs
}

// createAll makes the cursors of mailboxes that were never registered.
func (c *Cursors) createAll(ctx context.Context, mail events.StreamIdentity, all []Registration, errs []error) {
	var ws []events.Write
	var of []int
	for i, r := range all {
		if r.HasCursors || r.Known.State != aggregates.MailboxUnknown {
			continue
		}
		for _, box := range events.Mailboxes {
			decided, err := aggregates.DecideCursor(r.Handle, box, aggregates.Cursor{}, aggregates.CreateCursor{Mail: mail})
			if err == nil {
				var w events.Write
				w, err = c.shell.write(c.shell.meta(), decided[0], &events.Check{Subject: c.shell.subjects.Cursor(r.Handle, box)})
				ws, of = append(ws, w), append(of, i)
			}
			errs[i] = errors.Join(errs[i], err)
		}
	}
	for k, r := range c.shell.log.AppendEach(ctx, events.StreamCursor, ws) {
		if r.Err != nil && !errors.Is(r.Err, events.ErrConflict) { // a conflict: it is there
			i := of[k]
			errs[i] = errors.Join(errs[i], fmt.Errorf("create the cursors of %s: %w", all[i].Handle, r.Err))
		}
	}
}
