package seat

import (
	"context"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// Handoffs writes the steps of handoffs; *commands.Shell does.
type Handoffs interface {
	Handoff(ctx context.Context, handle string, command func(sagas.Handoff, aggregates.Lease) sagas.HandoffCommand) (sagas.Handoff, error)
}

// Gates hold the seats' inboxes; *turn.Inboxes does.
type Gates interface {
	// Quiesce takes the hold and waits for the turn in flight.
	Quiesce(ctx context.Context, handle, hold string) error
	Lift(handle string, fn func(sagas.Holds) sagas.Holds)
}

// Limits of the runner.
const (
	// stepTimeout bounds one step's write.
	stepTimeout = 30 * time.Second
	// stepAgain is the pause after a step that nobody answered.
	stepAgain = 500 * time.Millisecond
	// turnLimit is how long a handoff waits for a turn in flight (H4).
	turnLimit = 30 * time.Second
)

// runner drives the handoffs that this node sees: it folds the seats' edges as
// the log has them, asks what this node is to do now, and does it, one seat at
// a time and one effect after the other. What it remembers is a fold of the log
// and nothing else: an effect that comes late is refused by its command.
//
// Nothing at or below the log's head that the start saw drives anything by
// itself: until Live the runner only folds.
type runner struct {
	h *Host

	wake chan struct{} // one slot: due is not empty

	mu    sync.Mutex // guards what follows
	folds map[string]*fold
	due   []string // seats to run next
	// ended has, of each node id, the incarnation that ended last: it took leave,
	// or its presence was taken over. It asks and answers nothing any more.
	ended  map[string]events.Incarnation
	free   map[string]aggregates.Lease // see freed
	live   bool                        // the log was read up to the head that the start saw
	read   uint64                      // position of the newest event given to Edge
	closed bool
}

func newRunner(h *Host) *runner {
	return &runner{
		h: h, wake: make(chan struct{}, 1), folds: map[string]*fold{},
		ended: map[string]events.Incarnation{}, free: map[string]aggregates.Lease{},
	}
}

// kick runs the seat's handoff, now or once the run under way is over. The
// caller holds r.mu.
func (r *runner) kick(handle string, f *fold) {
	switch {
	case r.closed, !r.live:
	case f.running:
		f.again = true
	default:
		f.running = true
		r.due = append(r.due, handle)
		poke(r.wake)
	}
}

// loop starts the runs that are due, each on its own, until ctx ends.
func (r *runner) loop(ctx context.Context) {
	duty := r.h.deps.Watchdog.Watch("handoffs")
	defer duty.Done()
	idle := time.NewTicker(duty.Cadence())
	defer idle.Stop()
	for {
		duty.Beat()
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			continue
		case <-r.wake:
		}
		r.mu.Lock()
		due := r.due
		r.due = nil
		for _, handle := range due {
			f := r.folds[handle]
			r.h.work.Go(func() { r.run(ctx, handle, f) })
		}
		r.mu.Unlock()
	}
}

// run does what is to be done until nothing new has happened.
func (r *runner) run(ctx context.Context, handle string, f *fold) {
	for {
		r.mu.Lock()
		f.again = false
		state := f.state
		gone := r.ended[state.To.NodeID()] == state.To
		r.mu.Unlock()
		unfit := events.DeclineReason("")
		if state.Open() && state.To == r.h.deps.Self {
			unfit = r.h.unfit(handle)
		}
		effects := sagas.Next(state, sagas.Node{Self: r.h.deps.Self, Unfit: unfit, TargetGone: gone})
		wait := time.Duration(0)
		for _, effect := range effects {
			if pause := r.perform(ctx, state, effect); pause > 0 && (wait == 0 || pause < wait) {
				wait = pause
			}
		}
		r.mu.Lock()
		if !f.again || r.closed {
			f.running = false
			if len(effects) == 0 && !state.Open() && !f.again {
				delete(r.folds, handle)
			}
			r.later(handle, f, wait)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

// later kicks the seat's handoff after that pause; 0 is never. The caller holds
// r.mu.
func (r *runner) later(handle string, f *fold, pause time.Duration) {
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	if pause <= 0 || r.closed {
		return
	}
	f.timer = time.AfterFunc(pause, func() { r.elapsed(handle, f) })
}

// elapsed kicks the seat's handoff once its pause is over. By then it may be over
// and forgotten: a timer that has fired cannot be stopped any more.
func (r *runner) elapsed(handle string, f *fold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folds[handle] == f {
		r.kick(handle, f)
	}
}

// close ends the runner: no run begins after it. Host.Run waits for those under
// way.
func (r *runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, f := range r.folds {
		if f.timer != nil {
			f.timer.Stop()
		}
	}
}

// open says whether a handoff of the seat is open, and to whom it goes.
func (r *runner) open(handle string) (to events.Incarnation, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.folds[handle]
	if f == nil || !f.state.Open() {
		return "", false
	}
	return f.state.To, true
}
