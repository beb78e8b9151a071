package graph_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// stored is the message of an event at a position.
func stored(t testing.TB, st events.Stream, seq uint64, e events.Event) events.Message {
	t.Helper()
	subjects, err := events.NewSubjects("crewlet")
	if err != nil {
		t.Fatal(err)
	}
	at := start.Add(time.Duration(seq) * time.Second)
	m := events.Meta{ID: fmt.Sprint(st, "-", seq), Command: fmt.Sprint(st, "-", seq), Source: nodeA, Time: at}
	if st != events.StreamFleet {
		m.Epoch, m.FleetSeq = 1, 2
	}
	if claimed, ok := e.(events.LeaseClaimed); ok {
		m.Epoch, m.Source = claimed.Epoch, claimed.Owner
	}
	w, err := events.Encode(subjects, m, e)
	if err != nil {
		t.Fatal(err)
	}
	return events.Message{Stream: st, Seq: seq, Subject: w.Subject, At: at, Header: w.Header, Data: w.Data}
}

// drop takes a message out of a stream, as pruning does.
func (w *world) drop(st events.Stream, seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams[st] = slices.DeleteFunc(w.streams[st], func(m events.Message) bool { return m.Seq == seq })
}

// history is a short life of one seat in three streams.
func history(t testing.TB) *world {
	t.Helper()
	w := newWorld()
	w.store(events.StreamFleet,
		stored(t, events.StreamFleet, 1, companyWith(1, events.RosterSeat{Handle: "ada"})),
		stored(t, events.StreamFleet, 2, claimSeat("ada", 1, nodeA)),
		stored(t, events.StreamFleet, 3, events.SeatEstablished{Handle: "ada", Epoch: 1, Owner: nodeA}),
	)
	w.store(events.StreamWork, stored(t, events.StreamWork, 1, events.TurnCompleted{
		Handle: "ada", EventID: "e1", EventIDs: []string{"e1"}, WorkKey: "k", Epoch: 1, Owner: nodeA, Outcome: events.OutcomeDone, Attempts: 1,
	}))
	return w
}

// TestExport: /events without parameters is a whole export, which an audit
// takes: header, chain and every line.
func TestExport(t *testing.T) {
	got := get(graph.New(history(t).deps(t)), "/events")
	if got.Code != http.StatusOK || got.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("got %d %s", got.Code, got.Body)
	}
	text := got.Body.String()
	report, err := audit.Check(strings.NewReader(text))
	if err != nil || !report.OK() {
		t.Fatalf("audit: %v %+v", err, report)
	}
	if lines := strings.Count(text, "\n"); lines != 5 {
		t.Errorf("%d lines, want a header and 4 messages:\n%s", lines, text)
	}
	var streams []events.Stream
	for _, s := range read(t, text).Header().Streams {
		streams = append(streams, s.Stream)
	}
	if got, want := fmt.Sprint(streams), "[FLEET CURSOR WORK DEAD]"; got != want {
		t.Errorf("streams %s, want %s", got, want)
	}
}

func read(t *testing.T, text string) *audit.Reader {
	t.Helper()
	r, err := audit.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return r
}

// TestExportOfOneStream: named streams only, in the order of the format, and
// only what lies after the position.
func TestExportOfOneStream(t *testing.T) {
	w := history(t)
	for target, want := range map[string]string{
		"/events?after=2":                        "FLEET 3",
		"/events?stream=FLEET&after=3":           "",
		"/events?stream=WORK":                    "WORK 1",
		"/events?stream=WORK&stream=FLEET":       "FLEET 1 FLEET 2 FLEET 3 WORK 1",
		"/events?stream=MAIL&stream=DEAD&after=": "",
	} {
		var got []string
		in := read(t, get(graph.New(w.deps(t)), target).Body.String())
		entry, err := in.Next()
		for ; err == nil; entry, err = in.Next() {
			got = append(got, fmt.Sprint(entry.Message.Stream, " ", entry.Message.Seq))
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", target, err)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// TestEventsRefuses: what cannot be streamed is said before anything is.
func TestEventsRefuses(t *testing.T) {
	w := history(t)
	w.first[events.StreamFleet] = 3
	for target, want := range map[string]string{
		"/events?after=x":                           "BAD_REQUEST",
		"/events?after=-1":                          "BAD_REQUEST",
		"/events?after=1&after=2":                   "BAD_REQUEST",
		"/events?after=4":                           "BAD_REQUEST",
		"/events?follow=perhaps":                    "BAD_REQUEST",
		"/events?stream=MOON":                       "BAD_REQUEST",
		"/events?streams=FLEET":                     "BAD_REQUEST",
		"/events?stream=FLEET&stream=WORK&follow=1": "BAD_REQUEST",
		"/events?stream=FLEET&stream=WORK&after=1":  "BAD_REQUEST",
		"/events?follow=1&after=9":                  "BAD_REQUEST",
		"/events?after=1":                           "BEFORE_HISTORY",
		"/events?follow=true&after=1":               "BEFORE_HISTORY",
	} {
		got := get(graph.New(w.deps(t)), target)
		if !strings.Contains(got.Body.String(), `"code":"`+want+`"`) {
			t.Errorf("%s: got %d %s, want %s", target, got.Code, got.Body, want)
		}
		if want == "BEFORE_HISTORY" && (got.Code != http.StatusGone || !strings.Contains(got.Body.String(), `"first":"3"`)) {
			t.Errorf("%s: got %d %s", target, got.Code, got.Body)
		}
	}
	w.readErr = events.ErrUnavailable
	for _, target := range []string{"/events", "/events?follow=1"} {
		if got := get(graph.New(w.deps(t)), target); got.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: got %d %s", target, got.Code, got.Body)
		}
	}
}

// TestFollow: a follower gets what there is, then each message as it is stored,
// and a whole line as its last when the node stops.
func TestFollow(t *testing.T) {
	w := history(t)
	url, stop := serve(t, w)
	r, err := http.Get(url + "/events?follow=true&after=2")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	in := bufio.NewReader(r.Body)
	line := func() string {
		s, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got := line(); !strings.HasPrefix(got, `{"format_version":1,"prefix":"crewlet","streams":[{"stream":"FLEET"`) {
		t.Errorf("header %s", got)
	}
	for seq := uint64(3); seq < 6; seq++ {
		if seq > 3 {
			w.store(events.StreamFleet, stored(t, events.StreamFleet, seq, companyWith(seq)))
		}
		if got := line(); !strings.HasPrefix(got, fmt.Sprintf(`{"stream":"FLEET","seq":%d,`, seq)) || !strings.Contains(got, `"chain":"`) {
			t.Errorf("line %s", got)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if rest, err := in.ReadString('\n'); rest != "" || err == nil || err.Error() != "EOF" {
		t.Errorf("after the stop: %q, %v", rest, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestFollowBrokenOff: when the log ends underneath, the caller sees that the
// answer is not whole.
func TestFollowBrokenOff(t *testing.T) {
	w := history(t)
	url, stop := serve(t, w)
	r, err := http.Get(url + "/events?follow=true&after=3")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	in := bufio.NewReader(r.Body)
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	// Out of order, which no export may be.
	w.store(events.StreamFleet, stored(t, events.StreamFleet, 9, companyWith(9)), stored(t, events.StreamFleet, 8, companyWith(8)))
	var failed error
	for failed == nil {
		_, failed = in.ReadString('\n')
	}
	if failed.Error() == "EOF" || !w.logged.has("api_answer_broken_off") {
		t.Errorf("ended with %v, logged %q", failed, w.logged.names)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestFollowersAreBounded: the one too many is told so, and their places are
// free again when they leave.
func TestFollowersAreBounded(t *testing.T) {
	w := history(t)
	url, stop := serve(t, w)
	var open []*http.Response
	for range 64 {
		r, err := http.Get(url + "/events?follow=1")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(err, r)
		}
		open = append(open, r)
	}
	r, err := http.Get(url + "/events?follow=1")
	if err != nil || r.StatusCode != http.StatusServiceUnavailable {
		t.Error(err, r)
	}
	r.Body.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
	for _, r := range open {
		r.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestExportOfAMovingLog: a log that grows, and whose messages are replaced and
// pruned, while it is exported gives an export that agrees with itself, and
// FLEET holds what was there when another stream's record was read.
func TestExportOfAMovingLog(t *testing.T) {
	w := history(t)
	cursor := func(seq uint64) events.Message {
		return stored(t, events.StreamCursor, seq, events.CursorOpened{CursorBody: events.CursorBody{
			Handle: "ada", Mailbox: events.Inbox, CursorSnapshot: events.CursorSnapshot{Epoch: 1, Owner: nodeA},
		}})
	}
	marker := func(st events.Stream, seq uint64) events.Message {
		return stored(t, st, seq, events.StreamMarked{Stream: st, Marker: fmt.Sprint("m", seq), CreatedAt: "then"})
	}
	w.store(events.StreamCursor, cursor(1))
	w.beforeBounds = func(st events.Stream) {
		if st == events.StreamWork {
			w.store(events.StreamFleet, marker(events.StreamFleet, 4))
		}
	}
	w.afterBounds = func(st events.Stream) {
		switch st {
		case events.StreamCursor: // the one message is replaced
			w.drop(st, 1)
			w.store(st, cursor(2))
		case events.StreamWork: // it grows
			w.store(st, marker(st, 2))
		case events.StreamFleet: // its end is pruned, and it grows
			w.drop(st, 4)
			w.store(st, marker(st, 5))
		default:
		}
	}
	export := func() (bounds string) {
		text := get(graph.New(w.deps(t)), "/events").Body.String()
		for _, s := range read(t, text).Header().Streams {
			bounds += fmt.Sprintf("%s %d-%d ", s.Stream, s.First, s.Last)
		}
		report, err := audit.Check(strings.NewReader(text))
		if err != nil || !report.OK() {
			t.Errorf("audit: %v %+v", err, report)
		}
		return bounds
	}
	if got, want := export(), "FLEET 1-3 CURSOR 2-2 WORK 1-1 DEAD 0-0 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// Without the pruning, what came to FLEET before WORK was read is in it.
	w = history(t)
	w.beforeBounds = func(st events.Stream) {
		if st == events.StreamWork {
			w.store(events.StreamFleet, marker(events.StreamFleet, 4))
		}
	}
	if got, want := export(), "FLEET 1-4 CURSOR 0-0 WORK 1-1 DEAD 0-0 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// hasty is a broker that, while a message of CURSOR is being replaced, says that
// nothing is pending one message too soon.
type hasty struct{ *world }

func (h hasty) Follow(ctx context.Context, st events.Stream, from uint64, fn func([]events.Message, bool) error) error {
	return h.world.Follow(ctx, st, from, func(batch []events.Message, caughtUp bool) error {
		if st == events.StreamCursor && len(batch) > 1 {
			return fn(batch[:len(batch)-1], true)
		}
		return fn(batch, caughtUp)
	})
}

// TestExportReadsToTheEnd proves that the end of a stream that replaces messages is
// not taken from the broker's word alone: a cursor that is moved while it is read
// would be missing, and the audit would call it lost (Schedule10).
func TestExportReadsToTheEnd(t *testing.T) {
	w := history(t)
	for seq, handle := range []string{"ada", "bob", "cy"} {
		w.store(events.StreamCursor, stored(t, events.StreamCursor, uint64(seq+1), events.CursorOpened{CursorBody: events.CursorBody{
			Handle: handle, Mailbox: events.Inbox, CursorSnapshot: events.CursorSnapshot{Epoch: 1, Owner: nodeA},
		}}))
	}
	deps := w.deps(t)
	deps.Events = hasty{w}
	for _, s := range read(t, get(graph.New(deps), "/events").Body.String()).Header().Streams {
		if s.Stream == events.StreamCursor && s.Last != 3 {
			t.Errorf("CURSOR is exported up to %d, and has 3", s.Last)
		}
	}
}

// TestExportDisk: an export that cannot be collected is an error before its
// first line.
func TestExportDisk(t *testing.T) {
	w := history(t)
	deps := w.deps(t)
	deps.SpoolDir += "/gone"
	got := get(graph.New(deps), "/events")
	if got.Code != http.StatusInternalServerError || !w.logged.has("api_internal_error") {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	w.readErr = errors.Join(events.ErrUnavailable)
	if got := get(graph.New(w.deps(t)), "/events"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

// silent is a log whose replica cannot be read: it gives nothing, and no error.
type silent struct{ *world }

// Follow gives nothing until ctx ends.
func (silent) Follow(ctx context.Context, _ events.Stream, _ uint64, _ func([]events.Message, bool) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestExportOfASilentLog proves that an export that makes no progress ends, and
// says so, instead of waiting for ever.
func TestExportOfASilentLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := history(t)
		deps := w.deps(t)
		deps.Events = silent{w}
		begun := time.Now()
		got := get(graph.New(deps), "/events")
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "gave nothing") {
			t.Errorf("got %d %s", got.Code, got.Body)
		}
	})
}
