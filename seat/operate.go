package seat

import (
	"context"
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// RefusedError says why an operator's wish was not taken up. Code is stable.
type RefusedError struct {
	Code    string
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// Codes of refusals.
const (
	CodeNotHeld     = "NOT_HELD"     // this node does not run the seat
	CodeMoving      = "MOVING"       // it is on its way already
	CodeNotEligible = "NOT_ELIGIBLE" // that node may not run the seat, or is not there
	CodeNoRoom      = "NO_ROOM"      // that node has its share: it would give the seat back
	CodeHere        = "ALREADY_HERE" // it runs on that node
)

// Move hands a seat that runs here to a node of the operator's choice and
// returns the saga's id and position. Errors: *RefusedError, those of sagas, and
// the log's.
func (h *Host) Move(ctx context.Context, handle, node, by string) (saga string, position uint64, err error) {
	if node == h.cfg.NodeID {
		return "", 0, &RefusedError{CodeHere, fmt.Sprintf("seat %q runs on node %q already", handle, node)}
	}
	sight, err := h.deps.Fleet.Look(ctx)
	if err != nil {
		return "", 0, err
	}
	targets := h.view(sight, nil).Targets()
	eligible, room := targets.Takes(handle, node)
	var to events.Incarnation
	for _, p := range sight.Presences {
		if p.Owner.NodeID() == node && h.live(p) {
			to = p.Owner
		}
	}
	switch {
	case !eligible || to == "":
		return "", 0, &RefusedError{CodeNotEligible, fmt.Sprintf("node %q may not run seat %q now: it is not live, takes no seats, or does not match the seat's placement", node, handle)}
	case !room:
		return "", 0, &RefusedError{CodeNoRoom, fmt.Sprintf("node %q has its share of the seats placed like %q and would give the surplus back; cordon or drain another node instead", node, handle)}
	}
	if err := h.take(handle); err != nil {
		return "", 0, err
	}
	defer h.endMove(handle)
	s, err := h.handOff(ctx, handle, to, events.HandoffMove, by)
	return s.ID(), s.Last, err
}

// take begins to move a seat on behalf of an operator.
func (h *Host) take(handle string) error {
	if h.beginMove(handle) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.held[handle]; ok && s.phase != undead {
		return &RefusedError{CodeMoving, fmt.Sprintf("seat %q is being moved, acquired or given back already", handle)}
	}
	return &RefusedError{CodeNotHeld, fmt.Sprintf("seat %q does not run on node %q", handle, h.cfg.NodeID)}
}

// GiveBack gives a seat that runs here back to the fleet, the turn in flight
// first. It returns once that has begun; whoever has room for it takes it, this
// node too.
func (h *Host) GiveBack(ctx context.Context, handle string) error {
	if err := h.take(handle); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	h.work.Go(func() {
		defer h.endMove(handle)
		if epoch, ok := h.startLeaving(handle, events.ReasonOperator); ok {
			h.release(ctx, handle, epoch, Voluntary, events.ReasonOperator)
		}
	})
	return nil
}

// StopTurn closes the fence of the seat's turn in flight on behalf of a person,
// until ResumeTurns; ownership is checked first (F4).
func (h *Host) StopTurn(handle string) { h.setStopped(handle, true) }

// ResumeTurns ends StopTurn.
func (h *Host) ResumeTurns(handle string) { h.setStopped(handle, false) }

func (h *Host) setStopped(handle string, stopped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.held[handle]; ok {
		s.stopped = stopped
	}
}
