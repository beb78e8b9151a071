package seat

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/placement"
	"github.com/seat-tenure/tenure/projections"
)

// Pass is what one sweep found and did (P14).
type Pass struct {
	Held, Capacity int
	Full           bool // fleet_full: the counts cover every placeable seat (P11)
	Unplaceable    []string
	Claimed        int
	Released       int
	// NextLapse is when the next lease that was refused, or the next peer's
	// presence, can lapse; 0 for none.
	NextLapse time.Duration

	end    SweepEnd
	behind bool
	groups []placement.Group // for the observer

	// The presences as this pass or a late one before it saw them, and as they
	// were seen about an interval before that: a seat is given back only if it
	// was too many in both (case 11).
	recent, earlier reading
}

type reading struct {
	nodes []placement.Node
	at    time.Time
}

// sweep runs one pass: presence, leases in its own name that it does not hold,
// what placement wants given back, what it wants claimed.
func (h *Host) sweep(ctx context.Context) Pass {
	h.sweeping.Waits(claimTimeout)
	if !h.ensurePresence(ctx) || !h.cfg.RunsSeats {
		h.reportRevision(ctx)
		return Pass{end: SweepIdle, NextLapse: h.presenceLapse(ctx)}
	}
	h.sweeping.Waits(claimTimeout)
	h.reportRevision(ctx)
	h.sweeping.Waits(claimTimeout)
	sight, err := h.deps.Fleet.Look(ctx)
	if errors.Is(err, projections.ErrNotServed) { // not level with the log yet (P10)
		h.log.Debug(logClaimsWithheld, keyErr, err)
		return Pass{end: SweepWithheld}
	}
	if err != nil {
		h.log.Warn(logSweepFailed, "what", "look at the fleet", keyErr, err)
		return Pass{end: SweepFailed}
	}
	h.giveBackUnheld(ctx, sight)
	seen := make(map[events.Incarnation]uint64, len(sight.Presences))
	for _, p := range sight.Presences {
		seen[p.Owner] = p.Last
	}
	h.mu.Lock()
	h.seen = seen
	before := h.lastPass
	h.mu.Unlock()
	recent, earlier := before.recent, before.earlier
	if recent.nodes != nil && time.Since(recent.at) >= h.cfg.SweepInterval*9/10 {
		earlier = recent
	}
	view := h.view(sight, earlier.nodes)
	if recent.nodes == nil || earlier.at.Equal(recent.at) {
		recent = reading{view.Nodes, time.Now()}
	}
	plan := placement.Sweep(view)
	if sight.Behind && before.behind {
		// It reads an older company, where seats may be missing that are back (P10,
		// R5). A view that is level falls behind with every batch, hence twice.
		plan.Decommissioned, plan.Moved = nil, nil
	}
	pass := Pass{
		end: SweepDone, Held: plan.Held, Capacity: plan.Capacity, Full: plan.Full, Unplaceable: plan.Unplaceable,
		recent: recent, earlier: earlier, behind: sight.Behind,
	}
	pass.Released = h.giveBackExcess(ctx, sight, view, plan)
	h.sweeping.Waits(gateTimeout)
	if h.gatePass(ctx, sight.Older) == nil {
		pass.Claimed, pass.NextLapse = h.claimPlanned(ctx, plan, sight.Owners)
	}
	for _, p := range sight.Presences { // a peer that dies frees its seats then
		if p.Owner != h.deps.Self && h.live(p) {
			pass.NextLapse = h.nextLapse(pass.NextLapse, p.Last)
		}
	}
	pass.groups = h.groupsAfter(sight, pass, plan)
	h.report(before, pass, plan)
	h.mu.Lock()
	h.lastPass = pass
	h.mu.Unlock()
	return pass
}

// presenceLapse is when the presence that keeps this node out can lapse.
func (h *Host) presenceLapse(ctx context.Context) time.Duration {
	now, err := h.deps.Leases.Lease(ctx, events.NodeLease(h.cfg.NodeID))
	if err != nil || now.Status == aggregates.LeaseFree {
		return 0
	}
	return h.nextLapse(0, now.Last)
}

// minLapseWait keeps a lease that lapsed and still cannot be claimed from
// making passes without end.
const minLapseWait = 50 * time.Millisecond

// nextLapse is the earlier of next, 0 for none, and when a lease whose newest
// event is at last can lapse, as far as that is known.
func (h *Host) nextLapse(next time.Duration, last uint64) time.Duration {
	wait, known := h.deps.LogClock.Earliest(last, h.cfg.TTL)
	wait = max(wait+time.Millisecond, minLapseWait)
	if !known || (next > 0 && next <= wait) {
		return next
	}
	return wait
}

// nextReserved is nextLapse for a seat that is reserved for another.
func (h *Host) nextReserved(next time.Duration, r *aggregates.ReservedError) time.Duration {
	age, known := h.deps.LogClock.UnseenFor(r.Last)
	wait := max(r.For-age+time.Millisecond, minLapseWait)
	if !known || (next > 0 && next <= wait) {
		return next
	}
	return wait
}

func (h *Host) giveBackUnheld(ctx context.Context, s Sight) {
	for handle, o := range s.Owners {
		if o.Held && o.Incarnation == h.deps.Self {
			h.sweeping.Waits(claimTimeout)
			h.giveBack(ctx, handle)
		}
	}
}

// giveBackExcess gives back what is not this node's to run, all of it, and what
// is over its share, within the pass's limit (P4).
//
// Each goes on its own: a turn that takes long to end holds up neither the
// other seats nor the pass. A seat that another node has room for is handed to
// it, which keeps it dark for as short as can be (design §5).
func (h *Host) giveBackExcess(ctx context.Context, s Sight, view placement.View, plan placement.Plan) int {
	ctx = context.WithoutCancel(ctx) // a teardown that began is finished, within its own bounds
	for _, handle := range plan.Decommissioned {
		if epoch, ok := h.startLeaving(handle, events.ReasonRoleGone); ok {
			h.work.Go(func() { h.release(ctx, handle, epoch, Voluntary, events.ReasonRoleGone) })
		}
	}
	targets := h.targets(s, view)
	move := func(handle string, saga events.HandoffReason, plain events.Reason) {
		if to := targets(handle); !h.declinedLately(handle, to) {
			h.moveOrRelease(ctx, handle, to, string(h.deps.Self), saga, plain)
		}
	}
	for _, handle := range plan.Moved {
		move(handle, events.HandoffMove, events.ReasonMoved)
	}
	for _, handle := range plan.Release {
		move(handle, events.HandoffRebalance, events.ReasonRebalance)
	}
	return len(plan.Release)
}

// targets chooses for each seat that leaves the process to hand it to; "" where
// no node has room for it.
func (h *Host) targets(s Sight, view placement.View) func(handle string) events.Incarnation {
	chosen, promised := view.Targets(), map[string]string{}
	return func(handle string) events.Incarnation {
		node, asked := promised[handle]
		if !asked { // asked again it would promise the room of another seat
			node = chosen.For(handle)
			promised[handle] = node
		}
		for _, p := range s.Presences {
			if node != "" && p.Owner.NodeID() == node && h.live(p) {
				return p.Owner
			}
		}
		return ""
	}
}

// claimPlanned tries the plan's candidates until the pass's limit (P2), and
// says when the next one that was refused can lapse.
func (h *Host) claimPlanned(ctx context.Context, plan placement.Plan, owners map[string]Owner) (claimed int, next time.Duration) {
	start, claims := time.Now(), plan.Claims()
	for h.cfg.Limits.mayClaim(claimed, time.Since(start), h.cfg.SweepInterval) {
		handle, ok := claims.Next()
		if !ok || ctx.Err() != nil {
			break
		}
		h.sweeping.Waits(acquireTimeout)
		err := h.acquire(ctx, handle, "", h.runner.freed(handle, owners[handle].Never))
		var other *aggregates.HeldError
		var reserved *aggregates.ReservedError
		switch {
		case err == nil:
			claimed++
			continue
		case errors.As(err, &other):
			next = h.nextLapse(next, other.Last)
		case errors.As(err, &reserved): // its handoff is under way
			next = h.nextReserved(next, reserved)
		case errors.Is(err, errNotWon):
		case errors.As(err, new(*OlderError)): // it came up since the pass looked
			return claimed, next
		default:
			// A log that does not answer for this seat answers for no other: each would
			// wait as long, and the pass with them.
			h.log.Warn(logAcquireFailed, keySeat, handle, keyErr, err)
			return claimed, next
		}
		claims.Lost(handle)
	}
	return claimed, next
}

// report logs the pass: at info on an edge, else at debug (P14).
func (h *Host) report(before, pass Pass, plan placement.Plan) {
	level := h.log.Debug
	if pass.Held != before.Held || pass.Capacity != before.Capacity || pass.Claimed+pass.Released > 0 {
		level = h.log.Info
	}
	level(logSweep, "held", pass.Held+pass.Claimed-pass.Released, "capacity", pass.Capacity,
		"fleet_full", pass.Full, "claimed", pass.Claimed, "released", pass.Released)
	if plan.WhyNone == placement.Behind {
		h.log.Debug(logClaimsWithheld)
	}
	if !slices.Equal(before.Unplaceable, pass.Unplaceable) && len(pass.Unplaceable) > 0 {
		h.log.Warn(logUnplaceable, "seats", pass.Unplaceable,
			"do", "start a node that these seats' placement matches, or change the placement in the company document")
	}
}
