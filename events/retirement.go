package events

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// RetirementStep says how far the retirement of a mailbox is (design §5).
type RetirementStep string

// The steps of a retirement. Each is an event.
const (
	RetireAbsent    RetirementStep = "absent" // the seat is missing; the grace runs
	RetireMarked    RetirementStep = "marked" // deletion may begin, up to the marks
	RetireRunsEnded RetirementStep = "runs_ended"
	RetirePurged    RetirementStep = "purged"
	RetireCompleted RetirementStep = "completed"  // ended: the record is gone
	RetireReturned  RetirementStep = "returned"   // ended: the seat is back
	RetireTakenOver RetirementStep = "taken_over" // ended: a node that adds the seat back took the record over
)

// RetirementRefusal says what holds a retirement whose grace is over (R6).
type RetirementRefusal string

// What holds a retirement.
const (
	RefusedHeld     RetirementRefusal = "held"     // a live lease: a node still serves the seat
	RefusedProtocol RetirementRefusal = "protocol" // a node of a lower lease protocol is alive
)

// RetirementEvent is what the events of a retirement have in common.
type RetirementEvent interface {
	Event
	Retirement() RetirementBody
}

// RetirementBody is the whole of a retirement: its newest event tells all.
type RetirementBody struct {
	Handle string         `json:"-"`
	Number uint64         `json:"number"` // of the seat's retirements, from 1
	Step   RetirementStep `json:"step"`
	// By is the incarnation that judged. Only time between two of its own ticks
	// in a row counts as observed absence (Schedule18).
	By Incarnation `json:"by"`
	// Company is the position of the revision that was judged by (R5).
	Company uint64 `json:"company"`
	// Since and RetiresAt are wall clocks, for people: the first is when the seat
	// was first seen missing, the second an estimate.
	Since     time.Time `json:"since,omitzero"`
	RetiresAt time.Time `json:"retires_at,omitzero"`
	Grace     Millis    `json:"grace_ms"`
	Absent    Millis    `json:"absent_for_ms"` // observed absence so far
	// Refused is what held the retirement at the newest tick, "" for nothing.
	Refused RetirementRefusal `json:"refused,omitempty"`
	// Of a mark: the tenure of the seat's lease that it rests on, and where the
	// mailbox ended. Nothing above a mark is ever deleted.
	Epoch uint64      `json:"epoch,omitempty"`
	Owner Incarnation `json:"owner,omitempty"`
	// Claimed is the position of that tenure's claim.
	Claimed uint64 `json:"claimed,omitempty"`
	Marks   *Marks `json:"marks,omitempty"`
	// Now: an operator waived what is left of the grace.
	Now bool `json:"now,omitempty"`
	Kept
}

// Marks are the last sequences of a mailbox's subjects in MAIL; 0 where nothing
// ever stood.
type Marks struct {
	Inbox   uint64 `json:"inbox"`
	Control uint64 `json:"control"`
	Reflect uint64 `json:"reflect"`
}

// Of is the mark of one subject.
func (m Marks) Of(box Mailbox) uint64 {
	switch box {
	case Inbox:
		return m.Inbox
	case Control:
		return m.Control
	case Reflect:
		return m.Reflect
	}
	panic(fmt.Sprintf("events: a mailbox has no subject %q", box))
}

// Set puts the mark of one subject.
func (m *Marks) Set(box Mailbox, seq uint64) {
	switch box {
	case Inbox:
		m.Inbox = seq
	case Control:
		m.Control = seq
	case Reflect:
		m.Reflect = seq
	default:
		panic(fmt.Sprintf("events: a mailbox has no subject %q", box))
	}
}

// RetirementID names a retirement: dev.retirement-2 is the second of seat dev.
func RetirementID(handle string, number uint64) string {
	return handle + ".retirement-" + strconv.FormatUint(number, 10)
}

// ID names the retirement.
func (b RetirementBody) ID() string { return RetirementID(b.Handle, b.Number) }

// MailboxAbsent: the seat is not in the company's revision. The grace begins (R4).
type MailboxAbsent struct{ RetirementBody }

// MailboxReturned: the seat is back before its mailbox was marked (R4).
type MailboxReturned struct{ RetirementBody }

// RetirementTicked: the seat is still missing; the observed absence has grown, or
// what holds the retirement has changed.
type RetirementTicked struct{ RetirementBody }

// RetirementMarked: the deletion begins (R8). One atomic batch with MailboxRetiring.
type RetirementMarked struct{ RetirementBody }

// RetirementResumed: a later sweep goes on with a mark that was left, under a
// tenure and marks of its own. One atomic batch with MailboxRetiring.
type RetirementResumed struct{ RetirementBody }

// RetirementUnmarked: a step could not be done; the next tick tries again. One
// atomic batch with the MailboxRegistered that makes the mailbox usable again.
type RetirementUnmarked struct{ RetirementBody }

// RetirementTakenOver: a node that adds the seat back waited for the mark long
// enough, finished the deletion and registered the mailbox anew (R8). One atomic
// batch with that MailboxRegistered.
type RetirementTakenOver struct{ RetirementBody }

// RetirementRunsEnded: no run of the seat is left (R7).
type RetirementRunsEnded struct{ RetirementBody }

// RetirementPurged: the cursors stand at the marks and the mail up to them is gone.
type RetirementPurged struct{ RetirementBody }

// RetirementCompleted: the mailbox is retired. One atomic batch with MailboxRetired.
type RetirementCompleted struct{ RetirementBody }

func (MailboxAbsent) event()       {}
func (MailboxReturned) event()     {}
func (RetirementTicked) event()    {}
func (RetirementMarked) event()    {}
func (RetirementResumed) event()   {}
func (RetirementUnmarked) event()  {}
func (RetirementTakenOver) event() {}
func (RetirementRunsEnded) event() {}
func (RetirementPurged) event()    {}
func (RetirementCompleted) event() {}

// Retirement is the whole of the retirement after the event.
func (b RetirementBody) Retirement() RetirementBody { return b }

func (b *RetirementBody) place(t target) { b.Handle = t.handle }

// shaped says what is wrong with the body of an event that is this step.
func (b RetirementBody) shaped(step RetirementStep) error {
	errs := []error{
		positive("number", b.Number), b.By.Valid(), positive("company", b.Company),
		positive("grace_ms", uint64(max(b.Grace, 0))),
	}
	if b.Absent < 0 {
		errs = append(errs, fmt.Errorf("absent_for_ms is %d, below zero", b.Absent))
	}
	if b.Step != step {
		errs = append(errs, fmt.Errorf("step is %q, not %q", b.Step, step))
	}
	switch b.Refused {
	case "", RefusedHeld, RefusedProtocol:
	default:
		errs = append(errs, fmt.Errorf("refused is %q, neither %s nor %s", b.Refused, RefusedHeld, RefusedProtocol))
	}
	return errors.Join(errs...)
}

// marked is shaped for an event that a mark underlies.
func (b RetirementBody) marked(step RetirementStep) error {
	var marks error
	if b.Marks == nil {
		marks = errors.New("marks are missing")
	}
	return errors.Join(b.shaped(step), tenure(b.Epoch, b.Owner), marks)
}

func (e MailboxAbsent) validate() error       { return e.shaped(RetireAbsent) }
func (e MailboxReturned) validate() error     { return e.shaped(RetireReturned) }
func (e RetirementTicked) validate() error    { return e.shaped(RetireAbsent) }
func (e RetirementMarked) validate() error    { return e.marked(RetireMarked) }
func (e RetirementResumed) validate() error   { return e.marked(RetireMarked) }
func (e RetirementUnmarked) validate() error  { return e.shaped(RetireAbsent) }
func (e RetirementTakenOver) validate() error { return e.marked(RetireTakenOver) }
func (e RetirementRunsEnded) validate() error { return e.marked(RetireRunsEnded) }
func (e RetirementPurged) validate() error    { return e.marked(RetirePurged) }
func (e RetirementCompleted) validate() error { return e.marked(RetireCompleted) }
