package seat

import (
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/events"
)

// NotHeldError: this node may not act for the seat, the tenure is not its own
// any more, or was never.
type NotHeldError struct {
	Handle string
	Epoch  uint64 // that was asked about; 0: any
}

func (e *NotHeldError) Error() string {
	if e.Epoch == 0 {
		return fmt.Sprintf("seat %q is not owned here", e.Handle)
	}
	return fmt.Sprintf("seat %q is not owned here at epoch %d", e.Handle, e.Epoch)
}

// StaleError: the seat is held, but too long ago proven to start something new
// (A1). It passes with the next renewal that succeeds.
type StaleError struct {
	Handle string
	Age    time.Duration // of the newest proof
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("seat %q was last proven to be held %v ago: no turn starts until a renewal succeeds", e.Handle, e.Age.Round(time.Millisecond))
}

// StoppedError: a person stopped the seat's turn in flight (F4). The seat is
// still held.
type StoppedError struct{ Handle string }

// StoppedByPerson tells it from a seat that moved.
func (e *StoppedError) StoppedByPerson() {}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("a person stopped the turn in flight on seat %q", e.Handle)
}

// MayStart says whether a turn may start on the seat now, and under which
// epoch: only while the newest renewal that stands was sent within one
// heartbeat, so that the turn is owned for at least TTL − heartbeat (A1). The
// error is *NotHeldError or *StaleError.
func (h *Host) MayStart(handle string) (uint64, error) {
	epoch, err := h.mayStart(handle)
	h.observeDenial(GateAdmission, err)
	return epoch, err
}

func (h *Host) mayStart(handle string) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.held[handle]
	if !ok || s.phase != held || s.over {
		return 0, &NotHeldError{Handle: handle}
	}
	age := clock.HolderElapsed(s.good, h.deps.Now())
	if age <= h.cfg.Heartbeat() {
		return s.tenure.Epoch, nil
	}
	if !s.stale {
		s.stale = true
		h.log.Warn(logAdmissionStale, keySeat, handle, keyEpoch, s.tenure.Epoch, "age", age)
	}
	return 0, &StaleError{handle, age}
}

// Fence says whether a turn that started under epoch may go on: at the top of
// every round and before each call (F2). It closes on the epoch, and on the
// time the tenure was bought for, which it counts itself at each check; not on
// a broker that does not answer, nor on a teardown that cannot be proven (F3).
// The error is *NotHeldError, or *StoppedError, which is checked last (F4).
func (h *Host) Fence(handle string, epoch uint64) error {
	err := h.fence(handle, epoch)
	h.observeDenial(GateFence, err)
	return err
}

func (h *Host) fence(handle string, epoch uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.held[handle]
	if !ok || s.tenure.Epoch != epoch || s.phase == letGo || s.phase == flushed || s.over || h.expired(s) {
		return &NotHeldError{handle, epoch}
	}
	if s.stopped {
		return &StoppedError{handle}
	}
	return nil
}

// expired says whether the tenure's bought time is over by the holder's clocks.
// The caller holds h.mu.
func (h *Host) expired(s *holding) bool {
	return clock.HolderElapsed(s.good, h.deps.Now()) >= h.cfg.TTL
}

// Ready says why this node cannot take seats, or nil: its presence is its own.
func (h *Host) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.clash != "":
		return fmt.Errorf("node id %q is in use by %s: give this node another node.id, or stop the other one", h.cfg.NodeID, h.clash)
	case h.presence == nil:
		return fmt.Errorf("the presence of node %q is not claimed yet", h.cfg.NodeID)
	}
	return nil
}

// Seen returns the newest event of a presence as the last pass read it; false
// when it read none of that incarnation.
func (h *Host) Seen(owner events.Incarnation) (seq uint64, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seq, known = h.seen[owner]
	return seq, known
}

// Presence returns the tenure of this node's presence, if it has it.
func (h *Host) Presence() (epoch uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.presence == nil {
		return 0, false
	}
	return h.presence.Epoch, true
}
