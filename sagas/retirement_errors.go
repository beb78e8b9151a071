package sagas

import (
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// GraceError refuses to retire a mailbox whose grace is not over (R1).
type GraceError struct {
	Handle        string
	Absent, Grace time.Duration
}

func (e *GraceError) Error() string {
	return fmt.Sprintf("seat %s was seen missing for %v of %v: its mailbox is not retired yet", e.Handle, e.Absent, e.Grace)
}

// NotAbsentError refuses to retire the mailbox of a seat that no sweep saw missing.
type NotAbsentError struct {
	Handle string
	Step   events.RetirementStep
}

func (e *NotAbsentError) Error() string {
	if e.Step == events.RetireCompleted {
		return fmt.Sprintf("the mailbox of %s is retired already", e.Handle)
	}
	return fmt.Sprintf("seat %s was not seen missing from the company", e.Handle)
}

// RetiringError: the mailbox is being retired, by another.
type RetiringError struct {
	Handle string
	Step   events.RetirementStep
	Owner  events.Incarnation
}

func (e *RetiringError) Error() string {
	return fmt.Sprintf("the mailbox of %s is being retired by %s, at step %s; wait for it to finish", e.Handle, e.Owner, e.Step)
}

// NotMarkedError refuses to go on with a retirement that has not begun to delete.
type NotMarkedError struct {
	Handle string
	Step   events.RetirementStep
}

func (e *NotMarkedError) Error() string {
	return fmt.Sprintf("no retirement of the mailbox of %s has begun to delete: its step is %q", e.Handle, e.Step)
}

// NotMineError refuses a step of a retirement that goes on, or ended, another
// way: it was taken over, resumed or called off.
type NotMineError struct {
	Handle string
	Step   events.RetirementStep
	By     events.Incarnation
}

func (e *NotMineError) Error() string {
	return fmt.Sprintf("the retirement of the mailbox of %s is %s by %s now: it is not this one's to go on with", e.Handle, e.Step, e.By)
}
