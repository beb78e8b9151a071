package sagas_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

const (
	sweepA events.Incarnation = "node-a:000000aa"
	sweepB events.Incarnation = "node-b:000000bb"
)

var (
	wall = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	box  = aggregates.Mailbox{Last: 3, State: aggregates.MailboxRegistered, AgentID: "agent"}
)

// retirementOf folds decided steps; each must be one that the decider allows.
func retirementOf(t interface{ Fatalf(string, ...any) }, cmds ...sagas.RetirementCommand) sagas.Retirement {
	var s sagas.Retirement
	for i, cmd := range cmds {
		decided, err := sagas.DecideRetirement(s, cmd)
		if err != nil || len(decided) == 0 {
			t.Fatalf("command %d, %T, on %s: %v, %v", i, cmd, s.Step, decided, err)
		}
		s = sagas.EvolveRetirement(s, s.Last+2, decided[0].(events.RetirementEvent))
	}
	return s
}

func observe(by events.Incarnation, passed time.Duration) sagas.ObserveAbsent {
	return sagas.ObserveAbsent{Handle: "dev", By: by, Company: 9, Grace: time.Hour, Tick: 15 * time.Minute, Passed: passed, Now: wall}
}

func mark(by events.Incarnation, epoch uint64) sagas.MarkRetirement {
	return sagas.MarkRetirement{By: by, Company: 9, Owner: by, Epoch: epoch, Marks: events.Marks{Inbox: 7}, Mailbox: box}
}

// TestRetirementTable proves R4 and R8 step by step: given what was, when a
// command comes, then these events, or that refusal.
func TestRetirementTable(t *testing.T) {
	due := []sagas.RetirementCommand{observe(sweepA, 0), observe(sweepA, time.Hour)}
	marked := append(due[:2:2], mark(sweepA, 4))
	ended := append(marked[:3:3], sagas.EndRuns{Owner: sweepA, Epoch: 4})
	purged := append(ended[:4:4], sagas.MarkPurged{Owner: sweepA, Epoch: 4})
	for _, c := range []struct {
		name  string
		given []sagas.RetirementCommand
		when  sagas.RetirementCommand
		then  string // names of the events, or the type of the refusal
	}{
		{"a seat is missing", nil, observe(sweepA, 0), "mailbox-absent"},
		{"and still is", due[:1], observe(sweepA, time.Minute), "retirement-ticked"},
		{"and is back", due[:1], sagas.ObserveReturned{By: sweepA, Company: 10}, "mailbox-returned"},
		{"one that is not absent is back", nil, sagas.ObserveReturned{By: sweepA, Company: 10}, ""},
		{"held", due, sagas.HoldRetirement{By: sweepA, Refused: events.RefusedHeld}, "retirement-ticked"},
		{"marked before its grace is over", due[:1], mark(sweepA, 4), "*sagas.GraceError"},
		{"marked, never seen missing", nil, mark(sweepA, 4), "*sagas.NotAbsentError"},
		{"marked", due, mark(sweepA, 4), "retirement-marked mailbox-retiring"},
		{"marked twice by one", marked, mark(sweepA, 4), ""},
		{"marked by two", marked, mark(sweepB, 5), "*sagas.RetiringError"},
		{"ticked while marked", marked, observe(sweepB, time.Hour), ""},
		{"back while marked", marked, sagas.ObserveReturned{By: sweepA, Company: 10}, ""},
		{"purged before its runs have ended", marked, sagas.MarkPurged{Owner: sweepA, Epoch: 4}, "*sagas.NotMineError"},
		{"runs ended by another tenure", marked, sagas.EndRuns{Owner: sweepA, Epoch: 5}, "*sagas.NotMineError"},
		{"runs ended", marked, sagas.EndRuns{Owner: sweepA, Epoch: 4}, "retirement-runs-ended"},
		{"purged", ended, sagas.MarkPurged{Owner: sweepA, Epoch: 4}, "retirement-purged"},
		{"completed", purged, sagas.CompleteRetirement{Owner: sweepA, Epoch: 4, Mailbox: box}, "retirement-completed mailbox-retired"},
		{"unmarked", ended, sagas.UnmarkRetirement{Owner: sweepA, Epoch: 4, Mailbox: box}, "retirement-unmarked mailbox-registered"},
		{"unmarked by another", ended, sagas.UnmarkRetirement{Owner: sweepB, Epoch: 4, Mailbox: box}, "*sagas.NotMineError"},
		{"resumed early", ended, sagas.ResumeRetirement{MarkRetirement: mark(sweepB, 5), Unseen: 14 * time.Minute, Stale: 15 * time.Minute}, "*sagas.RetiringError"},
		{"resumed", ended, sagas.ResumeRetirement{MarkRetirement: mark(sweepB, 5), Unseen: 15 * time.Minute, Stale: 15 * time.Minute}, "retirement-resumed mailbox-retiring"},
		{"resumed, not marked", due, sagas.ResumeRetirement{MarkRetirement: mark(sweepB, 5), Unseen: time.Hour, Stale: time.Minute}, "*sagas.NotMarkedError"},
		{"taken over early", marked, sagas.TakeOverRetirement{By: sweepB, AgentID: "agent", Unseen: 59 * time.Second, Patient: time.Minute}, "*sagas.RetiringError"},
		{"taken over", purged, sagas.TakeOverRetirement{By: sweepB, AgentID: "agent", Unseen: time.Minute, Patient: time.Minute}, "retirement-taken-over mailbox-registered"},
		{"taken over, not marked", due, sagas.TakeOverRetirement{By: sweepB, AgentID: "agent", Unseen: time.Hour, Patient: time.Minute}, "*sagas.NotMarkedError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			decided, err := sagas.DecideRetirement(retirementOf(t, c.given...), c.when)
			got := ""
			for i, e := range decided {
				if got += events.Name(e); i < len(decided)-1 {
					got += " "
				}
			}
			if err != nil {
				got = fmt.Sprintf("%T", err)
			}
			if got != c.then {
				t.Errorf("got %q (%v), want %q", got, err, c.then)
			}
		})
	}
}

// TestBackBehindAMark proves R4 for a mark that was left while the seat was back: once
// it is resumed and has to be taken back, nothing of the grace is over.
func TestBackBehindAMark(t *testing.T) {
	for _, back := range []bool{false, true} {
		s := retirementOf(t, observe(sweepA, 0), observe(sweepA, time.Hour), mark(sweepA, 4),
			sagas.ResumeRetirement{MarkRetirement: mark(sweepB, 5), Unseen: 15 * time.Minute, Stale: 15 * time.Minute, Back: back},
			sagas.UnmarkRetirement{Owner: sweepB, Epoch: 5, Mailbox: box})
		if s.Step != events.RetireAbsent || s.Due() == back {
			t.Errorf("back in between: %t; then %s, %v of its grace over", back, s.Step, s.Absent.Duration())
		}
	}
	due := retirementOf(t, observe(sweepA, 0), observe(sweepA, time.Hour))
	for back, want := range map[bool]sagas.RetirementEffect{false: sagas.EffectClaim, true: sagas.EffectObserve} {
		if got := sagas.NextRetirement(due, sagas.RetirementView{Back: back}); got != want {
			t.Errorf("past its grace, back in between: %t; then %q, want %q", back, got, want)
		}
	}
}

// naive is the grace as a dumb book-keeper has it: he adds up the spans between
// two entries in a row by one hand, and begins anew when he is told to.
type naive struct {
	hands []events.Incarnation
	spans []time.Duration // before each entry
}

func (n naive) observed() (sum time.Duration) {
	for i := 1; i < len(n.hands); i++ {
		if n.hands[i] == n.hands[i-1] {
			sum += n.spans[i]
		}
	}
	return sum
}

// TestRetirementProperties proves, over any commands of two sweeps in any order:
// the grace is what the naive book-keeper says (Schedule18), nothing is marked
// before it is over, a mark moves on under its own tenure alone, what was decided
// once is not decided twice, and what is decided can be encoded.
func TestRetirementProperties(t *testing.T) {
	grammar, _ := events.NewSubjects("acme")
	rapid.Check(t, func(t *rapid.T) {
		var s sagas.Retirement
		var book naive
		ticked := false // the newest event is a tick
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			by := rapid.SampledFrom([]events.Incarnation{sweepA, sweepB}).Draw(t, "by")
			epoch := rapid.Uint64Range(1, 3).Draw(t, "epoch")
			passed := time.Duration(rapid.IntRange(0, 40).Draw(t, "passed")) * time.Minute
			since := passed
			if !ticked { // behind a mark no sweep's own tick is the newest event, so none says that time has passed since
				since = 0
			}
			cmd := rapid.SampledFrom([]sagas.RetirementCommand{
				observe(by, since), observe(by, since), observe(by, since), sagas.ObserveReturned{By: by, Company: 10}, mark(by, epoch),
				sagas.EndRuns{Owner: by, Epoch: epoch}, sagas.MarkPurged{Owner: by, Epoch: epoch},
				sagas.CompleteRetirement{Owner: by, Epoch: epoch, Mailbox: box}, sagas.UnmarkRetirement{Owner: by, Epoch: epoch, Mailbox: box},
				sagas.ResumeRetirement{MarkRetirement: mark(by, epoch), Unseen: passed, Stale: 15 * time.Minute},
				sagas.TakeOverRetirement{By: by, AgentID: "agent", Unseen: passed, Patient: time.Minute},
			}).Draw(t, "command")
			decided, err := sagas.DecideRetirement(s, cmd)
			if err != nil || len(decided) == 0 {
				continue
			}
			if _, is := decided[0].(events.RetirementMarked); is && s.Absent.Duration() < time.Hour {
				t.Fatalf("marked after %v of an hour", s.Absent.Duration())
			}
			next := sagas.EvolveRetirement(s, s.Last+2, decided[0].(events.RetirementEvent))
			if s.Marked() && next.Marked() && (s.Owner != next.Owner || s.Epoch != next.Epoch) {
				if _, is := decided[0].(events.RetirementResumed); !is {
					t.Fatalf("a mark changed hands by %T", decided[0])
				}
			}
			for _, e := range decided {
				if _, err := events.Encode(grammar, events.Meta{ID: "e", Time: wall}, e); err != nil {
					t.Fatalf("%T cannot be written: %v", e, err)
				}
			}
			if again, err := sagas.DecideRetirement(next, cmd); err == nil && len(again) > 0 && !repeats(cmd) {
				t.Fatalf("%T happens twice: %v", cmd, again)
			}
			ticked = true
			switch decided[0].(type) {
			case events.MailboxAbsent:
				book = naive{hands: []events.Incarnation{by}, spans: []time.Duration{0}}
			case events.RetirementTicked:
				book.hands, book.spans = append(book.hands, by), append(book.spans, since)
			default:
				ticked = false
			}
			if next.Step == events.RetireAbsent && next.Absent.Duration() != book.observed() {
				t.Fatalf("observed %v, the book says %v", next.Absent.Duration(), book.observed())
			}
			s = next
		}
	})
}

// repeats says whether a command is one that a later sweep gives again.
func repeats(cmd sagas.RetirementCommand) bool {
	_, ticks := cmd.(sagas.ObserveAbsent)
	return ticks
}

// TestCase30RetirementsReplayNothing proves that a rebuilt retirement asks for
// nothing that was done: what ended asks for no effect, and what is another's is
// left to it.
func TestCase30RetirementsReplayNothing(t *testing.T) {
	whole := []sagas.RetirementCommand{
		observe(sweepA, 0), observe(sweepA, time.Hour), mark(sweepA, 4), sagas.EndRuns{Owner: sweepA, Epoch: 4},
		sagas.MarkPurged{Owner: sweepA, Epoch: 4}, sagas.CompleteRetirement{Owner: sweepA, Epoch: 4, Mailbox: box},
	}
	want := []sagas.RetirementEffect{
		sagas.EffectObserve, sagas.EffectMark, sagas.EffectEndRuns, sagas.EffectPurge, sagas.EffectComplete, sagas.EffectLeave,
	}
	for i := range whole {
		s := retirementOf(t, whole[:i+1]...)
		view := sagas.RetirementView{Owner: sweepA, Epoch: 4}
		if i == 0 {
			view.Epoch = 0
		}
		if got := sagas.NextRetirement(s, view); got != want[i] {
			t.Errorf("after %T: %q, want %q", whole[i], got, want[i])
		}
		if other := sagas.NextRetirement(s, sagas.RetirementView{Stale: time.Hour}); s.Marked() && other != sagas.EffectNone {
			t.Errorf("after %T another sweep does %q", whole[i], other)
		}
		if _, err := sagas.DecideRetirement(s, mark(sweepB, 9)); i >= 2 && err == nil {
			t.Errorf("after %T another sweep may mark", whole[i])
		}
	}
	var refused *sagas.NotAbsentError
	if _, err := sagas.DecideRetirement(retirementOf(t, whole...), mark(sweepB, 9)); !errors.As(err, &refused) {
		t.Errorf("a retired mailbox is marked again: %v", err)
	}
}
