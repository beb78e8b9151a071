package commands_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// mail stores n messages for the seat and returns their positions.
func mail(t seattest.TB, f *seattest.Fleet, handle string, n int) []uint64 {
	var seqs []uint64
	for range n {
		seq, err := f.Op.Send(t.Context(), events.Mail{
			Handle: handle, Mailbox: events.Inbox, ID: "m" + time.Now().String(), Type: events.TaskAssigned, Time: time.Now(), Data: []byte(`{}`),
		})
		if err != nil {
			t.Fatalf("send: %v", err)
		}
		seqs = append(seqs, seq)
	}
	return seqs
}

// cursor reads the seat's inbox cursor from the log.
func cursor(t seattest.TB, f *seattest.Fleet, handle string) events.CursorSnapshot {
	t.Helper()
	msg, err := f.Conn.Stream(events.StreamCursor).Last(context.Background(), f.Subjects.Cursor(handle, events.Inbox))
	if err != nil {
		t.Fatalf("read the cursor of %s: %v", handle, err)
	}
	r, err := events.Decode(f.Subjects, msg)
	if err != nil {
		t.Fatalf("read the cursor of %s: %v", handle, err)
	}
	_, _, snapshot := r.Event.(events.CursorEvent).Cursor()
	return snapshot
}

// last is a stream's newest position.
func last(t seattest.TB, f *seattest.Fleet, st events.Stream) uint64 {
	t.Helper()
	info, err := f.Conn.Stream(st).Info(context.Background())
	if err != nil {
		t.Fatalf("read %s: %v", st, err)
	}
	return info.Last
}

// TestRegisterIsIdempotent proves that any number of nodes may register a
// mailbox at the same time: it is recorded once, its three cursors are made once
// and never made anew, and another agent id is a new record (U1, R2).
func TestRegisterIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		nodes := []*process{boot(t, f, "a"), boot(t, f, "b"), boot(t, f, "c")}
		var all sync.WaitGroup
		for i, p := range nodes {
			p.conn.Faults.Delay(time.Duration(i) * time.Millisecond)
			all.Go(func() {
				for range 3 {
					if err := p.cursors.Register(t.Context(), "dev", "agent-1"); err != nil {
						t.Errorf("%s: %v", p.Self(), err)
					}
				}
			})
		}
		all.Wait()
		m := nodes[0].takeOver(nodes[0].claim("dev"))
		if err := nodes[0].cursors.Attempt(t.Context(), m, events.Inbox, mail(t, f, "dev", 1)); err != nil {
			t.Fatal(err)
		}
		if err := nodes[1].cursors.Register(t.Context(), "dev", "agent-2"); err != nil {
			t.Fatal(err)
		}
		if c := cursor(t, f, "dev"); len(c.Open) != 1 {
			t.Errorf("registering again changed the cursor: %+v", c)
		}
		records := 0
		for _, r := range f.History(events.StreamFleet) {
			if _, is := r.Event.(events.MailboxRegistered); is {
				records++
			}
		}
		if records != 2 {
			t.Errorf("%d records of registration, want 2: one per agent id", records)
		}
	})
}

// TestRegisterAllLeavesWhatIsNewer proves that a registration in batches that rests
// on an old hint changes no mailbox which somebody registered behind it, under
// whichever agent: of two nodes at different revisions of the company the older one
// does not undo the newer.
func TestRegisterAllLeavesWhatIsNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		old, newer := boot(t, f, "a"), boot(t, f, "b")
		var hints []commands.Registration // as of the start: nothing is registered
		for _, handle := range []string{"dev", "ops", "qa"} {
			hints = append(hints, commands.Registration{Handle: handle, AgentID: "old-" + handle})
		}
		for _, handle := range []string{"dev", "ops"} {
			if err := newer.cursors.Register(t.Context(), handle, "new-"+handle); err != nil {
				t.Fatal(err)
			}
		}
		for i, err := range old.cursors.RegisterAll(t.Context(), hints) {
			if err != nil {
				t.Errorf("%s: %v", hints[i].Handle, err)
			}
		}
		for handle, want := range map[string]string{"dev": "new-dev", "ops": "new-ops", "qa": "old-qa"} {
			if _, box, err := f.Op.RetirementNow(t.Context(), handle); err != nil || box.AgentID != want || box.State != aggregates.MailboxRegistered {
				t.Errorf("%s is registered as %+v, want agent %s: %v", handle, box, want, err)
			}
		}
		// With what stands there in hand it is the caller's to change.
		_, now, err := f.Op.RetirementNow(t.Context(), "dev")
		if err != nil {
			t.Fatal(err)
		}
		again := []commands.Registration{{Handle: "dev", AgentID: "newest-dev", Known: now}}
		if err := old.cursors.RegisterAll(t.Context(), again)[0]; err != nil {
			t.Fatal(err)
		}
		if _, box, err := f.Op.RetirementNow(t.Context(), "dev"); err != nil || box.AgentID != "newest-dev" {
			t.Errorf("registered anew as %+v, %v", box, err)
		}
	})
}

// TestTakeOver proves when a seat's mailbox may be taken over, and that each
// refusal is told apart: by a later tenure, by a lost cursor, by another MAIL.
func TestTakeOver(t *testing.T) {
	for name, c := range map[string]struct {
		before func(f *seattest.Fleet, a *process)
		want   string
	}{
		"registered": {func(*seattest.Fleet, *process) {}, ""},
		"with mail":  {func(f *seattest.Fleet, a *process) { mail(a.t, f, "dev", 3) }, ""},
		"again": {func(_ *seattest.Fleet, a *process) {
			a.takeOver(commands.Tenure{Lease: events.SeatLease("dev"), Owner: a.Self(), Epoch: 1, Claimed: 1})
		}, ""},
		"Schedule10 CURSOR recreated": {func(f *seattest.Fleet, _ *process) { f.Conn.Recreate(events.StreamCursor) }, "no cursor"},
		"Schedule10 MAIL recreated":   {func(f *seattest.Fleet, a *process) { a.fleet.Advance(time.Second); f.Conn.Recreate(events.StreamMail) }, "another stream"},
		"Schedule10 MAIL restored": {func(f *seattest.Fleet, a *process) {
			m := a.takeOver(commands.Tenure{Lease: events.SeatLease("dev"), Owner: a.Self(), Epoch: 1, Claimed: 1})
			seqs := mail(a.t, f, "dev", 5)
			if err := a.cursors.Settle(a.t.Context(), m, events.Inbox, commands.Ended{Ack: seqs}); err != nil {
				a.t.Fatalf("settle: %v", err)
			}
			f.Conn.Restore(events.StreamMail, seqs[1])
		}, "another stream"},
		"Schedule10 MAIL restored and grown": {func(f *seattest.Fleet, a *process) {
			m := a.takeOver(commands.Tenure{Lease: events.SeatLease("dev"), Owner: a.Self(), Epoch: 1, Claimed: 1})
			seqs := mail(a.t, f, "dev", 5)
			if err := a.cursors.Settle(a.t.Context(), m, events.Inbox, commands.Ended{Ack: seqs}); err != nil {
				a.t.Fatalf("settle: %v", err)
			}
			f.Conn.Restore(events.StreamMail, seqs[1])
			if _, err := (broker.Marks{Store: f.Conn, Source: "op:00000000"}).Mark(a.t.Context()); err != nil { // as every boot does
				a.t.Fatalf("mark: %v", err)
			}
			mail(a.t, f, "dev", 9)
		}, "another stream"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				f.Seats("dev")
				a := boot(t, f, "a")
				held := a.claim("dev")
				c.before(f, a)
				m, err := a.cursors.TakeOver(t.Context(), held)
				if kind(err) != c.want {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				if err == nil && (len(m.Cursors) != 3 || cursor(t, f, "dev").Owner != a.Self()) {
					t.Errorf("took over %+v", m.Cursors)
				}
			})
		})
	}
}

// TestSchedule6SlowAcquirer proves that an acquirer of epoch 1 that opens its
// cursors only after epoch 2 did is refused, and that the rightful holder goes
// on starting and settling as if nothing had been.
func TestSchedule6SlowAcquirer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a, b := boot(t, f, "a"), boot(t, f, "b")
		slow := a.claim("dev")
		b.lapse()
		m := b.takeOver(b.claim("dev"))
		if _, err := a.cursors.TakeOver(t.Context(), slow); kind(err) != "fenced" {
			t.Errorf("the slow acquirer: got %v, want fenced", err)
		}
		seqs := mail(t, f, "dev", 2)
		if err := b.cursors.Attempt(t.Context(), m, events.Inbox, seqs); err != nil {
			t.Errorf("the holder's attempt: %v", err)
		}
		if err := b.cursors.Settle(t.Context(), m, events.Inbox, commands.Ended{Ack: seqs}); err != nil {
			t.Errorf("the holder's settle: %v", err)
		}
	})
}

// TestTakeOverRacesWithTakeOver proves that of two takeovers in flight the
// later epoch has the mailbox in the end, whichever came first (design §4).
func TestTakeOverRacesWithTakeOver(t *testing.T) {
	for _, late := range []string{"old", "new"} {
		t.Run(late, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				f.Seats("dev")
				a, b := boot(t, f, "a"), boot(t, f, "b")
				older := a.claim("dev")
				b.lapse()
				newer := b.claim("dev")
				slow := map[string]*process{"old": a, "new": b}[late]
				slow.conn.Faults.Delay(5 * time.Millisecond)
				var both sync.WaitGroup
				both.Go(func() { _, _ = a.cursors.TakeOver(t.Context(), older) })
				both.Go(func() { b.takeOver(newer) })
				both.Wait()
				if c := cursor(t, f, "dev"); c.Epoch != newer.Epoch || c.Owner != b.Self() {
					t.Errorf("the cursor is %+v, want epoch %d", c, newer.Epoch)
				}
			})
		})
	}
}

// TestAttemptAndSettle proves what the cursor keeps of each outcome, and that
// the watermark never passes what is open or was not seen (D1, D3).
func TestAttemptAndSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := boot(t, f, "a")
		m := a.takeOver(a.claim("dev"))
		s := mail(t, f, "dev", 4)
		steps := []struct {
			what      string
			do        func() error
			open      []events.OpenMail
			watermark uint64
		}{
			{"attempt 0", func() error { return a.cursors.Attempt(t.Context(), m, events.Inbox, s[:1]) }, []events.OpenMail{{Seq: s[0], Attempts: 1, Running: true, RanAt: 1}}, s[0] - 1},
			{"nak 0", func() error { return a.cursors.Settle(t.Context(), m, events.Inbox, commands.Ended{Nak: s[:1]}) }, []events.OpenMail{{Seq: s[0], Attempts: 1, RanAt: 1}}, s[0] - 1},
			{"attempt 1", func() error { return a.cursors.Attempt(t.Context(), m, events.Inbox, s[1:2]) }, []events.OpenMail{{Seq: s[0], Attempts: 1, RanAt: 1}, {Seq: s[1], Attempts: 1, Running: true, RanAt: 1}}, s[0] - 1},
			{"ack 1", func() error { return a.cursors.Settle(t.Context(), m, events.Inbox, commands.Ended{Ack: s[1:2]}) }, []events.OpenMail{{Seq: s[0], Attempts: 1, RanAt: 1}}, s[0] - 1},
			{"ack 2 unseen", func() error { return a.cursors.Settle(t.Context(), m, events.Inbox, commands.Ended{Ack: s[2:3]}) }, []events.OpenMail{{Seq: s[0], Attempts: 1, RanAt: 1}}, s[0] - 1},
			{"attempt 0 again", func() error { return a.cursors.Attempt(t.Context(), m, events.Inbox, s[:1]) }, []events.OpenMail{{Seq: s[0], Attempts: 2, Running: true, RanAt: 1}}, s[0] - 1},
			{"ack 0", func() error { return a.cursors.Settle(t.Context(), m, events.Inbox, commands.Ended{Ack: s[:1]}) }, nil, s[2]},
			{"ack 0 again", func() error { return a.cursors.Settle(t.Context(), m, events.Inbox, commands.Ended{Ack: s[:1]}) }, nil, s[2]},
		}
		for _, step := range steps {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			c := cursor(t, f, "dev")
			if len(c.Open) != len(step.open) || c.Watermark() != step.watermark {
				t.Fatalf("%s: the cursor is %+v with watermark %d, want %+v and %d", step.what, c, c.Watermark(), step.open, step.watermark)
			}
			for i, o := range step.open {
				if c.Open[i] != o {
					t.Errorf("%s: open %+v, want %+v", step.what, c.Open[i], o)
				}
			}
		}
		if err := a.cursors.Attempt(t.Context(), m, events.Inbox, s[1:2]); err == nil {
			t.Error("an attempt on settled mail was recorded")
		}
	})
}

// TestAttemptFoundByReadingIsSuperseded proves that an attempt record whose
// answer was lost admits nothing: a new one is written over it and counts as the
// one attempt that it is (design §4, D3).
func TestAttemptFoundByReadingIsSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := boot(t, f, "a")
		m := a.takeOver(a.claim("dev"))
		before := last(t, f, events.StreamCursor)
		inbox := f.Subjects.Cursor("dev", events.Inbox)
		a.conn.Faults.DropAnswer(events.StreamCursor, inbox, 1)
		if err := a.cursors.Attempt(t.Context(), m, events.Inbox, mail(t, f, "dev", 1)); err != nil {
			t.Fatal(err)
		}
		if got := last(t, f, events.StreamCursor) - before; got != 2 {
			t.Errorf("%d records were written, want 2: the one found by reading admits nothing", got)
		}
		if c := cursor(t, f, "dev"); c.Open[0].Attempts != 1 {
			t.Errorf("%d attempts are charged, want 1", c.Open[0].Attempts)
		}
	})
}

// TestSchedule13ZombiesAttempt proves that a zombie whose attempt record was
// stored, its answer lost, and that repeats it after its successor's takeover,
// is refused: it does not start.
func TestSchedule13ZombiesAttempt(t *testing.T) {
	for name, lose := range map[string]func(*process, string){
		"stored, answer lost": func(a *process, inbox string) { a.conn.Faults.DropAnswer(events.StreamCursor, inbox, 1) },
		"lost on its way":     func(a *process, inbox string) { a.conn.Faults.DropWrite(events.StreamCursor, inbox, 1) },
		"stored later":        func(a *process, inbox string) { a.conn.Faults.LandLate(events.StreamCursor, inbox, 1, 8*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				f.Seats("dev")
				a, b := boot(t, f, "a"), boot(t, f, "b")
				m := a.takeOver(a.claim("dev"))
				seqs := mail(t, f, "dev", 1)
				lose(a, f.Subjects.Cursor("dev", events.Inbox))
				var started error
				var zombie sync.WaitGroup
				zombie.Go(func() { started = a.cursors.Attempt(t.Context(), m, events.Inbox, seqs) })
				f.Advance(time.Millisecond)
				a.conn.Faults.CutOff(true) // before it can repeat
				b.lapse()
				next := b.takeOver(b.claim("dev"))
				f.Advance(5 * time.Second)
				a.conn.Faults.CutOff(false)
				zombie.Wait()
				if kind(started) != "fenced" {
					t.Errorf("the zombie's attempt: got %v, want fenced", started)
				}
				a.conn.Faults.Settle()
				if err := b.cursors.Attempt(t.Context(), next, events.Inbox, seqs); err != nil {
					t.Errorf("the successor's attempt: %v", err)
				}
				if err := a.cursors.Settle(t.Context(), m, events.Inbox, commands.Ended{Ack: seqs}); kind(err) != "fenced" {
					t.Errorf("the zombie settles: got %v, want fenced", err)
				}
			})
		})
	}
}

// TestCursorOutcomeUnknownStaysUnknown proves that an attempt and a settle that
// nobody answers are told as unknown, and that a later write of the same tenure
// decides on what did land (L8).
func TestCursorOutcomeUnknownStaysUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := boot(t, f, "a")
		m := a.takeOver(a.claim("dev"))
		s := mail(t, f, "dev", 2)
		if err := a.cursors.Attempt(t.Context(), m, events.Inbox, s[:1]); err != nil {
			t.Fatal(err)
		}
		a.conn.Faults.DropAnswer(events.StreamCursor, f.Subjects.Cursor("dev", events.Inbox), 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := a.cursors.Settle(ctx, m, events.Inbox, commands.Ended{Ack: s[:1]}); kind(err) != "unknown" {
			t.Fatalf("got %v, want unknown", err)
		}
		if len(m.Cursors[events.Inbox].Open) != 1 {
			t.Error("an unknown settle changed what the holder believes")
		}
		if err := a.cursors.Attempt(t.Context(), m, events.Inbox, s[1:]); err != nil {
			t.Errorf("the next attempt: %v", err)
		}
		if c := cursor(t, f, "dev"); len(c.Open) != 1 || c.Open[0].Seq != s[1] || c.Open[0].Attempts != 1 {
			t.Errorf("the cursor is %+v, want the first settled and one attempt on the second", c)
		}
	})
}

// TestCursorKeepsAtMostItsBound proves that a mailbox with too much open mail is
// refused more, by name.
func TestCursorKeepsAtMostItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := boot(t, f, "a")
		m := a.takeOver(a.claim("dev"))
		seqs := mail(t, f, "dev", aggregates.MaxOpenMail+1)
		if err := a.cursors.Attempt(t.Context(), m, events.Inbox, seqs[:aggregates.MaxOpenMail]); err != nil {
			t.Fatal(err)
		}
		if err := a.cursors.Attempt(t.Context(), m, events.Inbox, seqs[aggregates.MaxOpenMail:]); err == nil {
			t.Error("the cursor took more open mail than its bound")
		}
	})
}
