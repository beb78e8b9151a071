package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/turn"
)

const deskTTL = 15 * time.Second

// desk is one process on the in-memory broker that has the seat "dev".
type desk struct {
	*station
	f    *seattest.Fleet
	conn *broker.Memory
}

// agent is the runner of every seat: it does what the test says and notes runs.
type agent struct {
	mu   sync.Mutex
	do   func(ctx context.Context, req turn.Request, calls turn.Calls) (turn.Reply, error) // guarded by mu
	runs []turn.Request                                                                    // guarded by mu
	gone error                                                                             // there is no agent; guarded by mu
}

func (a *agent) Run(ctx context.Context, req turn.Request, calls turn.Calls) (turn.Reply, error) {
	a.mu.Lock()
	a.runs = append(a.runs, req)
	do := a.do
	a.mu.Unlock()
	if do == nil {
		return turn.Reply{JSON: json.RawMessage(`{"ok":true}`)}, nil
	}
	return do(ctx, req, calls)
}

func (a *agent) Agent(handle string) (turn.Agent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return turn.Agent{ID: "agent-" + handle, Runner: a}, a.gone
}

// leave takes the agent from its seat, nil puts it back.
func (a *agent) leave(gone error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = gone
}

func (a *agent) set(do func(ctx context.Context, req turn.Request, calls turn.Calls) (turn.Reply, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.do = do
}

// ids lists the events of all runs, in order.
func (a *agent) ids() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ids []string
	for _, r := range a.runs {
		ids = append(ids, r.Events[0].ID)
	}
	return ids
}

// sender sends tools' mail; it may be told to fail.
type sender struct {
	shell *commands.Shell
	fail  error
}

func (s sender) Send(ctx context.Context, m events.Mail) error {
	if s.fail != nil {
		return s.fail
	}
	_, err := s.shell.Send(ctx, m)
	return err
}

func (sender) SeatStatus(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

// fleetOf starts the broker with the seats dev and ops.
func fleetOf(t *testing.T) *seattest.Fleet {
	t.Helper()
	f := seattest.New(t, deskTTL)
	f.Seats("dev", "ops")
	return f
}

// sit boots a process, claims dev for it and reads its inbox.
func sit(t *testing.T, f *seattest.Fleet, a *agent, changes ...func(*turn.Worker)) *desk {
	t.Helper()
	d := &desk{f: f, conn: f.Conn.Peer()}
	d.station = stationOf(t, d.conn, f.Boot("n"), "dev", a, changes...)
	d.hold()
	d.attach()
	t.Cleanup(func() {
		d.kill()
		d.conn.Faults.Settle()
		_ = d.conn.Close()
	})
	d.admit(nil)
	return d
}

// kill ends the process: nothing of it reaches the log any more.
func (d *desk) kill() {
	d.conn.Faults.CutOff(true)
	d.detach(false)
}

// send stores mail for dev, in order.
func send(t *testing.T, f *seattest.Fleet, ids ...string) {
	t.Helper()
	for _, id := range ids {
		sendOf(t, f, events.TaskAssigned, id)
	}
}

func sendOf(t *testing.T, f *seattest.Fleet, typ, id string) {
	t.Helper()
	_, err := f.Op.Send(t.Context(), events.Mail{Handle: "dev", Mailbox: events.Inbox, ID: id, Type: typ, Time: time.Now(), Data: json.RawMessage(`{"n":1}`)})
	if err != nil {
		t.Fatal(err)
	}
}

// cursor reads dev's inbox cursor from the log.
func cursor(t *testing.T, f *seattest.Fleet) events.CursorSnapshot {
	t.Helper()
	msg, err := f.Conn.Stream(events.StreamCursor).Last(context.Background(), f.Subjects.Cursor("dev", events.Inbox))
	if err != nil {
		t.Fatal(err)
	}
	r, err := events.Decode(f.Subjects, msg)
	if err != nil {
		t.Fatal(err)
	}
	_, _, snapshot := r.Event.(events.CursorEvent).Cursor()
	return snapshot
}

// completed reads an event's record in the ledger.
func completed(t *testing.T, f *seattest.Fleet, id string) (events.TurnCompleted, bool) {
	t.Helper()
	done, ok, err := f.Op.Completed(context.Background(), "dev", id)
	if err != nil {
		t.Fatal(err)
	}
	return done, ok
}

// skips lists the skipped triggers in the log, "id why".
func skips(f *seattest.Fleet) []string {
	var all []string
	for _, r := range f.History(events.StreamFleet) {
		if e, is := r.Event.(events.TriggerSkipped); is {
			all = append(all, fmt.Sprintf("%s %s", e.EventID, e.Why))
		}
	}
	return all
}

// waiting counts dev's mail in the broker.
func waiting(t *testing.T, f *seattest.Fleet) uint64 {
	t.Helper()
	n, err := f.Conn.Stream(events.StreamMail).Subjects(context.Background(), f.Subjects.Mail("dev", events.Inbox))
	if err != nil {
		t.Fatal(err)
	}
	return n[f.Subjects.Mail("dev", events.Inbox)]
}

var errStale = errors.New("last proven too long ago")
