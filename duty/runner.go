package duty

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// Config is what a runner needs to know. Durations are above zero.
type Config struct {
	NodeID   string
	TTL      time.Duration // the fleet's, in force (L7)
	Protocol int
	Local    string // data directory's id under local coordination, else ""
}

// Duty is something that one node of the fleet does every so often.
type Duty struct {
	Name  string
	Every time.Duration
	// Tick does it once. ctx ends when the node stops or has lost the duty; what
	// must not be cut short by that is for Tick to finish, within a bound.
	Tick func(ctx context.Context) error
}

// Leases writes the leases of duties; *commands.Shell does.
type Leases interface {
	Claim(ctx context.Context, l events.Lease, c commands.Claim, unseen commands.Unseen) (commands.Tenure, error)
	Renew(ctx context.Context, ts []commands.Tenure) []commands.Renewed
	Release(ctx context.Context, t commands.Tenure, reason events.Reason) error
}

// Beat is what a watchdog wants to hear from a loop (X1).
type Beat interface {
	Waits(limit time.Duration)
	Cadence() time.Duration
	Done()
}

// Deps are the parts that a runner works with.
type Deps struct {
	Leases Leases
	Unseen commands.Unseen // of the log clock
	Now    clock.Source
	Watch  func(name string) Beat // nil: nobody watches
	Log    *slog.Logger
}

// Limits of one answer.
const (
	claimTimeout   = 30 * time.Second
	releaseTimeout = 10 * time.Second
	// beatPart is when a renewal is due, as a part of a heartbeat: early, so that a
	// slow answer costs no duty.
	beatPart = 0.8
	// heartbeats of one TTL.
	beatsPerTTL = 3
)

// Runner holds the leases of a node's duties and ticks those it holds.
type Runner struct {
	cfg    Config
	deps   Deps
	duties []Duty
	log    *slog.Logger

	mu   sync.Mutex // guards held; not held while calling out
	held map[string]*term
}

// term is one tenure of a duty.
type term struct {
	tenure commands.Tenure
	good   clock.Instant // read before the newest write that proved it was sent
	end    context.CancelCauseFunc
	ctx    context.Context //nolint:containedctx // it is the term's end, which ticks wait on
}

var errLost = errors.New("the duty is another's")

// NewRunner returns a runner that holds nothing yet.
func NewRunner(cfg Config, deps Deps, duties ...Duty) *Runner {
	return &Runner{cfg: cfg, deps: deps, duties: duties, log: deps.Log.With(keyNode, cfg.NodeID), held: map[string]*term{}}
}

// Run ticks until ctx ends, then gives every duty back, after its last tick.
func (r *Runner) Run(ctx context.Context) error {
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	var beats, loops sync.WaitGroup
	beats.Go(func() { r.heartbeats(beating) })
	for _, d := range r.duties {
		loops.Go(func() { r.loop(ctx, d) })
	}
	loops.Wait()
	stop()
	beats.Wait()
	r.giveBack(context.WithoutCancel(ctx))
	return context.Cause(ctx)
}

// loop ticks one duty: at once, then every so often.
func (r *Runner) loop(ctx context.Context, d Duty) {
	var beat Beat = silent{}
	if r.deps.Watch != nil {
		beat = r.deps.Watch("duty " + d.Name)
	}
	defer beat.Done()
	idle := time.NewTicker(beat.Cadence())
	defer idle.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			beat.Waits(0)
			continue
		case <-due.C:
		}
		beat.Waits(tickTimeout + claimTimeout)
		r.tick(ctx, d)
		beat.Waits(0)
		due.Reset(d.Every)
	}
}

// tickTimeout bounds one tick: what is left then waits for the next one.
const tickTimeout = 10 * time.Minute

// tick does the duty once, if it is this node's.
func (r *Runner) tick(ctx context.Context, d Duty) {
	t := r.ensure(ctx, d.Name)
	if t == nil {
		return
	}
	ticking, cancel := context.WithTimeoutCause(t.ctx, tickTimeout, errors.New("a tick took too long"))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	if err := d.Tick(ticking); err != nil && ctx.Err() == nil { //nolint:contextcheck // the term outlives the wish to stop, by one tick
		r.log.Warn(logTickFailed, keyDuty, d.Name, keyErr, err)
	}
}

// ensure claims the duty if nobody has it, and returns nil when it is not this
// node's, or that is not known.
func (r *Runner) ensure(ctx context.Context, name string) *term {
	if t := r.mine(name); t != nil {
		return t
	}
	// Cut short it would leave a lease that nobody gives back before it lapses.
	claiming, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	sent := r.deps.Now()
	lease := events.Lease{Kind: events.KindWorker, ID: name}
	tenure, err := r.deps.Leases.Claim(claiming, lease, commands.Claim{
		Preferred: r.cfg.NodeID, TTL: r.cfg.TTL, Protocol: r.cfg.Protocol, Local: r.cfg.Local, DeadLocal: r.cfg.Local,
	}, r.deps.Unseen)
	var held *aggregates.HeldError
	switch {
	case errors.As(err, &held):
		return nil // a peer's; it is tried again at the next tick
	case err != nil:
		r.log.Warn(logNotClaimed, keyDuty, name, keyErr, err)
		return nil
	}
	r.log.Info(logClaimed, keyDuty, name, keyEpoch, tenure.Epoch)
	t := &term{tenure: tenure, good: sent}
	t.ctx, t.end = context.WithCancelCause(context.WithoutCancel(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[name] = t
	return t
}

// mine returns the duty's term while it is provably this node's.
func (r *Runner) mine(name string) *term {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.held[name]
	if t == nil || clock.HolderElapsed(t.good, r.deps.Now()) >= r.cfg.TTL {
		return nil
	}
	return t
}

// heartbeats renews what is held until ctx ends.
func (r *Runner) heartbeats(ctx context.Context) {
	every := time.Duration(beatPart * float64(r.cfg.TTL/beatsPerTTL))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.renew(ctx)
	}
}

func (r *Runner) renew(ctx context.Context) {
	r.mu.Lock()
	ts := make([]commands.Tenure, 0, len(r.held))
	for _, t := range r.held {
		ts = append(ts, t.tenure)
	}
	r.mu.Unlock()
	if len(ts) == 0 {
		return
	}
	sent := r.deps.Now()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.TTL/beatsPerTTL)
	defer cancel()
	for _, a := range r.deps.Leases.Renew(ctx, ts) {
		name := a.Tenure.Lease.ID
		if a.Err != nil && !a.Refused() {
			r.log.Warn(logNotRenewed, keyDuty, name, keyErr, a.Err)
		}
		r.mu.Lock()
		t := r.held[name]
		switch {
		case t == nil || t.tenure.Epoch != a.Tenure.Epoch:
		case a.Err == nil:
			t.tenure.Last, t.good = a.Tenure.Last, sent
		case a.Refused(), clock.HolderElapsed(t.good, r.deps.Now()) >= r.cfg.TTL:
			// Losing one duty is that duty's end and nothing else's (Case26).
			delete(r.held, name)
			t.end(errLost)
			r.log.Warn(logLost, keyDuty, name, keyEpoch, t.tenure.Epoch, keyErr, a.Err)
		}
		r.mu.Unlock()
	}
}

// giveBack releases every duty that is held.
func (r *Runner) giveBack(ctx context.Context) {
	r.mu.Lock()
	terms := r.held
	r.held = map[string]*term{}
	r.mu.Unlock()
	for name, t := range terms {
		t.end(context.Canceled)
		releasing, cancel := context.WithTimeout(ctx, releaseTimeout)
		err := r.deps.Leases.Release(releasing, t.tenure, events.ReasonDrain)
		cancel()
		var ended *aggregates.EndedError
		switch {
		case errors.As(err, &ended):
		case err != nil:
			r.log.Warn(logNotReleased, keyDuty, name, keyEpoch, t.tenure.Epoch, keyErr, err)
		default:
			r.log.Info(logReleased, keyDuty, name, keyEpoch, t.tenure.Epoch)
		}
	}
}

// silent is the Beat of a loop that nobody watches.
type silent struct{}

func (silent) Waits(time.Duration)    {}
func (silent) Cadence() time.Duration { return time.Hour }
func (silent) Done()                  {}
