// Package turn runs the work of a seat: a trigger from its mail becomes a turn,
// the turn asks a Runner for the work, the completion ledger keeps what was
// done.
//
// # Runners
//
// A Runner does one attempt at one turn and answers with a Reply. Exec runs a
// program and speaks JSON lines with it, Echo answers with what it was given.
//
// Guaranteed by every runner of this package:
//   - each tool call is asked of Calls, one at a time and in order, and nothing
//     a call would do has happened before Calls allowed it; the fence sits
//     there (spec F2);
//   - Run blocks, and when it returns no goroutine of it is left;
//   - after Exec.Run returned, no process it started is alive, nor any process
//     those started, whatever sessions or groups they made (spec H7). What
//     cannot be proven dead is reported as ErrChildrenAlive, never guessed.
//
// Not guaranteed: what a program does outside of its calls cannot be fenced, it
// can only be ended; a program that changes its user id may be beyond this
// process's right to signal it, which ends as ErrChildrenAlive.
//
// A panic inside Calls unwinds through Run after the children were ended; it is
// not recovered here, the turn does that (spec B1).
//
// # Concurrency
//
// A Runner may run any number of turns at the same time; how many is for the
// caller to bound. One Run uses its Calls from the calling goroutine alone.
//
// The package needs Linux: parent-death signals, child subreapers, pidfds.
package turn

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ErrFenced ends a turn because the seat is no longer this tenure's to act for.
// Calls returns it (wrapped or not) to stop a runner, and the runner returns it.
var ErrFenced = errors.New("the seat moved, this turn may do nothing more")

// Event is one constituent of a turn's trigger. The JSON form is the one
// programs see.
type Event struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Time         time.Time       `json:"time"`
	Data         json.RawMessage `json:"data"`
	Conversation string          `json:"conversation"`
}

// Request is one attempt at one turn.
type Request struct {
	Seat    string // handle
	AgentID string
	Epoch   uint64 // of the tenure the turn runs under
	WorkKey string // see WorkKey; "" when no constituent is ledgered
	Attempt int    // from 1
	Events  []Event
}

// Reply is what a runner answered. It goes into the completion and nowhere else.
type Reply struct {
	JSON json.RawMessage // the program's `reply`; nil only beside an error
}

// Runner does the work of one attempt.
type Runner interface {
	// Run does the work and blocks until it ended. It returns ErrFenced when
	// calls said so, the cause of ctx when that ended first, and otherwise one of
	// FailedError, ExitError, TimeoutError, ProtocolError and StartError.
	// ErrChildrenAlive may be joined to any outcome, a good one included.
	Run(ctx context.Context, req Request, calls Calls) (Reply, error)
}

// Calls does a runner's tool calls. The turn implements it: it checks the fence
// before each call and notes what reached outside.
type Calls interface {
	// Call does one call. An error that is ErrFenced ends the run as fenced; any
	// other error is told to the program, which may go on.
	Call(ctx context.Context, id, tool string, args json.RawMessage) (json.RawMessage, error)
}
