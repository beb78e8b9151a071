package duty_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// newWorldOfDev is a world whose company has one seat, dev, with one mail for it.
func newWorldOfDev(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.register("dev")
	w.apply("dev")
	w.send("dev", events.Inbox)
	return w
}

// memory stores a row of a seat's memory.
func (w *world) memory(handle string) {
	w.t.Helper()
	_, err := w.store.Stream(events.StreamMemory).Append(w.t.Context(), events.Write{Subject: "acme.memory." + handle + ".diary.1", Data: []byte("{}")})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) memories(handle string) int {
	w.t.Helper()
	counts, err := w.store.Stream(events.StreamMemory).Subjects(w.t.Context(), "acme.memory."+handle+".>")
	if err != nil {
		w.t.Fatal(err)
	}
	return len(counts)
}

// TestRemovedSeatIsRetired proves R1, R4 and the whole of the way: a seat that is
// missing is stamped with the time, kept for the grace, then its subjects are
// empty, its record has ended, its memory is untouched and its lease is free. It
// is never early, and at most one tick late.
func TestRemovedSeatIsRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("dev", "dev-2")
		w.apply("dev", "dev-2")
		w.memory("dev")
		for _, box := range events.Mailboxes {
			w.send("dev", box)
			w.send("dev-2", box)
		}
		n := w.node("a", usual)
		n.tick()
		if s, _ := w.saga("dev"); s.Open() {
			t.Fatalf("a seat of the company is judged absent: %+v", s)
		}
		w.apply("dev-2")
		n.tick()
		removed := time.Now()
		s, _ := w.saga("dev")
		if s.Step != events.RetireAbsent || !s.Since.Equal(removed) || !s.RetiresAt.Equal(removed.Add(24*time.Hour)) {
			t.Fatalf("got %s since %v, retires at %v; want absent since %v, retires a day later", s.Step, s.Since, s.RetiresAt, removed)
		}
		if !n.log.has("seat_mailbox_absent", "seat=dev ", "retires_at="+removed.Add(24*time.Hour).Format("2006-01-02T15:04")) {
			t.Errorf("the log does not name the seat and when it is retired: %q", n.log.lines)
		}
		n.ticks(95, usual.Tick)
		if s, _ := w.saga("dev"); s.Step != events.RetireAbsent || w.kept("dev") != 3 {
			t.Fatalf("retired early, after %v: %s, %d mails", time.Since(removed), s.Step, w.kept("dev"))
		}
		n.ticks(1, usual.Tick)
		s, box := w.saga("dev")
		if s.Step != events.RetireCompleted || box.State != aggregates.MailboxRetired || w.kept("dev") != 0 {
			t.Fatalf("after the grace: %s, record %v, %d mails", s.Step, box.State, w.kept("dev"))
		}
		if w.kept("dev-2") != 3 || w.memories("dev") != 1 {
			t.Errorf("others lost: %d mails of dev-2, %d rows of memory", w.kept("dev-2"), w.memories("dev"))
		}
		if l, _ := w.op.Lease(t.Context(), events.SeatLease("dev")); l.Status != aggregates.LeaseFree || l.Epoch != 1 {
			t.Errorf("the seat's lease is %+v, want free at epoch 1: it lives on", l)
		}
		want := []string{
			"mailbox-registered", "mailbox-absent", "retirement-marked", "mailbox-retiring", "retirement-runs-ended",
			"retirement-purged", "retirement-completed", "mailbox-retired",
		}
		got := slices.DeleteFunc(w.events("dev"), func(name string) bool { return name == "retirement-ticked" })
		if !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		if !n.log.has("seat_mailbox_retired", "seat=dev ") {
			t.Errorf("the log does not tell: %q", n.log.lines)
		}
		n.ticks(3, usual.Tick)
		if len(w.events("dev")) != len(want)+96 {
			t.Errorf("a retired mailbox is judged again: %q", w.events("dev"))
		}
	})
}

// TestRestoredBeforeTheGrace proves R4: a seat that comes back keeps its mail, and
// a later removal starts a new grace, also when both fell between two ticks.
func TestRestoredBeforeTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		n := w.node("a", usual)
		w.apply()
		n.tick()
		n.ticks(90, usual.Tick)
		w.apply("dev")
		n.ticks(1, usual.Tick)
		if s, box := w.saga("dev"); s.Step != events.RetireReturned || box.State != aggregates.MailboxRegistered || !n.log.has("seat_mailbox_returned") {
			t.Fatalf("back: %s, record %v", s.Step, box.State)
		}
		w.apply()
		n.tick()
		n.ticks(90, usual.Tick)
		if s, _ := w.saga("dev"); s.Step != events.RetireAbsent || s.Number != 2 {
			t.Fatalf("removed again: %s of retirement %d, want absent in the second", s.Step, s.Number)
		}
		w.apply("dev") // between two ticks it is back and gone again
		w.apply()
		n.ticks(1, usual.Tick)
		if s, _ := w.saga("dev"); s.Absent != 0 {
			t.Errorf("a seat that was back has %v of its grace behind it", s.Absent.Duration())
		}
		n.ticks(95, usual.Tick)
		if w.kept("dev") != 1 {
			t.Error("retired before a new grace was over")
		}
		n.ticks(1, usual.Tick)
		if w.kept("dev") != 0 {
			t.Error("not retired after the new grace")
		}
	})
}

// TestSchedule18DutyMovesAndComesBack proves that a grace counts only what was
// observed: ticks of A, then B, then A again add nothing for the time between two
// ticks of different nodes, however long, and clocks that step add nothing.
func TestSchedule18DutyMovesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("dev")
		w.apply()
		a, b := w.node("a", usual), w.node("b", usual)
		absent := func() time.Duration { s, _ := w.saga("dev"); return s.Absent.Duration() }
		a.tick()
		a.ticks(2, usual.Tick)
		if got := absent(); got != 30*time.Minute {
			t.Fatalf("two ticks in a row: %v, want 30m", got)
		}
		b.ticks(1, usual.Tick)
		if got := absent(); got != 30*time.Minute {
			t.Fatalf("B's first tick counts what A did not see: %v", got)
		}
		b.ticks(1, usual.Tick)
		a.ticks(1, usual.Tick)
		if got := absent(); got != 45*time.Minute {
			t.Fatalf("A, B, B, A: %v, want 45m: B's own quarter, and nothing twice", got)
		}
		w.conn.StepClock(48 * time.Hour)
		a.clocks.stop() // 20 h that its clocks do not show
		time.Sleep(20 * time.Hour)
		a.clocks.resume()
		a.tick()
		if got := absent(); got != 45*time.Minute {
			t.Errorf("time that nobody observed counts: %v", got)
		}
	})
}

// TestCase20ReaperKnowsWhatItDoesNotKnow proves R5: without the newest revision,
// or the registry, nothing is stamped and nothing retired, however long; and a new
// process after a crash starts with what was observed, no more.
func TestCase20ReaperKnowsWhatItDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		n := w.node("a", usual)
		n.ticks(120, usual.Tick) // present for 30 hours
		w.apply()
		n.behind = true
		n.ticks(200, usual.Tick)
		if len(w.events("dev")) != 1 || !n.log.has("seat_mailboxes_not_judged", "has not applied") {
			t.Fatalf("a node that is behind judged: %q", w.events("dev"))
		}
		n.behind, n.broken = false, events.ErrUnavailable
		n.ticks(200, usual.Tick)
		if len(w.events("dev")) != 1 {
			t.Fatalf("an unreadable registry was judged: %q", w.events("dev"))
		}
		n.broken = nil
		n.tick()
		n.ticks(40, usual.Tick)
		w.conn.StepClock(100 * time.Hour)
		time.Sleep(100 * time.Hour) // killed; nobody has the duty
		next := w.node("b", usual)
		next.tick()
		if s, _ := w.saga("dev"); s.Absent.Duration() != 10*time.Hour || w.kept("dev") != 1 {
			t.Fatalf("after a crash %v were observed, want the 10h from before", s.Absent.Duration())
		}
		w.apply("dev") // restored, and the node that has the duty has not seen it yet
		next.behind = true
		next.ticks(200, usual.Tick)
		if w.kept("dev") != 1 {
			t.Error("retired under an older revision")
		}
	})
}

// TestOlderNodeComesUpDuringAClaim proves that the gate is judged again at the
// claim's own position: a node of an older protocol that came up after it was looked
// for is seen there, the seat's lease is given back, and nothing is marked (V1, R6,
// ADR 0018).
func TestOlderNodeComesUpDuringAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		w.apply()
		n := w.node("a", usual)
		var asked []uint64
		n.asked = func(upTo uint64) { asked = append(asked, upTo) }
		n.cross = func(what string) {
			if what == "after claim" {
				n.older = "node:c (c:000000c1)"
			}
		}
		var held *duty.HeldError
		if _, err := n.mailboxes.Retire(t.Context(), "dev", true); !errors.As(err, &held) || held.Refused != events.RefusedProtocol {
			t.Fatalf("retired beside an older node: %v", err)
		}
		lease := must(w.op.Lease(t.Context(), events.SeatLease("dev")))
		if s, _ := w.saga("dev"); s.Marked() || s.Refused != events.RefusedProtocol || w.kept("dev") != 1 || lease.Status != aggregates.LeaseFree {
			t.Errorf("%s, refused %q, %d mails, lease %v", s.Step, s.Refused, w.kept("dev"), lease.Status)
		}
		if len(asked) != 2 || asked[0] != 0 || asked[1] == 0 || asked[1] >= lease.Last {
			t.Errorf("asked as of %v; the lease was released at %d", asked, lease.Last)
		}
		n.cross, n.older = func(string) {}, ""
		if s, err := n.mailboxes.Retire(t.Context(), "dev", true); err != nil || s.Step != events.RetireCompleted {
			t.Errorf("once it is gone: %s, %v", s.Step, err)
		}
	})
}

// TestRetirementIsHeld proves R6: a live lease, or a node at a lower protocol,
// holds the retirement, and each is named; it goes on once that is over.
func TestRetirementIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		short := usual
		short.Grace = time.Hour
		n := w.node("a", short)
		holder := commands.New(broker.NewLog(w.store), w.subjects, "c:000000c1")
		w.apply()
		tenure, err := holder.Claim(t.Context(), events.SeatLease("dev"), commands.Claim{TTL: ttl, Protocol: 4}, n.logClock.UnseenFor)
		if err != nil {
			t.Fatal(err)
		}
		keep := func(times int) {
			for range times {
				for range int(usual.Tick / (ttl / 3)) {
					time.Sleep(ttl / 3)
					tenure = holder.Renew(t.Context(), []commands.Tenure{tenure})[0].Tenure
				}
				n.tick()
			}
		}
		n.tick()
		keep(6)
		s, _ := w.saga("dev")
		if w.kept("dev") != 1 || s.Refused != events.RefusedHeld || !n.log.has("seat_mailbox_retirement_held", "refused=held", "owner=c:000000c1") {
			t.Fatalf("held by a live lease: %d mails, refused %q", w.kept("dev"), s.Refused)
		}
		if _, err := n.mailboxes.Retire(t.Context(), "dev", true); !errors.As(err, new(*duty.HeldError)) {
			t.Errorf("retired now over a live lease: %v", err)
		}
		if err := holder.Release(t.Context(), tenure, events.ReasonRoleGone); err != nil {
			t.Fatal(err)
		}
		n.older = "node:c (c:000000c1)"
		n.ticks(1, usual.Tick)
		if s, _ := w.saga("dev"); w.kept("dev") != 1 || s.Refused != events.RefusedProtocol || !n.log.has("seat_mailbox_retirement_held", "refused=protocol") {
			t.Fatalf("held by an older protocol: %d mails, refused %q", w.kept("dev"), s.Refused)
		}
		n.older = ""
		n.ticks(1, usual.Tick)
		if w.kept("dev") != 0 {
			t.Error("not retired once nothing held it")
		}
	})
}

// TestRetireNow proves that an operator's retirement is the same saga without the
// rest of the grace, and what it refuses.
func TestRetireNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("dev", "ops")
		w.apply("dev", "ops")
		w.send("dev", events.Inbox)
		n := w.node("a", usual)
		if _, err := n.mailboxes.Retire(t.Context(), "dev", true); !errors.As(err, new(*duty.PresentError)) {
			t.Errorf("a seat of the company: %v", err)
		}
		if _, err := n.mailboxes.Retire(t.Context(), "nobody", true); !errors.As(err, new(*duty.UnregisteredError)) {
			t.Errorf("a handle that never was: %v", err)
		}
		w.apply("ops")
		s, err := n.mailboxes.Retire(t.Context(), "dev", true)
		if err != nil || s.Step != events.RetireCompleted || !s.Now || w.kept("dev") != 0 {
			t.Fatalf("got %+v, %v, %d mails", s, err, w.kept("dev"))
		}
		if _, err := n.mailboxes.Retire(t.Context(), "dev", true); !errors.As(err, new(*duty.UnregisteredError)) {
			t.Errorf("retired twice: %v", err)
		}
		n.behind = true
		if _, err := n.mailboxes.Retire(t.Context(), "ops", true); err == nil {
			t.Error("a node that is behind retired a mailbox")
		}
	})
}

// TestCase21MailOfRetiredSeatsIsFound proves R3: mail for a handle whose mailbox
// nobody registered, or that is retired, is found by the next sweep, which stamps
// it absent; what is no mailbox of the grammar is left alone.
func TestCase21MailOfRetiredSeatsIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("dev")
		w.apply("ops")
		n := w.node("a", usual)
		if _, err := n.mailboxes.Retire(t.Context(), "dev", true); err != nil {
			t.Fatal(err)
		}
		w.send("dev", events.Inbox) // by a plain publish
		w.send("stray", events.Reflect)
		if _, err := w.store.Stream(events.StreamMail).Append(t.Context(), events.Write{Subject: "acme.agent.other.archive", Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		n.tick()
		for _, handle := range []string{"dev", "stray"} {
			s, box := w.saga(handle)
			if s.Step != events.RetireAbsent || box.State != aggregates.MailboxRegistered || !n.log.has("seat_mailbox_discovered", "seat="+handle) {
				t.Errorf("%s: %s, record %v", handle, s.Step, box.State)
			}
		}
		if _, box := w.saga("other"); box.State != aggregates.MailboxUnknown {
			t.Error("somebody else's subject was taken for a mailbox")
		}
		n.ticks(96, usual.Tick)
		if w.kept("dev")+w.kept("stray") != 0 {
			t.Errorf("%d and %d mails are left for ever", w.kept("dev"), w.kept("stray"))
		}
	})
}

// TestStaleMarkIsResumed proves R8: a sweep that dies after it marked leaves a
// mark that a later one takes up once it is 15 minutes old, with a mark of its
// own: mail that came since goes too. One that cannot delete unmarks, so that the
// mailbox is usable, and the next tick tries again.
func TestStaleMarkIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		w.apply()
		a, b := w.node("a", usual), w.node("b", usual)
		crossed := 0
		a.cross = func(what string) {
			if what == "before empty" {
				crossed++
				a.faults.CutOff(true) // dead, right behind its mark
			}
		}
		_, err := a.mailboxes.Retire(t.Context(), "dev", true)
		if s, box := w.saga("dev"); crossed != 1 || err == nil || s.Step != events.RetireRunsEnded || box.State != aggregates.MailboxRetiring {
			t.Fatalf("%v: %s, record %v", err, s.Step, box.State)
		}
		w.send("dev", events.Inbox)
		b.tick()
		time.Sleep(14 * time.Minute)
		b.tick()
		if s, _ := w.saga("dev"); s.Owner != a.self {
			t.Fatalf("resumed early, by %s", s.Owner)
		}
		time.Sleep(2 * time.Minute)
		b.tick()
		if s, box := w.saga("dev"); s.Step != events.RetireCompleted || s.Owner != b.self || box.State != aggregates.MailboxRetired || w.kept("dev") != 0 {
			t.Fatalf("not resumed: %s by %s, %d mails", s.Step, s.Owner, w.kept("dev"))
		}
		if !b.log.has("seat_mailbox_retirement_resumed", "seat=dev") {
			t.Errorf("the log does not tell: %q", b.log.lines)
		}
	})
}

// TestUndeletableMailboxIsUnmarked proves the rest of R8: what cannot be deleted
// is unmarked, and the next tick tries again.
func TestUndeletableMailboxIsUnmarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		w.apply()
		short := usual
		short.Grace = time.Minute
		n := w.node("a", short)
		w.conn.Recreate(events.StreamMail) // another stream's sequences: Schedule10 forbids to purge by them
		if _, err := (broker.Marks{Store: w.store, Source: "op:00000000"}).Mark(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.send("dev", events.Inbox)
		n.tick()
		n.ticks(2, usual.Tick)
		s, box := w.saga("dev")
		if s.Step != events.RetireAbsent || box.State != aggregates.MailboxRegistered || w.kept("dev") != 1 {
			t.Fatalf("%s, record %v, %d mails; want it unmarked, and nothing purged", s.Step, box.State, w.kept("dev"))
		}
		if !slices.Contains(w.events("dev"), "retirement-unmarked") {
			t.Errorf("events %q", w.events("dev"))
		}
		if l, _ := w.op.Lease(t.Context(), events.SeatLease("dev")); l.Status != aggregates.LeaseFree {
			t.Errorf("its lease was kept: %+v", l)
		}
	})
}

// TestTwoSweepsOneMark proves R8 for two nodes that sweep at once: one marks, the
// other does nothing, and the mailbox is retired once.
func TestTwoSweepsOneMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		w.apply()
		a, b := w.node("a", usual), w.node("b", usual)
		inside := false
		a.cross = func(what string) {
			if inside || what != "after marks" {
				return
			}
			inside = true
			if _, err := b.mailboxes.Retire(t.Context(), "dev", true); err == nil {
				t.Error("B retired what A has claimed")
			}
		}
		if s, err := a.mailboxes.Retire(t.Context(), "dev", true); err != nil || s.Step != events.RetireCompleted {
			t.Fatalf("%+v, %v", s, err)
		}
		marks := 0
		for _, name := range w.events("dev") {
			if name == "retirement-marked" {
				marks++
			}
		}
		if !inside || marks != 1 {
			t.Errorf("%d marks, want 1", marks)
		}
	})
}

// TestMarkNeedsTheCompany proves that a revision which has the seat comes either
// before the mark, which is then refused, or after it: the window in which mail
// for a seat that is back could stand below a mark does not exist.
func TestMarkNeedsTheCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("dev")
		w.apply()
		n := w.node("a", usual)
		n.cross = func(what string) {
			if what == "after marks" {
				w.apply("dev")
				w.send("dev", events.Inbox)
			}
		}
		_, err := n.mailboxes.Retire(t.Context(), "dev", true)
		if s, box := w.saga("dev"); !errors.Is(err, commands.ErrCompanyMoved) || s.Marked() || box.State != aggregates.MailboxRegistered || w.kept("dev") != 1 {
			t.Fatalf("%v: %s, record %v, %d mails", err, s.Step, box.State, w.kept("dev"))
		}
		var due *sagas.GraceError
		if errors.As(err, &due) {
			t.Error("refused for another reason")
		}
	})
}
