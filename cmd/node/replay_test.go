package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/badgerstore/badgertest"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
)

// pinned is a company whose seats may run nowhere but on those nodes.
func pinned(seats map[string]string) []byte {
	var b strings.Builder
	b.WriteString("company: {name: Acme}\nroles:\n")
	for handle, node := range seats {
		fmt.Fprintf(&b, "  - {handle: %s, placement: {node: %s}, runner: {echo: {}}}\n", handle, node)
	}
	return []byte(b.String())
}

// pastHandoffs hands a seat to and fro between two processes that are long gone
// once they have, by the commands that hosts give.
type pastHandoffs struct {
	handle string
	shells [2]*commands.Shell
	has    int // which of them has the seat
	held   commands.Tenure
}

// unheard: nothing has been seen for any time.
func unheard(uint64) (time.Duration, bool) { return 0, false }

func (p *pastHandoffs) claim(ctx context.Context, who int, saga string) (err error) {
	p.has = who
	p.held, err = p.shells[who].Claim(ctx, events.SeatLease(p.handle), commands.Claim{
		Preferred: p.shells[who].Self().NodeID(), TTL: minTTLSeconds * time.Second, Protocol: seat.Protocol, Saga: saga,
	}, unheard)
	if err != nil {
		return err
	}
	return p.shells[who].Established(ctx, p.held)
}

func (p *pastHandoffs) step(ctx context.Context, who int, command func(saga string, by events.Incarnation, l aggregates.Lease) sagas.HandoffCommand) (sagas.Handoff, error) {
	return p.shells[who].Handoff(ctx, p.handle, func(s sagas.Handoff, l aggregates.Lease) sagas.HandoffCommand {
		return command(s.ID(), p.shells[who].Self(), l)
	})
}

// handOver is one handoff from its request to its end.
func (p *pastHandoffs) handOver(ctx context.Context) error {
	from, to := p.has, 1-p.has
	type made = func(saga string, by events.Incarnation, l aggregates.Lease) sagas.HandoffCommand
	var saga string
	for _, one := range []struct {
		who  int
		make made
	}{
		{from, func(_ string, by events.Incarnation, l aggregates.Lease) sagas.HandoffCommand {
			return sagas.RequestHandoff{
				Handle: p.handle, From: by, To: p.shells[to].Self(), Reason: events.HandoffMove, By: "ops", Lease: l,
				Patience: sagas.DefaultPatience(minTTLSeconds*time.Second, time.Minute),
			}
		}},
		{to, func(saga string, by events.Incarnation, _ aggregates.Lease) sagas.HandoffCommand {
			return sagas.MarkWarmed{Saga: saga, By: by}
		}},
		{from, func(saga string, by events.Incarnation, _ aggregates.Lease) sagas.HandoffCommand {
			return sagas.MarkQuiesced{Saga: saga, By: by}
		}},
		{from, func(saga string, by events.Incarnation, _ aggregates.Lease) sagas.HandoffCommand {
			return sagas.MarkFlushed{Saga: saga, By: by}
		}},
		{from, func(saga string, by events.Incarnation, l aggregates.Lease) sagas.HandoffCommand {
			return sagas.ReleaseForHandoff{Saga: saga, By: by, Lease: l}
		}},
	} {
		s, err := p.step(ctx, one.who, one.make)
		if err != nil {
			return fmt.Errorf("%s at %q: %w", p.handle, s.Step(), err)
		}
		saga = s.ID()
	}
	if err := p.claim(ctx, to, saga); err != nil {
		return err
	}
	_, err := p.step(ctx, to, func(saga string, by events.Incarnation, l aggregates.Lease) sagas.HandoffCommand {
		return sagas.CompleteHandoff{Saga: saga, By: by, Lease: l, DarkFor: time.Millisecond}
	})
	return err
}

// handOffs makes so many handoffs, spread over the seats, and leaves the seats free.
func handOffs(t *testing.T, store broker.Store, seats []string, times int) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	for i, handle := range seats {
		p := &pastHandoffs{handle: handle}
		for k, self := range []events.Incarnation{"again:0000000a", "other:0000000b"} {
			p.shells[k] = commands.New(broker.NewLog(store), store.Subjects(), self)
		}
		g.Go(func() error {
			if err := p.claim(ctx, 0, ""); err != nil {
				return err
			}
			for n := i; n < times; n += len(seats) {
				if err := p.handOver(ctx); err != nil {
					return err
				}
			}
			return p.shells[p.has].Release(ctx, p.held, events.ReasonDrain)
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// longAgo makes so many handoffs on the twin, where that costs no disk, and writes
// them to a log that has nothing yet, where they stand at the same positions.
func longAgo(t *testing.T, store broker.Store, seats []string, times int) {
	t.Helper()
	twin, err := broker.NewMemory(broker.Config{Prefix: natstest.Prefix, LeaseTTL: store.LeaseTTL()})
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	handOffs(t, twin, seats, times)
	made, err := twin.Stream(events.StreamFleet).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var batch []events.Write
	for seq := uint64(1); seq <= made.Last; seq++ {
		msg, err := twin.Stream(events.StreamFleet).Get(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, events.Write{Subject: msg.Subject, Header: msg.Header, Data: msg.Data})
		if len(batch) == 250 || seq == made.Last {
			if last, err := store.Stream(events.StreamFleet).AppendBatch(t.Context(), batch); err != nil || last != seq {
				t.Fatalf("written up to %d of %d: %v", last, seq, err)
			}
			batch = nil
		}
	}
}

// logSource feeds one stream of a real broker to a store.
type logSource struct {
	store  broker.Store
	stream events.Stream
}

// Check implements badgerstore.Source.
func (s logSource) Check(ctx context.Context, _ badgerstore.Checkpoint) (string, error) {
	info, err := s.store.Stream(s.stream).Info(ctx)
	return info.CreatedAt.UTC().Format(time.RFC3339Nano), err
}

// Follow implements badgerstore.Source.
func (s logSource) Follow(ctx context.Context, from uint64, fn func(badgerstore.Batch) error) error {
	return broker.NewSource(s.store).Follow(ctx, s.stream, from, func(batch []events.Recorded, caughtUp bool) error {
		return fn(badgerstore.Batch{Events: batch, CaughtUp: caughtUp})
	})
}

// levelled reads the store of a node that has stopped on to the end of the log, and
// returns all its rows.
func levelled(t *testing.T, store broker.Store, dir string) (rows string) {
	t.Helper()
	views, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{Fleet: natstest.Prefix, Streams: followed, Logger: slogDiscard()})
	if err != nil {
		t.Fatal(err)
	}
	following, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for _, st := range followed {
		readers.Go(func() {
			if err := views.Project(following, logSource{store, st}, st); err != nil && following.Err() == nil {
				t.Error(err)
			}
		})
	}
	for _, st := range followed {
		info, err := store.Stream(st).Info(t.Context())
		if err == nil {
			err = views.AwaitPosition(t.Context(), st, info.Last)
		}
		if err != nil {
			t.Errorf("read %s to its end: %v", st, err)
		}
	}
	stop()
	readers.Wait()
	if err := views.Close(); err != nil {
		t.Error(err)
	}
	return badgertest.Dump(t, dir)
}

// recorder notes what is asked of the broker besides reading and appending.
type recorder struct {
	mu    sync.Mutex
	asked []string
}

var removal = regexp.MustCompile(`^\$JS\.API\.(STREAM\.(PURGE|MSG\.DELETE|DELETE|CREATE|UPDATE)|CONSUMER\.DELETE)\.`)

// record notes everything that removes or changes something, from now on. That a
// reader makes its own consumer anew is none of that.
func record(t *testing.T, url string) *recorder {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	r := &recorder{}
	_, err = nc.Subscribe("$JS.EVENT.ADVISORY.API", func(m *nats.Msg) {
		var asked struct{ Subject string }
		err := json.Unmarshal(m.Data, &asked)
		if own := strings.Contains(asked.Subject, ".follow-"); err != nil || !own && removal.MatchString(asked.Subject) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asked = append(r.asked, asked.Subject)
		}
	})
	if err = errors.Join(err, nc.Flush()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// TestCase30RebuiltNodeActsOnNothing: a node boots with an empty store on the
// history of a thousand handoffs (150 in short), to which a run of its own was a
// party, the last of them while another node looked on, and of twenty retirements, and
// has the duty that retires mailboxes. It reads all of it and does none of it again:
// what it writes is its presence, its duties and its marks, nothing is removed from
// any stream, and its rows are, byte for byte, those of the node that was there all
// along, and of a third that reads them afterwards (case 30, design §5, §7).
func TestCase30RebuiltNodeActsOnNothing(t *testing.T) {
	onlyInFull(t)
	t.Parallel()
	handoffs, lately, retirements := times(150, 1000), times(50, 200), 20
	brokers := natstest.R1(t)
	const ttl = 30 * time.Second // a retirement may take half of it, on any machine
	ours := brokers.Config()
	ours.LeaseTTL = ttl
	store, url := brokers.StoreWith(0, ours), brokers.Server(0).NodeURL()
	config := func(id string) Config {
		cfg := hostedConfig(t, id, url)
		cfg.Coordination.LeaseTTLSeconds = int(ttl.Seconds())
		cfg.Mailbox.Grace, cfg.Mailbox.Tick = 500*time.Millisecond, 100*time.Millisecond
		return cfg
	}
	var moved []string
	seats, left := map[string]string{"here": "live"}, map[string]string{"here": "live"}
	for i := range 20 {
		handle := fmt.Sprintf("moved-%02d", i)
		moved = append(moved, handle)
		seats[handle], left[handle] = "elsewhere", "elsewhere"
	}
	for i := range retirements {
		seats[fmt.Sprintf("gone-%02d", i)] = "elsewhere"
	}
	longAgo(t, store, moved, handoffs-lately)
	live := hostNode(t, config("live"), pinned(seats))
	eventually(t, time.Minute, "all mailboxes are registered, and its seat is held", func() bool {
		registered := 0
		err := live.view(func(r projections.Reader) error {
			page, err := r.Mailboxes("", projections.MaxPage)
			registered = len(page.Items)
			return err
		})
		return err == nil && registered == len(seats) && live.held() == 1
	})
	for i := range retirements {
		if err := post(t.Context(), live.shell, fmt.Sprintf("gone-%02d", i), "unread"); err != nil {
			t.Fatal(err)
		}
	}
	flow := live.flowTo(t, 50*time.Millisecond, "here")
	_, next, err := packCompany("company.yaml", pinned(left))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.shell.Apply(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	handOffs(t, store, moved, lately)
	eventually(t, time.Minute, "all of them are retired", func() bool {
		return live.logs.count(`msg=seat_mailbox_retired `) == retirements
	})
	flow.answered(t, live, time.Minute)
	live.stop()

	heads := map[events.Stream]broker.StreamInfo{}
	for _, st := range fleetStreams {
		info, err := store.Stream(st).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		heads[st] = info
	}
	asked := record(t, url)
	again := hostNode(t, config("again"), nil)
	select {
	case <-again.views.Ready():
	case <-time.After(time.Minute):
		t.Fatal("it has not read the log within a minute")
	}
	eventually(t, time.Minute, "it has the duty", func() bool { return again.logs.count(`msg=duty_claimed .*duty=maintenance`) > 0 })
	passes := time.NewTimer(3 * again.cfg.Seat.SweepInterval) // and 30 sweeps of mailboxes
	<-passes.C
	judgeRebuilt(t, again, heads, handoffs, retirements)
	if all := asked.all(); len(all) > 0 {
		t.Errorf("the broker was asked to remove or to change something: %q", all)
	}
	if err := store.Stream(events.StreamFleet).Purge(t.Context(), store.Subjects().Renewals(), 2); err != nil { // removes nothing
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "a purge would have been heard of", func() bool { return len(asked.all()) > 0 })
	audited(t, again.url())
	again.stop()

	rows := levelled(t, store, filepath.Join(again.cfg.DataDir, "badger"))
	if got := levelled(t, store, filepath.Join(live.cfg.DataDir, "badger")); got != rows {
		t.Errorf("the live node's rows differ from the rebuilt ones:\n%s", firstDifference(got, rows))
	}
	if got := levelled(t, store, t.TempDir()); got != rows {
		t.Errorf("a third rebuild differs from the rebuilt rows:\n%s", firstDifference(got, rows))
	}
	t.Logf("%d handoffs and %d retirements in %d events, rebuilt to %d rows", handoffs, retirements, heads[events.StreamFleet].Last, strings.Count(rows, "\n"))
}

// judgeRebuilt looks at what the node wrote since then, and at what it knows.
func judgeRebuilt(t *testing.T, h *hosted, then map[events.Stream]broker.StreamInfo, handoffs, retirements int) {
	t.Helper()
	for _, st := range fleetStreams {
		now, err := h.store.Stream(st).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if lost := then[st].Messages + now.Last - then[st].Last - now.Messages; lost != 0 {
			t.Errorf("%d messages of %s are gone", lost, st)
		}
		for seq := then[st].Last + 1; seq <= now.Last; seq++ {
			msg, err := h.store.Stream(st).Get(t.Context(), seq)
			if err != nil {
				t.Fatal(err)
			}
			if msg.Header.Get(events.HeaderType) == events.NameStreamMarked {
				continue
			}
			lease := events.Lease{}
			if r, err := events.Decode(h.store.Subjects(), msg); err == nil {
				switch e := r.Event.(type) {
				case events.LeaseClaimed:
					lease = e.Lease
				case events.LeaseRenewed:
					lease = e.Lease
				case events.NodeReported:
					lease = e.Lease
				}
			}
			if lease != events.NodeLease(h.cfg.Node.ID) && lease.Kind != events.KindWorker {
				t.Errorf("written to %s: %s %s", st, msg.Subject, msg.Data)
			}
		}
	}
	done := map[projections.SagaKind]int{}
	err := h.view(func(r projections.Reader) error {
		for before := uint64(0); ; {
			page, err := r.Sagas(projections.SagaFilter{}, before, projections.MaxPage)
			if err != nil {
				return err
			}
			for _, s := range page.Items {
				before = s.Requested
				if s.Open() {
					t.Errorf("%s is open", s.ID)
				}
				done[s.Kind]++
			}
			if !page.More {
				return nil
			}
		}
	})
	if err != nil || done[projections.SagaHandoff] != handoffs || done[projections.SagaRetirement] != retirements {
		t.Errorf("it knows of %v sagas, want %d handoffs and %d retirements: %v", done, handoffs, retirements, err)
	}
	if held := h.host.Held(); len(held) > 0 {
		t.Errorf("it runs %q", held)
	}
}

// firstDifference shows where two dumps part.
func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return as[i] + "\nagainst\n" + bs[i]
		}
	}
	return fmt.Sprintf("one has %d lines, the other %d", len(as), len(bs))
}
