package seat_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// history is what hosts asked of the leases and were answered, in the order in
// which it was asked and answered.
type history struct {
	tick atomic.Int64

	mu  sync.Mutex
	ops []porcupine.Operation // guarded by mu
}

// act is one thing that was asked.
type act struct {
	what   string // claim, renew, release, read
	handle string
	owner  events.Incarnation
	epoch  uint64 // of the tenure that is renewed or released
}

// answer is what came back.
type answer struct {
	how   string // ok, refused, unknown
	lease lease  // of an ok claim or read
}

// lease is the model's state: who has the seat by the log.
type lease struct {
	epoch uint64
	owner events.Incarnation
	held  bool
}

// note begins an operation; the function that it returns ends it. An operation
// whose outcome stays unknown is never over: it may take effect at any time.
func (h *history) note(a act) func(answer) {
	call := h.tick.Add(1)
	return func(out answer) {
		back := h.tick.Add(1)
		if out.how == "unknown" {
			back = math.MaxInt64
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ops = append(h.ops, porcupine.Operation{Input: a, Call: call, Output: out, Return: back})
	}
}

func (h *history) all() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]porcupine.Operation(nil), h.ops...)
}

// handedOver adds the releases that hosts wrote together with a handoff's step,
// which the log alone tells of: each may have taken effect at any time.
func (h *history) handedOver(f *seattest.Fleet) {
	for _, r := range f.History(events.StreamFleet) {
		e, is := r.Event.(events.LeaseReleased)
		if is && e.Lease.Kind == events.KindSeat && e.Successor != "" {
			h.note(act{"release", e.Lease.ID, e.Owner, e.Epoch})(answer{how: "unknown"})
			h.mu.Lock()
			h.ops[len(h.ops)-1].Call = 0
			h.mu.Unlock()
		}
	}
}

// watched notes what a host does with seats' leases.
type watched struct {
	seat.Leases
	self events.Incarnation
	into *history
}

func (w watched) Claim(ctx context.Context, l events.Lease, c commands.Claim, unseen commands.Unseen) (commands.Tenure, error) {
	if l.Kind != events.KindSeat {
		return w.Leases.Claim(ctx, l, c, unseen)
	}
	done := w.into.note(act{what: "claim", handle: l.ID, owner: w.self})
	t, err := w.Leases.Claim(ctx, l, c, unseen)
	var held *aggregates.HeldError
	switch {
	case err == nil:
		done(answer{"ok", lease{t.Epoch, t.Owner, true}})
	case errors.As(err, &held):
		done(answer{how: "refused"})
	case errors.Is(err, events.ErrUnknown):
		done(answer{how: "unknown"})
	} // else nothing was stored, and nothing learned
	return t, err
}

func (w watched) Renew(ctx context.Context, ts []commands.Tenure) []commands.Renewed {
	ends := make([]func(answer), len(ts))
	for i, t := range ts {
		ends[i] = w.into.note(act{"renew", t.Lease.ID, t.Owner, t.Epoch})
	}
	out := w.Leases.Renew(ctx, ts)
	for i, r := range out {
		switch {
		case r.Tenure.Lease.Kind != events.KindSeat:
		case r.Err == nil:
			ends[i](answer{how: "ok"})
		case r.Refused():
			ends[i](answer{how: "refused"})
		} // an unknown renewal changes nothing that the model has
	}
	return out
}

func (w watched) Release(ctx context.Context, t commands.Tenure, reason events.Reason) error {
	if t.Lease.Kind != events.KindSeat {
		return w.Leases.Release(ctx, t, reason)
	}
	done := w.into.note(act{"release", t.Lease.ID, t.Owner, t.Epoch})
	err := w.Leases.Release(ctx, t, reason)
	var ended *aggregates.EndedError
	switch {
	case err == nil:
		done(answer{how: "ok"})
	case errors.As(err, &ended):
		done(answer{how: "refused"})
	case errors.Is(err, events.ErrUnknown):
		done(answer{how: "unknown"})
	}
	return err
}

func (w watched) Lease(ctx context.Context, l events.Lease) (aggregates.Lease, error) {
	if l.Kind != events.KindSeat {
		return w.Leases.Lease(ctx, l)
	}
	done := w.into.note(act{what: "read", handle: l.ID})
	now, err := w.Leases.Lease(ctx, l)
	if err == nil {
		done(answer{"ok", lease{now.Epoch, now.Owner, now.Status != aggregates.LeaseFree}})
	}
	return now, err
}

// leases says what a seat's lease may answer, one seat at a time. Time is not in
// it: that a claim over a held lease came late enough is the log clock's word.
var leases = porcupine.NondeterministicModel{
	Init: func() []any { return []any{lease{}} },
	Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range ops {
			handle := op.Input.(act).handle
			by[handle] = append(by[handle], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Step: func(state, input, output any) []any { return step(state.(lease), input.(act), output.(answer)) },
}

func step(s lease, a act, out answer) []any {
	mine := s.held && s.owner == a.owner && s.epoch == a.epoch
	next := lease{s.epoch + 1, a.owner, true}
	free := lease{epoch: s.epoch}
	switch a.what + " " + out.how {
	case "claim ok":
		return only(out.lease == next, next)
	case "claim refused":
		return only(s.held, s)
	case "claim unknown":
		return []any{s, next}
	case "renew ok":
		return only(mine, s)
	case "renew refused":
		return only(!mine, s)
	case "release ok":
		if mine {
			return []any{free}
		}
		return only(!s.held && s.epoch == a.epoch, s)
	case "release refused":
		return only(!mine, s)
	case "release unknown":
		if mine {
			return []any{s, free}
		}
		return []any{s}
	case "read ok":
		return only(out.lease == s, s)
	}
	panic("no step for " + a.what + " " + out.how)
}

func only(ok bool, s lease) []any {
	if !ok {
		return nil
	}
	return []any{s}
}
