package graph_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
)

const send = `mutation($handle: ID!, $type: String!, $data: JSON!, $id: ID, $conversation: String, $wait: Duration) {
	sendMessage(handle: $handle, type: $type, data: $data, id: $id, conversation: $conversation, wait: $wait) {
		id mailSequence completion { outcome eventIds reply }
	}
}`

// message is a good one, with what differs.
func message(change vars) vars {
	v := vars{"handle": "ada", "type": "task_assigned", "data": vars{"say": "hello"}, "id": "mail-7"}
	for key, value := range change {
		v[key] = value
	}
	return v
}

// TestSendMessage: the mail goes to the seat's inbox as it was written, under
// the caller's id, and the answer says where it stands.
func TestSendMessage(t *testing.T) {
	w := acme(t)
	v := message(vars{"data": vars{"n": 12345678901234567, "s": "<&>"}, "conversation": "talk-1"})
	got := ask(t, w, send, v)
	if want := `{"sendMessage":{"id":"mail-7","mailSequence":"1","completion":null}}`; string(got.Data) != want {
		t.Fatalf("got %s, want %s", got.Raw, want)
	}
	m := w.sent[0]
	if since := time.Since(m.Time); since < 0 || since > time.Minute {
		t.Errorf("sent %s ago", since)
	}
	m.Time = time.Time{}
	want := events.Mail{Handle: "ada", Mailbox: events.Inbox, ID: "mail-7", Type: "task_assigned", Conversation: "talk-1",
		Source: string(nodeA), Data: []byte(`{"n":12345678901234567,"s":"<&>"}`)}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

// TestSendWithoutID: each mail gets an id of its own.
func TestSendWithoutID(t *testing.T) {
	w := acme(t)
	for range 2 {
		ask(t, w, `mutation { sendMessage(handle: "ada", type: "note", data: [1, "two", {three: null}]) { id } }`, nil)
	}
	if len(w.sent) != 2 || w.sent[0].ID == w.sent[1].ID || uuid.Validate(w.sent[0].ID) != nil {
		t.Fatalf("sent %+v", w.sent)
	}
	if got, want := string(w.sent[0].Data), `[1,"two",{"three":null}]`; got != want {
		t.Errorf("data %s, want %s", got, want)
	}
}

// TestSendJudgesArguments: what is wrong is said of the argument it is about,
// and nothing is sent.
func TestSendJudgesArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		change   vars
		argument string
	}{
		"empty id":          {vars{"id": ""}, "id"},
		"long id":           {vars{"id": strings.Repeat("x", 257)}, "id"},
		"id with a break":   {vars{"id": "a\nb"}, "id"},
		"id with an end":    {vars{"id": "a "}, "id"},
		"empty type":        {vars{"type": ""}, "type"},
		"type with NUL":     {vars{"type": "a\x00"}, "type"},
		"long type":         {vars{"type": strings.Repeat("x", 129)}, "type"},
		"conversation":      {vars{"conversation": ""}, "conversation"},
		"no time to wait":   {vars{"wait": "PT0S"}, "wait"},
		"back in time":      {vars{"wait": "-PT1S"}, "wait"},
		"longer than it is": {vars{"wait": "PT10M1S"}, "wait"},
		"a year":            {vars{"wait": "P1Y"}, "wait"},
		"runs no turn":      {vars{"wait": "PT1S", "type": "note"}, "wait"},
		"no duration":       {vars{"wait": "10s"}, ""},
		"a number":          {vars{"wait": 10}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := acme(t)
			got := ask(t, w, send, message(tc.change))
			if got.code() != "BAD_REQUEST" || len(w.sent) > 0 {
				t.Fatalf("got %s, sent %v", got.Raw, w.sent)
			}
			if arg, _ := got.Errors[0].Extensions["argument"].(string); arg != tc.argument {
				t.Errorf("argument %q, want %q", arg, tc.argument)
			}
		})
	}
	// A literal that fits into no number is no panic.
	w := acme(t)
	got := ask(t, w, `mutation { sendMessage(handle: "ada", type: "note", data: 99999999999999999999) { id } }`, nil)
	if got.code() != "BAD_REQUEST" || !strings.Contains(got.Raw, "data") || len(w.sent) > 0 {
		t.Errorf("got %s", got.Raw)
	}
}

// TestSendRefuses: mail goes to agents' seats only; the refusal has a code of
// its own and offers the handles that may have been meant.
func TestSendRefuses(t *testing.T) {
	refusal := func(w *world, handle string) string {
		got := ask(t, w, send, message(vars{"handle": handle}))
		if got.code() != "REFUSED" || len(w.sent) > 0 {
			t.Fatalf("%s: got %s", handle, got.Raw)
		}
		return fmt.Sprint(got.Errors[0].Extensions["refusal"], got.Errors[0].Extensions["nearest"])
	}
	if got := refusal(acme(t), "adda"); !strings.HasPrefix(got, "unknown_seat") || !strings.Contains(got, "[ada") {
		t.Errorf("got %s", got)
	}
	if got := refusal(acme(t), "zoe"); !strings.HasPrefix(got, "human_seat") {
		t.Errorf("got %s", got)
	}
	if got := refusal(acme(t), strings.Repeat("Ü ", 5000)); !strings.HasPrefix(got, "unknown_seat") {
		t.Errorf("got %s", got)
	}
	w := acme(t)
	w.company = nil
	if got := refusal(w, "ada"); !strings.HasPrefix(got, "unknown_seat") {
		t.Errorf("no company: got %s", got)
	}
	// Not knowing the company is no refusal.
	w.companyErr = &projections.NotServedError{Stream: events.StreamFleet, State: projections.CopyRebuilding}
	if got := ask(t, w, send, message(nil)); got.code() != "UNAVAILABLE" {
		t.Errorf("got %s", got.Raw)
	}
}

// TestSendOutcomes keeps apart: not stored, not known, and our own fault. Only
// what is not known says so, with the id to send again under.
func TestSendOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		code    string
		unknown bool
	}{
		"unavailable": {events.ErrUnavailable, "UNAVAILABLE", false},
		"busy":        {events.ErrBusy, "UNAVAILABLE", false},
		"unknown":     {fmt.Errorf("mail: %w", events.ErrUnknown), "UNAVAILABLE", true},
		"other":       {errors.New("secret"), "INTERNAL", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := acme(t)
			w.sendErr = tc.err
			got := ask(t, w, send, message(vars{"id": nil, "wait": "PT1S"}))
			if got.code() != tc.code || strings.Contains(got.Raw, "secret") {
				t.Fatalf("got %s", got.Raw)
			}
			id, outcome := got.Errors[0].Extensions["id"], got.Errors[0].Extensions["outcome"]
			if tc.unknown != (outcome == "unknown" && id == w.sent[0].ID) {
				t.Errorf("id %v, outcome %v", id, outcome)
			}
		})
	}
}

// TestWait: the answer comes with the completion, at once when it is recorded
// already, and without one when the time is up; the latter is no error.
func TestWait(t *testing.T) {
	const completed = `{"sendMessage":{"id":"mail-7","mailSequence":"1","completion":{"outcome":"done","eventIds":["mail-7"],"reply":{"a":"<&>"}}}}`
	for name, tc := range map[string]struct {
		done  time.Duration // before the message when negative
		want  string
		after time.Duration
	}{
		"recorded earlier": {-time.Second, completed, 0},
		"in time":          {20 * time.Second, completed, 20 * time.Second},
		"too late":         {31 * time.Second, `{"sendMessage":{"id":"mail-7","mailSequence":"1","completion":null}}`, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := acme(t)
				h := graph.New(w.deps(t))
				if tc.done < 0 {
					w.complete("ada", "mail-7")
				} else {
					timer := time.AfterFunc(tc.done, func() { w.complete("ada", "mail-7") })
					defer timer.Stop()
				}
				began := time.Now()
				got := post(h, request(send, message(vars{"wait": "PT30S"})))
				if string(got.Data) != tc.want || got.code() != "" {
					t.Errorf("got %s, want %s", got.Raw, tc.want)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("answered after %s, want %s", took, tc.after)
				}
			})
		})
	}
}

// TestLongestWait: a wait outlives what other requests may take.
func TestLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := acme(t)
		time.AfterFunc(10*time.Minute-time.Second, func() { w.complete("ada", "mail-7") })
		got := post(graph.New(w.deps(t)), request(send, message(vars{"wait": "PT10M"})))
		if got.code() != "" || !strings.Contains(got.Raw, `"outcome":"done"`) {
			t.Errorf("got %s", got.Raw)
		}
	})
}

// TestWaitThatCannotSee: the mail is stored, so the answer is a result, and why
// there is no completion stands beside it.
func TestWaitThatCannotSee(t *testing.T) {
	w := acme(t)
	w.closed = &projections.NotServedError{Stream: events.StreamWork, State: projections.CopyRebuilding}
	got := ask(t, w, send, message(vars{"wait": "PT30S"}))
	if got.code() != "UNAVAILABLE" || string(got.Data) != `{"sendMessage":{"id":"mail-7","mailSequence":"1","completion":null}}` {
		t.Errorf("got %s", got.Raw)
	}
	if path := fmt.Sprint(got.Errors[0].Path); path != "[sendMessage completion]" {
		t.Errorf("path %s", path)
	}
}

// TestWaitersAreBounded: the one too many is told so before its mail is sent,
// and room that is left is taken again.
func TestWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := acme(t)
		h := graph.New(w.deps(t))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan answer)
		for range 1000 {
			go func() { ended <- post(h, request(send, message(vars{"wait": "PT10M"})).WithContext(ctx)) }()
		}
		synctest.Wait()
		got := post(h, request(send, message(vars{"wait": "PT10M"})))
		if got.code() != "UNAVAILABLE" || len(w.sent) != 1000 {
			t.Errorf("got %s after %d mails", got.Raw, len(w.sent))
		}
		if got := post(h, request(send, message(nil))); got.code() != "" {
			t.Errorf("without wait: got %s", got.Raw)
		}
		cancel()
		for range 1000 {
			<-ended
		}
		w.complete("ada", "mail-7")
		if got := post(h, request(send, message(vars{"wait": "PT10M"}))); got.code() != "" {
			t.Errorf("after they left: got %s", got.Raw)
		}
	})
}
