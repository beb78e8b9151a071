package duty_test

import (
	"testing"
	"testing/synctest"

	"github.com/seat-tenure/tenure/events"
)

// TestBackWhileHeld proves R4 for a retirement whose grace is over and that something
// holds: a seat that comes back and is removed again between two ticks has a new
// grace before it, and what it was sent is not deleted with what held it. An
// operator's retirement that waits for the grace waits for the new one.
func TestBackWhileHeld(t *testing.T) {
	for _, tt := range []struct {
		name  string
		judge func(t *testing.T, n *node)
	}{
		{"by a sweep", func(_ *testing.T, n *node) { n.tick() }},
		{"by an operator", func(t *testing.T, n *node) {
			if _, err := n.mailboxes.Retire(t.Context(), "dev", false); err == nil {
				t.Error("retired within the new grace")
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOfDev(t)
				n := w.node("a", usual)
				w.apply()
				n.older = "node:old (old:0000000a)"
				n.tick()
				n.ticks(100, usual.Tick)
				if s, _ := w.saga("dev"); !s.Due() || s.Refused != events.RefusedProtocol {
					t.Fatalf("after the grace: %s, held by %q", s.Step, s.Refused)
				}
				w.apply("dev")
				w.send("dev", events.Inbox)
				w.apply()
				n.older = ""
				tt.judge(t, n)
				if s, _ := w.saga("dev"); s.Step != events.RetireAbsent || s.Absent != 0 || w.kept("dev") != 2 {
					t.Fatalf("a seat that was back: %s, %v of its grace behind it, %d mails", s.Step, s.Absent.Duration(), w.kept("dev"))
				}
				n.ticks(95, usual.Tick)
				if w.kept("dev") != 2 {
					t.Error("retired before a new grace was over")
				}
				n.ticks(2, usual.Tick)
				if w.kept("dev") != 0 {
					t.Error("not retired after the new grace")
				}
			})
		})
	}
}

// TestBackBehindAStaleMark proves the same for a mark that was left: it is resumed up
// to where it stands, and mail that the returned seat was sent has a grace of its own.
func TestBackBehindAStaleMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		w.apply()
		a, b := w.node("a", usual), w.node("b", usual)
		a.cross = func(what string) {
			if what == "before empty" {
				a.faults.CutOff(true) // dead, right behind its mark
			}
		}
		if _, err := a.mailboxes.Retire(t.Context(), "dev", true); err == nil {
			t.Fatal("a dead node retired it")
		}
		w.apply("dev")
		w.send("dev", events.Inbox)
		w.apply()
		b.tick()
		b.ticks(2, usual.Tick)
		if s, _ := w.saga("dev"); s.Step == events.RetireRunsEnded || w.kept("dev") != 1 {
			t.Fatalf("the mark was resumed to %s, and %d mails are kept, want the one of the returned seat", s.Step, w.kept("dev"))
		}
		b.ticks(95, usual.Tick)
		if w.kept("dev") != 1 {
			t.Error("retired before its own grace was over")
		}
		b.ticks(3, usual.Tick)
		if w.kept("dev") != 0 {
			t.Error("not retired after its own grace")
		}
	})
}

// TestBackIsJudgedBySeat proves that what a seat was before it was judged missing does
// not begin its grace anew because the retirement of another is held for longer.
func TestBackIsJudgedBySeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOfDev(t)
		w.register("ops")
		w.apply("dev", "ops")
		n := w.node("a", usual)
		w.apply("ops")
		n.older = "node:old (old:0000000a)"
		n.tick()
		n.ticks(100, usual.Tick) // dev is due, and held
		w.apply("ops", "lead")
		w.apply()
		n.tick()
		n.ticks(10, usual.Tick)
		w.apply("lead")
		n.ticks(1, usual.Tick)
		if s, _ := w.saga("ops"); s.Absent.Duration() != 11*usual.Tick {
			t.Errorf("ops was seen missing for %v, want %v", s.Absent.Duration(), 11*usual.Tick)
		}
	})
}
