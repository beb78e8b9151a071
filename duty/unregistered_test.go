package duty_test

import (
	"testing"
	"testing/synctest"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

// TestUnregisteredMailboxIsTriedAgain proves R2 for what a sweep finds: a mailbox
// whose registration cannot be written, neither its cursors nor its record, is
// logged as such and judged in no way; its mail is kept, what else was found is
// registered in the same sweep, and the next one that can write registers it.
func TestUnregisteredMailboxIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.apply("ops")
		n := w.node("a", usual)
		w.send("stray", events.Inbox)
		w.send("ops", events.Inbox) // of the company, and no node has registered it yet
		w.send("other", events.Reflect)
		full := &broker.RefusedError{Code: 10077, Why: "no space left"}
		for round, subject := range []struct {
			stream events.Stream
			name   string
		}{
			{events.StreamCursor, w.subjects.Cursor("stray", events.Inbox)},
			{events.StreamFleet, w.subjects.MailboxRecord("stray")},
		} {
			n.faults.Refuse(subject.stream, subject.name, 1, full)
			n.log.lines = nil
			n.tick()
			if !n.log.has("level=WARN", "msg=seat_mailbox_unregistered", "seat=stray ", "no space left") {
				t.Fatalf("sweep %d does not say so: %q", round, n.log.lines)
			}
			if s, box := w.saga("stray"); s.Open() || box.State != aggregates.MailboxUnknown || w.kept("stray") != 1 {
				t.Fatalf("sweep %d: %s, record %v, %d mails; want it as it was", round, s.Step, box.State, w.kept("stray"))
			}
			for _, handle := range []string{"ops", "other"} {
				if _, box := w.saga(handle); box.State != aggregates.MailboxRegistered {
					t.Errorf("sweep %d: %s waits for stray", round, handle)
				}
			}
		}
		n.log.lines = nil
		n.tick()
		s, box := w.saga("stray")
		if s.Step != events.RetireAbsent || box.State != aggregates.MailboxRegistered || w.kept("stray") != 1 {
			t.Errorf("the next sweep: %s, record %v, %d mails", s.Step, box.State, w.kept("stray"))
		}
		if !n.log.has("msg=seat_mailbox_discovered", "seat=stray") || n.log.has("msg=seat_mailbox_unregistered") {
			t.Errorf("the next sweep says %q", n.log.lines)
		}
		if s, _ := w.saga("ops"); s.Open() || n.log.has("msg=seat_mailbox_discovered", "seat=ops") {
			t.Errorf("a seat of the company was taken for a stray one: %s", s.Step)
		}
	})
}
