package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Names of the built-in tools.
const (
	// ToolSend sends mail to a seat: {to, type?, data?, conversation?} → {id}.
	ToolSend = "send"
	// ToolSeatStatus reads what is known of a seat: {seat} → its status.
	ToolSeatStatus = "seat_status"
)

// tool is one row of the table of built-in tools.
type tool struct {
	// outside: a call may have effects beyond this turn that a re-run would
	// repeat, the open-world annotation of spec B2. A tool without it proves
	// nothing.
	outside bool
	call    func(t *Tools, ctx context.Context, number int, args json.RawMessage) (json.RawMessage, error)
}

var builtIn = map[string]tool{
	ToolSend:       {outside: true, call: (*Tools).send},
	ToolSeatStatus: {outside: false, call: (*Tools).seatStatus},
}

// Sender puts mail into a seat's mailbox.
type Sender interface {
	// Send returns nil once the mail is stored. It returns a RefusedError when
	// nothing was stored and never will be.
	Send(ctx context.Context, m events.Mail) error
}

// Status reads what is known of a seat.
type Status interface {
	SeatStatus(ctx context.Context, handle string) (json.RawMessage, error)
}

// RefusedError is a call that did nothing, because it asked for something that
// cannot be done. It is for the program to read.
type RefusedError struct {
	Tool string
	Err  error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %v", e.Tool, e.Err) }

func (e *RefusedError) Unwrap() error { return e.Err }

// Tools does the built-in calls of one run of one turn. It checks no fence: the
// turn does, before it hands a call on.
//
// The number of a call is its place among this run's calls of the same tool,
// from 1, in the order they are made and with the refused ones counted. Calls of
// other tools do not move it, so a re-run that only looks more often still sends
// under the same ids.
//
// Its methods may be called from several goroutines.
type Tools struct {
	req    Request
	scope  string // what makes the ids of this turn's mail its own
	sender Sender
	status Status

	mu      sync.Mutex
	numbers map[string]int // calls made, by tool; guarded by mu
	reached bool           // guarded by mu
}

// NewTools makes the tools of one run. runID names the run, not the work; it
// stands in for the work key where that is empty, since turns without a key
// are all different work (spec W2).
func NewTools(req Request, runID string, sender Sender, status Status) (*Tools, error) {
	// The seat is part of it: a work key is unique per agent only (W1), and two
	// seats woken by one event must not send under one id.
	scope := digest("work", req.Seat, req.WorkKey)
	if req.WorkKey == "" {
		if runID == "" {
			return nil, fmt.Errorf("a turn of seat %s has neither a work key nor a run id: its mail would share ids with other turns", req.Seat)
		}
		scope = digest("run", req.Seat, runID)
	}
	return &Tools{req: req, scope: scope, sender: sender, status: status, numbers: map[string]int{}}, nil
}

// Call does one call. A RefusedError means that nothing happened; after any
// other error of a tool that reaches outside, the effect may stand.
func (t *Tools) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	row, ok := builtIn[name]
	if !ok {
		return nil, &RefusedError{name, fmt.Errorf("there is no such tool; there are %q", slices.Sorted(maps.Keys(builtIn)))}
	}
	t.mu.Lock()
	t.numbers[name]++
	number := t.numbers[name]
	t.mu.Unlock()

	settled := false
	defer func() {
		// Also on a panic: what it left behind is not known (spec B1).
		if !settled && row.outside {
			t.mark()
		}
	}()
	value, err := row.call(t, ctx, number, args)
	refused := (*RefusedError)(nil)
	settled = errors.As(err, &refused)
	return value, err
}

func (t *Tools) mark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reached = true
}

// Reached says whether a call of this run reached outside, or may have. It is
// the turn's record for spec B1; a refused call does not count.
func (t *Tools) Reached() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reached
}

// send's event id is the digest of the work and the call's number, so that a
// re-run's mail is the first run's mail again and the receiver's ledger drops it.
func (t *Tools) send(ctx context.Context, number int, raw json.RawMessage) (json.RawMessage, error) {
	args := struct {
		To           string          `json:"to"`
		Type         string          `json:"type"`
		Data         json.RawMessage `json:"data"`
		Conversation string          `json:"conversation"`
	}{Type: events.A2AMessage, Data: json.RawMessage("null")}
	if err := readArgs(raw, &args); err != nil {
		return nil, &RefusedError{ToolSend, err}
	}
	if err := events.ValidHandle(args.To); err != nil {
		return nil, &RefusedError{ToolSend, fmt.Errorf("to: %w", err)}
	}
	if !events.Ledgered(args.Type) {
		return nil, &RefusedError{ToolSend, fmt.Errorf("type: mail of type %q wakes no turn and would be dropped; leave it out for %q",
			clip(args.Type, maxTool), events.A2AMessage)}
	}
	id := digest("send", t.scope, strconv.Itoa(number))
	err := t.sender.Send(ctx, events.Mail{
		Handle: args.To, Mailbox: events.Inbox, ID: id, Type: args.Type, Time: time.Now().UTC(),
		Conversation: args.Conversation, Source: t.req.Seat, Data: args.Data,
	})
	if err != nil {
		return nil, fmt.Errorf("mail to %s: %w", args.To, err)
	}
	return json.Marshal(map[string]string{"id": id})
}

func (t *Tools) seatStatus(ctx context.Context, _ int, raw json.RawMessage) (json.RawMessage, error) {
	var args struct {
		Seat string `json:"seat"`
	}
	if err := readArgs(raw, &args); err != nil {
		return nil, &RefusedError{ToolSeatStatus, err}
	}
	if err := events.ValidHandle(args.Seat); err != nil {
		return nil, &RefusedError{ToolSeatStatus, fmt.Errorf("seat: %w", err)}
	}
	value, err := t.status.SeatStatus(ctx, args.Seat)
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", args.Seat, err)
	}
	return value, nil
}

// readArgs is strict: a misspelt argument must not silently mean its default.
func readArgs(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("args: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("args: more than one JSON value")
	}
	return nil
}
