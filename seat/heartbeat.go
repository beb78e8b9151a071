package seat

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// Renewals are sent at 0.7 to 0.9 of a heartbeat, so that a healthy holder is
// never stale (A4); the jitter keeps a fleet's renewals apart.
const (
	earliestBeat = 0.7
	beatSpread   = 0.2
	// retryBeat is the pause after a round that was not answered, as a part of a
	// heartbeat: admission comes back with the first answer (A2).
	retryBeat = 0.1
)

// heartbeats renews until ctx ends. A round is due so long after the one before
// was begun, not ended: slow answers must not make a holder stale (A4).
func (h *Host) heartbeats(ctx context.Context) {
	duty := h.deps.Watchdog.Watch("heartbeat")
	defer duty.Done()
	for due := time.Now().Add(h.part(earliestBeat)); ; {
		timer := time.NewTimer(min(time.Until(due), h.untilExpiry()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		duty.Beat()
		h.expire(ctx)
		due = time.Now().Add(h.part(earliestBeat + beatSpread*rand.Float64()))
		if !h.beat(ctx) {
			due = time.Now().Add(h.part(retryBeat))
		}
		h.retry(ctx)
	}
}

// part is a part of a heartbeat.
func (h *Host) part(of float64) time.Duration {
	return time.Duration(of * float64(h.cfg.Heartbeat()))
}

// beat renews everything this node holds in one round and says whether all of
// it was answered.
func (h *Host) beat(ctx context.Context) bool {
	ts := h.renewable()
	if len(ts) == 0 {
		return true
	}
	began, sent := time.Now(), h.deps.Now() // before the first send: nothing later is proven by it
	round, cancel := context.WithTimeout(ctx, min(h.cfg.Heartbeat(), h.untilExpiry()))
	results := h.deps.Leases.Renew(round, ts)
	cancel()
	h.observeStep(StepRenew, outcomeOfAll(results), began)
	answered, renewed := true, []string(nil)
	for _, r := range results {
		seat := r.Tenure.Lease.Kind == events.KindSeat
		switch {
		case r.Err == nil:
			if h.renewed(r.Tenure, sent) && seat {
				renewed = append(renewed, r.Tenure.Lease.ID)
			}
		case r.Refused():
			h.lost(ctx, r.Tenure, events.ReasonRenewRefused)
		default:
			// It says nothing of ownership, so the seat is kept (A2), until the time
			// that it bought is over (A3).
			answered = false
			h.log.Warn(logRenewUnknown, "lease", r.Tenure.Lease.String(), keyEpoch, r.Tenure.Epoch, keyErr, r.Err)
		}
	}
	if len(renewed) > 0 {
		h.deps.Renewed(renewed)
	}
	return answered
}

// renewable lists the tenures of this node's presence and of every seat it has
// the lease of and has not let go.
func (h *Host) renewable() []commands.Tenure {
	h.mu.Lock()
	defer h.mu.Unlock()
	ts := make([]commands.Tenure, 0, len(h.held)+1)
	if h.presence != nil {
		ts = append(ts, *h.presence)
	}
	for _, handle := range h.handles() {
		if s := h.held[handle]; s.phase != letGo && !s.over {
			ts = append(ts, s.tenure)
		}
	}
	return ts
}

// renewed takes in a renewal that stands. It reports false when the tenure is
// not this node's any more, which the renewal cannot know.
func (h *Host) renewed(t commands.Tenure, sent clock.Instant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Lease.Kind == events.KindNode {
		if h.presence != nil && h.presence.Epoch == t.Epoch {
			h.presence.Last, h.proved = t.Last, sent
		}
		return true
	}
	s, ok := h.held[t.Lease.ID]
	if !ok || s.tenure.Epoch != t.Epoch {
		return false
	}
	s.tenure.Last, s.good = t.Last, sent
	if s.stale {
		s.stale = false
		h.log.Info(logAdmissionBack, keySeat, t.Lease.ID, keyEpoch, t.Epoch)
	}
	return true
}

// expiring calls fn for every tenure that ends by its holder's own clock, with
// the time it is still good for. Not among them are seats that were torn down,
// and undead ones: those are renewed for as long as the log lets them (H6). The
// caller holds h.mu.
func (h *Host) expiring(fn func(t commands.Tenure, left time.Duration)) {
	now := h.deps.Now()
	if h.presence != nil {
		fn(*h.presence, h.cfg.TTL-clock.HolderElapsed(h.proved, now))
	}
	for _, handle := range h.handles() {
		if s := h.held[handle]; !s.over && s.phase != undead && s.phase != letGo {
			fn(s.tenure, h.cfg.TTL-clock.HolderElapsed(s.good, now))
		}
	}
}

// untilExpiry is how long the first of this node's tenures is still good for: a
// heartbeat neither sleeps nor waits for an answer past it.
func (h *Host) untilExpiry() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.cfg.TTL
	h.expiring(func(_ commands.Tenure, left time.Duration) { first = min(first, left) })
	return max(0, first)
}

// expire gives up what had no good renewal for a whole TTL (A3).
func (h *Host) expire(ctx context.Context) {
	var over []commands.Tenure
	h.mu.Lock()
	h.expiring(func(t commands.Tenure, left time.Duration) {
		if left <= 0 {
			over = append(over, t)
		}
	})
	h.mu.Unlock()
	for _, t := range over {
		h.lost(ctx, t, events.ReasonTTLGrace)
	}
}

// lost ends what this node does under a tenure that it has lost, or can no
// longer prove: a fenced release (H5).
func (h *Host) lost(ctx context.Context, t commands.Tenure, reason events.Reason) {
	h.mu.Lock()
	if t.Lease.Kind == events.KindNode {
		mine := h.presence != nil && h.presence.Epoch == t.Epoch
		if mine {
			h.presence = nil
		}
		h.mu.Unlock()
		if mine { // not when it was given back while the renewal was on its way
			h.log.Warn(logPresenceLost, keyEpoch, t.Epoch, keyReason, reason)
			h.Wake()
		}
		return
	}
	s, ok := h.held[t.Lease.ID]
	mine := ok && s.tenure.Epoch == t.Epoch && !s.over
	if mine {
		s.over = true // admits nothing and fences everything from here on
		s.mode = Fenced
		if s.phase != undead && s.phase != leaving {
			s.reason = reason
		}
	}
	h.mu.Unlock()
	if mine {
		h.work.Go(func() { h.release(ctx, t.Lease.ID, t.Epoch, Fenced, reason) })
	}
}
