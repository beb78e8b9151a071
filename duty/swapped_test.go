package duty_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// swapMail puts another MAIL in the place of the old, with so many mails for the
// seat.
func (w *world) swapMail(handle string, mails int) {
	w.t.Helper()
	w.conn.Recreate(events.StreamMail)
	if _, err := (broker.Marks{Store: w.store, Source: "op:00000000"}).Mark(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for range mails {
		w.send(handle, events.Inbox)
	}
}

// work takes the seat over as its holder does, and settles the inbox's oldest mail
// that it has not read.
func (w *world) work(handle string) error {
	w.t.Helper()
	shell := commands.New(broker.NewLog(w.store), w.subjects, w.incarnation("c"))
	n := w.node("c", usual)
	t, err := shell.Claim(w.t.Context(), events.SeatLease(handle), commands.Claim{TTL: ttl, Protocol: 4}, n.logClock.UnseenFor)
	if err != nil {
		return err
	}
	defer func() { _ = shell.Release(w.t.Context(), t, events.ReasonDrain) }()
	cursors := shell.Cursors(n.mail)
	m, err := cursors.TakeOver(w.t.Context(), t)
	if err != nil {
		return err
	}
	msg, err := n.mail.Next(w.t.Context(), handle, events.Inbox, m.Cursors[events.Inbox].Read+1)
	if err != nil {
		return err
	}
	if err := cursors.Attempt(w.t.Context(), m, events.Inbox, []uint64{msg.Seq}); err != nil {
		return err
	}
	return cursors.Settle(w.t.Context(), m, events.Inbox, commands.Ended{Ack: []uint64{msg.Seq}})
}

// TestSchedule10RetiredByAnOperator proves the way out of a MAIL that was swapped
// and is lost: no sweep deletes by its sequences, be the cursor's position above or
// below the mark; an operator who retires the mailbox gives the old mail up, and the
// seat that is added again works the mail of the new stream. The audit finds nothing
// (R8, schedule 10).
func TestSchedule10RetiredByAnOperator(t *testing.T) {
	for name, mails := range map[string][2]int{"mark below what was read": {5, 1}, "mark above": {1, 5}, "nothing in the new one": {3, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("dev")
				w.apply("dev")
				for range mails[0] {
					w.send("dev", events.Inbox)
					if err := w.work("dev"); err != nil {
						t.Fatal(err)
					}
				}
				w.swapMail("dev", mails[1])
				if err := w.work("dev"); err == nil {
					t.Fatal("a cursor works mail of another stream")
				}
				w.apply()
				short := usual
				short.Grace = time.Minute
				n := w.node("a", short)
				n.tick()
				n.ticks(2, usual.Tick)
				if s, _ := w.saga("dev"); s.Step != events.RetireAbsent || w.kept("dev") != mails[1] || !slices.Contains(w.events("dev"), "retirement-unmarked") {
					t.Fatalf("by sweeps: %s, %d mails, %q", s.Step, w.kept("dev"), w.events("dev"))
				}
				if s, err := n.mailboxes.Retire(t.Context(), "dev", true); err != nil || s.Step != events.RetireCompleted || w.kept("dev") != 0 {
					t.Fatalf("by an operator: %s, %v, %d mails", s.Step, err, w.kept("dev"))
				}
				w.apply("dev")
				w.register("dev")
				w.send("dev", events.Inbox)
				if err := w.work("dev"); err != nil {
					t.Fatalf("added again: %v", err)
				}
				if _, box := w.saga("dev"); box.State != aggregates.MailboxRegistered {
					t.Errorf("record %v", box.State)
				}
				if r := w.audited(nil); r.ViolationCount > 0 {
					t.Errorf("violations: %v", r.Violations)
				}
			})
		})
	}
}
