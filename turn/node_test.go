package turn_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/turn"
)

// fullNode is a whole node: the seat host with real inboxes as its last stage.
type fullNode struct {
	*seattest.Node
	inboxes *turn.Inboxes
	stop    func()
}

// boot starts a node whose seats are run by a; what renewed, if anything, is
// told beside the inboxes.
func boot(t *testing.T, f *seattest.Fleet, id string, a *agent) *fullNode {
	t.Helper()
	n := &fullNode{}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	n.stop = func() { stop(); <-done }
	t.Cleanup(n.stop) // runs after the node's own, which needs the inboxes
	n.Node = f.Start(seattest.Config{
		ID:      id,
		Renewed: func(handles []string) { n.inboxes.Renewed(handles) },
		Stages: func(s *seattest.Node) []seat.Stage {
			mail := broker.NewMailboxes(s.Store)
			n.inboxes = turn.NewInboxes(&turn.Worker{
				Subjects: f.Subjects, Admission: hostOf{s}, Cursors: s.Cursors, Ledger: s.Shell, Agents: a,
				Sender: sender{shell: s.Shell}, Status: sender{}, Log: s.Log.Logger(), Swapped: func(string, error) {},
			}, mail, turn.Mark{}, s.Log.Logger())
			return []seat.Stage{{
				Name: "inbox",
				Up:   func(ctx context.Context, m *commands.Mailboxes) error { return n.inboxes.Attach(ctx, m) },
				Down: func(ctx context.Context, handle string, mode seat.Mode) error {
					return n.inboxes.Detach(ctx, handle, mode == seat.Voluntary)
				},
			}}
		},
	})
	go func() {
		defer close(done)
		_ = n.inboxes.Run(ctx)
	}()
	return n
}

// hostOf is the host of a node that is still being started.
type hostOf struct{ n *seattest.Node }

func (h hostOf) MayStart(handle string) (uint64, error)  { return h.n.Host.MayStart(handle) }
func (h hostOf) Fence(handle string, epoch uint64) error { return h.n.Host.Fence(handle, epoch) }

// TestSchedule7OneEventIDForTwoSeats proves that one event sent to two seats of
// one node runs on both, and once on each (W1).
func TestSchedule7OneEventIDForTwoSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		n := boot(t, f, "a", a)
		f.Until(func() bool { return len(n.Host.Held()) == 2 })
		for range 2 {
			for _, handle := range []string{"dev", "ops"} {
				_, err := f.Op.Send(t.Context(), events.Mail{Handle: handle, Mailbox: events.Inbox, ID: "e1", Type: events.TaskAssigned, Time: time.Now(), Data: json.RawMessage(`1`)})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		f.Advance(time.Second)
		var seats []string
		a.mu.Lock()
		for _, r := range a.runs {
			seats = append(seats, r.Seat)
		}
		a.mu.Unlock()
		slices.Sort(seats)
		if !slices.Equal(seats, []string{"dev", "ops"}) {
			t.Errorf("ran on %q, want once on each", seats)
		}
	})
}

// TestSchedule15KilledBeforeTheSettle proves that a node killed between a turn's
// completion and its settle, and restarted at once with a view that stands still,
// does not run the mail again: the ledger is asked, never a view (K1).
func TestSchedule15KilledBeforeTheSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		n := boot(t, f, "a", a)
		f.Until(func() bool { return len(n.Host.Held()) == 2 })
		a.set(func(context.Context, turn.Request, turn.Calls) (turn.Reply, error) {
			n.Conn.Faults.DropWrite(events.StreamCursor, f.Subjects.Cursor("dev", events.Inbox), 1000) // the settle
			return turn.Reply{JSON: []byte(`{}`)}, nil
		})
		send(t, f, "e1")
		f.Until(func() bool { _, ok := completed(t, f, "e1"); return ok })
		n.Kill()
		again := boot(t, f, "a", a)
		a.set(nil)
		f.Until(func() bool { return again.Host.Ready() == nil })
		again.FreezeView(true) // it knows the company, and no more from here on
		f.Until(func() bool { return len(again.Host.Held()) == 2 })
		f.Advance(time.Minute)
		again.FreezeView(false)
		if got := a.ids(); !slices.Equal(got, []string{"e1"}) {
			t.Errorf("ran %q", got)
		}
		if got := skips(f); !slices.Equal(got, []string{"e1 already_completed"}) {
			t.Errorf("skipped %q", got)
		}
	})
}

// TestCase9CutOffMidTurn proves at a whole node that a holder cut off from the
// broker starts its last turn within a heartbeat of the sending of its last good
// renewal and makes its last call within the TTL, that the turn in flight is
// ended then, and that the successor runs what was not completed (A1, A3, F2, F5).
func TestCase9CutOffMidTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		n := boot(t, f, "a", a)
		f.Until(func() bool { return len(n.Host.Held()) == 2 })
		var lastCall time.Time
		ended := make(chan time.Time, 1)
		a.set(func(ctx context.Context, _ turn.Request, calls turn.Calls) (turn.Reply, error) {
			for ctx.Err() == nil {
				if _, err := calls.Call(ctx, "1", turn.ToolSeatStatus, json.RawMessage(`{"seat":"ops"}`)); err != nil {
					break
				}
				lastCall = time.Now()
				if _, err := (turn.Echo{Delay: 10 * time.Millisecond}).Run(ctx, turn.Request{}, nil); err != nil {
					break
				}
			}
			ended <- time.Now()
			return turn.Reply{}, turn.ErrFenced
		})
		send(t, f, "e1", "e2")
		f.Advance(time.Minute)
		msg, err := f.Conn.Stream(events.StreamFleet).Last(t.Context(), f.Subjects.Family(events.SeatLease("dev")))
		if err != nil {
			t.Fatal(err)
		}
		n.Conn.Faults.CutOff(true)
		stopped := <-ended
		if late := lastCall.Sub(msg.At.Add(deskTTL)); late > 0 || late < -time.Second {
			t.Errorf("the last call came %v after the bought time was over", late)
		}
		if late := stopped.Sub(msg.At.Add(deskTTL)); late > 20*time.Millisecond {
			t.Errorf("the turn ended %v after the bought time was over", late)
		}
		next := &agent{}
		b := boot(t, f, "b", next)
		f.Until(func() bool { return len(b.Host.Held()) == 2 })
		f.Advance(time.Second)
		if got := next.ids(); !slices.Equal(got, []string{"e1", "e2"}) {
			t.Errorf("the successor ran %q", got)
		}
		if got := a.ids(); !slices.Equal(got, []string{"e1"}) {
			t.Errorf("the holder ran %q", got)
		}
		if f.Advance(time.Minute); n.Log.Count("seat_release_unproven") > 0 {
			t.Errorf("the cut made the seat undead:\n%s", n.Log)
		}
	})
}
