package seat

import (
	"context"
	"errors"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// ensurePresence claims this node's presence unless it has it, and says whether
// it has it now. While another incarnation holds it, this process takes no
// seats (L1): two processes under one node id would each count themselves as
// the node.
func (h *Host) ensurePresence(ctx context.Context) bool {
	h.mu.Lock()
	has, draining := h.presence != nil, h.draining
	h.mu.Unlock()
	if has || draining {
		return has
	}
	sent := h.deps.Now()
	// As a seat's claim: cut short it would keep the node's next process out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	said := h.facts()
	t, err := h.claimPresence(ctx, said)
	var other *aggregates.HeldError
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.presence, h.proved, h.clash, h.reported = &t, sent, "", said.CompanyRevision
		h.log.Info(logPresence, keyOwner, t.Owner, keyEpoch, t.Epoch)
	case errors.As(err, &other):
		h.clash = other.Owner
		if clock.HolderElapsed(h.started, h.deps.Now()) <= events.LapsesAfter(h.cfg.TTL) {
			// A predecessor that was killed looks the same until its presence lapses.
			h.log.Info(logNodeIDInUse, keyOwner, other.Owner, "do", "nothing yet: if the other process is gone, its presence lapses by itself")
		} else {
			h.log.Error(logNodeIDInUse, keyOwner, other.Owner, "do", "give this node another node.id, or stop the other process")
		}
	default:
		h.log.Warn(logSweepFailed, "what", "claim presence", keyErr, err)
	}
	return err == nil
}

func (h *Host) claimPresence(ctx context.Context, facts events.NodeFacts) (commands.Tenure, error) {
	lease := events.NodeLease(h.cfg.NodeID)
	c := h.claim()
	c.Node = &facts
	t, err := h.deps.Leases.Claim(ctx, lease, c, h.deps.LogClock.UnseenFor)
	var other *aggregates.HeldError
	if !errors.As(err, &other) || other.Owner != h.deps.Self {
		return t, err
	}
	// It is in this incarnation's own name: a claim whose answer was lost, or
	// one whose time ran out while the broker was away. Given back, then anew.
	mine := commands.Tenure{Lease: lease, Owner: other.Owner, Epoch: other.Epoch, Last: other.Last, Local: h.cfg.Local}
	if err := h.deps.Leases.Release(ctx, mine, events.ReasonNotHeld); err != nil {
		return t, err
	}
	return h.deps.Leases.Claim(ctx, lease, c, h.deps.LogClock.UnseenFor)
}

// facts is what this node says of itself.
func (h *Host) facts() events.NodeFacts {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.cfg.Facts
	f.Draining, f.Cordoned = h.draining || h.emptying, h.cordoned
	f.CompanyRevision = h.revision
	return f
}

// reportRevision lets the presence say which revision of the company this node
// has applied, if it says another.
func (h *Host) reportRevision(ctx context.Context) {
	h.mu.Lock()
	due := h.presence != nil && h.reported != h.revision
	h.mu.Unlock()
	if !due {
		return
	}
	if err := h.reportPresence(ctx); err != nil {
		h.log.Warn(logReportFailed, "what", "company revision", keyErr, err)
	}
}

// reportPresence tells the fleet what has changed about this node. Without a
// presence there is nothing to tell: the claim of one says it.
func (h *Host) reportPresence(ctx context.Context) error {
	h.mu.Lock()
	if h.presence == nil {
		h.mu.Unlock()
		return nil
	}
	p := *h.presence // a heartbeat may move it on meanwhile
	h.mu.Unlock()
	said := h.facts()
	t, err := h.deps.Leases.Report(ctx, p, said)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.presence != nil && h.presence.Epoch == t.Epoch {
		h.presence.Last, h.reported = t.Last, max(h.reported, said.CompanyRevision)
	}
	return nil
}

// dropPresence gives the presence back; if that is not answered it lapses.
func (h *Host) dropPresence(ctx context.Context) {
	h.mu.Lock()
	p := h.presence
	h.presence = nil
	h.mu.Unlock()
	if p == nil {
		return
	}
	if err := h.deps.Leases.Release(ctx, *p, events.ReasonDrain); err != nil {
		h.log.Warn(logReleaseUnknown, "lease", p.Lease.String(), keyEpoch, p.Epoch, keyErr, err)
	}
}
