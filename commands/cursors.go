package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// MailIdentity tells which life of MAIL this is, and whether a cursor still
// belongs to it (design §2).
type MailIdentity interface {
	// Advance returns the identity for a reader that knew known, the zero value
	// for none, and has now read up to upTo. It fails when MAIL was recreated.
	Advance(ctx context.Context, known events.StreamIdentity, upTo uint64) (events.StreamIdentity, error)
	// Check fails when MAIL was recreated, restored or swapped since known was
	// seen by a reader that has read up to that position.
	Check(ctx context.Context, known events.StreamIdentity, upTo uint64) error
}

// Cursors takes mailboxes over and records what happens to their mail.
type Cursors struct {
	shell *Shell
	mail  MailIdentity
}

// Cursors returns the shell's side of the mailboxes.
func (s *Shell) Cursors(mail MailIdentity) *Cursors { return &Cursors{s, mail} }

// Mailboxes are the cursors of one seat, by mailbox, held by one tenure.
type Mailboxes struct {
	Tenure  Tenure
	Cursors map[events.Mailbox]aggregates.Cursor
}

// TakeOver makes t the tenure that may read and settle the seat's mail, in one
// atomic batch over its cursors (design §4). Errors: *aggregates.FencedError
// when a later tenure has them, *aggregates.NoCursorError and what
// MailIdentity.Check answers when the mail cannot be trusted: each refuses the
// seat. Mail that was held behind a run which ended while nobody held the seat is
// unread again (Schedule17); no run outlives its holder yet.
func (c *Cursors) TakeOver(ctx context.Context, t Tenure) (*Mailboxes, error) {
	m := &Mailboxes{Tenure: t, Cursors: map[events.Mailbox]aggregates.Cursor{}}
	err := tries(t.Lease, func() error {
		ws := make([]events.Write, 0, len(events.Mailboxes))
		opened := make([]events.CursorEvent, 0, len(events.Mailboxes))
		for _, box := range events.Mailboxes {
			w, e, err := c.open(ctx, t, box)
			if err != nil {
				return err
			}
			ws, opened = append(ws, w), append(opened, e)
		}
		r, err := c.shell.log.AppendBatch(ctx, events.StreamCursor, ws)
		if err != nil {
			return err
		}
		for i, e := range opened { // a batch takes consecutive sequences
			seq := r.Seq - uint64(len(opened)-1-i)
			m.Cursors[events.Mailboxes[i]] = aggregates.EvolveCursor(aggregates.Cursor{}, seq, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take over the mailbox of %s: %w", t.Lease.ID, err)
	}
	return m, nil
}

// open decides one cursor's takeover on its newest record.
func (c *Cursors) open(ctx context.Context, t Tenure, box events.Mailbox) (events.Write, events.CursorEvent, error) {
	handle := t.Lease.ID
	now, err := c.read(ctx, handle, box)
	if err != nil {
		return events.Write{}, nil, err
	}
	if now.Exists {
		if err := c.mail.Check(ctx, now.Mail, now.Read); err != nil {
			return events.Write{}, nil, err
		}
	}
	decided, err := aggregates.DecideCursor(handle, box, now, aggregates.OpenCursor{Epoch: t.Epoch, Owner: t.Owner})
	if err != nil {
		return events.Write{}, nil, err
	}
	e := decided[0].(events.CursorEvent)
	w, err := c.shell.write(c.shell.outside(t), e, &events.Check{Subject: c.shell.subjects.Cursor(handle, box), Last: now.Last})
	return w, e, err
}

func (c *Cursors) read(ctx context.Context, handle string, box events.Mailbox) (aggregates.Cursor, error) {
	r, ok, err := c.shell.newest(ctx, events.StreamCursor, c.shell.subjects.Cursor(handle, box))
	if err != nil || !ok {
		return aggregates.Cursor{}, err
	}
	return aggregates.EvolveCursor(aggregates.Cursor{}, r.Seq, r.Event.(events.CursorEvent)), nil
}

// maxSupersedes bounds how often an attempt record is superseded because its
// acknowledgement was not first-hand.
const maxSupersedes = 3

// Attempt records that a turn starts on these messages, before the handler
// sees them. Only its success admits the turn: the record was acknowledged
// first-hand, so no successor had taken the mailbox over. A record found any
// other way is superseded by a new one (design §4). *aggregates.FencedError:
// this node may start nothing on the seat. seen are messages that were read on the
// way to those and stay open.
func (c *Cursors) Attempt(ctx context.Context, m *Mailboxes, box events.Mailbox, seqs []uint64, seen ...uint64) error {
	mail, err := c.seen(ctx, m.Cursors[box], seqs, seen)
	if err != nil {
		return err
	}
	cmd := aggregates.AttemptMail{Epoch: m.Tenure.Epoch, Owner: m.Tenure.Owner, Mail: mail, Seqs: seqs, Seen: seen}
	for range maxSupersedes {
		before, r, err := c.write(ctx, m, box, cmd)
		if err != nil || r.FirstHand {
			return err
		}
		// The superseding record tells the same attempt again: one turn, one count.
		before.Last = m.Cursors[box].Last
		m.Cursors[box] = before
	}
	return fmt.Errorf("attempt on %s: %w", m.Tenure.Lease.ID, events.ErrUnknown)
}

// Ended says how messages ended.
type Ended struct {
	Ack  []uint64 // settled for good
	Nak  []uint64 // to come again
	Why  string   // of Nak, for people
	Seen []uint64 // read on the way to those, and still open
}

// Settle records how messages ended. A refusal means that a successor decides
// about them now.
func (c *Cursors) Settle(ctx context.Context, m *Mailboxes, box events.Mailbox, e Ended) error {
	mail, err := c.seen(ctx, m.Cursors[box], e.Ack, e.Seen)
	if err != nil {
		return err
	}
	_, _, err = c.write(ctx, m, box, aggregates.SettleMail{
		Epoch: m.Tenure.Epoch, Owner: m.Tenure.Owner, Mail: mail,
		Ack: e.Ack, Nak: e.Nak, Seen: e.Seen, Why: e.Why, At: time.Now().UTC(),
	})
	return err
}

// Hold keeps messages behind a run of the seat, without an attempt (D1).
func (c *Cursors) Hold(ctx context.Context, m *Mailboxes, box events.Mailbox, run string, seqs []uint64) error {
	mail, err := c.seen(ctx, m.Cursors[box], seqs)
	if err != nil {
		return err
	}
	_, _, err = c.write(ctx, m, box, aggregates.HoldMail{Epoch: m.Tenure.Epoch, Owner: m.Tenure.Owner, Mail: mail, Run: run, Seqs: seqs})
	return err
}

// Free makes unread again what is held behind a run that has ended.
func (c *Cursors) Free(ctx context.Context, m *Mailboxes, box events.Mailbox, run string) error {
	_, _, err := c.write(ctx, m, box, aggregates.FreeMail{Epoch: m.Tenure.Epoch, Owner: m.Tenure.Owner, Run: run})
	return err
}

// seen returns MAIL's identity as a cursor that has read up to seqs must keep
// it: a marker passed without being noted would look like a swapped stream.
func (c *Cursors) seen(ctx context.Context, now aggregates.Cursor, seqs ...[]uint64) (events.StreamIdentity, error) {
	upTo := now.Read
	for _, seq := range slices.Concat(seqs...) {
		upTo = max(upTo, seq)
	}
	if upTo == now.Read {
		return now.Mail, nil
	}
	return c.mail.Advance(ctx, now.Mail, upTo)
}

// Check says whether MAIL is still the stream that the mailbox was read from.
func (c *Cursors) Check(ctx context.Context, m *Mailboxes, box events.Mailbox) error {
	now := m.Cursors[box]
	return c.mail.Check(ctx, now.Mail, now.Read)
}

// write decides and appends on the cursor as this tenure last wrote it. It
// writes alone, so a conflict is a takeover, unless an earlier write of its own
// whose answer was lost has landed since: then it decides on that. It returns
// the cursor that it decided on.
func (c *Cursors) write(ctx context.Context, m *Mailboxes, box events.Mailbox, cmd aggregates.CursorCommand) (before aggregates.Cursor, receipt events.Receipt, err error) {
	t := m.Tenure
	err = tries(t.Lease, func() error {
		before = m.Cursors[box]
		next, r, err := c.apply(ctx, c.shell.outside(t), t.Lease.ID, box, before, cmd)
		if err == nil {
			m.Cursors[box], receipt = next, r
		}
		if !errors.Is(err, events.ErrConflict) {
			return err
		}
		now, readErr := c.read(ctx, t.Lease.ID, box)
		if readErr != nil {
			return readErr
		}
		if now.Epoch != t.Epoch || now.Owner != t.Owner {
			return &aggregates.FencedError{Handle: t.Lease.ID, Epoch: t.Epoch, By: now.Epoch, Owner: now.Owner}
		}
		m.Cursors[box] = now
		return err
	})
	return before, receipt, err
}

// apply decides cmd on now and appends what it makes happen.
func (c *Cursors) apply(ctx context.Context, meta events.Meta, handle string, box events.Mailbox, now aggregates.Cursor, cmd aggregates.CursorCommand) (aggregates.Cursor, events.Receipt, error) {
	decided, err := aggregates.DecideCursor(handle, box, now, cmd)
	if err != nil || len(decided) == 0 {
		return now, events.Receipt{}, err
	}
	w, err := c.shell.write(meta, decided[0], &events.Check{Subject: c.shell.subjects.Cursor(handle, box), Last: now.Last})
	if err != nil {
		return now, events.Receipt{}, err
	}
	r, err := c.shell.log.Append(ctx, events.StreamCursor, w)
	if err != nil {
		return now, events.Receipt{}, err
	}
	return aggregates.EvolveCursor(now, r.Seq, decided[0].(events.CursorEvent)), r, nil
}
