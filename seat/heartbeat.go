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

// heartbeats renews until ctx ends.
func (h *Host) heartbeats(ctx context.Context) {
	heartbeat := float64(h.cfg.Heartbeat())
	for pause := earliestBeat; ; {
		timer := time.NewTimer(time.Duration(pause * heartbeat))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = earliestBeat + beatSpread*rand.Float64()
		if !h.beat(ctx) {
			pause = retryBeat
		}
		h.retry(ctx)
	}
}

// beat renews everything this node holds in one round and says whether all of
// it was answered.
func (h *Host) beat(ctx context.Context) bool {
	ts := h.renewable()
	if len(ts) == 0 {
		return true
	}
	sent := h.deps.Now() // before the first send: nothing later is proven by it
	round, cancel := context.WithTimeout(ctx, h.cfg.Heartbeat())
	results := h.deps.Leases.Renew(round, ts)
	cancel()
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
			answered = false
			h.unanswered(ctx, r)
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

// unanswered handles a renewal nobody answered: it says nothing of ownership,
// so the seat is kept (A2), until the time it bought is over (A3).
func (h *Host) unanswered(ctx context.Context, r commands.Renewed) {
	t := r.Tenure
	h.mu.Lock()
	var over bool
	if t.Lease.Kind == events.KindNode {
		over = clock.HolderElapsed(h.proved, h.deps.Now()) >= h.cfg.TTL
	} else if s, ok := h.held[t.Lease.ID]; ok {
		over = h.expired(s)
	}
	h.mu.Unlock()
	h.log.Warn(logRenewUnknown, "lease", t.Lease.String(), keyEpoch, t.Epoch, keyErr, r.Err)
	if over {
		h.lost(ctx, t, events.ReasonTTLGrace)
	}
}

// lost ends what this node does under a tenure that it has lost, or can no
// longer prove: a fenced release (H5).
func (h *Host) lost(ctx context.Context, t commands.Tenure, reason events.Reason) {
	h.mu.Lock()
	if t.Lease.Kind == events.KindNode {
		if h.presence != nil && h.presence.Epoch == t.Epoch {
			h.presence = nil
		}
		h.mu.Unlock()
		h.log.Warn(logPresenceLost, keyEpoch, t.Epoch, keyReason, reason)
		h.Wake()
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
		h.work.Go(func() { h.release(ctx, t.Lease.ID, Fenced, reason) })
	}
}
