package robust_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of records in the sink.
const (
	recBegin  = "begin"  // a turn was given to the agent
	recCall   = "call"   // the node let a call through
	recSent   = "sent"   // a call that sent mail was let through; Sent is its id
	recEffect = "effect" // the turn's one effect on the outside world
	recEnd    = "end"    // the agent said that it is done
)

// record is a line of the sink, written by an agent and by nobody else.
// Times are of CLOCK_MONOTONIC, which no fault of ours bends: an agent asks the
// kernel, not the node.
type record struct {
	Kind    string   `json:"kind"`
	Seat    string   `json:"seat"`
	Epoch   uint64   `json:"epoch"`
	WorkKey string   `json:"work_key"`
	Attempt int      `json:"attempt"`
	Node    string   `json:"node"`
	Events  []string `json:"events"`
	Asked   int64    `json:"asked"` // before the call was made
	At      int64    `json:"at"`    // after it was answered, or when it happened
	Sent    string   `json:"sent,omitempty"`
	To      string   `json:"to,omitempty"`
}

func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

type turnLine struct {
	Seat    string `json:"seat"`
	Epoch   uint64 `json:"epoch"`
	WorkKey string `json:"work_key"`
	Attempt int    `json:"attempt"`
	Events  []struct {
		ID   string   `json:"id"`
		Data mailBody `json:"data"`
	} `json:"events"`
}

// mailBody is what the mail of a run says.
type mailBody struct {
	Relay string `json:"relay,omitempty"` // seat to send one more mail to
}

// agent is one turn of a seat's program.
type agent struct {
	in   *bufio.Reader
	sink *os.File
	turn turnLine
	base record
	n    int
}

var errRefused = errors.New("the node refused the call")

// runAgent works on one turn: some calls with pauses between, then one effect,
// which counts as let through with the last call. How long it takes is drawn
// from the work, so that a second attempt is as long as the first.
func runAgent(sink string) int {
	a := agent{in: bufio.NewReader(os.Stdin)}
	line, err := a.in.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &a.turn) != nil {
		return 1
	}
	if a.sink, err = os.OpenFile(sink, os.O_APPEND|os.O_WRONLY, 0); err != nil {
		fmt.Fprintln(os.Stderr, "robust agent:", err)
		return 9
	}
	a.base = record{
		Seat: a.turn.Seat, Epoch: a.turn.Epoch, WorkKey: a.turn.WorkKey, Attempt: a.turn.Attempt,
		Node: os.Getenv(envNode),
	}
	for _, e := range a.turn.Events {
		a.base.Events = append(a.base.Events, e.ID)
	}
	a.note(record{Kind: recBegin})
	if err := a.work(); err != nil {
		fmt.Fprintln(os.Stderr, "robust agent:", err)
		return 1
	}
	a.note(record{Kind: recEnd})
	fmt.Fprintf(os.Stdout, `{"type":"done","reply":{"epoch":%d}}`+"\n", a.turn.Epoch)
	return 0
}

func (a *agent) work() error {
	calls, pause := paces(a.turn.WorkKey)
	for range calls {
		if _, err := a.call(recCall, "seat_status", map[string]any{"seat": a.turn.Seat}, ""); err != nil {
			return err
		}
		<-time.After(pause)
	}
	for _, e := range a.turn.Events {
		if e.Data.Relay != "" {
			args := map[string]any{"to": e.Data.Relay, "data": mailBody{}}
			if _, err := a.call(recSent, "send", args, e.Data.Relay); err != nil {
				return err
			}
		}
	}
	asked, err := a.call(recCall, "seat_status", map[string]any{"seat": a.turn.Seat}, "")
	if err != nil {
		return err
	}
	a.note(record{Kind: recEffect, Asked: asked})
	return nil
}

// paces says how many calls a work makes, and the pause between two.
func paces(workKey string) (calls int, pause time.Duration) {
	h := fnv.New64a()
	h.Write([]byte(workKey))
	n := h.Sum64()
	calls = 1 + int(n%4)
	switch n / 4 % 10 {
	case 0:
		return calls, 2 * time.Second
	case 1, 2, 3:
		return calls, 200 * time.Millisecond
	}
	return calls, 10 * time.Millisecond
}

// call makes a call and notes that it was let through.
func (a *agent) call(kind, tool string, args map[string]any, to string) (asked int64, err error) {
	a.n++
	asked = monotonic()
	line, err := json.Marshal(map[string]any{"type": "call", "id": fmt.Sprint(a.n), "tool": tool, "args": args})
	if err != nil {
		return 0, err
	}
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	raw, err := a.in.ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	var got struct {
		Type  string
		OK    bool
		Error string
		Value struct{ ID string }
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return 0, err
	}
	if got.Type != "result" || !got.OK {
		return 0, fmt.Errorf("%w: %s %s", errRefused, got.Type, got.Error)
	}
	a.note(record{Kind: kind, Asked: asked, Sent: got.Value.ID, To: to})
	return asked, nil
}

// note appends one line, whole: the kernel keeps appends apart.
func (a *agent) note(r record) {
	full := a.base
	full.Kind, full.Asked, full.Sent, full.To, full.At = r.Kind, r.Asked, r.Sent, r.To, monotonic()
	line, err := json.Marshal(full)
	if err == nil {
		_, err = a.sink.Write(append(line, '\n'))
	}
	if err != nil {
		os.Exit(9)
	}
}
