package seat

import (
	"context"
	"errors"
	"time"

	"github.com/seat-tenure/tenure/sagas"
)

// What bounds how many seats of this node are dark at once.
const (
	// maxDark: a seat is dark for half a dozen writes, one after the other, which
	// queue behind those of every other seat that is dark. Ten at once were each
	// dark for ten times as long as two at once, and were done no sooner: a node
	// and its peers have one log to wait for.
	maxDark = 2
	// busyAfter is how long a seat with a turn in flight, which is not dark yet,
	// keeps its place from others.
	busyAfter = 100 * time.Millisecond
)

// errNoPlace: as many seats are dark as may be.
var errNoPlace = errors.New("others are dark")

// quiesce holds the inbox until the turn in flight has ended, or the handoff's
// patience with it has. errNoPlace: not now.
//
// A fold that lags may ask for it when the seat is here again under another
// tenure. Nothing would ever lift the hold from that one's inbox.
func (r *runner) quiesce(ctx context.Context, s sagas.Handoff, e sagas.Quiesce) error {
	if !r.h.has(s.Handle, e.Epoch) {
		return nil
	}
	if !r.darken(s.Handle) {
		return errNoPlace
	}
	ctx, cancel := context.WithTimeout(ctx, s.Patience.Quiesce.Duration())
	defer cancel()
	busy := time.AfterFunc(busyAfter, func() { r.giveWay(s.Handle) })
	err := r.h.deps.Gates.Quiesce(ctx, s.Handle, e.Hold)
	busy.Stop()
	if err != nil {
		r.giveWay(s.Handle)
		return err // the deadline is anybody's to call; the hold is lifted by it
	}
	if !r.h.has(s.Handle, e.Epoch) { // the tenure ended meanwhile, perhaps before the hold was taken
		r.h.deps.Gates.Lift(s.Handle, func(holds sagas.Holds) sagas.Holds { return holds.Lift(e.Hold) })
		r.giveWay(s.Handle)
		return nil
	}
	return r.step(ctx, s.Handle, sagas.MarkQuiesced{Saga: e.Saga, By: r.h.deps.Self})
}

// darken takes a place for the seat, and says whether there was one.
func (r *runner) darken(handle string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.folds[handle]
	f.dark = f.dark || r.places() > 0
	f.waits = !f.dark
	return f.dark
}

// places is how many more seats may be dark. The caller holds r.mu.
func (r *runner) places() int {
	free := maxDark
	for _, f := range r.folds {
		if f.dark {
			free--
		}
	}
	return free
}

// giveWay gives the seat's place to others.
func (r *runner) giveWay(handle string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.folds[handle]; f != nil {
		r.lit(f)
	}
}

// lit takes the seat from those that are dark, or wait to be, and lets as many of
// the others try again as there are places: one that was let and whose handoff
// has ended meanwhile comes here by that. The caller holds r.mu.
func (r *runner) lit(f *fold) {
	f.dark, f.waits = false, false
	free := r.places()
	for handle, other := range r.folds {
		if free <= 0 {
			return
		}
		if other.waits {
			other.waits = false
			free--
			r.kick(handle, other)
		}
	}
}
