package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/metrics"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/turn"
)

// agent runs every turn: it does what the event's type of trouble says.
type agent struct {
	mu   sync.Mutex
	runs map[string]int // attempts by event; guarded by mu
}

func (a *agent) Agent(handle string) (turn.Agent, error) {
	return turn.Agent{ID: "agent-" + handle, Runner: a}, nil
}

func (a *agent) Run(ctx context.Context, req turn.Request, calls turn.Calls) (turn.Reply, error) {
	id := req.Events[0].ID
	a.mu.Lock()
	a.runs[id]++
	run := a.runs[id]
	a.mu.Unlock()
	<-time.After(2 * time.Second)
	switch {
	case id == "panics":
		panic("of the test")
	case id == "always-fails", id == "fails-twice" && run <= 2:
		return turn.Reply{}, errors.New("no answer from the provider")
	case id == "breaks":
		if _, err := calls.Call(ctx, "1", turn.ToolSend, json.RawMessage(`{"to":"ops","type":"task_assigned","data":{}}`)); err != nil {
			return turn.Reply{}, err
		}
		return turn.Reply{}, errors.New("after it had acted")
	}
	return turn.Reply{JSON: json.RawMessage(`{}`)}, nil
}

type outside struct{}

func (outside) Send(context.Context, events.Mail) error { return nil }

func (outside) SeatStatus(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

// lateHost is the host of a node that is still being started.
type lateHost struct{ n *seattest.Node }

func (h lateHost) MayStart(handle string) (uint64, error)  { return h.n.Host.MayStart(handle) }
func (h lateHost) Fence(handle string, epoch uint64) error { return h.n.Host.Fence(handle, epoch) }

// start boots a whole node, host and inboxes, whose turns a does.
func start(t *testing.T, f *seattest.Fleet, m *metrics.Set, a *agent) *seattest.Node {
	t.Helper()
	var inboxes *turn.Inboxes
	n := f.Start(seattest.Config{
		ID: "a", Observe: m.Seats(), Renewed: func(handles []string) { inboxes.Renewed(handles) },
		Stages: func(s *seattest.Node) []seat.Stage {
			inboxes = turn.NewInboxes(&turn.Worker{
				Subjects: f.Subjects, Admission: lateHost{s}, Cursors: s.Cursors, Ledger: s.Shell, Agents: a,
				Sender: outside{}, Status: outside{}, Log: s.Log.Logger(), Swapped: func(string, error) {},
				Observe: m.Turns(),
			}, broker.NewMailboxes(s.Store), turn.Mark{}, s.Log.Logger())
			return []seat.Stage{{
				Name: "inbox",
				Up:   func(ctx context.Context, m *commands.Mailboxes) error { return inboxes.Attach(ctx, m) },
				Down: func(ctx context.Context, handle string, mode seat.Mode) error {
					return inboxes.Detach(ctx, handle, mode == seat.Voluntary)
				},
			}}
		},
	})
	f.Until(func() bool { return len(n.Host.Held()) == 1 })
	return n
}

// send stores mail for dev whose event happened that long ago.
func send(t *testing.T, f *seattest.Fleet, id string, ago time.Duration) {
	t.Helper()
	_, err := f.Op.Send(t.Context(), events.Mail{
		Handle: "dev", Mailbox: events.Inbox, ID: id, Type: events.TaskAssigned, Time: time.Now().Add(-ago), Data: json.RawMessage(`{}`),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTurns proves that attempts are counted when they begin and when they end,
// by how; that the attempts of a completed turn and the wait of its mail are
// measured once; that skipped triggers and parked mail are counted; and that
// nothing is left running.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		m := metrics.New("test")
		start(t, f, m, &agent{runs: map[string]int{}})
		send(t, f, "plain", 5*time.Second)
		f.Advance(time.Second)
		scrape(t, m).want(map[string]float64{"tenure_turns_started_total": 1, "tenure_turns_running": 1})
		f.Advance(2 * time.Second)
		p := scrape(t, m)
		p.want(map[string]float64{
			"tenure_turns_running": 0, "tenure_turns_ended_total outcome=completed": 1,
			"tenure_mailbox_wait_seconds": 1, "tenure_turn_attempts": 1,
		})
		if wait := p.sum("tenure_mailbox_wait_seconds"); wait < 5 || wait > 5.1 {
			t.Errorf("it waited %v s, want 5", wait)
		}
		if took := p.sum("tenure_turn_seconds", "outcome=completed"); took < 2 || took > 2.1 {
			t.Errorf("it took %v s, want 2", took)
		}
		for _, id := range []string{"panics", "fails-twice", "breaks"} {
			send(t, f, id, 0)
		}
		f.Advance(time.Minute)
		send(t, f, "plain", 0) // once more: done already
		f.Advance(time.Minute)
		p = scrape(t, m)
		p.want(map[string]float64{
			"tenure_turns_started_total": 6, "tenure_turns_running": 0,
			"tenure_turns_ended_total outcome=completed": 2, "tenure_turns_ended_total outcome=failed": 2,
			"tenure_turns_ended_total outcome=panicked": 1, "tenure_turns_ended_total outcome=broke": 1,
			"tenure_triggers_skipped_total reason=panicked": 1, "tenure_triggers_skipped_total reason=broke_after_acting": 1,
			"tenure_triggers_skipped_total reason=already_completed": 1,
			"tenure_mailbox_wait_seconds":                            4, "tenure_turn_attempts": 2, "tenure_mail_parked_total": 0,
		})
		if sum := p.sum("tenure_turn_attempts"); sum != 1+3 {
			t.Errorf("the completed turns took %v attempts, want 1 and 3", sum)
		}
		send(t, f, "always-fails", 0)
		f.Advance(time.Hour)
		scrape(t, m).want(map[string]float64{
			"tenure_mail_parked_total": 1, "tenure_triggers_skipped_total reason=parked": 1,
			"tenure_turns_ended_total outcome=failed": 2 + turn.Budget, "tenure_turns_ended_total outcome=completed": 2,
		})
	})
}
