package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// mailroom is what inboxes keep, for tests.
type mailroom struct {
	waiting []graph.Waiting
	parked  map[uint64]events.Recorded
	err     error
}

func (m mailroom) Waiting(_ context.Context, handle string, after uint64, limit int) ([]graph.Waiting, bool, bool, error) {
	if m.err != nil || handle != "ada" {
		return nil, false, false, m.err
	}
	var mail []graph.Waiting
	for _, w := range m.waiting {
		if w.Message.Seq <= after {
			continue
		}
		if len(mail) == limit {
			return mail, true, true, nil
		}
		mail = append(mail, w)
	}
	return mail, false, true, nil
}

func (m mailroom) Parked(_ context.Context, position uint64) (events.Recorded, error) {
	r, ok := m.parked[position]
	if !ok {
		return r, events.ErrNotFound
	}
	return r, m.err
}

func (w *world) askInbox(t testing.TB, m mailroom, query string) answer {
	t.Helper()
	deps := w.deps(t)
	deps.Inboxes = m
	return post(graph.New(deps), request(query, nil))
}

// TestWaitingMail: mail that waits is shown with what the seat has done with it, page
// by page; a seat without a mailbox is null, and what cannot be read is no empty list.
func TestWaitingMail(t *testing.T) {
	mail := func(seq uint64, data string, open events.OpenMail, extra ...string) graph.Waiting {
		h := events.Header{events.HeaderID: {fmt.Sprint("e", seq)}, events.HeaderType: {events.TaskAssigned}}
		for i := 0; i < len(extra); i += 2 {
			h.Set(extra[i], extra[i+1])
		}
		return graph.Waiting{Message: events.Message{Seq: seq, At: start, Header: h, Data: []byte(data)}, Open: open}
	}
	torn := mail(6, "{", events.OpenMail{})
	torn.Unreadable = errors.New("the payload is not JSON")
	m := mailroom{waiting: []graph.Waiting{
		mail(1, `{"a":"<&>"}`, events.OpenMail{Seq: 1, Attempts: 3}, events.HeaderConversation, "c", events.HeaderSource, "bob", events.HeaderReplayOf, "9"),
		mail(2, `1`, events.OpenMail{Seq: 2, Attempts: 1, Running: true}), mail(3, `1`, events.OpenMail{Seq: 3, Run: "run-1"}),
		mail(4, `1`, events.OpenMail{Seq: 4}), mail(5, `1`, events.OpenMail{}), torn,
	}}
	const fields = `edges { cursor node { position id type conversation source state attempts run replayOf bytes data undecodable } } pageInfo { hasNextPage }`
	first := acme(t).askInbox(t, m, `{ m: waitingMail(handle: "ada", first: 1) { `+fields+` } }`)
	want := `{"m":{"edges":[{"cursor":"bWFpbDox","node":{"position":"1","id":"e1","type":"task_assigned","conversation":"c","source":"bob","state":"FAILED","attempts":3,"run":null,"replayOf":"9","bytes":11,"data":{"a":"<&>"},"undecodable":null}}],"pageInfo":{"hasNextPage":true}}}`
	if diff := cmp.Diff(want, string(first.Data)); diff != "" {
		t.Errorf("the first page (-want +got):\n%s", diff)
	}
	rest := acme(t).askInbox(t, m, `{ m: waitingMail(handle: "ada", after: "bWFpbDox") { edges { node { state run data undecodable } } pageInfo { hasNextPage } } }`)
	want = `{"m":{"edges":[{"node":{"state":"RUNNING","run":null,"data":1,"undecodable":null}},{"node":{"state":"HELD","run":"run-1","data":1,"undecodable":null}},` +
		`{"node":{"state":"READ","run":null,"data":1,"undecodable":null}},{"node":{"state":"UNREAD","run":null,"data":1,"undecodable":null}},` +
		`{"node":{"state":"UNREAD","run":null,"data":null,"undecodable":"the payload is not JSON"}}],"pageInfo":{"hasNextPage":false}}}`
	if diff := cmp.Diff(want, string(rest.Data)); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
	if a := acme(t).askInbox(t, m, `{ m: waitingMail(handle: "bob") { pageInfo { hasNextPage } } }`); string(a.Data) != `{"m":null}` || len(a.Errors) > 0 {
		t.Errorf("a seat without a mailbox: %s", a.Raw)
	}
	if a := acme(t).askInbox(t, mailroom{err: events.ErrUnavailable}, `{ m: waitingMail(handle: "ada") { pageInfo { hasNextPage } } }`); a.code() != "UNAVAILABLE" {
		t.Errorf("a broker that does not answer: %s", a.Raw)
	}
	for _, call := range []string{`waitingMail(handle: "ada", first: 0)`, `waitingMail(handle: "ada", first: 101)`, `waitingMail(handle: "No.Such")`, `waitingMail(handle: "ada", after: "x")`} {
		if a := acme(t).askInbox(t, m, `{ m: `+call+` { pageInfo { hasNextPage } } }`); a.code() != "BAD_REQUEST" {
			t.Errorf("%s: %s", call, a.Raw)
		}
	}
}

// TestParkedMail: what was set aside is listed with why, how often and how it was
// tried, and what was decided, which is left out unless it is asked for.
func TestParkedMail(t *testing.T) {
	w := acme(t)
	p := events.MailParked{
		Handle: "ada", Mailbox: events.Inbox, EventID: "e1", MailSeq: 17, Epoch: 2, Owner: nodeA, Attempts: 25, Reason: "budget", Bytes: 7,
		Header:  events.Header{events.HeaderType: {events.TaskAssigned}, events.HeaderConversation: {"c"}},
		History: []events.Tried{{Epoch: 1, End: events.AttemptUnfinished, Count: 1}, {Epoch: 2, End: events.AttemptFailed, Count: 24, Why: "no", At: start}},
	}
	other := events.MailParked{Handle: "ada", Mailbox: events.Inbox, MailSeq: 18, Epoch: 2, Owner: nodeA, Reason: "torn", Clipped: true, Bytes: 9}
	w.add(t, events.StreamDead, p, other)
	w.add(t, events.StreamFleet, events.MailDropped{ParkedBody: events.ParkedBody{Handle: "ada", Key: other.Key(), DeadSeq: 2, By: "ann", Reason: "a test"}})
	const fields = `{ edges { node { position handle id type conversation mailSequence reason attempts bytes clipped history { epoch end count why at } decided { how by reason mailSequence } } } totalCount }`
	open := ask(t, w, `{ m: parkedMail(handle: "ada") `+fields+` }`, nil)
	want := `{"m":{"edges":[{"node":{"position":"1","handle":"ada","id":"e1","type":"task_assigned","conversation":"c","mailSequence":"17","reason":"budget","attempts":25,"bytes":7,"clipped":false,` +
		`"history":[{"epoch":"1","end":"unfinished","count":1,"why":null,"at":null},{"epoch":"2","end":"failed","count":24,"why":"no","at":"` + start.Format(time.RFC3339) + `"}],"decided":null}}],"totalCount":1}}`
	if diff := cmp.Diff(want, string(open.Data)); diff != "" {
		t.Errorf("undecided (-want +got):\n%s", diff)
	}
	all := ask(t, w, `{ m: parkedMail(handle: "ada", decided: true, first: 1) { edges { node { id clipped decided { how by reason } } } pageInfo { hasNextPage } } }`, nil)
	want = `{"m":{"edges":[{"node":{"id":null,"clipped":true,"decided":{"how":"DROPPED","by":"ann","reason":"a test"}}}],"pageInfo":{"hasNextPage":true}}}`
	if diff := cmp.Diff(want, string(all.Data)); diff != "" {
		t.Errorf("with what was decided (-want +got):\n%s", diff)
	}
}

// TestParkedContent: what a parked mail says is read from its record, JSON or not, and
// of its own seat only.
func TestParkedContent(t *testing.T) {
	m := mailroom{parked: map[uint64]events.Recorded{
		1: {Seq: 1, Event: events.MailParked{Handle: "ada", Header: events.Header{"x": {"1", "2"}}, Data: []byte(`{"n":1}`)}},
		2: {Seq: 2, Event: events.MailParked{Handle: "ada", Data: []byte("\x00{")}},
		3: {Seq: 3, Event: events.MailParked{Handle: "bob", Data: []byte(`{}`)}},
		4: {Seq: 4, Event: events.StreamMarked{}},
	}}
	for position, want := range map[int]string{
		1: `{"m":{"headers":{"x":["1","2"]},"data":{"n":1},"raw":null}}`,
		2: `{"m":{"headers":{},"data":null,"raw":"AHs="}}`,
		3: `{"m":null}`, 4: `{"m":null}`, 5: `{"m":null}`,
	} {
		a := acme(t).askInbox(t, m, fmt.Sprintf(`{ m: parkedContent(handle: "ada", position: "%d") { headers data raw } }`, position))
		if string(a.Data) != want || len(a.Errors) > 0 {
			t.Errorf("at %d: %s, want %s", position, a.Raw, want)
		}
	}
}

// TestDecideParked: replaying and dropping ask for the mail that was named, for at
// most 100 of them, and dropping never for all.
func TestDecideParked(t *testing.T) {
	many := strings.Repeat(`"1",`, 101)
	for call, want := range map[string]graph.Operation{
		`replayParked(handle: "ada", reason: "r")`:                          graph.ReplayParked{Handle: "ada"},
		`replayParked(handle: "ada", positions: ["3", "5"], reason: "r")`:   graph.ReplayParked{Handle: "ada", Positions: []uint64{3, 5}},
		`dropParked(handle: "ada", positions: ["3"], reason: "r")`:          graph.DropParked{Handle: "ada", Positions: []uint64{3}},
		`replayParked(handle: "ada", positions: [], reason: "r")`:           nil,
		`dropParked(handle: "ada", positions: [], reason: "r")`:             nil,
		`dropParked(handle: "ada", positions: ["0"], reason: "r")`:          nil,
		`dropParked(handle: "ada", positions: [` + many + `], reason: "r")`: nil,
		`dropParked(handle: "Ada", positions: ["3"], reason: "r")`:          nil,
		`replayParked(handle: "ada", reason: "")`:                           nil,
	} {
		w := acme(t)
		a := ask(t, w, `mutation { m: `+call+outcome+` }`, nil)
		switch {
		case want == nil && (a.code() != "BAD_REQUEST" || len(w.ops) > 0):
			t.Errorf("%s: %s", call, a.Raw)
		case want != nil && !cmp.Equal([]graph.Operation{want}, w.ops):
			t.Errorf("%s: asked for %+v", call, w.ops)
		}
	}
}
