package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/turn"
)

// mailFleet is a fresh set of streams with the seats dev, dev-2 and ops.
type mailFleet struct {
	t     *testing.T
	kind  string // memory, R1, R3
	store broker.Store
	open  func() broker.Store // one more connection
	op    *commands.Shell
	boots int

	sever     func(broker.Store) // breaks that connection; nil where a test cannot
	consumers func() int         // of MAIL
}

// contract is what mailboxes must do on every store: a test that passes on the
// twin says something about production. What takes many backoffs runs in bubbles
// on the twin, in the other tests of this package.
var contract = []struct {
	name string
	run  func(t *testing.T, f *mailFleet)
	r3   bool // in the shortest sound form
}{
	{"Case23DetachKeepsMail", contractDetach, true},
	{"Case23EveryDetach", contractEveryDetach, true},
	{"NakBehindNewerMail", contractNak, false},
	{"DeferUntilRenewed", contractDefer, false},
	{"NamedHolds", contractNamedHolds, false},
	{"HoldBehindRun", contractHold, true},
	{"Schedule17HeldByAnEndedRun", contractHeldByEndedRun, true},
	{"Case25BudgetSpentByCrashes", contractBudget, true},
	{"ReplayAndDrop", contractReplayAndDrop, true},
	{"LostWakeUp", contractLostWakeUp, false},
	{"Partitions", contractPartitions, true},
	{"UnfinishedBatchAsItWas", contractUnfinishedBatch, false},
	{"SinglesAfterTwoFailures", contractSingles, false},
	{"Case1FormerHolder", contractFormerHolder, true},
	{"Case2MailBeforeTheMailbox", contractMailBeforeMailbox, false},
	{"NeighboursWithOnePrefix", contractNeighbours, false},
	{"CursorAtItsBound", contractBound, false},
	{"Case24BadMail", contractBadMail, false},
}

func TestMailboxContract(t *testing.T) {
	for kind, of := range map[string]func(t *testing.T) func(t *testing.T) *mailFleet{
		"memory": func(*testing.T) func(t *testing.T) *mailFleet { return twinMail },
		"R1":     func(t *testing.T) func(t *testing.T) *mailFleet { return brokerMail(natstest.R1(t), "R1") },
		"R3":     func(t *testing.T) func(t *testing.T) *mailFleet { return brokerMail(natstest.R3(t), "R3") },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			fresh := of(t)
			for _, c := range contract {
				if kind != "R3" || c.r3 {
					t.Run(c.name, func(t *testing.T) { c.run(t, fresh(t)) })
				}
			}
		})
	}
}

func twinMail(t *testing.T) *mailFleet {
	t.Helper()
	m, err := broker.NewMemory(broker.Config{Prefix: "crewlet", LeaseTTL: deskTTL})
	if err != nil {
		t.Fatal(err)
	}
	f := &mailFleet{t: t, kind: "memory", store: m, open: func() broker.Store { return m.Peer() }, consumers: func() int { return 0 }}
	f.sever = func(conn broker.Store) { conn.(*broker.Memory).Faults.CutOff(true) }
	t.Cleanup(func() { _ = m.Close() })
	return f.found()
}

// mailPrefixes gives each fleet of one server streams of its own.
var mailPrefixes atomic.Int64

func brokerMail(b *natstest.Brokers, kind string) func(t *testing.T) *mailFleet {
	return func(t *testing.T) *mailFleet {
		t.Helper()
		cfg := b.Config()
		cfg.Prefix, cfg.LeaseTTL = fmt.Sprintf("m%d", mailPrefixes.Add(1)), deskTTL
		n := 0
		f := &mailFleet{t: t, kind: kind}
		f.open = func() broker.Store {
			n++
			store := b.StoreWith(n%b.Len(), cfg)
			t.Cleanup(func() { _ = store.Close() })
			return store
		}
		f.store = f.open()
		f.consumers = func() int { return b.Consumers(t, cfg, events.StreamMail) }
		if b.Len() == 1 {
			f.sever = func(broker.Store) { // and every other one; the others come back
				b.Stop(0)
				b.Start(0)
				f.until("the broker answers again", func() bool {
					_, err := f.store.Stream(events.StreamMail).Info(t.Context())
					return err == nil
				})
			}
		}
		return f.found()
	}
}

// found marks the streams and registers the seats.
func (f *mailFleet) found() *mailFleet {
	f.t.Helper()
	if _, err := (broker.Marks{Store: f.store, Source: "op:00000000"}).Mark(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.op = commands.New(seattest.NewLog(f.store), f.store.Subjects(), "op:00000000")
	f.register("dev", "dev-2", "ops")
	return f
}

func (f *mailFleet) register(handles ...string) {
	f.t.Helper()
	cursors := f.op.Cursors(broker.NewMailboxes(f.store))
	for _, handle := range handles {
		if err := cursors.Register(f.t.Context(), handle, "agent-"+handle); err != nil {
			f.t.Fatal(err)
		}
	}
}

// boot starts a process that has not the seat yet.
func (f *mailFleet) boot(handle string, a *agent, changes ...func(*turn.Worker)) *station {
	f.t.Helper()
	f.boots++
	return stationOf(f.t, f.open(), events.Incarnation(fmt.Sprintf("n:%08x", f.boots)), handle, a, changes...)
}

// sit boots a process that holds the seat and reads its inbox.
func (f *mailFleet) sit(handle string, a *agent, changes ...func(*turn.Worker)) *station {
	f.t.Helper()
	s := f.boot(handle, a, changes...)
	s.hold()
	s.attach()
	f.t.Cleanup(func() { s.detach(false) })
	s.admit(nil)
	return s
}

func (f *mailFleet) send(handle, conversation string, ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		m := events.Mail{Handle: handle, Mailbox: events.Inbox, ID: id, Type: events.TaskAssigned, Conversation: conversation, Time: time.Now(), Data: json.RawMessage(`{"n":1}`)}
		if _, err := f.op.Send(f.t.Context(), m); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *mailFleet) cursor(handle string) events.CursorSnapshot {
	f.t.Helper()
	msg, err := f.store.Stream(events.StreamCursor).Last(context.WithoutCancel(f.t.Context()), f.store.Subjects().Cursor(handle, events.Inbox))
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := events.Decode(f.store.Subjects(), msg)
	if err != nil {
		f.t.Fatal(err)
	}
	_, _, snapshot := r.Event.(events.CursorEvent).Cursor()
	return snapshot
}

// kept counts the seat's mail in the broker.
func (f *mailFleet) kept(handle string) int {
	f.t.Helper()
	subject := f.store.Subjects().Mail(handle, events.Inbox)
	n, err := f.store.Stream(events.StreamMail).Subjects(f.t.Context(), subject)
	if err != nil {
		f.t.Fatal(err)
	}
	return int(n[subject])
}

func (f *mailFleet) parked(handle string) []events.Recorded {
	f.t.Helper()
	var all []events.Recorded
	stream, filter := f.store.Stream(events.StreamDead), f.store.Subjects().Dead(handle, "*")
	for from := uint64(1); ; from = all[len(all)-1].Seq + 1 {
		msg, err := stream.Next(f.t.Context(), filter, from)
		if errors.Is(err, events.ErrNotFound) {
			return all
		}
		if err != nil {
			f.t.Fatal(err)
		}
		r, err := events.Decode(f.store.Subjects(), msg)
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, r)
	}
}

// until waits for what must come to be, or fails.
func (f *mailFleet) until(what string, ok func() bool) {
	f.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			f.t.Fatalf("it did not come to this: %s", what)
		}
	}
}

// ran waits until these turns were run, each written with its events joined by +,
// and no others.
func (f *mailFleet) ran(a *agent, turns ...string) {
	f.t.Helper()
	f.until(fmt.Sprintf("%q", turns), func() bool { return len(a.turns()) >= len(turns) })
	if got := a.turns(); !slices.Equal(got, turns) {
		f.t.Fatalf("ran %q, want %q", got, turns)
	}
}

// settled waits until nothing of the seat's mail is open or kept.
func (f *mailFleet) settled(handle string) {
	f.t.Helper()
	f.until("all mail of "+handle+" settled and purged", func() bool { return len(f.cursor(handle).Open) == 0 && f.kept(handle) == 0 })
}

// turns lists the events of each turn, joined by +, in the order of the runs.
func (a *agent) turns() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, r := range a.runs {
		ids := make([]string, len(r.Events))
		for i, e := range r.Events {
			ids[i] = e.ID
		}
		all = append(all, strings.Join(ids, "+"))
	}
	return all
}
