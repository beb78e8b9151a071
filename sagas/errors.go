package sagas

import (
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// OpenError refuses a request: the seat is being handed off already.
type OpenError struct {
	Saga string
	Step events.HandoffStep
	To   events.Incarnation
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("handoff %s to %s is open (%s): wait for its end, or abandon it", e.Saga, e.To, e.Step)
}

// NotHolderError refuses a request: the source does not hold the seat.
type NotHolderError struct {
	Handle string
	From   events.Incarnation
	Now    aggregates.Lease
}

func (e *NotHolderError) Error() string {
	now := "nobody holds it"
	if e.Now.Status != aggregates.LeaseFree {
		now = fmt.Sprintf("%s has epoch %d", e.Now.Owner, e.Now.Epoch)
	}
	return fmt.Sprintf("%s cannot hand seat %q over: %s", e.From, e.Handle, now)
}

// TornDownError refuses a request: an abandoned handoff has begun to take the
// seat down, so the tenure can only end. Its source releases the seat plainly.
type TornDownError struct {
	Saga string // the one that was abandoned
	From events.Incarnation
}

func (e *TornDownError) Error() string {
	return fmt.Sprintf("%s is giving the seat up after handoff %s was abandoned: the next node to want it gets it", e.From, e.Saga)
}

// NotOpenError refuses a step of a handoff that is over, or was never.
type NotOpenError struct {
	Saga   string
	Newest string // of the seat; "" when there is none
	Step   events.HandoffStep
}

func (e *NotOpenError) Error() string {
	if e.Newest != e.Saga {
		return fmt.Sprintf("handoff %s is not open: the seat's newest is %q", e.Saga, e.Newest)
	}
	return fmt.Sprintf("handoff %s is over: it was %s", e.Saga, e.Step)
}

// NotYoursError refuses a step to a process that it is not for.
type NotYoursError struct {
	Saga string
	By   events.Incarnation
	For  events.Incarnation
}

func (e *NotYoursError) Error() string {
	return fmt.Sprintf("this step of handoff %s is for %s, not for %s", e.Saga, e.For, e.By)
}

// OutOfStepError refuses a step before its turn.
type OutOfStepError struct {
	Saga   string
	Is     events.HandoffStep
	Needed events.HandoffStep
}

func (e *OutOfStepError) Error() string {
	return fmt.Sprintf("handoff %s is only %s, the next step needs it to be %s", e.Saga, e.Is, e.Needed)
}

// TooEarlyError refuses to abandon a handoff for its deadline: its newest event,
// at Last, has to be unseen for After.
type TooEarlyError struct {
	Saga  string
	Last  uint64
	After time.Duration
}

func (e *TooEarlyError) Error() string {
	return fmt.Sprintf("handoff %s may be abandoned once its event at sequence %d is %v old, no sooner", e.Saga, e.Last, e.After)
}

// TooLateError refuses to abandon a handoff whose lease is released: the seat is
// on its way to To, and what is left ends by itself.
type TooLateError struct {
	Saga string
	To   events.Incarnation
}

func (e *TooLateError) Error() string {
	return fmt.Sprintf("handoff %s is released: %s claims the seat, declines it, or loses it to the next node that wants it", e.Saga, e.To)
}

// NotLostError refuses to abandon a handoff for a loss that did not happen.
type NotLostError struct{ Saga string }

func (e *NotLostError) Error() string {
	return fmt.Sprintf("handoff %s is not lost: the seat's lease is where the handoff has it", e.Saga)
}
