package seat

import (
	"context"
	"errors"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// teardownTimeout bounds one attempt to take a seat's stages down. The stages'
// own bounds are shorter.
const teardownTimeout = time.Minute

// alarmBeats is how many heartbeats lie between two alarms of an undead seat.
const alarmBeats = 20

// release tears down what this node has of the seat at that epoch and gives the
// lease back. It waits for an acquisition under way. By then the tenure may be
// over and the seat here again under another: that one is left alone.
func (h *Host) release(ctx context.Context, handle string, epoch uint64, mode Mode, reason events.Reason) {
	lock := h.locks.of(handle)
	lock.Lock()
	defer lock.Unlock()
	h.mu.Lock()
	s, ok := h.held[handle]
	meant := ok && s.tenure.Epoch == epoch
	h.mu.Unlock()
	if meant {
		h.teardown(ctx, handle, mode, reason)
	}
}

// startLeaving closes admission at once, before the teardown gets its turn. It
// says which tenure leaves, and false when none does that is not leaving already.
func (h *Host) startLeaving(handle string, reason events.Reason) (epoch uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.held[handle]
	if !ok || s.phase != held || s.over {
		return 0, false
	}
	s.phase, s.mode, s.reason = leaving, Voluntary, reason
	return s.tenure.Epoch, true
}

// teardown is release under the seat's lock: leaving → letGo → gone, or undead
// where a stage cannot be proven down (H6). A seat already leaving keeps its
// first reason.
func (h *Host) teardown(ctx context.Context, handle string, mode Mode, reason events.Reason) {
	h.mu.Lock()
	s, ok := h.held[handle]
	if !ok {
		h.mu.Unlock()
		return
	}
	if s.phase == acquiring || s.phase == held {
		s.phase = leaving
		if !s.over {
			s.mode, s.reason = mode, reason
		}
	}
	up, going := s.up, s.phase != letGo
	mode, reason = s.mode, s.reason
	if mode == Voluntary && h.expired(s) {
		mode = Fenced // what was a wish is a loss by now
	}
	h.mu.Unlock()
	if going && !h.stagesDown(ctx, handle, up, mode, reason, letGo) {
		return
	}
	h.sendRelease(ctx, handle)
}

// stagesDown takes the stages down and says whether that is proven; if so, the
// seat is in the phase that follows.
func (h *Host) stagesDown(ctx context.Context, handle string, up int, mode Mode, reason events.Reason, then phase) bool {
	ctx, cancel := context.WithTimeout(ctx, teardownTimeout)
	defer cancel()
	left, err := h.tearDown(ctx, handle, up, mode)
	h.mu.Lock()
	s := h.held[handle]
	s.up = left
	epoch, was := s.tenure.Epoch, s.phase
	if err != nil {
		if s.phase != undead {
			s.phase, s.unproven, s.beats = undead, h.deps.Now(), 0
		}
		s.attempts++
	} else {
		s.phase = then // from here on the fence is closed, whatever the answer
	}
	since, t := s.unproven, s.tenure
	h.mu.Unlock()
	switch {
	case err != nil && was != undead:
		h.log.Error(logUnproven, keySeat, handle, keyEpoch, epoch, keyErr, err,
			"do", "nothing yet: the teardown is tried again at every heartbeat")
		h.tell(ctx, t, h.deps.Reporter.Unproven)
	case err == nil && was == undead:
		h.log.Info(logRecovered, keySeat, handle, keyEpoch, epoch, "after", clock.HolderElapsed(since, h.deps.Now()))
		h.tell(ctx, t, h.deps.Reporter.Proven)
	}
	if err == nil {
		h.log.Info(logDetached, keySeat, handle, keyEpoch, epoch, keyReason, reason)
		if reason == events.ReasonRoleGone {
			h.log.Info(logRoleGone, keySeat, handle, keyEpoch, epoch)
		}
	}
	return err == nil
}

// tell reports for people; a report that does not arrive changes nothing.
func (h *Host) tell(ctx context.Context, t commands.Tenure, report func(context.Context, commands.Tenure) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	if err := report(ctx, t); err != nil {
		h.log.Debug(logReportFailed, keySeat, t.Lease.ID, keyEpoch, t.Epoch, keyErr, err)
	}
}

// sendRelease gives the lease back. While that is not answered the seat stays
// letGo and is tried again at the next heartbeat; it is no longer renewed, so
// at worst it lapses.
func (h *Host) sendRelease(ctx context.Context, handle string) {
	h.mu.Lock()
	s := h.held[handle]
	t, reason := s.tenure, s.reason
	h.mu.Unlock()
	err := h.deps.Leases.Release(ctx, t, reason)
	var ended *aggregates.EndedError
	if err != nil && !errors.As(err, &ended) {
		h.log.Warn(logReleaseUnknown, keySeat, handle, keyEpoch, t.Epoch, keyErr, err)
		return
	}
	h.gone(handle)
}

// retry takes up teardowns and releases that did not succeed (H6). Each runs on
// its own, so that a stage that hangs holds up no heartbeat.
func (h *Host) retry(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for handle, s := range h.held {
		if s.phase != undead && s.phase != letGo {
			continue
		}
		if s.phase == undead {
			if s.beats++; s.beats%alarmBeats == 0 {
				h.log.Error(logStillUnproven, keySeat, handle, keyEpoch, s.tenure.Epoch,
					"unproven_seconds", int(clock.HolderElapsed(s.unproven, h.deps.Now()).Seconds()), "attempts", s.attempts,
					"do", "restart this node when its other seats can move; only that frees the seat")
			}
		}
		lock := h.locks.of(handle)
		if !lock.TryLock() {
			continue // the attempt before still runs
		}
		reason := s.reason
		h.work.Go(func() {
			defer lock.Unlock()
			h.teardown(ctx, handle, Fenced, reason)
		})
	}
}
