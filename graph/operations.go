package graph

import (
	"context"
	"time"
)

// Operator carries out what operators ask for, on whichever node it takes.
type Operator interface {
	// Operate returns once the operation is done or, where it takes long, has
	// begun. A *RefusedError says that nothing has changed, and why.
	// events.ErrUnavailable: nothing was done, now; events.ErrUnknown: it may have
	// been done, or be done later. All operations may be asked for again.
	Operate(ctx context.Context, by Act, op Operation) (Done, error)
}

// Act is on whose behalf something is done, and why: both go into the log.
type Act struct {
	Actor  string
	Reason string
}

// Operation is what an operator asks for. The set is closed.
type Operation interface{ operation() }

// Operations on nodes.
type (
	// DrainNode cordons the node and empties it, for that long at most.
	DrainNode struct {
		Node     string
		Deadline time.Duration
	}
	// CordonNode makes the node claim nothing, or lets it again.
	CordonNode struct {
		Node string
		On   bool
	}
)

// Operations on seats.
type (
	// MoveSeat hands the seat over to that node.
	MoveSeat struct{ Handle, To string }
	// ReleaseSeat makes the holder give the seat back.
	ReleaseSeat struct{ Handle string }
	// FenceSeat ends the holder's renewals from outside.
	FenceSeat struct{ Handle string }
	// PauseSeat holds the seat's mail.
	PauseSeat struct {
		Handle   string
		StopTurn bool
	}
	// ResumeSeat ends a pause.
	ResumeSeat struct{ Handle string }
)

// RetireMailbox retires the mailbox of a removed seat; Now waives what is left of
// its grace.
type RetireMailbox struct {
	Handle string
	Now    bool
}

// Operations on parked mail, by their positions in DEAD.
type (
	// ReplayParked sends it to its seat again. No positions: the oldest that nobody
	// has decided about.
	ReplayParked struct {
		Handle    string
		Positions []uint64
	}
	// DropParked gives it up.
	DropParked struct {
		Handle    string
		Positions []uint64
	}
)

func (DrainNode) operation()     {}
func (CordonNode) operation()    {}
func (MoveSeat) operation()      {}
func (ReleaseSeat) operation()   {}
func (FenceSeat) operation()     {}
func (PauseSeat) operation()     {}
func (ResumeSeat) operation()    {}
func (RetireMailbox) operation() {}
func (ReplayParked) operation()  {}
func (DropParked) operation()    {}

// Done is where what came of an operation can be found.
type Done struct {
	Position uint64 // in FLEET, or after it
	Saga     string // "" where none was needed
}

// RefusedError is a refusal of an operation. Code is stable.
type RefusedError struct {
	Code    string
	Message string
}

func (e *RefusedError) Error() string { return e.Message }
