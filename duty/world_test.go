package duty_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

const ttl = 45 * time.Second

var usual = duty.Timings{Grace: 24 * time.Hour, Tick: 15 * time.Minute, Budget: 30 * time.Second, ResumeAfter: 15 * time.Minute}

// world is a fleet's log: in memory, inside a synctest bubble, or on real brokers.
type world struct {
	t        *testing.T
	store    broker.Store
	conn     *broker.Memory      // the same, when it is in memory
	peer     func() broker.Store // a connection of a node's own
	subjects events.Subjects
	op       *commands.Shell
	revision int
	boots    int
	mails    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	conn, err := broker.NewMemory(broker.Config{Prefix: "acme", LeaseTTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w := &world{t: t, store: conn, conn: conn, peer: func() broker.Store { return conn.Peer() }}
	w.begin()
	return w
}

// begin marks the streams.
func (w *world) begin() {
	w.t.Helper()
	w.subjects = w.store.Subjects()
	if _, err := (broker.Marks{Store: w.store, Source: "op:00000000"}).Mark(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.op = commands.New(broker.NewLog(w.store), w.subjects, "op:00000000")
}

func (w *world) incarnation(id string) events.Incarnation {
	w.boots++
	return events.Incarnation(fmt.Sprintf("%s:%08x", id, w.boots))
}

// apply makes the company exactly these seats. It registers nothing.
func (w *world) apply(handles ...string) {
	w.t.Helper()
	w.revision++
	c := events.CompanyApplied{Name: "Acme", Digest: fmt.Sprintf("d%d", w.revision)}
	for _, h := range handles {
		c.Seats = append(c.Seats, events.RosterSeat{Handle: h, AgentID: "agent-" + h})
	}
	if _, err := w.op.Apply(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) register(handles ...string) {
	w.t.Helper()
	for _, h := range handles {
		if err := w.op.Cursors(broker.NewMailboxes(w.store)).Register(w.t.Context(), h, "agent-"+h); err != nil {
			w.t.Fatal(err)
		}
	}
}

// pass lets the time of the bubble pass.
func (w *world) pass(d time.Duration) { <-time.After(d) }

// send stores mail for one subject of a seat and returns its event id.
func (w *world) send(handle string, box events.Mailbox) string {
	w.t.Helper()
	w.mails++
	id := fmt.Sprintf("%s-%s-%d", handle, box, w.mails)
	_, err := w.op.Send(w.t.Context(), events.Mail{Handle: handle, Mailbox: box, ID: id, Type: "task_assigned", Time: time.Now(), Data: []byte(`{}`)})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// kept counts what MAIL has for a seat.
func (w *world) kept(handle string) int {
	w.t.Helper()
	n := 0
	for _, box := range events.Mailboxes {
		counts, err := w.store.Stream(events.StreamMail).Subjects(w.t.Context(), w.subjects.Mail(handle, box))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, c := range counts {
			n += int(c)
		}
	}
	return n
}

// saga reads the newest retirement and the record of a seat's mailbox.
func (w *world) saga(handle string) (sagas.Retirement, aggregates.Mailbox) {
	w.t.Helper()
	s, box, err := w.op.RetirementNow(w.t.Context(), handle)
	if err != nil {
		w.t.Fatal(err)
	}
	return s, box
}

// events lists the wire names of what FLEET has of a seat's mailbox.
func (w *world) events(handle string) []string {
	w.t.Helper()
	var names []string
	info, err := w.store.Stream(events.StreamFleet).Info(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for seq := info.First; seq <= info.Last; seq++ {
		msg, err := w.store.Stream(events.StreamFleet).Get(w.t.Context(), seq)
		if err != nil {
			continue
		}
		if msg.Subject == w.subjects.Retirement(handle) || msg.Subject == w.subjects.MailboxRecord(handle) {
			names = append(names, msg.Header.Get(events.HeaderType))
		}
	}
	return names
}

// clocks are one node's, which a test may stop: a pause that no clock shows.
type clocks struct {
	mu      sync.Mutex
	behind  time.Duration
	stopped clock.Instant
}

func (c *clocks) now() clock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped
	}
	return clock.FromTime().Add(-c.behind)
}

func (c *clocks) stop() {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = now
}

func (c *clocks) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind, c.stopped = clock.FromTime().Raw-c.stopped.Raw, clock.Instant{}
}

// logged collects the names of log lines.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

// has says whether a line has all these parts.
func (l *logged) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				return false
			}
		}
		return true
	})
}

// node is a process with the duties of one node: the real ones, over the log in
// memory, on a connection and clocks of its own.
type node struct {
	w         *world
	conn      broker.Store
	faults    *broker.Faults     // of conn, when it is in memory
	self      events.Incarnation // of its retirements
	shell     *commands.Shell
	mail      *broker.Mailboxes
	logClock  *broker.LogClock
	clocks    *clocks
	log       *logged
	mailboxes *duty.Mailboxes

	behind bool         // it has not applied the newest revision
	broken error        // what reading the registry answers
	older  string       // a lease of a lower protocol
	asked  func(uint64) // told when that is asked for, and as of where
	cross  func(string) // told before and after everything that reaches the log
}

func (w *world) node(id string, timings duty.Timings) *node {
	w.t.Helper()
	n := &node{w: w, conn: w.peer(), self: w.incarnation(id), clocks: &clocks{}, log: &logged{}, cross: func(string) {}}
	if m, in := n.conn.(*broker.Memory); in {
		n.faults = m.Faults
	}
	n.mail = broker.NewMailboxes(n.conn)
	n.shell = commands.New(broker.NewLog(n.conn), w.subjects, n.self)
	n.logClock = broker.NewLogClock(n.conn.Stream(events.StreamFleet), n.clocks.now, ttl)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { n.sample(ctx) })
	w.t.Cleanup(func() { cancel(); running.Wait(); _ = n.conn.Close() })
	p := points{n}
	n.mailboxes = duty.NewMailboxes(duty.Config{NodeID: id, TTL: ttl, Protocol: 4}, timings, duty.MailboxesDeps{
		Self: n.self, Leases: p, Steps: p, Boxes: p, Mail: p, Fleet: n,
		Unseen: n.logClock.UnseenFor, Now: n.clocks.now, Log: slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	return n
}

// sample feeds the log clock as its Run does, only less often: days pass here.
func (n *node) sample(ctx context.Context) {
	tick := time.NewTicker(ttl / 4)
	defer tick.Stop()
	for {
		_ = n.logClock.Sample(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (n *node) tick() {
	n.w.t.Helper()
	if err := n.mailboxes.Tick(n.w.t.Context()); err != nil {
		n.w.t.Fatal(err)
	}
}

// ticks sweeps so often, a tick apart.
func (n *node) ticks(times int, every time.Duration) {
	n.w.t.Helper()
	for range times {
		n.w.pass(every)
		n.tick()
	}
}

// Roster implements duty.Fleet.
func (n *node) Roster(ctx context.Context) (duty.Roster, error) {
	if n.behind {
		return duty.Roster{}, errors.New("this node has not applied the newest revision")
	}
	msg, err := n.conn.Stream(events.StreamFleet).Last(ctx, n.w.subjects.Company())
	if err != nil {
		return duty.Roster{}, err
	}
	r, err := events.Decode(n.w.subjects, msg)
	if err != nil {
		return duty.Roster{}, err
	}
	out := duty.Roster{Company: "Acme", Position: r.Seq, Agents: map[string]string{}}
	for _, s := range r.Event.(events.CompanyApplied).Seats {
		out.Agents[s.Handle] = s.AgentID
	}
	return out, nil
}

// Records implements duty.Fleet.
func (n *node) Records(ctx context.Context) (all []events.Recorded, err error) {
	if n.broken != nil {
		return nil, n.broken
	}
	for _, filter := range []string{n.w.subjects.MailboxRecords(), n.w.subjects.Retirements()} {
		msgs, err := n.conn.Stream(events.StreamFleet).LastPerSubject(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, msg := range msgs {
			r, err := events.Decode(n.w.subjects, msg)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
	}
	return all, nil
}

// Listed implements duty.Fleet.
func (n *node) Listed(ctx context.Context, after, before uint64) (map[string]uint64, bool, error) {
	all := map[string]uint64{}
	for {
		msg, err := n.conn.Stream(events.StreamFleet).Next(ctx, n.w.subjects.Company(), after+1)
		if err != nil || msg.Seq >= before {
			return all, true, err
		}
		r, err := events.Decode(n.w.subjects, msg)
		if err != nil {
			return nil, false, err
		}
		for _, s := range r.Event.(events.CompanyApplied).Seats {
			all[s.Handle] = msg.Seq
		}
		after = msg.Seq
	}
}

// Mailed implements duty.Fleet.
func (n *node) Mailed(ctx context.Context, _ int) ([]string, error) {
	var all []string
	for _, box := range events.Mailboxes {
		counts, err := n.mail.Waiting(ctx, box)
		if err != nil {
			return nil, err
		}
		for handle := range counts {
			all = append(all, handle)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Older implements duty.Fleet.
func (n *node) Older(_ context.Context, upTo uint64) (string, error) {
	if n.asked != nil {
		n.asked(upTo)
	}
	return n.older, nil
}

// AgentID implements duty.Fleet.
func (n *node) AgentID(_, handle string) string { return "agent-" + handle }

// points tells the node's cross of everything that reaches the log: the places
// between which a process can be paused. What it sends afterwards goes out at
// once, whatever its timers would say: a paused process sends before they fire.
type points struct{ n *node }

func (p points) at(what string, do func() error) error {
	p.n.cross("before " + what)
	err := do()
	p.n.cross("after " + what)
	return err
}

func (p points) Claim(ctx context.Context, l events.Lease, c commands.Claim, unseen commands.Unseen) (t commands.Tenure, err error) {
	_ = p.at("claim", func() error { t, err = p.n.shell.Claim(context.WithoutCancel(ctx), l, c, unseen); return err })
	return t, err
}

func (p points) Renew(ctx context.Context, ts []commands.Tenure) []commands.Renewed {
	return p.n.shell.Renew(ctx, ts)
}

func (p points) Release(ctx context.Context, t commands.Tenure, reason events.Reason) error {
	return p.at("release", func() error { return p.n.shell.Release(context.WithoutCancel(ctx), t, reason) })
}

func (p points) Retire(ctx context.Context, handle string, command func(sagas.Retirement, aggregates.Mailbox) sagas.RetirementCommand) (s sagas.Retirement, err error) {
	_ = p.at("step", func() error { s, err = p.n.shell.Retire(context.WithoutCancel(ctx), handle, command); return err })
	return s, err
}

func (p points) RetirementNow(ctx context.Context, handle string) (sagas.Retirement, aggregates.Mailbox, error) {
	return p.n.shell.RetirementNow(context.WithoutCancel(ctx), handle)
}

func (p points) Register(ctx context.Context, handle, agentID string) error {
	return p.n.shell.Cursors(p.n.mail).Register(context.WithoutCancel(ctx), handle, agentID)
}

func (p points) Marks(ctx context.Context, handle string) (m events.Marks, err error) {
	_ = p.at("marks", func() error {
		m, err = p.n.shell.Cursors(p.n.mail).Marks(context.WithoutCancel(ctx), handle)
		return err
	})
	return m, err
}

func (p points) Empty(ctx context.Context, mail commands.Purger, s sagas.Retirement) error {
	return p.at("empty", func() error { return p.n.shell.Cursors(p.n.mail).Empty(context.WithoutCancel(ctx), mail, s) })
}

func (p points) Purge(ctx context.Context, handle string, box events.Mailbox, upTo uint64) error {
	return p.at("purge", func() error { return p.n.mail.Purge(context.WithoutCancel(ctx), handle, box, upTo) })
}

// discard is a log that nobody reads.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
