package seat

import (
	"slices"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// phase is how far a seat is into its life on this node.
//
//	acquiring → held → leaving → letGo
//	    │                │ │ ↖     ↑
//	    └──→ leaving     │ └→ undead
//	                     └→ flushed ┘ (or gone, by a handoff's release)
//
// Only held admits turns. All but letGo are renewed.
type phase int

const (
	acquiring phase = iota // claimed; its stages are coming up
	held                   // established
	leaving                // its stages are going down
	undead                 // a teardown failed: kept, renewed, retried (H6)
	flushed                // torn down under a handoff, which releases it
	letGo                  // torn down; the release is not known to stand yet
)

// holding is one seat this node has the lease of. Guarded by Host.mu.
type holding struct {
	tenure commands.Tenure
	phase  phase
	// good was read before the newest write that proved the tenure was sent:
	// exclusivity is bought from there to good + TTL (A1, A3).
	good    clock.Instant
	over    bool // the tenure is known to have ended: fence closed, not renewed
	stopped bool // a person stopped its turns (F4)
	moving  bool // somebody is getting rid of it
	stale   bool // admission was refused since; the edge is logged once
	up      int  // how many stages are up

	mode     Mode // of the teardown under way
	reason   events.Reason
	unproven clock.Instant // since when a teardown has been failing
	attempts int           // teardowns that failed
	beats    int           // heartbeats since the last alarm
}

// handles lists the seats held in any phase, sorted. The caller holds h.mu.
func (h *Host) handles() []string {
	out := make([]string, 0, len(h.held))
	for handle := range h.held {
		out = append(out, handle)
	}
	slices.Sort(out)
	return out
}

// has says whether this node has the seat under that tenure, in any phase.
func (h *Host) has(handle string, epoch uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.held[handle]
	return ok && s.tenure.Epoch == epoch
}

// Held lists the seats this node runs: those it has the lease of and tears
// nothing down on (O1).
func (h *Host) Held() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(h.handles(), func(handle string) bool {
		p := h.held[handle].phase
		return p == undead || p == letGo
	})
}

// Unproven says how long each seat's teardown has been failing, by handle; it
// is empty in a working system (O3).
func (h *Host) Unproven() map[string]time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, out := h.deps.Now(), map[string]time.Duration{}
	for handle, s := range h.held {
		if s.phase == undead {
			out[handle] = clock.HolderElapsed(s.unproven, now)
		}
	}
	return out
}

// keyedLocks is a lock per seat. Its size is bounded by the seats that this
// process ever held.
type keyedLocks struct {
	mu    sync.Mutex
	locks map[string]seatLock
}

// seatLock is held for as long as a hook takes, minutes perhaps, hence no mutex:
// only what is about the seat itself may wait for it.
type seatLock chan struct{}

func (l seatLock) Lock()   { l <- struct{}{} }
func (l seatLock) Unlock() { <-l }

func (l seatLock) TryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (k *keyedLocks) of(handle string) seatLock {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locks == nil {
		k.locks = map[string]seatLock{}
	}
	l, ok := k.locks[handle]
	if !ok {
		l = make(seatLock, 1)
		k.locks[handle] = l
	}
	return l
}
