package seat

import (
	"context"
	"errors"
	"fmt"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// What a handoff does to the seat at its two ends.

// handOff asks for a handoff of the seat to that process (design §5).
func (h *Host) handOff(ctx context.Context, handle string, to events.Incarnation, reason events.HandoffReason, by string) (sagas.Handoff, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	s, err := h.deps.Handoffs.Handoff(ctx, handle, func(_ sagas.Handoff, l aggregates.Lease) sagas.HandoffCommand {
		return sagas.RequestHandoff{
			Handle: handle, From: h.deps.Self, To: to, Reason: reason, By: by,
			Patience: sagas.DefaultPatience(h.cfg.TTL, turnLimit), Lease: l,
		}
	})
	if err == nil {
		h.runner.seed(s)
		h.log.Info(logHandoffRequested, keySeat, handle, keySaga, s.ID(), "to", to, keyReason, reason)
	}
	return s, err
}

// flush takes the seat's stages down under the handoff and says whether that is
// proven. The lease is kept until it is handed over (H6).
func (h *Host) flush(ctx context.Context, s sagas.Handoff) bool {
	lock := h.locks.of(s.Handle)
	lock.Lock()
	defer lock.Unlock()
	h.mu.Lock()
	held, ok := h.held[s.Handle]
	if !ok || held.tenure.Epoch != s.Epoch || held.over || held.phase == undead || held.phase == letGo {
		h.mu.Unlock()
		return false
	}
	if held.phase == flushed {
		h.mu.Unlock()
		return true
	}
	held.phase, held.mode, held.reason = leaving, Voluntary, s.Reason.Released()
	up := held.up
	h.mu.Unlock()
	return h.stagesDown(ctx, s.Handle, up, Voluntary, s.Reason.Released(), flushed)
}

// handOver releases the lease to the handoff's target, in one batch with the
// saga's step. Until that is answered the seat stays flushed, and renewed.
func (h *Host) handOver(ctx context.Context, s sagas.Handoff, e sagas.Release) error {
	lock := h.locks.of(s.Handle)
	lock.Lock()
	defer lock.Unlock()
	h.mu.Lock()
	held, ok := h.held[s.Handle]
	ready := ok && held.tenure.Epoch == s.Epoch && held.phase == flushed
	h.mu.Unlock()
	if !ready {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_, err := h.deps.Handoffs.Handoff(ctx, s.Handle, func(_ sagas.Handoff, l aggregates.Lease) sagas.HandoffCommand {
		return sagas.ReleaseForHandoff{Saga: e.Saga, By: h.deps.Self, Lease: l}
	})
	if err != nil {
		return fmt.Errorf("hand %s over: %w", s.Handle, err)
	}
	h.gone(s.Handle)
	return nil
}

// giveUp ends what a handoff that was abandoned after its teardown began has
// left: the stages down, proven or undead, and a plain release. Never a resume.
func (h *Host) giveUp(ctx context.Context, s sagas.Handoff, e sagas.GiveUp) {
	h.release(ctx, s.Handle, s.Epoch, Voluntary, e.Reason)
}

// gone forgets a seat whose lease is given back.
func (h *Host) gone(handle string) {
	h.mu.Lock()
	delete(h.held, handle)
	h.mu.Unlock()
	h.look()
}

// look lets whoever empties this node look again at what is left; it never
// blocks.
func (h *Host) look() { poke(h.freed) }

// unfit says why this node would not take the seat that a handoff offers to it.
// A view that was level a moment ago falls behind with every batch it reads, so
// behind is who was so in the last pass, and still is.
func (h *Host) unfit(handle string) events.DeclineReason {
	h.mu.Lock()
	leaving, gated, behind := h.draining || h.cordoned, h.presence == nil || h.gated != nil, h.lastPass.behind
	h.mu.Unlock()
	switch {
	case leaving:
		return events.DeclineDraining
	case gated:
		return events.DeclineGated
	}
	offer, err := h.deps.Fleet.Offer(handle)
	switch {
	case err != nil || behind && offer.Behind:
		return events.DeclineBehind
	case !offer.Listed || !offer.Seat.Fits(h.ownNode()):
		return events.DeclineReplaced
	}
	return ""
}

// moveOrRelease begins to hand the seat to a node that has room for it; with
// none, or when the handoff cannot even begin, it gives the seat back plainly,
// as the source text has it. It reports false when the seat is on its way
// already, or is not one that could go.
func (h *Host) moveOrRelease(ctx context.Context, handle string, to events.Incarnation, by string, saga events.HandoffReason, plain events.Reason) bool {
	if !h.beginMove(handle) {
		return false
	}
	h.work.Go(func() {
		defer h.endMove(handle)
		if to != "" {
			_, err := h.handOff(ctx, handle, to, saga, by)
			var already *sagas.OpenError
			if err == nil || errors.As(err, &already) {
				return
			}
			h.log.Warn(logHandoffRefused, keySeat, handle, "to", to, keyErr, err)
		}
		if epoch, ok := h.startLeaving(handle, plain); ok {
			// A teardown that began is finished within its own bounds: what ends ctx,
			// a drain's deadline, must not abandon the turn in flight.
			h.release(context.WithoutCancel(ctx), handle, epoch, Voluntary, plain)
		}
	})
	return true
}

// beginMove says whether the seat runs here and nobody is getting rid of it.
func (h *Host) beginMove(handle string) bool {
	_, open := h.runner.open(handle)
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.held[handle]
	if !ok || open || s.phase != held || s.over || s.moving {
		return false
	}
	s.moving = true
	return true
}

func (h *Host) endMove(handle string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.held[handle]; ok {
		s.moving = false
	}
}

func effectName(e sagas.Effect) string { return fmt.Sprintf("%T", e) }
