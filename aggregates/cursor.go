package aggregates

import (
	"fmt"
	"slices"
	"time"

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

// OpenCursor takes the cursor over for a tenure. Mail that is held behind a run
// which does not live is unread again: nobody else would free it (Schedule17).
type OpenCursor struct {
	Epoch uint64
	Owner events.Incarnation
	Live  []string // the seat's live runs
}

// AttemptMail records, before the handler sees them, that a turn starts on
// these messages. They are open already, or the next ones to be seen.
type AttemptMail struct {
	Epoch uint64
	Owner events.Incarnation
	Mail  events.StreamIdentity // with the newest marker at or below the highest of Seqs
	Seqs  []uint64
	Seen  []uint64 // read on the way to them, and not settled: they stay open
}

// SettleMail records how messages ended: Ack for good, Nak to come again.
type SettleMail struct {
	Epoch uint64
	Owner events.Incarnation
	Mail  events.StreamIdentity // as in AttemptMail
	Ack   []uint64
	Nak   []uint64
	Seen  []uint64  // as in AttemptMail
	Why   string    // of Nak; what is kept of it is bounded
	At    time.Time // the same, for people
}

// HoldMail keeps messages for later, without an attempt, behind a run of the seat
// (D1, S2).
type HoldMail struct {
	Epoch uint64
	Owner events.Incarnation
	Mail  events.StreamIdentity // as in AttemptMail
	Run   string
	Seqs  []uint64
}

// FreeMail makes unread again what is held behind a run that has ended.
type FreeMail struct {
	Epoch uint64
	Owner events.Incarnation
	Run   string
}

func (CreateCursor) cursorCommand() {}
func (OpenCursor) cursorCommand()   {}
func (AttemptMail) cursorCommand()  {}
func (SettleMail) cursorCommand()   {}
func (HoldMail) cursorCommand()     {}
func (FreeMail) cursorCommand()     {}

// writer says which tenure gives the command; ok is false for a command of none.
func writer(cmd CursorCommand) (epoch uint64, owner events.Incarnation, ok bool) {
	switch cmd := cmd.(type) {
	case AttemptMail:
		return cmd.Epoch, cmd.Owner, true
	case SettleMail:
		return cmd.Epoch, cmd.Owner, true
	case HoldMail:
		return cmd.Epoch, cmd.Owner, true
	case FreeMail:
		return cmd.Epoch, cmd.Owner, true
	default:
		return 0, "", false
	}
}

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
	if epoch, owner, ok := writer(cmd); ok && (s.Epoch != epoch || s.Owner != owner) {
		return nil, &FencedError{handle, epoch, s.Epoch, s.Owner}
	}
	switch cmd := cmd.(type) {
	case OpenCursor:
		if s.Epoch > cmd.Epoch || (s.Epoch == cmd.Epoch && s.Owner != cmd.Owner) {
			return nil, &FencedError{handle, cmd.Epoch, s.Epoch, s.Owner}
		}
		body.Epoch, body.Owner = cmd.Epoch, cmd.Owner
		body.Open = freed(body.Open, func(run string) bool { return !slices.Contains(cmd.Live, run) })
		return []events.Event{events.CursorOpened{CursorBody: body}}, nil
	case AttemptMail:
		body.Mail = cmd.Mail
		return decideAttempt(body, cmd)
	case SettleMail:
		body.Mail = cmd.Mail
		return decideSettle(body, cmd)
	case HoldMail:
		body.Mail = cmd.Mail
		return decideHold(body, cmd)
	case RetireMail:
		return decideRetire(body, cmd)
	case FreeMail:
		open := freed(body.Open, func(run string) bool { return run == cmd.Run })
		if slices.Equal(open, body.Open) {
			return nil, nil
		}
		body.Open = open
		return []events.Event{events.CursorFreed{CursorBody: body}}, nil
	default:
		panic(fmt.Sprintf("aggregates: no cursor command %T", cmd))
	}
}

func decideAttempt(body events.CursorBody, cmd AttemptMail) ([]events.Event, error) {
	before := len(body.Open)
	body = see(body, cmd.Seen, cmd.Seqs)
	for _, seq := range slices.Compact(slices.Sorted(slices.Values(cmd.Seqs))) { // one turn costs one attempt (D3)
		i, open := find(body.Open, seq)
		if !open { // settled already: an attempt on it would run it twice
			return nil, fmt.Errorf("message %d of %s is settled already", seq, body.Handle)
		}
		if body.Open[i].Running {
			body.Tried = addTried(body.Tried, events.Tried{Seq: seq, Epoch: body.Open[i].RanAt, End: events.AttemptUnfinished, Count: 1})
		}
		body.Open[i].Attempts++
		body.Open[i].Running, body.Open[i].RanAt, body.Open[i].Run = true, body.Epoch, ""
	}
	if len(body.Open) > MaxOpenMail {
		return nil, &FullError{body.Handle, before}
	}
	return []events.Event{events.CursorAttempted{CursorBody: body}}, nil
}

func decideSettle(body events.CursorBody, cmd SettleMail) ([]events.Event, error) {
	read, open, before := body.Read, len(body.Open), body.Open
	body = see(body, cmd.Seen, cmd.Ack)
	changed := body.Read != read
	for _, seq := range cmd.Ack {
		if i, ok := find(body.Open, seq); ok {
			body.Open = slices.Delete(body.Open, i, i+1)
			body.Tried = forget(body.Tried, seq)
		}
	}
	for _, seq := range slices.Compact(slices.Sorted(slices.Values(cmd.Nak))) {
		if i, ok := find(body.Open, seq); ok && body.Open[i].Running {
			body.Tried = addTried(body.Tried, events.Tried{
				Seq: seq, Epoch: body.Open[i].RanAt, End: events.AttemptFailed, Count: 1, Why: clipWhy(cmd.Why), At: cmd.At,
			})
			body.Open[i].Running = false
		}
	}
	if len(body.Open) > MaxOpenMail {
		return nil, &FullError{body.Handle, open}
	}
	if !changed && slices.Equal(body.Open, before) {
		return nil, nil
	}
	return []events.Event{events.CursorSettled{CursorBody: body}}, nil
}

func decideHold(body events.CursorBody, cmd HoldMail) ([]events.Event, error) {
	if err := events.ValidHandle(cmd.Run); err != nil { // a run's id stands in a subject, under the same rule
		return nil, fmt.Errorf("mail of %s is held behind a run: %w", body.Handle, err)
	}
	read, before := body.Read, body.Open
	body = see(body, cmd.Seqs, nil)
	for _, seq := range cmd.Seqs {
		if i, ok := find(body.Open, seq); ok && !body.Open[i].Running {
			body.Open[i].Run = cmd.Run
		}
	}
	if len(body.Open) > MaxOpenMail {
		return nil, &FullError{body.Handle, len(before)}
	}
	if body.Read == read && slices.Equal(body.Open, before) {
		return nil, nil
	}
	return []events.Event{events.CursorHeld{CursorBody: body}}, nil
}

// see notes that these messages were read: what lies beyond Read becomes open.
func see(body events.CursorBody, seen, chosen []uint64) events.CursorBody {
	body.Open, body.Tried = slices.Clone(body.Open), slices.Clone(body.Tried)
	for _, seq := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(seen, chosen)))) {
		if seq > body.Read {
			body.Read = seq
			body.Open = append(body.Open, events.OpenMail{Seq: seq})
		}
	}
	return body
}

// freed clears the holds of the runs that are over, in a copy.
func freed(open []events.OpenMail, over func(run string) bool) []events.OpenMail {
	open = slices.Clone(open)
	for i, o := range open {
		if o.Run != "" && over(o.Run) {
			open[i].Run = ""
		}
	}
	return open
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
