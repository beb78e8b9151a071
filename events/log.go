package events

import (
	"errors"
	"fmt"
	"time"
)

// Header is a message's header. Keys are compared exactly, as NATS does.
type Header map[string][]string

// Get returns the first value under key, or "" when there is none.
func (h Header) Get(key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Set replaces whatever stands under key with value.
func (h Header) Set(key, value string) { h[key] = []string{value} }

// Stream names one of the streams of a fleet. Its broker name carries the
// subject prefix in capitals (CREWLET_FLEET); see Subjects.StreamName.
type Stream string

// The streams of a fleet (design §2).
const (
	StreamFleet  Stream = "FLEET"
	StreamMail   Stream = "MAIL"
	StreamCursor Stream = "CURSOR"
	StreamWork   Stream = "WORK"
	StreamMemory Stream = "MEMORY"
	StreamDead   Stream = "DEAD"
)

// Message is one stored entry of a stream. Only Seq orders; At is the broker
// leader's wall clock, for people, and decides nothing (L6).
type Message struct {
	Stream  Stream
	Seq     uint64
	Subject string
	At      time.Time
	Header  Header
	Data    []byte
}

// Write is one message to append, with the condition it must meet.
type Write struct {
	Subject string
	Header  Header
	Data    []byte
	Check   *Check // nil: unconditional
}

// Check is a compare-and-set condition: the newest message under Subject must
// stand at sequence Last, and 0 means that there is none.
//
// Only two forms are safe on a replicated stream (design §2): (a) a literal
// subject, also one the message is not published to; (b) one wildcard string
// that every writer of every subject it covers uses byte for byte. Form (b) is
// made by Lease.Family alone.
type Check struct {
	Subject string
	Last    uint64
}

// Receipt is what an append that stands answers.
type Receipt struct {
	Seq uint64
	// FirstHand: the broker acknowledged the only send there was. Anything else
	// was proven afterwards, and admits nothing (design §2, §4).
	FirstHand bool
}

// Result is the answer to one member of many writes; exactly one of the two counts.
type Result struct {
	Seq uint64
	Err error
}

// What an append or a read of the log can answer besides success. A caller
// must keep the three kinds apart: refused (ErrConflict, ErrExists), not known
// (ErrUnknown), not answered (ErrUnavailable).
var (
	// ErrConflict: the condition did not hold, nothing was stored. The error
	// carries a *ConflictError.
	ErrConflict = errors.New("the log moved on")
	// ErrExists: the subject is write-once and has its message already.
	ErrExists = errors.New("already recorded")
	// ErrBusy: this attempt stored nothing, another write was in flight or the
	// broker had no room; try the same again.
	ErrBusy = errors.New("another write is in flight")
	// ErrUnknown: the answer was lost; the write may stand or not, now or later.
	ErrUnknown = errors.New("the outcome of the write is not known")
	// ErrNotFound: the leader answered that there is no such message.
	ErrNotFound = errors.New("no such message")
	// ErrUnavailable: the broker did not answer a read, or nothing was sent.
	ErrUnavailable = errors.New("the broker did not answer")
	// ErrSwapped: the stream was recreated, restored or swapped since a position in it
	// was read (design §10, schedule 10).
	ErrSwapped = errors.New("the stream is not the one that was read before")
)

// ConflictError says which message made a write's condition fail.
type ConflictError struct {
	Subject string // the check's subject of the refused write; "" where a batch cannot tell
	Actual  uint64 // the sequence that stands where the check expected another
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %s stands at sequence %d", ErrConflict, e.Subject, e.Actual)
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }
