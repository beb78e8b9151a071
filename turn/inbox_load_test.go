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

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/turn"
)

// TestCase24ProviderAwayForThreeSeconds proves that a provider that fails every
// turn for three seconds costs each message at most five attempts, that nothing is
// parked, and that all of it is done soon after.
func TestCase24ProviderAwayForThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		back := time.Now().Add(3 * time.Second)
		a.set(func(context.Context, turn.Request, turn.Calls) (turn.Reply, error) {
			if time.Now().Before(back) {
				return turn.Reply{}, errors.New("the provider is away")
			}
			return turn.Reply{JSON: []byte(`{}`)}, nil
		})
		sit(t, f, a)
		ids := []string{"e1", "e2", "e3"}
		send(t, f, ids...)
		f.Advance(10 * time.Second)
		for _, id := range ids {
			if done, ok := completed(t, f, id); !ok || done.Attempts > 5 {
				t.Errorf("%s: done %t after %d attempts", id, ok, done.Attempts)
			}
		}
		if n := len(parked(f)); n > 0 {
			t.Errorf("%d messages were parked", n)
		}
	})
}

// TestRunnerThatCrashesIsParkedWithItsHistory proves that a message whose runner
// fails 25 times is parked with how it ended and why, counted, while the seat's
// other mail, of the same conversation and of others, flows.
func TestRunnerThatCrashesIsParkedWithItsHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		a.set(func(_ context.Context, req turn.Request, _ turn.Calls) (turn.Reply, error) {
			if slices.ContainsFunc(req.Events, func(e turn.Event) bool { return e.ID == "bad" }) {
				return turn.Reply{}, fmt.Errorf("the program exited with status %d", min(2, 1+req.Attempt/20))
			}
			return turn.Reply{JSON: []byte(`{}`)}, nil
		})
		sit(t, f, a)
		sayIn(t, f, "c", "bad")
		for n := range 20 {
			f.Advance(time.Minute)
			sayIn(t, f, []string{"c", "d", ""}[n%3], fmt.Sprint("good", n))
			f.Advance(10 * time.Second)
			if _, ok := completed(t, f, fmt.Sprint("good", n)); !ok {
				t.Fatalf("after %d minutes the seat's other mail does not flow", n+1)
			}
		}
		f.Advance(time.Hour)
		p := parked(f)
		if len(p) != 1 || p[0].EventID != "bad" || p[0].Attempts != turn.Budget {
			t.Fatalf("parked: %+v", p)
		}
		var told []string
		tries := 0
		for _, h := range p[0].History {
			told = append(told, fmt.Sprintf("%s %s", h.End, h.Why))
			tries += h.Count
		}
		if want := "failed the program exited with status 1, failed the program exited with status 2"; strings.Join(told, ", ") != want || tries != turn.Budget {
			t.Errorf("its history is %+v", p[0].History)
		}
	})
}

// TestFailedMailComesUnderASteadyFlow proves that mail which failed waits behind
// newer mail, and not for ever where there is always some.
func TestFailedMailComesUnderASteadyFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		sent := 0
		fails := true
		a.set(func(_ context.Context, req turn.Request, _ turn.Calls) (turn.Reply, error) {
			sent++
			newer := events.Mail{Handle: "dev", Mailbox: events.Inbox, ID: fmt.Sprint("flow", sent), Type: events.TaskAssigned, Time: time.Now(), Data: []byte(`{}`)}
			if _, err := f.Op.Send(t.Context(), newer); err != nil && t.Context().Err() == nil { // there is always some, to the end
				t.Error(err)
			}
			f.Advance(time.Second) // a turn takes a second
			if req.Events[0].ID == "bad" && fails {
				fails = false
				return turn.Reply{}, errors.New("no")
			}
			return turn.Reply{JSON: []byte(`{}`)}, nil
		})
		sit(t, f, a)
		send(t, f, "bad")
		f.Advance(30 * time.Second)
		if _, ok := completed(t, f, "bad"); ok {
			t.Error("it came before newer mail")
		}
		f.Advance(35 * time.Second)
		if _, ok := completed(t, f, "bad"); !ok {
			t.Error("newer mail keeps it from coming for ever")
		}
	})
}

// TestCase6RollingRestarts proves that 30 restarts of the holder, half of them in
// the middle of a turn, cost each of 40 messages at most one attempt more than it
// takes, that nothing is parked, and that nothing is begun once a drain has begun.
func TestCase6RollingRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		ids := make([]string, 40)
		for i := range ids {
			ids[i] = fmt.Sprint("e", i)
		}
		send(t, f, ids...)
		for n := range 30 {
			a := &agent{}
			started := make(chan struct{}, 100)
			a.set(func(ctx context.Context, _ turn.Request, _ turn.Calls) (turn.Reply, error) {
				started <- struct{}{}
				return turn.Echo{Delay: time.Second}.Run(ctx, turn.Request{}, nil)
			})
			d := sit(t, f, a)
			<-started
			if n%2 == 0 {
				d.detach(true) // the turn in flight ends, and no other begins
				if len(started) > 0 {
					t.Fatal("a turn began after the drain had")
				}
			} else {
				f.Advance(500 * time.Millisecond)
			}
			d.kill()
		}
		last := sit(t, f, &agent{})
		f.Advance(time.Minute)
		spent := 0
		for _, id := range ids {
			done, ok := completed(t, f, id)
			if !ok || done.Attempts > 2 {
				t.Errorf("%s: done %t, %d attempts", id, ok, done.Attempts)
			}
			spent += done.Attempts
		}
		if spent != len(ids)+15 || len(parked(f)) > 0 {
			t.Errorf("%d attempts were spent on %d messages and 15 kills, %d messages are parked\n%s", spent, len(ids), len(parked(f)), last.log)
		}
	})
}

// TestTheSameIDAgain proves that an id sent again has one effect, past the broker's
// dedupe window too, whatever became of the first: waiting, running, failing, done,
// or broken after it acted. Only what is parked runs anew: nothing was done.
func TestTheSameIDAgain(t *testing.T) {
	const later = 3 * time.Minute
	for name, c := range map[string]struct {
		do      func(n int) func(context.Context, turn.Calls) error // the n-th run
		paused  bool
		effects int
		outcome events.Outcome
	}{
		"waiting": {nil, true, 1, events.OutcomeDone},
		"running": {func(int) func(context.Context, turn.Calls) error {
			return func(ctx context.Context, _ turn.Calls) error {
				_, err := turn.Echo{Delay: 2 * later}.Run(ctx, turn.Request{}, nil)
				return err
			}
		}, false, 1, events.OutcomeDone},
		"failing": {func(n int) func(context.Context, turn.Calls) error {
			return func(context.Context, turn.Calls) error {
				if n < 10 {
					return errors.New("no")
				}
				return nil
			}
		}, false, 1, events.OutcomeDone},
		"done": {nil, false, 1, events.OutcomeDone},
		"broke after it acted": {func(int) func(context.Context, turn.Calls) error {
			return func(ctx context.Context, calls turn.Calls) error {
				_, _ = calls.Call(ctx, "1", turn.ToolSend, json.RawMessage(`{"to":"ops"}`))
				return errors.New("no")
			}
		}, false, 0, events.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleetOf(t)
				a := &agent{}
				effects, runs := 0, 0
				a.set(func(ctx context.Context, _ turn.Request, calls turn.Calls) (turn.Reply, error) {
					runs++
					if c.do != nil {
						if err := c.do(runs)(ctx, calls); err != nil {
							return turn.Reply{}, err
						}
					}
					effects++
					return turn.Reply{JSON: []byte(`{}`)}, nil
				})
				d := sit(t, f, a)
				if c.paused {
					d.admit(errStale)
				}
				for range 3 {
					send(t, f, "e1")
					f.Advance(later)
				}
				d.admit(nil)
				f.Advance(time.Hour)
				done, ok := completed(t, f, "e1")
				if !ok || done.Outcome != c.outcome || effects != c.effects || len(cursor(t, f).Open) > 0 || waiting(t, f) > 0 {
					t.Errorf("%d effects in %d runs, recorded %t as %q, open %+v", effects, runs, ok, done.Outcome, cursor(t, f).Open)
				}
				if got := skips(f); len(got) < 2 || !slices.Contains(got, "e1 already_completed") {
					t.Errorf("skipped: %q", got)
				}
			})
		})
	}
}

// sayIn stores mail of a conversation for dev.
func sayIn(t *testing.T, f *seattest.Fleet, conversation, id string) {
	t.Helper()
	_, err := f.Op.Send(t.Context(), events.Mail{
		Handle: "dev", Mailbox: events.Inbox, ID: id, Type: events.TaskAssigned, Conversation: conversation, Time: time.Now(), Data: json.RawMessage(`{}`),
	})
	if err != nil {
		t.Fatal(err)
	}
}
