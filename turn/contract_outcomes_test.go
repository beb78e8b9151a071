package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/turn"
)

// contractDetach: mail sent before the seat is held, while it is and while it is
// not, runs in order once each; a detach in a turn, polite or not, keeps the rest;
// what is settled is purged (U2, field case 23).
func contractDetach(t *testing.T, f *mailFleet) {
	f.send("dev", "", "e1", "e2", "e3", "e4", "e5")
	first := &agent{}
	started := make(chan struct{}, 8)
	first.set(func(ctx context.Context, req turn.Request, _ turn.Calls) (turn.Reply, error) {
		if started <- struct{}{}; req.Events[0].ID == "e2" {
			<-ctx.Done() // the second is cut off
			return turn.Reply{}, context.Cause(ctx)
		}
		return turn.Reply{JSON: []byte(`{}`)}, nil
	})
	s := f.sit("dev", first)
	<-started
	<-started
	s.detach(false)
	f.send("dev", "", "e6")
	f.ran(first, "e1", "e2")
	if open := f.cursor("dev").Open; len(open) != 1 || open[0].Attempts != 1 {
		t.Errorf("open after the detach: %+v", open)
	}
	next := &agent{}
	f.sit("dev", next)
	f.ran(next, "e2", "e3", "e4", "e5", "e6")
	f.settled("dev")
}

// contractEveryDetach: a holder that has worked on one of five messages lets go, in
// each way that there is within a process: its work is cut off, it drains, it closes
// its connection, its connection is broken. No consumer is made or left, the four are
// there, and the next holder works on them in order (U2, field case 23).
func contractEveryDetach(t *testing.T, f *mailFleet) {
	type leaving struct {
		name string
		end  func(s *station, conn broker.Store)
	}
	ways := []leaving{
		{"cancel", func(s *station, _ broker.Store) { s.detach(false) }},
		{"drain", func(s *station, _ broker.Store) { s.detach(true) }},
		{"close", func(s *station, conn broker.Store) { _ = conn.Close(); s.detach(false) }},
	}
	if f.sever != nil {
		ways = append(ways, leaving{"broken", func(s *station, conn broker.Store) { f.sever(conn); s.detach(false) }})
	}
	for i, way := range ways {
		handle := "seat-" + way.name
		f.register(handle)
		f.send(handle, "", "e1", "e2", "e3", "e4", "e5")
		first, started, finish := &agent{}, make(chan struct{}), make(chan struct{})
		first.set(func(context.Context, turn.Request, turn.Calls) (turn.Reply, error) {
			started <- struct{}{}
			<-finish
			return turn.Reply{JSON: []byte(`{}`)}, nil
		})
		conn := f.open()
		s := stationOf(t, conn, events.Incarnation(fmt.Sprintf("n:%08x", 0xd000+i)), handle, first)
		s.hold()
		s.attach()
		s.admit(nil)
		<-started
		s.inboxes.Hold(handle, "look")
		close(finish)
		if err := s.inboxes.Quiesce(t.Context(), handle, "look"); err != nil {
			t.Fatal(err)
		}
		way.end(s, conn)
		if n := f.consumers(); n > 0 {
			t.Errorf("%s: MAIL has %d consumers", way.name, n)
		}
		if c := f.cursor(handle); f.kept(handle) < 4 || len(c.Open) > 0 {
			t.Errorf("%s: %d messages are kept, open are %+v", way.name, f.kept(handle), c.Open)
		}
		f.ran(first, "e1")
		next := &agent{}
		f.sit(handle, next)
		f.ran(next, "e2", "e3", "e4", "e5")
		f.settled(handle)
		if n := f.consumers(); n > 0 {
			t.Errorf("%s: MAIL has %d consumers behind the next holder", way.name, n)
		}
	}
}

// contractNak: what failed comes again after its backoff and behind newer mail,
// and keeps the watermark where it is until then (D1).
func contractNak(t *testing.T, f *mailFleet) {
	a := &agent{}
	a.set(failFor("bad", 1))
	f.send("dev", "", "bad", "good1", "good2")
	f.sit("dev", a)
	f.ran(a, "bad", "good1", "good2", "bad")
	f.settled("dev")
}

// contractDefer: a seat that may not start settles nothing, charges nothing and
// reads nothing, until a renewal says that it may (D1, D2, A2).
func contractDefer(t *testing.T, f *mailFleet) {
	a := &agent{}
	s := f.sit("dev", a)
	s.admit(errStale)
	before := f.cursor("dev")
	f.send("dev", "", "e1", "e2")
	f.send("ops", "", "o1")
	other := &agent{}
	f.sit("ops", other)
	f.ran(other, "o1") // time has passed
	if c := f.cursor("dev"); fmt.Sprint(c) != fmt.Sprint(before) || len(a.turns()) > 0 {
		t.Errorf("the cursor moved to %+v, ran %q", c, a.turns())
	}
	s.admit(nil)
	f.ran(a, "e1", "e2")
}

// contractNamedHolds: a quiesce waits for the turn in flight, each hold is lifted
// by its name alone, and while there is one nothing is read (H3, design §5).
func contractNamedHolds(t *testing.T, f *mailFleet) {
	a := &agent{}
	started, finish := make(chan struct{}), make(chan struct{})
	a.set(func(context.Context, turn.Request, turn.Calls) (turn.Reply, error) {
		started <- struct{}{}
		<-finish
		return turn.Reply{JSON: []byte(`{}`)}, nil
	})
	s := f.boot("dev", a)
	s.hold()
	s.attach("pause") // attached already held
	t.Cleanup(func() { s.detach(false) })
	s.admit(nil)
	f.send("dev", "", "e1")
	lift := func(name string) {
		s.inboxes.Lift("dev", func(h sagas.Holds) sagas.Holds { return h.Lift(name) })
	}
	lift("pause")
	<-started
	quiet := make(chan error, 1)
	go func() { quiet <- s.inboxes.Quiesce(t.Context(), "dev", "handoff-1") }()
	s.inboxes.Hold("dev", "pause")
	close(finish)
	if err := <-quiet; err != nil {
		t.Error(err)
	}
	a.set(nil)
	f.send("dev", "", "e2")
	lift("pause")
	f.ran(a, "e1")
	lift("handoff-1")
	f.ran(a, "e1", "e2")
	f.settled("dev")
}

// contractHold: while a run holds the seat its mail is kept without an attempt and
// reading goes on; when the run ends it all runs, in order (D1, S2).
func contractHold(t *testing.T, f *mailFleet) {
	a := &agent{}
	s := f.sit("dev", a)
	s.begin("run-1")
	f.send("dev", "", "e1", "e2", "e3")
	held := func() bool {
		open := f.cursor("dev").Open
		return len(open) == 3 && !slices.ContainsFunc(open, func(o events.OpenMail) bool { return o.Run != "run-1" || o.Attempts > 0 })
	}
	f.until("three messages held", held)
	if len(a.turns()) > 0 || f.kept("dev") != 3 {
		t.Errorf("ran %q, %d messages are kept", a.turns(), f.kept("dev"))
	}
	s.inboxes.RunEnded("dev", "run-0") // another run's end frees nothing
	f.send("dev", "", "e4")
	f.until("four messages held", func() bool { return len(f.cursor("dev").Open) == 4 })
	s.end("run-1")
	f.ran(a, "e1", "e2", "e3", "e4")
	f.settled("dev")
}

// contractHeldByEndedRun: mail held behind a run that ended while nobody held the
// seat runs under the next holder (Schedule17).
func contractHeldByEndedRun(t *testing.T, f *mailFleet) {
	s := f.sit("dev", &agent{})
	s.begin("run-1")
	f.send("dev", "", "e1", "e2")
	f.until("two messages held", func() bool { return len(f.cursor("dev").Open) == 2 })
	s.detach(true) // and the run ends: nobody is told
	next := &agent{}
	f.sit("dev", next)
	f.ran(next, "e1", "e2")
	f.settled("dev")
}

// deaf never hears of mail.
type deaf struct{ *broker.Mailboxes }

func (deaf) Subscribe(context.Context, string, events.Mailbox, func()) (func(), error) {
	return func() {}, nil
}

// contractLostWakeUp: mail whose wake-up was lost is found on a heartbeat.
func contractLostWakeUp(t *testing.T, f *mailFleet) {
	a := &agent{}
	s := f.boot("dev", a)
	s.reads(deaf{broker.NewMailboxes(f.store)})
	s.hold()
	s.attach()
	t.Cleanup(func() { s.detach(false) })
	s.admit(nil)
	f.send("dev", "", "e1")
	f.until("it runs", func() bool {
		s.inboxes.Renewed([]string{"dev"})
		return len(a.turns()) == 1
	})
}

// contractFormerHolder: a holder that a successor's takeover passed by while it was
// in a turn settles nothing of it, whether it ended well or not, and starts
// nothing; what the successor leaves unfinished the next one runs (D4, field case 1).
func contractFormerHolder(t *testing.T, f *mailFleet) {
	for _, failed := range []bool{false, true} {
		id := fmt.Sprint("failed-", failed)
		late := &agent{}
		started, finish := make(chan struct{}), make(chan struct{})
		late.set(func(context.Context, turn.Request, turn.Calls) (turn.Reply, error) {
			close(started)
			<-finish
			if failed {
				return turn.Reply{}, errors.New("no")
			}
			return turn.Reply{}, turn.ErrFenced // its fence finds out
		})
		former := f.sit("dev", late)
		f.send("dev", "", id)
		<-started
		slow := &agent{}
		begun := make(chan struct{})
		slow.set(func(ctx context.Context, _ turn.Request, _ turn.Calls) (turn.Reply, error) {
			close(begun)
			<-ctx.Done()
			return turn.Reply{}, context.Cause(ctx)
		})
		successor := f.sit("dev", slow)
		<-begun
		close(finish)
		f.send("dev", "", id+" next") // the former one starts nothing either
		former.detach(true)
		if open := f.cursor("dev").Open; len(open) != 1 || !open[0].Running || open[0].Attempts != 2 {
			t.Errorf("%s: the former holder left %+v", id, open)
		}
		successor.detach(false)
		last := &agent{}
		third := f.sit("dev", last)
		f.ran(last, id, id+" next")
		f.settled("dev")
		third.detach(true)
		if got := late.turns(); !slices.Equal(got, []string{id}) {
			t.Errorf("the former holder ran %q", got)
		}
	}
}

// contractMailBeforeMailbox: mail to a seat that is not registered yet is kept, and
// a repeat of it after the registration is worked on once (U1, field case 2).
func contractMailBeforeMailbox(t *testing.T, f *mailFleet) {
	f.send("late", "", "e1")
	f.register("late")
	f.send("late", "", "e1", "e2")
	a := &agent{}
	f.sit("late", a)
	f.ran(a, "e1", "e2")
	f.settled("late")
}

// contractNeighbours: what is read, woken, settled and purged of one seat is never
// another's whose handle begins in the same way.
func contractNeighbours(t *testing.T, f *mailFleet) {
	f.send("dev-2", "", "x1", "x2")
	a := &agent{}
	f.sit("dev", a)
	f.send("dev", "", "e1", "e2")
	f.ran(a, "e1", "e2")
	f.settled("dev")
	if n := f.kept("dev-2"); n != 2 || f.cursor("dev-2").Read != 0 {
		t.Errorf("%d messages of dev-2 are kept, its cursor is at %+v", n, f.cursor("dev-2"))
	}
	b := &agent{}
	f.sit("dev-2", b)
	f.send("dev", "", "e3")
	f.ran(b, "x1", "x2")
	f.ran(a, "e1", "e2", "e3")
	f.settled("dev-2")
}

// contractBadMail: what cannot be read, is of a type that runs nothing or is larger
// than mail may be is set aside at first sight, with its reason, and the mail
// around it flows.
func contractBadMail(t *testing.T, f *mailFleet) {
	a := &agent{}
	f.sit("dev", a)
	f.send("dev", "", "e1")
	raw := func(typ, id, data string) {
		h := events.Header{events.HeaderID: {id}}
		if typ != "" {
			h.Set(events.HeaderType, typ)
		}
		w := events.Write{Subject: f.store.Subjects().Mail("dev", events.Inbox), Header: h, Data: []byte(data)}
		if _, err := f.store.Stream(events.StreamMail).Append(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	raw(events.TaskAssigned, "torn", "{")
	raw("", "untyped", "{}")
	raw("newsletter", "unknown", "{}")
	raw(events.TaskAssigned, "huge", `"`+strings.Repeat("<", events.MaxMailData)+`"`)
	raw(events.TaskAssigned, strings.Repeat("i", 300), `{}`)
	raw(events.TaskAssigned, "largest", `"`+strings.Repeat("<", events.MaxMailData-2)+`"`)
	f.send("dev", "", "e2")
	f.ran(a, "e1", "largest", "e2")
	f.settled("dev")
	want := []struct {
		says    string
		clipped bool
	}{
		{"not JSON", false}, {"ce-type", false}, {`"newsletter" runs no turn`, false},
		{"and 655360 are the most", true}, {"300 bytes, and 256 are the most", false},
	}
	got := f.parked("dev")
	if len(got) != len(want) {
		t.Fatalf("set aside: %+v", got)
	}
	for i, r := range got {
		p := r.Event.(events.MailParked)
		if !strings.Contains(p.Reason, want[i].says) || p.Clipped != want[i].clipped || p.Clipped != (p.Data == nil) || p.Attempts != 0 || len(p.Header) == 0 || p.Bytes == 0 {
			t.Errorf("set aside after %d attempts: %q, clipped %t, %d of %d bytes, header %v; want %+v", p.Attempts, p.Reason, p.Clipped, len(p.Data), p.Bytes, p.Header, want[i])
		}
	}
}

// contractBound: a cursor that has as much open mail as it may keep reads no
// further and says so.
func contractBound(t *testing.T, f *mailFleet) {
	f.send("dev", "", "e1")
	a := &agent{}
	s := f.boot("dev", a)
	s.hold()
	full := make([]uint64, 1000) // held, so that none of them is looked for
	for i := range full {
		full[i] = uint64(i + 1)
	}
	if err := s.cursors.Hold(t.Context(), s.boxes, events.Inbox, "run-1", full); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // mail beyond those positions
		f.send("ops", "", "filler")
	}
	f.send("dev", "", "e2")
	s.attach()
	t.Cleanup(func() { s.detach(false) })
	s.admit(nil)
	f.until("it says that it is full", func() bool { return s.log.Count("mailbox_full") == 1 })
	if err := s.cursors.Check(t.Context(), s.boxes, events.Inbox); err != nil || len(a.turns()) > 0 || f.cursor("dev").Read != 1000 {
		t.Errorf("ran %q, read up to %d, %v", a.turns(), f.cursor("dev").Read, err)
	}
}
