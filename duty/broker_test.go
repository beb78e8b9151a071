package duty_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
)

// full runs the counts that the field cases ask for.
var full = os.Getenv("TENURE_CASES") == "full"

// answerLimit is how long brokers that are restarted may owe an answer.
const answerLimit = time.Minute

// onBrokers is a world on real brokers.
func onBrokers(t *testing.T, b *natstest.Brokers) *world {
	t.Helper()
	w := &world{t: t, store: b.Store(0), peer: func() broker.Store { return b.Store(1 % b.Len()) }}
	w.begin()
	return w
}

// sendMany stores so many mails, spread over the seats, and returns how many each
// got. A broker that is away is tried again.
func (w *world) sendMany(seats []string, mails int) map[string]int {
	w.t.Helper()
	g, ctx := errgroup.WithContext(w.t.Context())
	g.SetLimit(64)
	sent := map[string]int{}
	for i := range mails {
		handle := seats[i%len(seats)]
		sent[handle]++
		g.Go(func() error {
			m := events.Mail{
				Handle: handle, Mailbox: events.Mailboxes[i/len(seats)%len(events.Mailboxes)], ID: fmt.Sprint("e", i), Type: "task_assigned",
				Time: time.Now(), Data: []byte(`{}`),
			}
			for {
				_, err := w.op.Send(ctx, m)
				if err == nil || ctx.Err() != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		w.t.Fatal(err)
	}
	return sent
}

// keptOf counts what MAIL has for each seat. A broker that is away is asked again,
// for as long as a test may take.
func (w *world) keptOf() map[string]int {
	w.t.Helper()
	kept := map[string]int{}
	for _, box := range events.Mailboxes {
		counts, err := broker.NewMailboxes(w.store).Waiting(w.t.Context(), box)
		for end := time.Now().Add(answerLimit); errors.Is(err, events.ErrUnavailable) && time.Now().Before(end); {
			counts, err = broker.NewMailboxes(w.store).Waiting(w.t.Context(), box)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		for handle, n := range counts {
			kept[handle] += int(n)
		}
	}
	return kept
}

// TestCase21RetiredSeatsGoToZero proves on three servers that the mail of ten
// retired seats of fifty goes to zero, while servers are restarted in between,
// and that the other forty lose nothing.
func TestCase21RetiredSeatsGoToZero(t *testing.T) {
	t.Parallel()
	mails, restarts := 5_000, 1
	if full {
		mails, restarts = 150_000, 3
	}
	b := natstest.R3(t)
	w := onBrokers(t, b)
	var seats []string
	for i := range 50 {
		seats = append(seats, fmt.Sprintf("seat-%02d", i))
	}
	all := make([]commands.Registration, 0, len(seats))
	for _, s := range seats {
		all = append(all, commands.Registration{Handle: s, AgentID: "agent-" + s})
	}
	for i, err := range w.op.Cursors(broker.NewMailboxes(w.store)).RegisterAll(t.Context(), all) {
		if err != nil {
			t.Fatalf("register %s: %v", seats[i], err)
		}
	}
	w.apply(seats...)
	began := time.Now()
	sent := w.sendMany(seats, mails)
	gone, stay := seats[:10], seats[10:]
	w.apply(stay...)
	n := w.node("a", duty.Timings{Grace: time.Second, Tick: 100 * time.Millisecond, Budget: 30 * time.Second, ResumeAfter: 10 * time.Second})
	t.Logf("%d mails sent in %v", mails, time.Since(began))
	began = time.Now()
	deadline := began.Add(3 * time.Minute)
	for round := 0; ; round++ {
		n.tick()
		kept := w.keptOf()
		if !slices.ContainsFunc(gone, func(s string) bool { return kept[s] > 0 }) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("retired seats still have mail: %v", kept)
		}
		if i := round / 2; round%2 == 0 && i < restarts { // while retirements are under way
			b.Stop(i)
			n.tick()
			b.Start(i)
		}
	}
	t.Logf("%d seats retired, over %d restarts, in %v", len(gone), restarts, time.Since(began))
	kept := w.keptOf()
	for _, s := range stay {
		if kept[s] != sent[s] {
			t.Errorf("%s has %d of %d mails", s, kept[s], sent[s])
		}
	}
}

// fold reads records.
func fold(records []events.Recorded) map[string]aggregates.Mailbox {
	all := map[string]aggregates.Mailbox{}
	for _, r := range records {
		if e, is := r.Event.(events.MailboxRegistered); is {
			all[e.Handle] = aggregates.EvolveMailbox(aggregates.Mailbox{}, r.Seq, e)
		}
	}
	return all
}

// TestRegisterManySeats proves U1 at scale: mailboxes are registered in batches,
// again is free, nothing but messages is left at the broker, and each seat can be
// taken over. CI registers 1,000; the full count is 10,000.
func TestRegisterManySeats(t *testing.T) {
	t.Parallel()
	seats := 1_000
	if full {
		seats = 10_000
	}
	b := natstest.R1(t)
	w := onBrokers(t, b)
	cursors := w.op.Cursors(broker.NewMailboxes(w.store))
	all := make([]commands.Registration, seats)
	for i := range all {
		all[i] = commands.Registration{Handle: fmt.Sprintf("s-%d", i), AgentID: fmt.Sprint("a", i)}
	}
	// hints are what a node reads for many in a few requests.
	hints := func() {
		t.Helper()
		records := must((&node{w: w, conn: w.store}).Records(t.Context()))
		known := fold(records)
		cursors := must(w.store.Stream(events.StreamCursor).Subjects(t.Context(), w.subjects.Cursors()))
		for i := range all {
			all[i].Known, all[i].HasCursors = known[all[i].Handle], cursors[w.subjects.Cursor(all[i].Handle, events.Reflect)] > 0
		}
	}
	register := func() time.Duration {
		t.Helper()
		began := time.Now()
		hints()
		for chunk := range slices.Chunk(all, 1000) {
			for i, err := range cursors.RegisterAll(t.Context(), chunk) {
				if err != nil {
					t.Fatalf("register %s: %v", chunk[i].Handle, err)
				}
			}
		}
		return time.Since(began)
	}
	first := register()
	records, err := (&node{w: w, conn: w.store}).Records(context.WithoutCancel(t.Context()))
	if err != nil || len(records) != seats {
		t.Fatalf("%d records of %d: %v", len(records), seats, err)
	}
	again := register() // as another node does that boots
	t.Logf("%d seats: registered in %v, found registered in %v", seats, first, again)
	info := must(w.store.Stream(events.StreamFleet).Info(t.Context()))
	if got := must(w.store.Stream(events.StreamCursor).Subjects(t.Context(), w.subjects.Cursors())); len(got) != 3*seats || info.Messages > uint64(seats)+20 {
		t.Errorf("%d cursors and %d messages in FLEET for %d seats", len(got), info.Messages, seats)
	}
	for _, st := range []events.Stream{events.StreamFleet, events.StreamMail, events.StreamCursor} {
		if n := b.Consumers(t, b.Config(), st); n > 0 {
			t.Errorf("%d consumers on %s: an object at the broker for seats that nobody runs", n, st)
		}
	}
}
