package seat

import (
	"context"
	"errors"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// What the effects of a handoff do here, one at a time for each seat.

// perform does one effect and returns after which pause to look again, 0 for
// only when something happens.
func (r *runner) perform(ctx context.Context, s sagas.Handoff, effect sagas.Effect) time.Duration {
	h, handle := r.h, s.Handle
	var err error
	switch e := effect.(type) {
	case sagas.Warm: // nothing of a seat can be brought ahead of its claim yet but the node itself
		err = r.step(ctx, handle, sagas.MarkWarmed{Saga: e.Saga, By: h.deps.Self})
	case sagas.Quiesce:
		if err = r.quiesce(ctx, s, e); errors.Is(err, errNoPlace) {
			return 0 // it is kicked when there is one
		}
	case sagas.Flush:
		if h.flush(ctx, s) {
			err = r.step(ctx, handle, sagas.MarkFlushed{Saga: e.Saga, By: h.deps.Self})
		}
	case sagas.Release:
		err = h.handOver(ctx, s, e)
	case sagas.Claim:
		if err = h.acquire(ctx, handle, e.Saga, r.freed(handle, false)); errors.Is(err, errNotWon) {
			return stepAgain
		}
	case sagas.Complete:
		dark, known := h.deps.LogClock.UnseenFor(e.Quiesced)
		_, err = h.deps.Handoffs.Handoff(ctx, handle, func(_ sagas.Handoff, l aggregates.Lease) sagas.HandoffCommand {
			return sagas.CompleteHandoff{Saga: e.Saga, By: h.deps.Self, Lease: l, DarkFor: dark}
		})
		if err == nil && known && h.deps.Observe != nil {
			h.deps.Observe.Received(dark)
		}
	case sagas.Decline:
		_, err = h.deps.Handoffs.Handoff(ctx, handle, func(_ sagas.Handoff, l aggregates.Lease) sagas.HandoffCommand {
			return sagas.DeclineHandoff{Saga: e.Saga, By: h.deps.Self, Cause: e.Cause, Lease: l}
		})
	case sagas.Unhold:
		h.deps.Gates.Lift(e.Handle, func(holds sagas.Holds) sagas.Holds { return holds.LiftHandoffs(e.Through) })
	case sagas.GiveUp:
		h.giveUp(ctx, s, e)
	case sagas.Abandon:
		return r.abandon(ctx, s, e)
	}
	return r.answered(s, effect, err)
}

// answered says what an effect's error means for trying again. A refusal needs
// nothing: the event that made it one is on its way, or here.
func (r *runner) answered(s sagas.Handoff, effect sagas.Effect, err error) time.Duration {
	if err == nil {
		return 0
	}
	r.h.log.Debug(logHandoffStep, keySaga, s.ID(), "effect", effectName(effect), keyErr, err)
	if errors.Is(err, events.ErrUnknown) || errors.Is(err, events.ErrUnavailable) || errors.Is(err, events.ErrBusy) {
		return stepAgain
	}
	return 0
}

func (r *runner) step(ctx context.Context, handle string, cmd sagas.HandoffCommand) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_, err := r.h.deps.Handoffs.Handoff(ctx, handle, func(sagas.Handoff, aggregates.Lease) sagas.HandoffCommand { return cmd })
	return err
}

// abandon gives the handoff up once its newest event is old enough, and says
// when to look again until then.
func (r *runner) abandon(ctx context.Context, s sagas.Handoff, e sagas.Abandon) time.Duration {
	unseen, known := r.h.deps.LogClock.UnseenFor(e.Last)
	if !known && e.After > 0 {
		return time.Second
	}
	if unseen < e.After {
		return e.After - unseen + time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	_, err := r.h.deps.Handoffs.Handoff(ctx, s.Handle, func(_ sagas.Handoff, l aggregates.Lease) sagas.HandoffCommand {
		return sagas.AbandonHandoff{Saga: e.Saga, Cause: e.Cause, By: string(r.h.deps.Self), Unseen: unseen, Known: known, Lease: l}
	})
	if err == nil {
		r.h.log.Warn(logHandoffAbandoned, keySaga, e.Saga, "step", s.Step(), "cause", e.Cause)
	}
	return r.answered(s, e, err)
}
