package turn

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// ErrChildrenAlive says that processes of a run could not be proven dead. The
// seat must not be given up before EndChildren succeeded (spec H6, H7).
var ErrChildrenAlive = errors.New("processes of the run may still be alive")

// Trace is what is known of a program whose run went wrong.
type Trace struct {
	Program string   // as configured
	Stderr  []string // its last lines, shortened
}

func (t Trace) String() string {
	if len(t.Stderr) == 0 {
		return "; it wrote nothing to stderr"
	}
	return "; its last words: " + strings.Join(t.Stderr, " | ")
}

// FailedError: the program answered `failed`.
type FailedError struct {
	Why string
	Trace
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("%s failed: %s%s", e.Program, e.Why, e.Trace)
}

// ExitError: the program ended by itself without a good answer. Code 0 means
// that it left without `done` or `failed`.
type ExitError struct {
	Code   int            // -1 when a signal ended it, or nobody saw it end
	Signal syscall.Signal // 0 when no signal did
	Lost   bool           // its keeper was killed, so how it ended is not known
	Trace
}

func (e *ExitError) Error() string {
	switch {
	case e.Lost:
		return fmt.Sprintf("%s was cut off: its keeper process was killed and took it along; "+
			"look for the kernel's out-of-memory messages%s", e.Program, e.Trace)
	case e.Signal != 0:
		return fmt.Sprintf("%s was ended by signal %d (%v), which the node did not send; "+
			"look for a crash or the kernel's out-of-memory messages%s", e.Program, e.Signal, e.Signal, e.Trace)
	case e.Code == 0:
		return fmt.Sprintf("%s exited with 0 but never wrote a done or failed line; "+
			"let it print one as its last line and flush its output%s", e.Program, e.Trace)
	default:
		return fmt.Sprintf("%s exited with %d; run it by hand with a turn line on its stdin%s", e.Program, e.Code, e.Trace)
	}
}

// TimeoutError: the program took longer than its timeout and was ended.
type TimeoutError struct {
	After time.Duration
	Trace
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s gave no answer within %v and was ended; raise the role's runner timeout if it needs longer%s",
		e.Program, e.After, e.Trace)
}

// ProtocolError: the program broke the protocol and was ended.
type ProtocolError struct {
	Line    int    // number of the offending line, from 1; 0 when it is no line
	What    string // what is wrong with it
	Excerpt string // its beginning
	Trace
}

func (e *ProtocolError) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf(" on line %d (%q)", e.Line, e.Excerpt)
	}
	return fmt.Sprintf("%s broke the protocol%s: %s; its stdout carries one JSON object a line, everything else belongs on stderr%s",
		e.Program, where, e.What, e.Trace)
}

// StartError: the program never ran.
type StartError struct {
	Program string
	Err     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s could not be started: %v; check the role's runner in the company file", e.Program, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// childrenAliveError carries what outlived its end.
type childrenAliveError struct {
	what string
	pids []int
}

func (e *childrenAliveError) Error() string {
	return fmt.Sprintf("%v: %s, process ids %v; end them by hand if they stay", ErrChildrenAlive, e.what, e.pids)
}

func (e *childrenAliveError) Is(target error) bool { return target == ErrChildrenAlive }
