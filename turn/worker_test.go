package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/turn"
)

// TestAttemptIsRecordedFirst proves that the attempt stands in the log before
// the runner sees the message, and that the runner is told which it is.
func TestAttemptIsRecordedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		found := make(chan []events.OpenMail, 1)
		a.set(func(_ context.Context, req turn.Request, _ turn.Calls) (turn.Reply, error) {
			found <- cursor(t, f).Open
			return turn.Reply{JSON: []byte(fmt.Sprint(req.Attempt))}, nil
		})
		sit(t, f, a)
		send(t, f, "e1")
		f.Advance(time.Second)
		if open := <-found; len(open) != 1 || !open[0].Running || open[0].Attempts != 1 {
			t.Errorf("the runner found the cursor at %+v", open)
		}
		if done, _ := completed(t, f, "e1"); string(done.Reply) != "1" {
			t.Errorf("the reply is %s", done.Reply)
		}
	})
}

// TestAttemptNotRecordedStartsNothing proves that without the log's first-hand
// answer no turn starts, and that one starts when it comes (D4, design §4).
func TestAttemptNotRecordedStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		d := sit(t, f, &agent{})
		inbox := f.Subjects.Cursor("dev", events.Inbox)
		d.conn.Faults.DropWrite(events.StreamCursor, inbox, 47) // until the log gives up
		send(t, f, "e1")
		f.Advance(15 * time.Second)
		if got := d.agent.ids(); len(got) > 0 {
			t.Fatalf("ran %q without an answer", got)
		}
		f.Advance(15 * time.Second)
		if got := d.agent.ids(); !slices.Equal(got, []string{"e1"}) {
			t.Errorf("ran %q", got)
		}
		if done, _ := completed(t, f, "e1"); done.Attempts != 1 {
			t.Errorf("it cost %d attempts", done.Attempts)
		}
	})
}

// TestBudget proves that a message whose turns keep failing is parked with its
// reason at the 26th start, which does not happen, stays readable, and blocks no
// other mail (D3, Case 25).
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		a.set(failFor("bad", 1000))
		d := sit(t, f, a)
		send(t, f, "bad")
		f.Advance(time.Hour)
		send(t, f, "good")
		f.Advance(time.Second)
		if n := len(a.ids()); n != turn.Budget+1 {
			t.Errorf("%d turns were started, want %d of the one and 1 of the other", n, turn.Budget)
		}
		p := parked(f)
		if len(p) != 1 || p[0].EventID != "bad" || p[0].Attempts != turn.Budget || string(p[0].Data) != `{"n":1}` || !strings.Contains(p[0].Reason, "25 turns") {
			t.Errorf("parked: %+v", p)
		}
		if got := skips(f); !slices.Equal(got, []string{"bad parked"}) {
			t.Errorf("skipped: %q", got)
		}
		if _, ok := completed(t, f, "bad"); ok || len(cursor(t, f).Open) > 0 {
			t.Error("parked mail is recorded as done, or still open")
		}
		if d.log.Count("mail_parked", "event=bad") != 1 {
			t.Error("it is not named in the log")
		}
	})
}

func parked(f *seattest.Fleet) []events.MailParked {
	var all []events.MailParked
	for _, r := range f.History(events.StreamDead) {
		if p, is := r.Event.(events.MailParked); is {
			all = append(all, p)
		}
	}
	return all
}

// TestUnreadableMailIsSetAside proves that mail nobody can decode is parked
// after one look, without a turn, and that the mail behind it flows (Case 24).
func TestUnreadableMailIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		d := sit(t, f, &agent{})
		h := events.Header{}
		h.Set(events.HeaderID, "torn")
		h.Set(events.HeaderType, events.TaskAssigned)
		for _, w := range []events.Write{
			{Subject: f.Subjects.Mail("dev", events.Inbox), Header: events.Header{}, Data: []byte("{}")},
			{Subject: f.Subjects.Mail("dev", events.Inbox), Header: h, Data: []byte("{")},
		} {
			if _, err := f.Conn.Stream(events.StreamMail).Append(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		send(t, f, "e1")
		f.Advance(time.Second)
		if got := d.agent.ids(); !slices.Equal(got, []string{"e1"}) {
			t.Errorf("ran %q", got)
		}
		if p := parked(f); len(p) != 2 || p[0].Attempts != 0 || string(p[1].Data) != "{" {
			t.Errorf("parked: %+v", p)
		}
		if c := cursor(t, f); len(c.Open) > 0 || waiting(t, f) > 0 {
			t.Error("it was not settled")
		}
	})
}

// TestUnledgeredMail proves that mail of other types runs nothing, is in no
// ledger, is set aside at first sight where its sender's mistake can be seen, and
// keeps nothing else from flowing (K4).
func TestUnledgeredMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		d := sit(t, f, &agent{})
		sendOf(t, f, "newsletter", "n1")
		for _, typ := range []string{events.TaskAssigned, events.ExternalNotification, events.A2ARequest, events.A2AMessage} {
			sendOf(t, f, typ, typ)
		}
		f.Advance(time.Second)
		if got := d.agent.ids(); len(got) != 4 || slices.Contains(got, "n1") {
			t.Errorf("ran %q", got)
		}
		if _, ok := completed(t, f, "n1"); ok || d.log.Count("mail_parked", "event=n1") != 1 || waiting(t, f) > 0 {
			t.Error("it is recorded, unnamed or unsettled")
		}
		if p := parked(f); len(p) != 1 || p[0].Attempts != 0 || !strings.Contains(p[0].Reason, `"newsletter" runs no turn`) {
			t.Errorf("parked: %+v", p)
		}
	})
}

// TestRecordedMailIsSkipped proves that a trigger with a completion is settled
// without a turn, visibly (K1, K5).
func TestRecordedMailIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		d := sit(t, f, &agent{})
		send(t, f, "e1", "e1", "e2")
		f.Advance(time.Second)
		if got := d.agent.ids(); !slices.Equal(got, []string{"e1", "e2"}) {
			t.Errorf("ran %q", got)
		}
		if got := skips(f); !slices.Equal(got, []string{"e1 already_completed"}) || d.log.Count("turn_trigger_skipped", "event=e1") != 1 {
			t.Errorf("skipped: %q", got)
		}
	})
}

// TestLedgerFailsOpen proves that a ledger that cannot be read lets the turn run,
// and one that cannot be written leaves its effects standing and says so; the
// mail is settled in both (K3, Case 15).
func TestLedgerFailsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		ledger brokenLedger
		log    string
		runs   int
	}{
		"unreadable": {brokenLedger{read: errors.New("no")}, "completion_ledger_unread", 2}, // one id sent twice
		"unwritable": {brokenLedger{write: errors.New("no")}, "completion_unwritten", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleetOf(t)
				d := sit(t, f, &agent{}, func(w *turn.Worker) {
					c.ledger.Ledger = w.Ledger
					w.Ledger = c.ledger
				})
				send(t, f, "e1", "e1")
				f.Advance(time.Minute)
				if got := d.agent.ids(); len(got) != c.runs {
					t.Errorf("ran %q", got)
				}
				if d.log.Count(c.log) != c.runs || len(cursor(t, f).Open) > 0 || waiting(t, f) > 0 {
					t.Errorf("not told, or not settled:\n%s", d.log)
				}
			})
		})
	}
}

type brokenLedger struct {
	turn.Ledger
	read, write error
}

func (l brokenLedger) Completed(ctx context.Context, handle, id string) (events.TurnCompleted, bool, error) {
	if l.read != nil {
		return events.TurnCompleted{}, false, l.read
	}
	return l.Ledger.Completed(ctx, handle, id)
}

func (l brokenLedger) Complete(ctx context.Context, held commands.Tenure, c events.TurnCompleted) error {
	if l.write != nil {
		return l.write
	}
	return l.Ledger.Complete(ctx, held, c)
}

// TestBrokenTurns proves what becomes of a turn that broke: back with nothing
// outside, recorded and settled once a call reached outside or may have, recorded
// and settled with its stack after a panic, whatever it did (B1, B2, B3).
func TestBrokenTurns(t *testing.T) {
	sendTo := func(ctx context.Context, calls turn.Calls, to string) error {
		_, err := calls.Call(ctx, "1", turn.ToolSend, json.RawMessage(`{"to":"`+to+`"}`))
		return err
	}
	for name, c := range map[string]struct {
		do       func(ctx context.Context, calls turn.Calls) error
		send     error  // what sending answers
		skipped  string // "": it comes again
		log      string
		arrivals int // mail at ops
	}{
		"nothing reached": {func(context.Context, turn.Calls) error { return errors.New("no") }, nil, "", "turn_failed", 0},
		"only looked": {func(ctx context.Context, calls turn.Calls) error {
			_, _ = calls.Call(ctx, "1", turn.ToolSeatStatus, json.RawMessage(`{"seat":"ops"}`))
			return errors.New("no")
		}, nil, "", "turn_failed", 0},
		"refused call": {func(ctx context.Context, calls turn.Calls) error {
			_ = sendTo(ctx, calls, "No Such")
			return errors.New("no")
		}, nil, "", "turn_failed", 0},
		"sent": {func(ctx context.Context, calls turn.Calls) error {
			_ = sendTo(ctx, calls, "ops")
			return errors.New("no")
		}, nil, "e1 broke_after_acting", "turn_broke_after_acting", 1},
		"may have sent": {func(ctx context.Context, calls turn.Calls) error {
			_ = sendTo(ctx, calls, "ops")
			return errors.New("no")
		}, events.ErrUnknown, "e1 broke_after_acting", "turn_broke_after_acting", 0},
		"panicked":       {func(context.Context, turn.Calls) error { panic("boom") }, nil, "e1 panicked", "dispatch_panicked", 0},
		"sent, panicked": {func(ctx context.Context, calls turn.Calls) error { _ = sendTo(ctx, calls, "ops"); panic("boom") }, nil, "e1 panicked", "dispatch_panicked", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleetOf(t)
				a := &agent{}
				first := true
				a.set(func(ctx context.Context, _ turn.Request, calls turn.Calls) (turn.Reply, error) {
					if first {
						first = false
						return turn.Reply{}, c.do(ctx, calls)
					}
					return turn.Reply{JSON: []byte(`{}`)}, nil
				})
				d := sit(t, f, a, func(w *turn.Worker) {
					s := w.Sender.(sender)
					s.fail = c.send
					w.Sender = s
				})
				send(t, f, "e1")
				f.Advance(10 * time.Second)
				done, ok := completed(t, f, "e1")
				again := c.skipped == ""
				want, runs := events.OutcomeFailed, 1
				if again {
					want, runs = events.OutcomeDone, 2
				}
				if !ok || done.Outcome != want || len(a.ids()) != runs || (!again && done.Why == "") {
					t.Errorf("recorded %+v after %d runs, want %s after %d", done, len(a.ids()), want, runs)
				}
				if got := strings.Join(skips(f), ", "); got != c.skipped {
					t.Errorf("skipped %q, want %q", got, c.skipped)
				}
				told := d.log.All(c.log)
				if len(told) != 1 || strings.HasSuffix(name, "panicked") && !strings.Contains(told[0].Attrs["stack"], "worker_test.go") {
					t.Errorf("%s: %v", c.log, told)
				}
				n, _ := f.Conn.Stream(events.StreamMail).Subjects(t.Context(), f.Subjects.Mail("ops", events.Inbox))
				if got := n[f.Subjects.Mail("ops", events.Inbox)]; int(got) != c.arrivals {
					t.Errorf("%d messages arrived, want %d", got, c.arrivals)
				}
				if len(cursor(t, f).Open) > 0 {
					t.Error("the trigger is still open")
				}
			})
		})
	}
}

// TestFencedMidTurn proves that a turn whose seat moves is stopped at its next
// call and deferred for the successor, and that it is recorded and settled where
// it had acted before, if the seat is still to be written for (F2, F5).
func TestFencedMidTurn(t *testing.T) {
	for _, acted := range []bool{false, true} {
		t.Run(fmt.Sprint("acted ", acted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleetOf(t)
				a := &agent{}
				d := sit(t, f, a)
				a.set(func(ctx context.Context, _ turn.Request, calls turn.Calls) (turn.Reply, error) {
					if acted {
						if _, err := calls.Call(ctx, "1", turn.ToolSend, json.RawMessage(`{"to":"ops"}`)); err != nil {
							t.Errorf("the first call: %v", err)
						}
					}
					d.trip(errors.New("epoch 1 is over"))
					d.admit(errStale)
					_, err := calls.Call(ctx, "2", turn.ToolSend, json.RawMessage(`{"to":"ops"}`))
					if !errors.Is(err, turn.ErrFenced) {
						t.Errorf("the call behind the fence: got %v", err)
					}
					return turn.Reply{}, err
				})
				send(t, f, "e1")
				f.Advance(time.Minute)
				done, ok := completed(t, f, "e1")
				if ok != acted || acted && done.Outcome != events.OutcomeFailed {
					t.Errorf("recorded: %t, %+v", ok, done)
				}
				if open := cursor(t, f).Open; (len(open) == 1) == acted {
					t.Errorf("open: %+v", open)
				}
				if d.log.Count("turn_fenced") != map[bool]int{false: 1, true: 0}[acted] {
					t.Errorf("log:\n%s", d.log)
				}
				if acted {
					return
				}
				d.kill()
				next := sit(t, f, &agent{})
				f.Advance(time.Second)
				if got := next.agent.ids(); !slices.Equal(got, []string{"e1"}) {
					t.Errorf("the successor ran %q", got)
				}
			})
		})
	}
}

// TestSchedule13ZombiesTurn proves at the worker that a process whose mailbox
// was taken over, and that believes itself the holder, starts nothing and ends
// its inbox (D4).
func TestSchedule13ZombiesTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		zombie := sit(t, f, &agent{})
		next := sit(t, f, &agent{})
		next.admit(errStale) // the zombie is first at the mail
		send(t, f, "e1")
		f.Advance(time.Second)
		next.admit(nil)
		f.Advance(time.Second)
		if got := zombie.agent.ids(); len(got) > 0 {
			t.Errorf("the zombie ran %q", got)
		}
		if got := next.agent.ids(); !slices.Equal(got, []string{"e1"}) {
			t.Errorf("the successor ran %q", got)
		}
		if zombie.log.Count("mailbox_taken_over") != 1 {
			t.Errorf("the zombie's log:\n%s", zombie.log)
		}
	})
}

// TestCase15KilledAtEachPoint proves, by counting outside effects by their event
// id, what a kill at each point of a turn costs: before the effect one run more,
// between effect and ledger a repeat that is reported and sends nothing twice,
// after the ledger a visible skip.
func TestCase15KilledAtEachPoint(t *testing.T) {
	for name, c := range map[string]struct {
		point    string
		runs     int // of the successor
		reported bool
		skipped  bool
	}{
		"before the effect":                   {"before", 1, true, false},
		"after the effect, before the ledger": {"after", 1, true, false},
		"after the ledger, before the settle": {"ledger", 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleetOf(t)
				a := &agent{}
				var d *desk
				ready := make(chan struct{})
				act := func(ctx context.Context, calls turn.Calls) {
					if _, err := calls.Call(ctx, "1", turn.ToolSend, json.RawMessage(`{"to":"ops"}`)); err != nil {
						t.Errorf("send: %v", err)
					}
				}
				a.set(func(ctx context.Context, _ turn.Request, calls turn.Calls) (turn.Reply, error) {
					<-ready
					if c.point != "before" {
						act(ctx, calls)
					}
					if c.point != "ledger" {
						d.conn.Faults.CutOff(true) // nothing reaches the log from here on
					}
					return turn.Reply{JSON: []byte(`{}`)}, nil
				})
				d = sit(t, f, a, func(w *turn.Worker) {
					w.Ledger = lastWords{w.Ledger, func() { d.conn.Faults.CutOff(true) }}
				})
				close(ready)
				send(t, f, "e1")
				f.Advance(100 * time.Millisecond)
				d.kill()
				again := &agent{}
				again.set(func(ctx context.Context, _ turn.Request, calls turn.Calls) (turn.Reply, error) {
					act(ctx, calls)
					return turn.Reply{JSON: []byte(`{}`)}, nil
				})
				next := sit(t, f, again)
				f.Advance(time.Second)
				if got := len(again.ids()); got != c.runs {
					t.Errorf("the successor ran it %d times, want %d", got, c.runs)
				}
				if got := next.log.Count("turn_rerun_after_unfinished_attempt") > 0; got != c.reported {
					t.Errorf("reported: %t, want %t", got, c.reported)
				}
				if got := slices.Contains(skips(f), "e1 already_completed"); got != c.skipped {
					t.Errorf("skipped visibly: %t, want %t", got, c.skipped)
				}
				effects := map[string]int{}
				for seq := uint64(1); ; seq++ {
					msg, err := f.Conn.Stream(events.StreamMail).Next(t.Context(), f.Subjects.Mail("ops", events.Inbox), seq)
					if err != nil {
						break
					}
					effects[msg.Header.Get(events.HeaderID)]++
					seq = msg.Seq
				}
				if len(effects) != 1 {
					t.Errorf("effects by event id: %v, want one id, which its receiver's ledger collapses", effects)
				}
				if done, ok := completed(t, f, "e1"); !ok || done.Outcome != events.OutcomeDone || len(cursor(t, f).Open) > 0 {
					t.Errorf("in the end: %+v, %t", done, ok)
				}
			})
		})
	}
}

// lastWords lets a completion be written, and then calls.
type lastWords struct {
	turn.Ledger
	then func()
}

func (l lastWords) Complete(ctx context.Context, held commands.Tenure, c events.TurnCompleted) error {
	defer l.then()
	return l.Ledger.Complete(ctx, held, c)
}
