package seat

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// Config is what a host needs to know. All durations are above zero.
type Config struct {
	NodeID        string
	Facts         events.NodeFacts
	TTL           time.Duration // the fleet's, in force (L7)
	SweepInterval time.Duration // P5
	Limits        Limits
	Local         string // data directory's id under local coordination, else ""
	RunsSeats     bool   // the node has the role "seats"
	Protocol      int    // of its leases: Protocol, but for tests of mixed fleets (V1)
}

// Heartbeat is how often a holder renews at the latest (L7).
func (c Config) Heartbeat() time.Duration { return c.TTL / 3 }

// Leases writes and reads leases; *commands.Shell does.
type Leases interface {
	Lease(ctx context.Context, l events.Lease) (aggregates.Lease, error)
	Claim(ctx context.Context, l events.Lease, c commands.Claim, unseen commands.Unseen) (commands.Tenure, error)
	Renew(ctx context.Context, ts []commands.Tenure) []commands.Renewed
	Release(ctx context.Context, t commands.Tenure, reason events.Reason) error
	// Report records what a node says of itself under its presence.
	Report(ctx context.Context, t commands.Tenure, facts events.NodeFacts) (commands.Tenure, error)
}

// Reporter records what a holder has to say of its seats.
type Reporter interface {
	Established(ctx context.Context, t commands.Tenure) error
	// Unproven and Proven: a teardown keeps failing, and has succeeded (H6, O3).
	Unproven(ctx context.Context, t commands.Tenure) error
	Proven(ctx context.Context, t commands.Tenure) error
}

// Takeover opens a seat's cursors for a tenure: the first act after a claim.
type Takeover interface {
	TakeOver(ctx context.Context, t commands.Tenure) (*commands.Mailboxes, error)
}

// LogClock judges lapses (L6).
type LogClock interface {
	UnseenFor(seq uint64) (time.Duration, bool)
	Earliest(seq uint64, ttl time.Duration) (time.Duration, bool)
}

// Deps are the parts a host works with.
type Deps struct {
	Self     events.Incarnation
	Leases   Leases
	Reporter Reporter
	Takeover Takeover
	LogClock LogClock
	Fleet    Fleet
	Handoffs Handoffs
	Gates    Gates
	Stages   []Stage
	// Renewed is told, after every round, which seats were renewed: admission
	// is open again for whoever deferred (A2). It must not block.
	Renewed func(handles []string)
	// Progress is told how a shutdown goes on; nil: nobody is.
	Progress Progress
	// Watchdog ends the process when one of the host's duties stalls: the
	// heartbeat, the sweeps, the handoffs (X1). nil: nobody does.
	Watchdog *Watchdog
	// Observe is told what there is to count; nil: nobody is.
	Observe Observer
	Now     clock.Source
	Log     *slog.Logger
}

// Host runs the seats of one node.
type Host struct {
	cfg  Config
	deps Deps
	log  *slog.Logger

	wake  chan struct{} // one slot: an early pass is wanted
	freed chan struct{} // one slot: a lease was given back, or a handoff is over, since
	work  sync.WaitGroup

	locks  keyedLocks
	runner *runner

	started  clock.Instant // when Run began; constant since
	sweeping *Duty         // of the sweeps alone

	mu       sync.Mutex // guards what follows; never held while calling out
	held     map[string]*holding
	presence *commands.Tenure
	proved   clock.Instant // of presence, as holding.good
	clash    events.Incarnation
	draining bool
	emptying bool                  // an operator's drain is under way
	cordoned bool                  // an operator's: claims nothing, keeps what it holds
	revision uint64                // of the company, as applied here
	reported uint64                // the revision that the presence says
	refused  map[refusal]time.Time // what was declined, and when
	over     map[Older]bool        // leases of older builds that are known to be over
	gated    *OlderError           // why the last pass might claim nothing (V1)
	lastPass Pass
	seen     map[events.Incarnation]uint64 // newest event of each presence, as the last pass read it
}

// New returns a host that holds nothing yet.
func New(cfg Config, deps Deps) *Host {
	h := &Host{
		cfg: cfg, deps: deps, log: deps.Log.With(keyNode, cfg.NodeID),
		wake: make(chan struct{}, 1), freed: make(chan struct{}, 1),
		held: map[string]*holding{}, over: map[Older]bool{}, refused: map[refusal]time.Time{},
	}
	h.runner = newRunner(h)
	return h
}

// Wake asks for a pass before the next one is due (P5). It never blocks; asking
// twice asks once.
func (h *Host) Wake() { poke(h.wake) }

// Applied tells the host that this node has applied a revision of the company,
// mailboxes and all: the presence says so from now on, and a pass is run early
// (P5). A report that fails is made up for in the next pass.
func (h *Host) Applied(ctx context.Context, revision uint64) {
	h.mu.Lock()
	h.revision = max(h.revision, revision)
	h.mu.Unlock()
	h.Wake()
	h.reportRevision(ctx)
}

// poke fills a one-slot channel without blocking.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// leaveTimeout bounds a whole shutdown: in-flight turns get their own bound,
// and what is not released by then lapses.
const leaveTimeout = 5 * time.Minute

// Run holds the node's presence and its seats until ctx ends, then gives
// everything back and returns. Heartbeats go on until the last seat is given
// back.
func (h *Host) Run(ctx context.Context) error {
	h.started = h.deps.Now()
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beats sync.WaitGroup
	beats.Go(func() { h.heartbeats(beating) })
	beats.Go(func() { h.runner.loop(beating) })
	h.sweeps(ctx)
	leaving, cancel := context.WithTimeout(beating, leaveTimeout)
	h.leave(leaving)
	cancel()
	stop()
	beats.Wait()
	h.runner.close()
	h.work.Wait()
	return context.Cause(ctx)
}

// leave gives every seat up, then the presence (H4 drain). It counts in no share
// from the first moment, and claims nothing (P6, P13).
func (h *Host) leave(ctx context.Context) {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	if err := h.reportPresence(ctx); err != nil {
		h.log.Warn(logReportFailed, "what", "draining", keyErr, err)
	}
	if err := h.empty(ctx, string(h.deps.Self), h.deps.Progress); err != nil {
		h.log.Warn(logLeaveCut, keyErr, err, "left", h.left())
	}
	h.abandon(context.WithoutCancel(ctx))
	h.dropPresence(ctx)
}

// abandon takes down what is still here: a seat whose tenure has run out is no
// longer waited for, but nothing of it may outlive this process (H7).
func (h *Host) abandon(ctx context.Context) {
	var all sync.WaitGroup
	h.mu.Lock()
	for _, handle := range h.handles() {
		epoch := h.held[handle].tenure.Epoch
		all.Go(func() { h.release(ctx, handle, epoch, Fenced, events.ReasonDrain) })
	}
	h.mu.Unlock()
	all.Wait()
}

// sweeps runs a pass every interval, and early ones as P5 allows: one for a
// wake within an interval, and one at the moment the next lease can lapse.
func (h *Host) sweeps(ctx context.Context) {
	h.sweeping = h.deps.Watchdog.Watch("sweep")
	defer h.sweeping.Done()
	idle := time.NewTicker(h.sweeping.Cadence())
	defer idle.Stop()
	due := time.NewTimer(0)
	lapse := time.NewTimer(time.Hour)
	defer due.Stop()
	defer lapse.Stop()
	wake := h.wake // nil once this interval's early pass was run
	for {
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			h.sweeping.Beat()
			continue
		case <-due.C:
			// Whatever was asked for until now this pass sees, and the one early pass
			// of the interval that begins is kept for what comes after.
			wake = h.wake
			select {
			case <-wake:
			default:
			}
			due.Reset(h.cfg.SweepInterval)
		case <-wake:
			wake = nil
		case <-lapse.C:
		}
		began := time.Now()
		pass := h.sweep(ctx)
		h.observeSweep(pass, time.Since(began))
		if pass.NextLapse > 0 {
			lapse.Reset(pass.NextLapse)
		} else {
			lapse.Stop()
		}
	}
}
