package aggregates

import (
	"fmt"
	"slices"

	"github.com/seat-tenure/tenure/events"
)

// MaxOpenMail bounds how many messages of one mailbox may be seen and not
// settled. At the bound reading stops and says so (design §6).
const MaxOpenMail = 1000

// Cursor is one mailbox's cursor: the snapshot that its newest event carries.
type Cursor struct {
	Last   uint64 // sequence of that event; 0: there is none
	Exists bool
	events.CursorSnapshot
	Unknown events.Fields // of a newer build, carried along (L9)
}

// EvolveCursor applies the event at seq. Each carries the whole state.
func EvolveCursor(_ Cursor, seq uint64, e events.CursorEvent) Cursor {
	_, _, snapshot := e.Cursor()
	return Cursor{Last: seq, Exists: true, CursorSnapshot: snapshot, Unknown: events.UnknownOf(e)}
}

// CursorCommand is what can be asked of a cursor.
type CursorCommand interface{ cursorCommand() }

// CreateCursor registers the mailbox: nothing read yet, all its mail to come.
type CreateCursor struct{ Mail events.StreamIdentity }

// OpenCursor takes the cursor over for a tenure.
type OpenCursor struct {
	Epoch uint64
	Owner events.Incarnation
}

// AttemptMail records, before the handler sees them, that a turn starts on
// these messages. They are open already, or the next ones to be seen.
type AttemptMail struct {
	Epoch uint64
	Owner events.Incarnation
	Mail  events.StreamIdentity // with the newest marker at or below the highest of Seqs
	Seqs  []uint64
}

// SettleMail records how messages ended: Ack for good, Nak to come again.
type SettleMail struct {
	Epoch uint64
	Owner events.Incarnation
	Mail  events.StreamIdentity // as in AttemptMail
	Ack   []uint64
	Nak   []uint64
}

func (CreateCursor) cursorCommand() {}
func (OpenCursor) cursorCommand()   {}
func (AttemptMail) cursorCommand()  {}
func (SettleMail) cursorCommand()   {}

// FencedError refuses a write to a cursor that another tenure has taken over:
// the writer may start and settle nothing any more (D4, design §4).
type FencedError struct {
	Handle string
	Epoch  uint64 // the writer's
	By     uint64 // the epoch that has the cursor now
	Owner  events.Incarnation
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("the mailbox of %s was taken over by %s at epoch %d; epoch %d may settle nothing", e.Handle, e.Owner, e.By, e.Epoch)
}

// NoCursorError: a registered mailbox without a cursor. Its mail must not be
// read, since what was settled is not known (design §2: an alarm).
type NoCursorError struct {
	Handle  string
	Mailbox events.Mailbox
}

func (e *NoCursorError) Error() string {
	return fmt.Sprintf("the %s of %s is registered but has no cursor: the CURSOR stream lost it; restore that stream before the seat can run", e.Mailbox, e.Handle)
}

// FullError: the mailbox has as much open mail as its cursor may keep.
type FullError struct {
	Handle string
	Open   int
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the mailbox of %s has %d messages seen and not settled; reading stops until some are", e.Handle, e.Open)
}

// DecideCursor says what cmd makes happen to the cursor of that mailbox. No
// event means that nothing changes; a refusal is *FencedError, *NoCursorError
// or *FullError.
func DecideCursor(handle string, box events.Mailbox, s Cursor, cmd CursorCommand) ([]events.Event, error) {
	body := events.CursorBody{Handle: handle, Mailbox: box, CursorSnapshot: s.CursorSnapshot, Kept: events.Kept{Unknown: s.Unknown}}
	if create, ok := cmd.(CreateCursor); ok {
		if s.Exists {
			return nil, nil
		}
		body.Mail = create.Mail
		return []events.Event{events.CursorCreated{CursorBody: body}}, nil
	}
	if !s.Exists {
		return nil, &NoCursorError{handle, box}
	}
	switch cmd := cmd.(type) {
	case OpenCursor:
		if s.Epoch > cmd.Epoch || (s.Epoch == cmd.Epoch && s.Owner != cmd.Owner) {
			return nil, &FencedError{handle, cmd.Epoch, s.Epoch, s.Owner}
		}
		body.Epoch, body.Owner = cmd.Epoch, cmd.Owner
		return []events.Event{events.CursorOpened{CursorBody: body}}, nil
	case AttemptMail:
		if s.Epoch != cmd.Epoch || s.Owner != cmd.Owner {
			return nil, &FencedError{handle, cmd.Epoch, s.Epoch, s.Owner}
		}
		body.Mail = cmd.Mail
		return decideAttempt(body, cmd.Seqs)
	case SettleMail:
		if s.Epoch != cmd.Epoch || s.Owner != cmd.Owner {
			return nil, &FencedError{handle, cmd.Epoch, s.Epoch, s.Owner}
		}
		body.Mail = cmd.Mail
		return decideSettle(body, cmd)
	default:
		panic(fmt.Sprintf("aggregates: no cursor command %T", cmd))
	}
}

func decideAttempt(body events.CursorBody, seqs []uint64) ([]events.Event, error) {
	before := len(body.Open)
	body.Open = slices.Clone(body.Open)
	for _, seq := range slices.Compact(slices.Sorted(slices.Values(seqs))) { // one turn costs one attempt (D3)
		i, open := find(body.Open, seq)
		switch {
		case open:
		case seq > body.Read:
			body.Read = seq
			body.Open = slices.Insert(body.Open, i, events.OpenMail{Seq: seq})
		default: // settled already: an attempt on it would run it twice
			return nil, fmt.Errorf("message %d of %s is settled already", seq, body.Handle)
		}
		body.Open[i].Attempts++
		body.Open[i].Running = true
	}
	if len(body.Open) > MaxOpenMail {
		return nil, &FullError{body.Handle, before}
	}
	return []events.Event{events.CursorAttempted{CursorBody: body}}, nil
}

func decideSettle(body events.CursorBody, cmd SettleMail) ([]events.Event, error) {
	open, read := body.Open, body.Read
	body.Open = slices.Clone(open)
	changed := false
	for _, seq := range cmd.Ack {
		if i, ok := find(body.Open, seq); ok {
			body.Open = slices.Delete(body.Open, i, i+1)
			changed = true
		}
	}
	for _, seq := range cmd.Nak {
		if i, ok := find(body.Open, seq); ok && body.Open[i].Running {
			body.Open[i].Running = false
			changed = true
		}
	}
	for _, seq := range cmd.Ack { // settled at first sight, without a turn
		if seq > read {
			body.Read = max(body.Read, seq)
			changed = true
		}
	}
	if !changed {
		return nil, nil
	}
	return []events.Event{events.CursorSettled{CursorBody: body}}, nil
}

// find returns where seq stands in open, or would stand, and whether it does.
func find(open []events.OpenMail, seq uint64) (int, bool) {
	return slices.BinarySearchFunc(open, seq, func(o events.OpenMail, seq uint64) int {
		switch {
		case o.Seq < seq:
			return -1
		case o.Seq > seq:
			return 1
		}
		return 0
	})
}
