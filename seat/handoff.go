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

	mu    sync.Mutex
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

// fold is one seat's handoff. Guarded by runner.mu.
type fold struct {
	state   sagas.Handoff
	seen    uint64 // position of the newest event applied
	running bool
	again   bool // something happened since the run began
	timer   *time.Timer
	dark    bool // it has one of the places of dark seats
	waits   bool // for such a place
}

// Edge takes in one event of FLEET, in order. It does not block. Handoffs are
// folded from their first event on; a start that does not read from there gives
// the newest event of each first, and of its seat's lease. Once live, what is
// given again changes nothing: a read model that is made anew reads the whole log,
// and the steps of handoffs that are long over are nobody's to take.
func (h *Host) Edge(r events.Recorded) {
	if !h.runner.reads(r.Seq) {
		return
	}
	h.runner.follow(r)
	handle, follows := "", false
	switch e := r.Event.(type) {
	case events.HandoffEvent:
		_, body := e.Handoff()
		handle, follows = body.Handle, true
		if no, is := e.(events.HandoffDeclined); is {
			h.declined(no)
		}
	case events.LeaseClaimed:
		handle = seatOf(e.Lease)
		if e.Lease.Kind == events.KindNode {
			if e.Over != nil {
				h.runner.nodeEnded(e.Over.Owner)
			}
			h.runner.nodeBegan(e.Owner)
		}
	case events.LeaseReleased:
		handle = seatOf(e.Lease)
		if e.Lease.Kind == events.KindNode {
			h.runner.nodeEnded(e.Owner)
		}
	case events.LeaseFenced:
		handle = seatOf(e.Lease)
	case events.LeaseDeclined:
		handle = seatOf(e.Lease)
	case events.SeatEstablished:
		handle = e.Handle
	}
	if handle == "" {
		return
	}
	h.runner.mu.Lock()
	defer h.runner.mu.Unlock()
	f := h.runner.folds[handle]
	if f == nil {
		if !follows {
			return
		}
		f = &fold{}
		h.runner.folds[handle] = f
	}
	if r.Seq <= f.seen || follows && r.Seq <= f.state.Last {
		return // a repeat, or seeded by the one who asked for it
	}
	f.seen = r.Seq
	open := f.state.Open()
	f.state = sagas.EvolveHandoff(f.state, r.Seq, r.Event)
	if open && !f.state.Open() {
		h.look() // declined: whoever empties this node must do without
		h.runner.lit(f)
	}
	h.runner.kick(handle, f)
}

// reads takes in that the log was read up to seq, and says whether that event is
// to be folded.
func (r *runner) reads(seq uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live && seq <= r.read {
		return false
	}
	r.read = max(r.read, seq)
	return true
}

// nodeEnded takes in that an incarnation's presence is over, and looks again at
// the handoffs that wait for it.
func (r *runner) nodeEnded(owner events.Incarnation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[owner.NodeID()] = owner
	for handle, f := range r.folds {
		if f.state.To == owner && f.state.Open() {
			r.kick(handle, f)
		}
	}
}

// nodeBegan takes in that an incarnation has its presence. It may have had it
// before: one that lost it, or could not prove it, claims it again.
func (r *runner) nodeBegan(owner events.Incarnation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended[owner.NodeID()] == owner {
		delete(r.ended, owner.NodeID())
	}
}

// seed begins the fold of a handoff that this node has just asked for, whose
// event is still on its way: until it comes round the seat must not look idle.
// After that it is the fold that knows: when the answer was lost and asked for
// again, the handoff may be over, and one begun then would stay open for ever.
func (r *runner) seed(s sagas.Handoff) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Last <= r.read {
		return
	}
	if f := r.folds[s.Handle]; f == nil || f.state.Last < s.Last {
		if f == nil {
			f = &fold{}
			r.folds[s.Handle] = f
		}
		f.state = s
		r.kick(s.Handle, f)
	}
}

// Live says that Edge has been given the log up to the head that the start saw.
// It may be said at every batch; only the first time lets what is open run, since
// everything after it is an edge of its own.
func (h *Host) Live() {
	h.runner.mu.Lock()
	defer h.runner.mu.Unlock()
	if h.runner.live {
		return
	}
	h.runner.live = true
	for handle, f := range h.runner.folds {
		h.runner.kick(handle, f)
	}
}

func seatOf(l events.Lease) string {
	if l.Kind != events.KindSeat {
		return ""
	}
	return l.ID
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
