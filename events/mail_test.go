package events_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
)

func letter() events.Mail {
	return events.Mail{
		Handle: "dev-2", Mailbox: events.Inbox, ID: "crm/ticket 17.4", Type: events.TaskAssigned,
		Time: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), Conversation: "c-1", Source: "sales_eu",
		Data: json.RawMessage(`{"title":"Angebot"}`),
	}
}

func delivered(w events.Write) events.Message {
	return events.Message{Stream: events.StreamMail, Seq: 17, Subject: w.Subject, Header: w.Header, Data: w.Data, At: time.Unix(99, 0).UTC()}
}

// TestMailRoundTrip proves that a seat gets what was sent, with an id that is
// no subject token.
func TestMailRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*events.Mail){
		"full":                  func(*events.Mail) {},
		"without what is extra": func(m *events.Mail) { m.Conversation, m.Source = "", "" },
		"a type of the sender's": func(m *events.Mail) {
			m.Type = "com.acme.invoice"
		},
		"the longest id":  func(m *events.Mail) { m.ID = strings.Repeat("x", 256) },
		"a wild id":       func(m *events.Mail) { m.ID = "a.*.> ä" },
		"data: a number":  func(m *events.Mail) { m.Data = json.RawMessage("1") },
		"control subject": func(m *events.Mail) { m.Mailbox = events.Control },
	} {
		want := letter()
		change(&want)
		w, err := events.EncodeMail(fleet, want, "a1")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := events.DecodeMail(fleet, delivered(w))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, want)
		}
	}
}

// TestMailIsRefusedAtTheSender proves that what no seat could read, or would
// read as something else, is never sent: brokers trim header values and turn
// their line breaks into spaces.
func TestMailIsRefusedAtTheSender(t *testing.T) {
	for name, change := range map[string]func(*events.Mail){
		"no id":                      func(m *events.Mail) { m.ID = "" },
		"a long id":                  func(m *events.Mail) { m.ID = strings.Repeat("x", 257) },
		"a line break in the id":     func(m *events.Mail) { m.ID = "a\nb" },
		"a return in the id":         func(m *events.Mail) { m.ID = "a\rb" },
		"a space before the id":      func(m *events.Mail) { m.ID = " a" },
		"a tab after the id":         func(m *events.Mail) { m.ID = "a\t" },
		"no type":                    func(m *events.Mail) { m.Type = "" },
		"a header inside the type":   func(m *events.Mail) { m.Type = "task\r\nce-id: other" },
		"a header inside the source": func(m *events.Mail) { m.Source = "x\r\nepoch: 9" },
		"a split conversation":       func(m *events.Mail) { m.Conversation = "a\nb" },
		"no handle":                  func(m *events.Mail) { m.Handle = "" },
		"a wild handle":              func(m *events.Mail) { m.Handle = "*" },
		"no mailbox":                 func(m *events.Mail) { m.Mailbox = "" },
		"another's mailbox":          func(m *events.Mail) { m.Mailbox = "inbox.x" },
		"no data":                    func(m *events.Mail) { m.Data = nil },
		"data that is no JSON":       func(m *events.Mail) { m.Data = json.RawMessage("{") },
	} {
		m := letter()
		change(&m)
		if w, err := events.EncodeMail(fleet, m, "a1"); err == nil {
			t.Errorf("%s: sent to %s with %v", name, w.Subject, w.Header)
		}
	}
}

// TestSchedule7OneEventToTwoSeats proves that the broker's dedupe, which is per
// stream, cannot take one seat's mail for another's, nor one kind for another,
// and still collapses repeats of one attempt to send.
func TestSchedule7OneEventToTwoSeats(t *testing.T) {
	id := func(change func(*events.Mail), attempt string) string {
		m := letter()
		change(&m)
		return must(events.EncodeMail(fleet, m, attempt)).Header.Get(events.HeaderMsgID)
	}
	same := id(func(*events.Mail) {}, "a1")
	if again := id(func(m *events.Mail) { m.Data = json.RawMessage("2") }, "a1"); again != same {
		t.Errorf("one attempt has two ids: %q and %q", same, again)
	}
	for name, other := range map[string]string{
		"another seat":    id(func(m *events.Mail) { m.Handle = "dev" }, "a1"),
		"another mailbox": id(func(m *events.Mail) { m.Mailbox = events.Control }, "a1"),
		"another event":   id(func(m *events.Mail) { m.ID = "x" }, "a1"),
		"another attempt": id(func(*events.Mail) {}, "a2"),
	} {
		if other == same {
			t.Errorf("%s has the dedupe id %q too", name, same)
		}
	}
}

// TestUnreadableMailIsToldApart proves that mail on which no turn can ever run
// is refused, while what a plain sender may leave out is filled in.
func TestUnreadableMailIsToldApart(t *testing.T) {
	for name, change := range map[string]func(*events.Message){
		"no id":             func(m *events.Message) { delete(m.Header, events.HeaderID) },
		"a long id":         func(m *events.Message) { m.Header.Set(events.HeaderID, strings.Repeat("x", 257)) },
		"no type":           func(m *events.Message) { delete(m.Header, events.HeaderType) },
		"no header":         func(m *events.Message) { m.Header = nil },
		"no data":           func(m *events.Message) { m.Data = nil },
		"no JSON":           func(m *events.Message) { m.Data = []byte("hello") },
		"no mailbox":        func(m *events.Message) { m.Subject = "crewlet.agent._log" },
		"another subject":   func(m *events.Message) { m.Subject = "crewlet.work.dev.x" },
		"another fleet's":   func(m *events.Message) { m.Subject = "other.agent.dev.inbox" },
		"another's payload": func(m *events.Message) { m.Data = []byte("{}{}") },
	} {
		msg := delivered(must(events.EncodeMail(fleet, letter(), "a1")))
		change(&msg)
		if got, err := events.DecodeMail(fleet, msg); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	msg := delivered(must(events.EncodeMail(fleet, letter(), "a1")))
	delete(msg.Header, events.HeaderTime)
	got, err := events.DecodeMail(fleet, msg)
	if err != nil || !got.Time.Equal(msg.At) {
		t.Errorf("mail without a time: %v (%v), want the broker's %v", got.Time, err, msg.At)
	}
}

// TestLedgeredTypesAreClosed proves K4: exactly four types are recorded.
func TestLedgeredTypesAreClosed(t *testing.T) {
	for mailType, want := range map[string]bool{
		"task_assigned": true, "external_notification": true, "a2a_request": true, "a2a_message": true,
		"": false, "task": false, "TASK_ASSIGNED": false, "task_assigned ": false, "reflection_due": false, "sandbox_answer_given": false,
	} {
		if got := events.Ledgered(mailType); got != want {
			t.Errorf("Ledgered(%q) = %t, want %t", mailType, got, want)
		}
	}
}

// TestWatermark proves that the position up to which all mail is settled stops
// below the first open message, and is where reading stopped when none is.
func TestWatermark(t *testing.T) {
	open := []events.OpenMail{{Seq: 7}, {Seq: 9}}
	for _, c := range []struct {
		cursor events.CursorSnapshot
		want   uint64
	}{{events.CursorSnapshot{}, 0}, {events.CursorSnapshot{Read: 12}, 12}, {events.CursorSnapshot{Read: 12, Open: open}, 6}} {
		if got := c.cursor.Watermark(); got != c.want {
			t.Errorf("watermark of %+v is %d, want %d", c.cursor, got, c.want)
		}
	}
}

// TestIncarnations proves L1: an owner is one run of one process, and a node id
// alone is none.
func TestIncarnations(t *testing.T) {
	for _, bad := range []events.Incarnation{"", "node-0", "node-0:", ":0badcafe", "node-0:0badcaf", "node-0:0badcafe0", "node-0:0BADCAFE", "no.de:0badcafe", "a:b:0badcafe"} {
		if err := bad.Valid(); err == nil {
			t.Errorf("%q is taken for an incarnation", bad)
		}
	}
	if err := alpha.Valid(); err != nil || alpha.NodeID() != "node-0" {
		t.Errorf("%q: %v, node %q; want none, node-0", alpha, err, alpha.NodeID())
	}
}
