package seat

import (
	"context"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Progress is told how a node empties: the seats that it still has, and what
// each one waits for.
type Progress func(left map[string]string)

// Cordon stops this node from claiming, or lets it again; it keeps what it
// holds. A cordon lasts as long as the process (P6).
func (h *Host) Cordon(ctx context.Context, on bool) error {
	h.mu.Lock()
	h.cordoned = on
	h.mu.Unlock()
	h.Wake()
	return h.reportPresence(ctx)
}

// Drain cordons this node and gives every seat up, by handoff where a node has
// room for it. It returns when the last teardown is proven and the last lease
// given back, or with the cause of ctx; the node stays up, and cordoned.
func (h *Host) Drain(ctx context.Context, by string, progress Progress) error {
	h.setEmptying(true)
	if err := h.Cordon(ctx, true); err != nil {
		h.log.Warn(logReportFailed, "what", "cordon", keyErr, err)
	}
	err := h.empty(ctx, by, progress)
	h.setEmptying(false)
	told := context.WithoutCancel(ctx)
	if failed := h.reportPresence(told); failed != nil {
		h.log.Warn(logReportFailed, "what", "drained", keyErr, failed)
	}
	return err
}

func (h *Host) setEmptying(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.emptying = on
}

// Hurry gives every seat back at once: turns in flight are abandoned, and what
// they had not settled is run by the next holder.
func (h *Host) Hurry(ctx context.Context) {
	ctx = context.WithoutCancel(ctx) // it is called when everything else has ended
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, handle := range h.handles() {
		epoch := h.held[handle].tenure.Epoch
		h.work.Go(func() { h.release(ctx, handle, epoch, Fenced, events.ReasonDrain) })
	}
}

// empty hands over or gives back everything this node has. A seat whose handoff
// came to nothing is given back plainly.
func (h *Host) empty(ctx context.Context, by string, progress Progress) error {
	tried := map[string]bool{}
	targets := func(string) events.Incarnation { return "" }
	if sight, err := h.deps.Fleet.Look(ctx); err == nil {
		targets = h.targets(sight, h.view(sight, nil))
	}
	for {
		left := h.left()
		if progress != nil {
			progress(left)
		}
		if len(left) == 0 {
			return nil
		}
		for handle := range left {
			to := events.Incarnation("")
			if !tried[handle] {
				to = targets(handle)
			}
			if h.moveOrRelease(ctx, handle, to, by, events.HandoffDrain, events.ReasonDrain) {
				tried[handle] = true
			}
		}
		again := time.NewTimer(h.cfg.Heartbeat())
		select {
		case <-ctx.Done():
			again.Stop()
			return context.Cause(ctx)
		case <-h.freed:
		case <-again.C:
		}
		again.Stop()
	}
}

// left says what each seat that is still here waits for. One that will free
// itself by now, because its tenure has run out, is not waited for.
func (h *Host) left() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := map[string]string{}
	for handle, s := range h.held {
		if h.expired(s) {
			continue
		}
		if to, open := h.runner.open(handle); open {
			left[handle] = "its handoff to " + to.NodeID()
			continue
		}
		switch s.phase {
		case acquiring, held:
			left[handle] = "its turn to be given up"
		case leaving:
			left[handle] = "its turn in flight"
		case undead:
			left[handle] = "a teardown that keeps failing"
		case flushed, letGo:
			left[handle] = "the broker's answer to its release"
		}
	}
	return left
}
