package seat

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// A target that declined is not asked again for a TTL: the reason it gave seldom
// passes sooner, and each asking costs the log two events. Meanwhile the seat goes
// on where it is.

// refusal is what a process declined: that seat, or with no handle all of them.
type refusal struct {
	by     events.Incarnation
	handle string
}

// declined takes in that a target would not have a seat that was offered from here.
func (h *Host) declined(e events.HandoffDeclined) {
	if e.From != h.deps.Self {
		return
	}
	r := refusal{by: e.To}
	if e.Cause == events.DeclineReplaced { // the others are about the node
		r.handle = e.Handle
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for old, at := range h.refused {
		if now.Sub(at) > h.cfg.TTL {
			delete(h.refused, old)
		}
	}
	h.refused[r] = now
}

// declinedLately says whether that process declined the seat, or all of them, less
// than a TTL ago.
func (h *Host) declinedLately(handle string, by events.Incarnation) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range []refusal{{by: by}, {by, handle}} {
		if at, ok := h.refused[r]; ok && time.Since(at) <= h.cfg.TTL {
			return true
		}
	}
	return false
}
