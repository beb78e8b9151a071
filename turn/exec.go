package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// DefaultTimeout is how long a program may take when its role says nothing.
const DefaultTimeout = 10 * time.Minute

var errTimeout = errors.New("the runner's timeout passed")

// Exec runs a program for each turn and speaks JSON lines with it over stdin and
// stdout, one object a line, at most MaxLine bytes; stderr is logged.
//
// The program reads {"type":"turn",…}, may write any number of
// {"type":"call","id","tool","args"} and reads a {"type":"result","id",…} for
// each, in order; then it writes one {"type":"done","reply"} or
// {"type":"failed","why"} and exits with 0. What it prints after that is passed
// over. When its seat moves or the node stops it reads {"type":"fenced"}; then,
// as on a timeout, its stdin closes, its process group gets SIGTERM and, two
// seconds later, everything that is left of it SIGKILL.
//
// The program inherits the node's working directory and environment, without
// the TENURE_ variables: they configure the node, and may carry its secrets.
//
// The binary must call KeepIfAsked first in main.
type Exec struct {
	Program []string      // path, or name to find on PATH, and arguments
	Timeout time.Duration // of a whole run; 0 is DefaultTimeout
	Log     *slog.Logger  // nil: nothing is logged
	Mark    Mark          // whose children the processes are
}

// verdict is how a conversation ended, before it is known how the program did.
type verdict struct {
	reply    json.RawMessage            // of a done line
	err      func(t Trace) error        // what became of the run otherwise
	farewell farewell                   // how the program is to be ended
	byExit   func(s exitStatus) verdict // set when the exit status decides
}

// Run starts the program and talks with it until it ended, in whichever way.
// See Runner for what it returns.
func (e Exec) Run(ctx context.Context, req Request, calls Calls) (Reply, error) {
	limit := e.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	first, err := encodeTurn(req)
	if err != nil {
		return Reply{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	c, err := e.start(req)
	if err != nil {
		return Reply{}, err
	}
	// Also when calls panics: the children must not outlive this call (H7).
	defer func() { _ = c.end(ctx, farewellTerminate) }()

	t := talk{child: c, calls: calls, limit: limit}
	v := t.run(ctx, first)
	alive := c.end(ctx, v.farewell)
	if v.byExit != nil {
		v = v.byExit(c.exit)
	}
	if v.err != nil {
		err = v.err(Trace{Program: e.name(), Stderr: c.stderr.last})
	}
	return Reply{JSON: v.reply}, errors.Join(err, alive)
}

func (e Exec) name() string { return strings.Join(e.Program, " ") }

// talk is the conversation of one run.
type talk struct {
	child *child
	calls Calls
	limit time.Duration
	lines int
}

// run talks until there is a verdict. It does one call after another: the
// program may ask for several at once and reads the results in order.
func (t *talk) run(ctx context.Context, first []byte) verdict {
	if err := t.child.awaitStart(ctx); err != nil && ctx.Err() == nil {
		return verdict{farewell: farewellTerminate, err: func(tr Trace) error {
			return &StartError{tr.Program, err}
		}}
	}
	if !t.write(ctx, first) {
		return t.stopped(ctx)
	}
	gone := t.child.gone
	for {
		select {
		case <-ctx.Done():
			return t.stopped(ctx)
		case <-gone:
			if !t.child.clean {
				// Killed: the program died of it, but what it started may hold its
				// stdout open for ever.
				return verdict{farewell: farewellPolite, byExit: exited}
			}
			gone = nil // all is over but for what was written before
		case text, ok := <-t.child.lines:
			if ctx.Err() != nil {
				return t.stopped(ctx)
			}
			if !ok {
				return t.fellSilent()
			}
			t.lines++
			if v, over := t.line(ctx, text); over {
				return v
			}
		}
	}
}

// line handles one line; over says that the conversation is.
func (t *talk) line(ctx context.Context, text []byte) (v verdict, over bool) {
	l, err := DecodeLine(text)
	if err != nil {
		return t.broke(t.lines, err.Error(), text), true
	}
	switch l.Type {
	case LineDone:
		v := verdict{reply: l.Reply, farewell: farewellPolite}
		v.byExit = func(s exitStatus) verdict {
			// An exit we had to bring about says nothing about its work.
			if s.own && !s.good() {
				return exited(s)
			}
			return verdict{reply: l.Reply}
		}
		return v, true
	case LineFailed:
		return verdict{farewell: farewellPolite, err: func(t Trace) error {
			return &FailedError{Why: l.Why, Trace: t}
		}}, true
	case LineCall:
		value, err := t.calls.Call(ctx, l.ID, l.Tool, l.Args)
		if errors.Is(err, ErrFenced) {
			return verdict{farewell: farewellFenced, err: func(Trace) error { return err }}, true
		}
		if ctx.Err() != nil || !t.write(ctx, encodeResult(l.ID, value, err)) {
			return t.stopped(ctx), true
		}
		return verdict{}, false
	default:
		panic(fmt.Sprintf("turn: DecodeLine let type %q through", l.Type))
	}
}

// write hands a line to the program and reports false when ctx ended first. A
// program that closed its stdin is no reason to stop: its exit will tell.
func (t *talk) write(ctx context.Context, line []byte) bool {
	select {
	case t.child.out <- line:
		return true
	case <-ctx.Done():
		return false
	}
}

// stopped is the verdict when ctx ended first.
func (t *talk) stopped(ctx context.Context) verdict {
	cause := context.Cause(ctx)
	if errors.Is(cause, errTimeout) {
		return verdict{farewell: farewellTerminate, err: func(tr Trace) error {
			return &TimeoutError{After: t.limit, Trace: tr}
		}}
	}
	return verdict{farewell: farewellFenced, err: func(tr Trace) error {
		return fmt.Errorf("%s was stopped: %w", tr.Program, cause)
	}}
}

// fellSilent is the verdict when stdout ended without an answer.
func (t *talk) fellSilent() verdict {
	if t.child.tooLong {
		return t.broke(t.lines+1, fmt.Sprintf("the line is longer than %d bytes", MaxLine), nil)
	}
	v := verdict{farewell: farewellPolite}
	v.byExit = func(s exitStatus) verdict {
		if s.own || s.lost {
			return exited(s)
		}
		return t.broke(0, "it closed its stdout without a done or failed line and went on running", nil)
	}
	return v
}

func (t *talk) broke(line int, what string, text []byte) verdict {
	excerpt := clip(string(bytes.ToValidUTF8(text[:min(len(text), maxExcerpt)], []byte("�"))), maxExcerpt)
	return verdict{farewell: farewellTerminate, err: func(t Trace) error {
		return &ProtocolError{Line: line, What: what, Excerpt: excerpt, Trace: t}
	}}
}

func exited(s exitStatus) verdict {
	return verdict{err: func(t Trace) error {
		return &ExitError{Code: s.code, Signal: s.signal, Lost: s.lost, Trace: t}
	}}
}
