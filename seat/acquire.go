package seat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// claimTimeout bounds a claim, which goes on when the node is told to stop: cut
// short it would leave a lease that nobody gives back before it lapses (L4).
const claimTimeout = 30 * time.Second

// setUpTimeout bounds how long a claimed seat may take to be established. A stage
// that outlives its context stalls the pass, which is the watchdog's to end.
const setUpTimeout = time.Minute

// acquireTimeout is how long an acquisition may take whose stages keep to their
// contexts, the way back included.
const acquireTimeout = claimTimeout + setUpTimeout + teardownTimeout + stepTimeout

// errNotWon: the seat is not won by this try, and all that is to be said of it
// was said: it is on this node already, or still, the node is leaving, or the
// seat could not be established.
var errNotWon = errors.New("not won")

// acquire claims the seat and establishes it: cursors taken over, stages up in
// order (H1). Whatever fails after the claim ends in a fenced release. Errors
// of the claim itself are the caller's to judge; saga names the handoff that
// reserved the seat for this node, or nothing; seen is the lease as the log was
// last seen to have it, where that is known to be free: *aggregates.HeldError says
// whose seat it is, events.ErrUnknown that the claim may stand, which a later
// pass finds in this incarnation's name and gives back (L4); errNotWon.
func (h *Host) acquire(ctx context.Context, handle, saga string, seen *aggregates.Lease) error {
	lock := h.locks.of(handle)
	if !lock.TryLock() {
		return errNotWon // it is being released; a pass waits for no seat
	}
	defer lock.Unlock()
	if h.leavingOrHolds(handle) {
		return errNotWon
	}
	sent, began := h.deps.Now(), time.Now()
	finish := context.WithoutCancel(ctx)
	claiming, cancel := context.WithTimeout(finish, claimTimeout)
	defer cancel()
	claim := h.claim()
	claim.Saga, claim.Seen = saga, seen
	t, err := h.deps.Leases.Claim(claiming, events.SeatLease(handle), claim, h.deps.LogClock.UnseenFor)
	h.observeStep(StepClaim, outcomeOf(err), began)
	if err != nil {
		return err
	}
	h.log.Info(logClaimed, keySeat, handle, keyEpoch, t.Epoch)
	h.mu.Lock()
	h.held[handle] = &holding{tenure: t, phase: acquiring, good: sent}
	late := h.draining || h.cordoned || ctx.Err() != nil
	h.mu.Unlock()
	if late { // the drain, or the cordon, began while the claim was in flight (P6)
		h.teardown(finish, handle, Voluntary, events.ReasonDrain)
		return errNotWon
	}
	err = h.establish(ctx, t)
	h.observeStep(StepEstablish, outcomeOf(err), began)
	var older *OlderError
	switch {
	case errors.As(err, &older):
		h.teardown(finish, handle, Voluntary, events.ReasonOlder)
		return err
	case err != nil:
		reason := events.ReasonAcquireFailed
		if ctx.Err() != nil {
			reason = events.ReasonDrain // the node was told to stop half-way
		} else {
			h.log.Error(logAcquireFailed, keySeat, handle, keyEpoch, t.Epoch, keyErr, err)
		}
		h.teardown(finish, handle, Fenced, reason)
		return errNotWon
	}
	return nil
}

// establish brings a claimed seat up. The caller holds the seat's lock.
func (h *Host) establish(ctx context.Context, t commands.Tenure) error {
	handle := t.Lease.ID
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	m, err := h.deps.Takeover.TakeOver(ctx, t)
	if err != nil {
		return err
	}
	// The takeover took its time, so the view is mostly there already.
	if err := h.gateClaim(ctx, t.Last); err != nil {
		return err
	}
	up, err := h.bringUp(ctx, m)
	h.mu.Lock()
	s := h.held[handle]
	s.up = up
	if err == nil && s.over {
		err = &NotHeldError{handle, t.Epoch} // a renewal was refused meanwhile
	}
	if err == nil {
		s.phase = held // from here on MayStart may say yes (H2)
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	h.log.Info(logAttached, keySeat, handle, keyEpoch, t.Epoch)
	h.deps.Renewed([]string{handle})
	var ended *aggregates.EndedError
	if err := h.deps.Reporter.Established(ctx, t); errors.As(err, &ended) {
		return fmt.Errorf("lost while it was being established: %w", err)
	} else if err != nil {
		h.log.Warn(logReportFailed, keySeat, handle, keyEpoch, t.Epoch, keyErr, err)
	}
	return nil
}

func (h *Host) leavingOrHolds(handle string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, holds := h.held[handle]
	return holds || h.draining || h.cordoned
}

// claim is what this node brings to a seat's lease.
func (h *Host) claim() commands.Claim {
	return commands.Claim{
		Preferred: h.cfg.NodeID, TTL: h.cfg.TTL, Protocol: h.cfg.Protocol,
		Local: h.cfg.Local, DeadLocal: h.cfg.Local, // this boot has the directory's lock
	}
}

// giveBack ends a tenure in this incarnation's name that it neither holds nor
// is acquiring: a claim of unknown outcome that landed, or a seat dropped
// without a release (design §10, schedule 4). Judged under the seat's lock.
func (h *Host) giveBack(ctx context.Context, handle string) {
	lock := h.locks.of(handle)
	if !lock.TryLock() {
		return // it is being acquired or released; the next pass looks again
	}
	defer lock.Unlock()
	h.mu.Lock()
	_, holds := h.held[handle]
	h.mu.Unlock()
	if holds {
		return
	}
	lease := events.SeatLease(handle)
	now, err := h.deps.Leases.Lease(ctx, lease)
	if err != nil || now.Status == aggregates.LeaseFree || now.Owner != h.deps.Self {
		return
	}
	t := commands.Tenure{Lease: lease, Owner: now.Owner, Epoch: now.Epoch, Last: now.Last, Local: now.Local}
	err = h.deps.Leases.Release(ctx, t, events.ReasonNotHeld)
	h.log.Warn(logGaveBack, keySeat, handle, keyEpoch, now.Epoch, keyErr, err)
}
