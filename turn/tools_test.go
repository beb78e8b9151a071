package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/turn"
)

// outbox is a Sender and a Status that notes what it is asked.
type outbox struct {
	sent []events.Mail
	fail error
}

func (o *outbox) Send(_ context.Context, m events.Mail) error {
	o.sent = append(o.sent, m)
	return o.fail
}

func (o *outbox) SeatStatus(_ context.Context, handle string) (json.RawMessage, error) {
	if o.fail != nil {
		return nil, o.fail
	}
	return json.RawMessage(`{"seat":"` + handle + `"}`), nil
}

func tools(t *testing.T, req turn.Request, runID string, o *outbox) *turn.Tools {
	t.Helper()
	tools, err := turn.NewTools(req, runID, o, o)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func mustCall(t *testing.T, tools *turn.Tools, tool, args string) string {
	t.Helper()
	value, err := tools.Call(t.Context(), tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return string(value)
}

// send fills in what is left out, names its sender and returns the event id.
func TestSendMakesMail(t *testing.T) {
	o := &outbox{}
	tools := tools(t, request(), "", o)
	first := mustCall(t, tools, "send", `{"to":"cto"}`)
	mustCall(t, tools, "send", `{"to":"cto","type":"a2a_request","data":{"q":1},"conversation":"c9"}`)
	m := o.sent[0]
	if m.Handle != "cto" || m.Mailbox != events.Inbox || m.Type != events.A2AMessage || m.Source != "writer" || string(m.Data) != "null" {
		t.Errorf("sent %+v", m)
	}
	if first != `{"id":"`+m.ID+`"}` || len(m.ID) != 64 || m.Time.IsZero() {
		t.Errorf("got %s for %+v", first, m)
	}
	m = o.sent[1]
	if m.Type != events.A2ARequest || string(m.Data) != `{"q":1}` || m.Conversation != "c9" || m.ID == o.sent[0].ID {
		t.Errorf("sent %+v", m)
	}
	subjects, err := events.NewSubjects("crewlet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.EncodeMail(subjects, m, "1"); err != nil {
		t.Errorf("the mail cannot be stored: %v", err)
	}
}

// A re-run of the work sends under the ids of the first run, so that nobody gets
// a mail twice: also when it looks around more often, on another node, in
// another tenure, and at another attempt.
func TestCase15RerunSendsUnderTheSameIDs(t *testing.T) {
	o := &outbox{}
	first := tools(t, request(), "run-1", o)
	mustCall(t, first, "send", `{"to":"cto"}`)
	mustCall(t, first, "send", `{"to":"cfo"}`)

	req := request()
	req.Epoch, req.Attempt = 9, 3
	second := tools(t, req, "run-2", o)
	mustCall(t, second, "seat_status", `{"seat":"cto"}`)
	mustCall(t, second, "send", `{"to":"cto"}`)
	mustCall(t, second, "seat_status", `{"seat":"cto"}`)
	mustCall(t, second, "send", `{"to":"cfo"}`)
	if o.sent[0].ID != o.sent[2].ID || o.sent[1].ID != o.sent[3].ID {
		t.Errorf("the re-run sent under other ids: %+v", o.sent)
	}
	// A refused send has its number too: the next one must not take it.
	third := tools(t, req, "run-3", o)
	if _, err := third.Call(t.Context(), "send", json.RawMessage(`{"to":"No Handle"}`)); err == nil {
		t.Fatal("a mail to nobody was sent")
	}
	mustCall(t, third, "send", `{"to":"cfo"}`)
	if o.sent[1].ID != o.sent[4].ID {
		t.Errorf("the second call sent under %s, want the second's id %s", o.sent[4].ID, o.sent[1].ID)
	}
}

// Ids of different work never meet: another key, another seat woken by the same
// event (W1), and two turns without a key (W2).
func TestW2DifferentWorkSendsUnderDifferentIDs(t *testing.T) {
	o := &outbox{}
	send := func(req turn.Request, runID string) {
		mustCall(t, tools(t, req, runID, o), "send", `{"to":"cto"}`)
	}
	req := request()
	send(req, "run-1")
	req.Seat = "editor"
	send(req, "run-1")
	req.WorkKey = "k2"
	send(req, "run-1")
	req.WorkKey = ""
	send(req, "run-1")
	send(req, "run-2")
	seen := map[string]bool{}
	for _, m := range o.sent {
		if seen[m.ID] {
			t.Errorf("an id was used twice: %+v", o.sent)
		}
		seen[m.ID] = true
	}
	if _, err := turn.NewTools(req, "", o, o); err == nil {
		t.Error("a turn that nothing names was given tools")
	}
}

// What the arguments cannot mean is refused before anything happens, and the
// refusal says why.
func TestToolsRefuse(t *testing.T) {
	for _, c := range []struct{ tool, args, says string }{
		{"send", `{"to":"Not A Handle"}`, "is not a handle"},
		{"send", `{}`, "is not a handle"},
		{"send", `{"to":"cto","recipient":"cto"}`, `unknown field "recipient"`},
		{"send", `{"to":"cto"} {}`, "more than one"},
		{"send", `[]`, "args:"},
		{"send", `{"to":"cto","type":"chat"}`, "wakes no turn"},
		{"seat_status", `{"seat":"*"}`, "is not a handle"},
		{"seat_status", `{"handle":"cto"}`, "unknown field"},
		{"rm", `{}`, `["seat_status" "send"]`},
	} {
		o := &outbox{}
		tools := tools(t, request(), "", o)
		var refused *turn.RefusedError
		_, err := tools.Call(t.Context(), c.tool, json.RawMessage(c.args))
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: got %v, want a refusal that says %q", c.tool, c.args, err, c.says)
		}
		if len(o.sent) > 0 || tools.Reached() {
			t.Errorf("%s %s: was refused and did something", c.tool, c.args)
		}
	}
}

// A turn reached outside once a mail may have left, an unknown outcome and a
// panic included; looking at a seat never counts (B2).
func TestB2WhatReachesOutside(t *testing.T) {
	o := &outbox{}
	tools1 := tools(t, request(), "", o)
	mustCall(t, tools1, "seat_status", `{"seat":"cto"}`)
	if tools1.Reached() {
		t.Error("a look at a seat counts as having reached outside")
	}
	mustCall(t, tools1, "send", `{"to":"cto"}`)
	if !tools1.Reached() {
		t.Error("a sent mail does not count")
	}
	for name, c := range map[string]struct {
		fail error
		want bool
	}{
		"unknown": {events.ErrUnknown, true},
		"refused": {&turn.RefusedError{Tool: "send", Err: errors.New("no such seat")}, false},
	} {
		tools := tools(t, request(), "", &outbox{fail: c.fail})
		if _, err := tools.Call(t.Context(), "send", json.RawMessage(`{"to":"cto"}`)); !errors.Is(err, c.fail) {
			t.Errorf("%s: got %v", name, err)
		}
		if tools.Reached() != c.want {
			t.Errorf("%s: reached outside is %v, want %v", name, tools.Reached(), c.want)
		}
	}
	panicking, err := turn.NewTools(request(), "", panicSender{}, o)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = panicking.Call(t.Context(), "send", json.RawMessage(`{"to":"cto"}`))
		t.Error("the panic was swallowed")
	}()
	if !panicking.Reached() {
		t.Error("a send that panicked does not count")
	}
}

type panicSender struct{}

func (panicSender) Send(context.Context, events.Mail) error { panic("a defect") }
