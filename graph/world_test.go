package graph_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// start is the stamp of sequence 0 in every test's log.
var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	nodeA = events.Incarnation("node-a:0000000a") // lives, and answers
	nodeB = events.Incarnation("node-b:0000000b") // lapsed
	nodeC = events.Incarnation("node-c:0000000c") // nobody can tell
)

// world is everything around the API, in memory.
type world struct {
	mu     sync.Mutex
	rows   rowstest.Memory
	seq    map[events.Stream]uint64
	copies map[events.Stream]projections.Copy
	views  int   // how many snapshots were taken
	closed error // what View answers instead of a snapshot

	lives   map[events.Incarnation]graph.Liveness
	expires func(events.Lease, uint64) (time.Time, error)

	company    *company.Company
	applied    []applyAsked
	apply      graph.Applied
	applyErr   error
	companyErr error

	sent    []events.Mail
	sendErr error
	done    map[string]projections.Completion // by handle/event id
	changed chan struct{}                     // closed and replaced when done changes

	acts    []graph.Act // what was asked of the operator, and
	ops     []graph.Operation
	operate func(graph.Operation) (graph.Done, error)

	held     []string
	unproven map[string]time.Duration
	notReady []string

	readers  atomic.Int32 // calls of a Reader under way
	overlaps atomic.Int32 // how often there were two

	beforeBounds func(events.Stream) // what happens to the log before it is measured
	afterBounds  func(events.Stream) // and after
	streams      map[events.Stream][]events.Message
	first        map[events.Stream]uint64
	readErr      error

	logged *logBook
}

func newWorld() *world {
	return &world{
		rows: rowstest.Memory{}, seq: map[events.Stream]uint64{},
		copies:  map[events.Stream]projections.Copy{},
		lives:   map[events.Incarnation]graph.Liveness{nodeA: graph.Live, nodeB: graph.Lapsed},
		done:    map[string]projections.Completion{},
		changed: make(chan struct{}),
		streams: map[events.Stream][]events.Message{}, first: map[events.Stream]uint64{},
		logged: &logBook{},
	}
}

func (w *world) deps(t testing.TB) graph.Deps {
	t.Helper()
	subjects, err := events.NewSubjects("crewlet")
	if err != nil {
		t.Fatal(err)
	}
	return graph.Deps{
		Node: "node-a", Self: nodeA, LeaseTTL: 45 * time.Second, Subjects: subjects,
		Views: w, Leases: w, Company: companyOf{w}, Mail: w, Inboxes: mailroom{}, Completions: w, Host: w, Readiness: w, Events: w, Operator: w, Mailboxes: w,
		Now:      func() time.Time { return start.Add(time.Hour) },
		SpoolDir: t.TempDir(), Log: slog.New(w.logged),
	}
}

// add appends events to a stream and to the rows, a second apart.
func (w *world) add(t testing.TB, st events.Stream, es ...events.Event) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range es {
		w.seq[st]++
		r := events.Recorded{Stream: st, Seq: w.seq[st], At: start.Add(time.Duration(w.seq[st]) * time.Second), Event: e}
		if err := projections.Apply(w.rows, r); err != nil {
			t.Fatal(err)
		}
	}
	w.copies[st] = projections.Copy{Stream: st, State: projections.CopyCurrent, Position: w.seq[st], LagKnown: true}
}

// View locks the rows for as long as it runs, as a snapshot would keep them.
func (w *world) View(_ context.Context, fn func(projections.Reader) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views++
	if w.closed != nil {
		return w.closed
	}
	return fn(served{projections.NewView(w.rows), w})
}

func (w *world) Copy(st events.Stream) projections.Copy { return w.copies[st] }

// served refuses to read copies that are not to be trusted, as a store does.
type served struct {
	projections.View
	w *world
}

func (s served) refused(st events.Stream) error {
	if s.w.readers.Add(1) > 1 {
		s.w.overlaps.Add(1)
	}
	runtime.Gosched() // whoever may come in between does
	s.w.readers.Add(-1)
	switch c := s.w.copies[st]; c.State {
	case projections.CopyRebuilding, projections.CopyOutOfService:
		return &projections.NotServedError{Stream: st, State: c.State, Why: c.Why}
	default:
		return nil
	}
}

func (s served) AsOf() (projections.AsOf, error) {
	if err := s.refused(events.StreamFleet); err != nil {
		return projections.AsOf{}, err
	}
	return s.View.AsOf()
}

func (s served) Fleet() (projections.Fleet, error) {
	if err := s.refused(events.StreamFleet); err != nil {
		return projections.Fleet{}, err
	}
	return s.View.Fleet()
}

func (s served) Seat(handle string) (projections.Seat, bool, error) {
	if err := s.refused(events.StreamFleet); err != nil {
		return projections.Seat{}, false, err
	}
	return s.View.Seat(handle)
}

func (s served) Seats(f projections.SeatFilter, after string, limit int) (projections.Page[projections.Seat], error) {
	if err := s.refused(events.StreamFleet); err != nil {
		return projections.Page[projections.Seat]{}, err
	}
	return s.View.Seats(f, after, limit)
}

func (s served) Tenures(f projections.TenureFilter, before uint64, limit int) (projections.Page[projections.Tenure], error) {
	if err := s.refused(events.StreamFleet); err != nil {
		return projections.Page[projections.Tenure]{}, err
	}
	return s.View.Tenures(f, before, limit)
}

func (s served) Completion(handle, id string) (projections.Completion, bool, error) {
	if err := s.refused(events.StreamWork); err != nil {
		return projections.Completion{}, false, err
	}
	return s.View.Completion(handle, id)
}

func (w *world) Liveness(owner events.Incarnation) graph.Liveness { return w.lives[owner] }

func (w *world) Expires(_ context.Context, l events.Lease, epoch uint64) (time.Time, error) {
	if w.expires != nil {
		return w.expires(l, epoch)
	}
	return start.Add(time.Hour + time.Duration(epoch)*time.Minute), nil
}

// applyAsked is what an apply was asked for with.
type applyAsked struct {
	by       graph.Act
	document string
	expected *uint64
	dry      bool
}

type companyOf struct{ w *world }

func (c companyOf) Company(context.Context) (company.Company, bool, error) {
	if c.w.companyErr != nil || c.w.company == nil {
		return company.Company{}, false, c.w.companyErr
	}
	return *c.w.company, true, nil
}

func (c companyOf) Apply(_ context.Context, by graph.Act, document string, expected *uint64, dry bool) (graph.Applied, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.applied = append(c.w.applied, applyAsked{by, document, expected, dry})
	return c.w.apply, c.w.applyErr
}

func (c companyOf) Document(_ context.Context, position uint64) (string, error) {
	return fmt.Sprintf("# the document at %d\n", position), nil
}

func (w *world) Send(_ context.Context, m events.Mail) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m)
	close(w.changed)
	w.changed = make(chan struct{})
	return uint64(len(w.sent)), w.sendErr
}

func (w *world) complete(handle, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[handle+"/"+id] = projections.Completion{
		Handle: handle, EventID: id, EventIDs: []string{id}, WorkKey: "key", Epoch: 2, Owner: nodeA,
		Outcome: events.OutcomeDone, Attempts: 1, Reply: []byte(`{"a":"<&>"}`), ReplyBytes: 11, At: start,
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) Await(ctx context.Context, handle, id string) (projections.Completion, error) {
	for {
		w.mu.Lock()
		c, ok := w.done[handle+"/"+id]
		changed, closed := w.changed, w.closed
		w.mu.Unlock()
		if ok || closed != nil {
			return c, closed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return projections.Completion{}, context.Cause(ctx)
		}
	}
}

func (w *world) Operate(_ context.Context, by graph.Act, op graph.Operation) (graph.Done, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts, w.ops = append(w.acts, by), append(w.ops, op)
	if w.operate != nil {
		return w.operate(op)
	}
	return graph.Done{Position: 18446744073709551615}, nil
}

func (w *world) Held() []string                     { return w.held }
func (w *world) Unproven() map[string]time.Duration { return w.unproven }
func (w *world) NotReady() []string                 { return w.notReady }

// store keeps messages of a stream for /events and wakes its followers.
func (w *world) store(st events.Stream, ms ...events.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams[st] = append(w.streams[st], ms...)
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) Bounds(_ context.Context, st events.Stream) (graph.Bounds, error) {
	if w.beforeBounds != nil {
		w.beforeBounds(st)
	}
	if w.afterBounds != nil {
		defer w.afterBounds(st)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := graph.Bounds{CreatedAt: start, First: max(w.first[st], 1)}
	for _, m := range w.streams[st] {
		b.Last = m.Seq
	}
	return b, w.readErr
}

func (w *world) Follow(ctx context.Context, st events.Stream, from uint64, fn func([]events.Message, bool) error) error {
	for {
		w.mu.Lock()
		batch := slices.DeleteFunc(slices.Clone(w.streams[st]), func(m events.Message) bool { return m.Seq < from })
		changed := w.changed
		w.mu.Unlock()
		if err := fn(batch, true); err != nil {
			return err
		}
		if len(batch) > 0 {
			from = batch[len(batch)-1].Seq + 1
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// logBook keeps the names of what was logged.
type logBook struct {
	mu    sync.Mutex
	names []string
}

func (l *logBook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logBook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logBook) WithGroup(string) slog.Handler            { return l }

func (l *logBook) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, r.Message)
	return nil
}

func (l *logBook) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.names, name)
}

func claim(l events.Lease, epoch uint64, owner events.Incarnation, facts *events.NodeFacts) events.LeaseClaimed {
	return events.LeaseClaimed{Lease: l, Epoch: epoch, Owner: owner, TTL: 45000, Protocol: 4, Preferred: owner.NodeID(), Node: facts}
}

func claimSeat(handle string, epoch uint64, owner events.Incarnation) events.LeaseClaimed {
	return claim(events.SeatLease(handle), epoch, owner, nil)
}

func companyWith(revision uint64, seats ...events.RosterSeat) events.CompanyApplied {
	e := events.CompanyApplied{Revision: revision, Name: "Acme", Digest: fmt.Sprint("d", revision)}
	for _, s := range seats {
		s.AgentID, s.Title = "agent-"+s.Handle, "Title of "+s.Handle
		e.Seats = append(e.Seats, s)
	}
	return e
}

// acme is a fleet in which every state occurs: a node of each kind, and a seat
// for each way a seat can be.
func acme(t testing.TB) *world {
	t.Helper()
	w := newWorld()
	seats := []events.RosterSeat{
		{Handle: "ada"}, {Handle: "bob"}, {Handle: "cat"},
		{Handle: "dan", Node: "node-b"}, {Handle: "eve", Node: "node-c"}, {Handle: "fay"},
		{Handle: "gil", Labels: map[string]string{"zone": "moon"}}, {Handle: "hal"},
	}
	w.add(t, events.StreamFleet,
		companyWith(1, append(seats, events.RosterSeat{Handle: "ian"})...),
		claim(events.NodeLease("node-a"), 1, nodeA, &events.NodeFacts{Roles: []string{"seats", "api"}, Labels: map[string]string{"zone": "a", "disk": "big"}}),
		claim(events.NodeLease("node-b"), 3, nodeB, nil),
		claim(events.NodeLease("node-c"), 1, nodeC, &events.NodeFacts{Roles: []string{"seats"}}),
		claim(events.NodeLease("node-d"), 1, "node-d:0000000d", nil),
		events.LeaseReleased{Lease: events.NodeLease("node-d"), Epoch: 1, Owner: "node-d:0000000d", Reason: events.ReasonDrain},
		claimSeat("ada", 1, nodeB), // 7
		events.LeaseReleased{Lease: events.SeatLease("ada"), Epoch: 1, Owner: nodeB, Reason: events.ReasonRebalance},
		claimSeat("ada", 2, nodeA), // 9
		events.SeatEstablished{Handle: "ada", Epoch: 2, Owner: nodeA},
		claimSeat("bob", 1, nodeB), // 11, taken over below
		claimSeat("bob", 2, nodeA),
		claimSeat("dan", 1, nodeB), // 13
		events.SeatEstablished{Handle: "dan", Epoch: 1, Owner: nodeB},
		claimSeat("fay", 1, nodeC), // 15
		events.SeatEstablished{Handle: "fay", Epoch: 1, Owner: nodeC},
		claimSeat("hal", 1, nodeB), // 17
		claimSeat("cat", 1, nodeB),
		events.LeaseFenced{Lease: events.SeatLease("cat"), Epoch: 1, Owner: nodeB, Reason: "stuck", By: "ops"},
		companyWith(2, seats...),   // 20: without ian
		claimSeat("ian", 1, nodeA), // its mailbox is being retired (O2)
	)
	w.add(t, events.StreamWork, events.TurnCompleted{
		Handle: "ada", EventID: "mail-1", EventIDs: []string{"mail-1", "mail-2"}, WorkKey: "key", Epoch: 2, Owner: nodeA,
		Outcome: events.OutcomeDone, Attempts: 2, Reply: []byte(`{"ok":"<&>","n":12345678901234567890}`),
	})
	c, err := company.Parse("company.yaml", []byte(`
company: {name: Acme}
roles:
  - {handle: ada, title: Engineer, kind: agent, runner: {echo: {}}}
  - {handle: bob, title: Engineer, kind: agent, runner: {echo: {}}}
  - {handle: zoe, title: Founder, kind: human}
`))
	if err != nil {
		t.Fatal(err)
	}
	w.company = &c
	return w
}

// await returns when cond holds, which is looked at whenever the world may have
// changed, or fails the test.
func (w *world) await(t testing.TB, cond func() bool) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		w.mu.Lock()
		ok := cond()
		changed := w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("the world has not come to be so")
		}
	}
}
