package duty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// Timings of retirements.
type Timings struct {
	Grace       time.Duration // of observed absence, before a mailbox is retired (R1)
	Tick        time.Duration // between two judgements, for the estimate of when alone
	Budget      time.Duration // of one retirement; never longer than half a TTL (R6)
	ResumeAfter time.Duration // a mark that has not moved for so long was left (R8)
}

// Patience is how long who adds a seat back waits for a mark before it takes the
// retirement over (R8).
func (t Timings) Patience() time.Duration { return 2 * t.Budget }

// Roster is the company as it is: the newest revision of the log, on a node that
// has applied it.
type Roster struct {
	Company  string
	Position uint64            // of the revision
	Agents   map[string]string // agent id by handle
}

// Steps writes the steps of retirements; *commands.Shell does.
type Steps interface {
	Retire(ctx context.Context, handle string, command func(sagas.Retirement, aggregates.Mailbox) sagas.RetirementCommand) (sagas.Retirement, error)
	RetirementNow(ctx context.Context, handle string) (sagas.Retirement, aggregates.Mailbox, error)
}

// Boxes writes mailboxes; *commands.Cursors does.
type Boxes interface {
	Register(ctx context.Context, handle, agentID string) error
	Marks(ctx context.Context, handle string) (events.Marks, error)
	Empty(ctx context.Context, mail commands.Purger, s sagas.Retirement) error
}

// Fleet is what a sweep reads. An error leaves it unknown: nothing is judged (R5).
type Fleet interface {
	// Roster fails on a node that has not applied the newest revision.
	Roster(ctx context.Context) (Roster, error)
	// Records reads the newest record and the newest retirement of every mailbox. It
	// may lag: what is judged by it is a compare-and-set.
	Records(ctx context.Context) ([]events.Recorded, error)
	// Listed returns the seats of the revisions strictly between two positions, each
	// with the newest position that has it, and false when there are more revisions
	// than are looked through.
	Listed(ctx context.Context, after, before uint64) (map[string]uint64, bool, error)
	// Mailed returns the handles that mail is kept for, at most that many.
	Mailed(ctx context.Context, limit int) ([]string, error)
	// Older names a live lease of a lower protocol than this build's, "" for none, as
	// of a position in FLEET or later; 0 is whatever this node has read.
	Older(ctx context.Context, upTo uint64) (string, error)
	// AgentID is the id of the agent that works on a seat of that company (G1).
	AgentID(company, handle string) string
}

// MailboxesDeps are the parts that retirements work with. Leases, Steps and Boxes
// write as Self, which is nobody else: neither the node's seats nor its duties.
type MailboxesDeps struct {
	Self   events.Incarnation
	Leases Leases
	Steps  Steps
	Boxes  Boxes
	Mail   commands.Purger
	Fleet  Fleet
	Unseen commands.Unseen
	Now    clock.Source
	Log    *slog.Logger
}

// Mailboxes judges which mailboxes are absent, and retires those that are due.
type Mailboxes struct {
	cfg     Config
	timings Timings
	deps    MailboxesDeps
	log     *slog.Logger

	mu   sync.Mutex           // one sweep or one operator's retirement at a time; guards what follows
	seen map[string]*sighting // by handle: open retirements
	told bool                 // that another node has another grace
}

// sighting is what this process saw of one retirement.
type sighting struct {
	last  uint64        // its newest event
	since clock.Instant // when that was first seen here
	own   clock.Instant // when this process's own tick was stored, if last is one
}

// NewMailboxes returns the retirements of a node.
func NewMailboxes(cfg Config, timings Timings, deps MailboxesDeps) *Mailboxes {
	return &Mailboxes{
		cfg: cfg, timings: timings, deps: deps, log: deps.Log.With(keyNode, cfg.NodeID), seen: map[string]*sighting{},
	}
}

// mailbox is one mailbox as a sweep found it.
type mailbox struct {
	record aggregates.Mailbox
	saga   sagas.Retirement
}

// Tick is one sweep (R3, R4). It judges nothing unless it knows the company's
// newest revision and the registry (R5).
func (m *Mailboxes) Tick(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	roster, err := m.deps.Fleet.Roster(ctx)
	if err != nil {
		m.log.Warn(logNotJudged, keyReason, "the company's revision", keyErr, err)
		return nil
	}
	records, err := m.deps.Fleet.Records(ctx)
	if err != nil {
		m.log.Warn(logNotJudged, keyReason, "the registry", keyErr, err)
		return nil
	}
	boxes := fold(records)
	m.discover(ctx, roster, boxes)
	back, err := m.back(ctx, roster, boxes)
	if err != nil {
		m.log.Warn(logNotJudged, keyReason, "the revisions since the last tick", keyErr, err)
		return nil
	}
	for _, handle := range slices.Sorted(maps.Keys(boxes)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := m.judge(ctx, roster, handle, boxes[handle], back(handle)); err != nil {
			m.log.Warn(logNotJudged, keySeat, handle, keyErr, err)
		}
	}
	m.forget(boxes)
	return nil
}

// fold puts records and retirements together.
func fold(records []events.Recorded) map[string]mailbox {
	all := map[string]mailbox{}
	for _, r := range records {
		switch e := r.Event.(type) {
		case events.RetirementEvent:
			b := all[e.Retirement().Handle]
			b.saga = sagas.EvolveRetirement(b.saga, r.Seq, e)
			all[e.Retirement().Handle] = b
		case events.MailboxRegistered:
			all[e.Handle] = all[e.Handle].with(r)
		case events.MailboxRetiring:
			all[e.Handle] = all[e.Handle].with(r)
		case events.MailboxRetired:
			all[e.Handle] = all[e.Handle].with(r)
		}
	}
	return all
}

func (b mailbox) with(r events.Recorded) mailbox {
	b.record = aggregates.EvolveMailbox(b.record, r.Seq, r.Event)
	return b
}

// back says of each seat whether a revision that came and went since its open
// retirement was judged last had it: such a seat was back in between (R4). Where more
// came and went than are looked through, it may have been.
func (m *Mailboxes) back(ctx context.Context, roster Roster, boxes map[string]mailbox) (func(handle string) bool, error) {
	after := roster.Position
	for _, b := range boxes {
		if b.saga.Open() {
			after = min(after, b.saga.Company)
		}
	}
	if after == roster.Position {
		return func(string) bool { return false }, nil
	}
	listed, whole, err := m.deps.Fleet.Listed(ctx, after, roster.Position)
	return func(handle string) bool {
		judged := boxes[handle].saga.Company
		return listed[handle] > judged || !whole && judged < roster.Position
	}, err
}

// judge is the sweep for one mailbox.
func (m *Mailboxes) judge(ctx context.Context, roster Roster, handle string, b mailbox, back bool) error {
	_, listed := roster.Agents[handle]
	if b.record.State == aggregates.MailboxUnknown || b.record.State == aggregates.MailboxRetired {
		return nil // nothing to retire; discovery registers what has mail
	}
	s, saw := b.saga, m.sight(handle, b.saga)
	switch sagas.NextRetirement(s, sagas.RetirementView{Listed: listed, Back: back, Unseen: saw.unseen, Stale: m.timings.ResumeAfter}) {
	case sagas.EffectReturn:
		after, err := m.deps.Steps.Retire(ctx, handle, func(sagas.Retirement, aggregates.Mailbox) sagas.RetirementCommand {
			return sagas.ObserveReturned{By: m.deps.Self, Company: roster.Position}
		})
		if err == nil && after.Step == events.RetireReturned {
			m.log.Info(logReturned, keySeat, handle, keySaga, after.ID())
		}
		return err
	case sagas.EffectObserve:
		after, err := m.observe(ctx, roster, handle, back)
		if err != nil || !after.Due() {
			return err
		}
		_, err = m.retire(ctx, roster, after, terms{})
		return quiet(err)
	case sagas.EffectClaim:
		_, err := m.retire(ctx, roster, s, terms{back: back})
		return quiet(err)
	default:
		return nil
	}
}

// saw is what of a sighting the decisions need.
type saw struct{ unseen, passed time.Duration }

// sight notes where the retirement stands, and says for how long this process
// has seen it there.
func (m *Mailboxes) sight(handle string, s sagas.Retirement) saw {
	if !s.Open() {
		delete(m.seen, handle)
		return saw{}
	}
	now := m.deps.Now()
	before := m.seen[handle]
	if before == nil || before.last != s.Last {
		m.seen[handle] = &sighting{last: s.Last, since: now}
		return saw{}
	}
	v := saw{unseen: clock.TakerElapsed(before.since, now)}
	if !before.own.IsZero() {
		v.passed = clock.TakerElapsed(before.own, now)
	}
	return v
}

// observe records this tick's judgement.
func (m *Mailboxes) observe(ctx context.Context, roster Roster, handle string, restart bool) (sagas.Retirement, error) {
	fresh, grace := false, m.timings.Grace
	after, err := m.deps.Steps.Retire(ctx, handle, func(now sagas.Retirement, _ aggregates.Mailbox) sagas.RetirementCommand {
		if fresh = now.Step != events.RetireAbsent; !fresh {
			grace = now.Grace.Duration()
		}
		return sagas.ObserveAbsent{
			Handle: handle, By: m.deps.Self, Company: roster.Position, Grace: m.timings.Grace, Tick: m.timings.Tick,
			Passed: m.sight(handle, now).passed, Restart: restart, Now: time.Now(),
		}
	})
	if err != nil || after.Step != events.RetireAbsent {
		return after, err
	}
	now := m.deps.Now() // after it was stored: no time is counted that was not observed
	m.seen[handle] = &sighting{last: after.Last, since: now, own: now}
	if fresh {
		m.log.Info(logAbsent, keySeat, handle, keySaga, after.ID(), "retires_at", after.RetiresAt)
	}
	if grace != m.timings.Grace && !m.told {
		m.told = true
		m.log.Warn(logGraceDiffers, keySeat, handle, keySaga, after.ID(), "judged_by", grace, "file", m.timings.Grace,
			"do", "give every node the same mailbox.grace; a removal that was judged by several is kept for the longest")
	}
	return after, nil
}

// forget drops what was seen of mailboxes that are no more.
func (m *Mailboxes) forget(boxes map[string]mailbox) {
	maps.DeleteFunc(m.seen, func(handle string, _ *sighting) bool {
		_, there := boxes[handle]
		return !there
	})
}

// quiet drops errors that the retirement itself has logged already.
func quiet(err error) error {
	if errors.As(err, new(*HeldError)) {
		return nil
	}
	return err
}

// HeldError: the grace is over, and something holds the retirement (R6).
type HeldError struct {
	Handle  string
	Refused events.RetirementRefusal
	By      string // who, or what
}

func (e *HeldError) Error() string {
	if e.Refused == events.RefusedProtocol {
		return fmt.Sprintf("the mailbox of %s cannot be retired while %s is at an older lease protocol; finish the rollout first", e.Handle, e.By)
	}
	return fmt.Sprintf("the mailbox of %s cannot be retired while %s holds the seat; it is released once that node has applied the revision without it", e.Handle, e.By)
}
