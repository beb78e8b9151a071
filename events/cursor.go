package events

import (
	"errors"
	"fmt"
	"time"
)

// StreamIdentity tells one life of a stream from another: its creation and the
// newest marker a reader has seen.
type StreamIdentity struct {
	CreatedAt string `json:"created_at"` // RFC 3339 with nanoseconds, as the broker says it
	MarkerSeq uint64 `json:"marker_seq"`
	MarkerID  string `json:"marker_id"`
}

// CursorSnapshot is all that a mailbox knows of its mail. CURSOR keeps one
// message per subject, so every cursor event carries the whole of it (design §6).
//
// Every message of the subject at or below Read was seen; those of them that
// are not in Open are settled. So the watermark, below which nothing is open,
// never passes what was not seen.
type CursorSnapshot struct {
	Epoch uint64         `json:"epoch"` // 0: registered, never taken over
	Owner Incarnation    `json:"owner,omitempty"`
	Mail  StreamIdentity `json:"mail"`
	Read  uint64         `json:"read"`
	Open  []OpenMail     `json:"open,omitempty"` // ascending by Seq
	// Tried is how attempts on open mail ended, ascending by Seq, the oldest of
	// one message first. It is bounded: see aggregates.MaxTried.
	Tried []Tried `json:"tried,omitempty"`
}

// OpenMail is a message that was seen and is not settled.
type OpenMail struct {
	Seq      uint64 `json:"seq"`
	Attempts int    `json:"attempts,omitempty"` // turns started on it (D3)
	// Running: the last attempt has not ended as far as the cursor knows. A
	// successor that finds it set re-runs an attempt that never finished.
	Running bool   `json:"running,omitempty"`
	RanAt   uint64 `json:"ran_at,omitempty"` // epoch of the last attempt
	// Run is the detached run that the message is held behind; "" for none (D1).
	Run string `json:"run,omitempty"`
}

// Tried tells of attempts on one message that ended in the same way.
type Tried struct {
	Seq   uint64     `json:"seq,omitempty"` // of the message; left out in DEAD, where it is known
	Epoch uint64     `json:"epoch"`         // of the tenure that they ran under
	End   AttemptEnd `json:"end"`
	Count int        `json:"count"`
	Why   string     `json:"why,omitempty"`
	At    time.Time  `json:"at,omitzero"` // when the last of them was written down, for people
}

// AttemptEnd says how an attempt that settled nothing ended.
type AttemptEnd string

// Ends of such attempts.
const (
	AttemptFailed     AttemptEnd = "failed"     // it came back (Nak)
	AttemptUnfinished AttemptEnd = "unfinished" // its process died, was stopped or lost the seat
)

// Watermark is the position up to which all mail of the subject is settled.
func (c CursorSnapshot) Watermark() uint64 {
	if len(c.Open) > 0 {
		return c.Open[0].Seq - 1
	}
	return c.Read
}

// CursorEvent is what the events of a cursor have in common.
type CursorEvent interface {
	Event
	Cursor() (handle string, m Mailbox, s CursorSnapshot)
}

// CursorCreated: the mailbox was registered; nothing has been read.
type CursorCreated struct{ CursorBody }

// CursorOpened: a tenure took the cursor over. Admission is fenced here: no
// lower epoch writes to it again (design §4).
type CursorOpened struct{ CursorBody }

// CursorAttempted: a turn on the messages now Running may start, if the writer
// got the acknowledgement first-hand.
type CursorAttempted struct{ CursorBody }

// CursorSettled: attempts ended, in an Ack (gone from Open) or a Nak (not Running).
type CursorSettled struct{ CursorBody }

// CursorHeld: messages wait behind a run, without an attempt (D1).
type CursorHeld struct{ CursorBody }

// CursorFreed: the run has ended, and what it held is unread again.
type CursorFreed struct{ CursorBody }

// CursorBody is the content of every cursor event.
type CursorBody struct {
	Handle         string  `json:"-"`
	Mailbox        Mailbox `json:"-"`
	CursorSnapshot         // inlined
	Kept
}

func (CursorCreated) event()   {}
func (CursorOpened) event()    {}
func (CursorAttempted) event() {}
func (CursorSettled) event()   {}
func (CursorHeld) event()      {}
func (CursorFreed) event()     {}

// Cursor names the mailbox and returns what is known of its mail.
func (b CursorBody) Cursor() (string, Mailbox, CursorSnapshot) {
	return b.Handle, b.Mailbox, b.CursorSnapshot
}

func (b *CursorBody) place(t target) { b.Handle, b.Mailbox = t.handle, t.mailbox }

func (e CursorCreated) validate() error   { return e.ordered() }
func (e CursorOpened) validate() error    { return errors.Join(tenure(e.Epoch, e.Owner), e.ordered()) }
func (e CursorAttempted) validate() error { return errors.Join(tenure(e.Epoch, e.Owner), e.ordered()) }
func (e CursorSettled) validate() error   { return errors.Join(tenure(e.Epoch, e.Owner), e.ordered()) }
func (e CursorHeld) validate() error      { return errors.Join(tenure(e.Epoch, e.Owner), e.ordered()) }
func (e CursorFreed) validate() error     { return errors.Join(tenure(e.Epoch, e.Owner), e.ordered()) }

func (b CursorBody) ordered() error {
	last := uint64(0)
	for _, o := range b.Open {
		if o.Seq <= last || o.Seq > b.Read {
			return fmt.Errorf("open: sequence %d is out of order or beyond read %d", o.Seq, b.Read)
		}
		last = o.Seq
	}
	return nil
}
