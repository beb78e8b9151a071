package graph

import (
	"context"
	"errors"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
)

// DrainNode begins to empty a node.
func (m mutationResolver) DrainNode(ctx context.Context, id string, deadline *time.Duration, reason string) (model.OperationResult, error) {
	limit := usualDrain
	if deadline != nil {
		limit = *deadline
	}
	if limit < time.Millisecond || limit > maxDrain { // less is no time at all to the node, which then ends a drain
		return nil, model.Badf("deadline", "%s is not between %s and %s", limit, time.Millisecond, maxDrain)
	}
	return m.onNode(ctx, id, reason, DrainNode{id, limit})
}

// CordonNode makes a node claim nothing.
func (m mutationResolver) CordonNode(ctx context.Context, id, reason string) (model.OperationResult, error) {
	return m.onNode(ctx, id, reason, CordonNode{id, true})
}

// UncordonNode lets a node claim again.
func (m mutationResolver) UncordonNode(ctx context.Context, id, reason string) (model.OperationResult, error) {
	return m.onNode(ctx, id, reason, CordonNode{id, false})
}

// MoveSeat hands a seat over to a node.
func (m mutationResolver) MoveSeat(ctx context.Context, handle, to, reason string) (model.OperationResult, error) {
	if err := token("to", to); err != nil {
		return nil, err
	}
	return m.onSeat(ctx, handle, reason, MoveSeat{handle, to})
}

// ReleaseSeat makes the holder give a seat back.
func (m mutationResolver) ReleaseSeat(ctx context.Context, handle, reason string) (model.OperationResult, error) {
	return m.onSeat(ctx, handle, reason, ReleaseSeat{handle})
}

// FenceSeat ends the holder's renewals.
func (m mutationResolver) FenceSeat(ctx context.Context, handle, reason string) (model.OperationResult, error) {
	return m.onSeat(ctx, handle, reason, FenceSeat{handle})
}

// PauseSeat holds a seat's mail.
func (m mutationResolver) PauseSeat(ctx context.Context, handle string, stopTurn *bool, reason string) (model.OperationResult, error) {
	return m.onSeat(ctx, handle, reason, PauseSeat{handle, stopTurn != nil && *stopTurn})
}

// RetireMailbox retires the mailbox of a removed seat.
func (m mutationResolver) RetireMailbox(ctx context.Context, handle string, now *bool, reason string) (model.OperationResult, error) {
	return m.onSeat(ctx, handle, reason, RetireMailbox{handle, now != nil && *now})
}

// ResumeSeat ends a pause.
func (m mutationResolver) ResumeSeat(ctx context.Context, handle, reason string) (model.OperationResult, error) {
	return m.onSeat(ctx, handle, reason, ResumeSeat{handle})
}

func (m mutationResolver) onNode(ctx context.Context, id, reason string, op Operation) (model.OperationResult, error) {
	if err := token("id", id); err != nil {
		return nil, err
	}
	return m.operate(ctx, reason, op)
}

func (m mutationResolver) onSeat(ctx context.Context, handle, reason string, op Operation) (model.OperationResult, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	return m.operate(ctx, reason, op)
}

// operate judges the reason, which travels in a header, and has the operation
// carried out. Only a refusal is a result: an error says that nobody knows, or
// that it was never tried.
func (m mutationResolver) operate(ctx context.Context, reason string, op Operation) (model.OperationResult, error) {
	if err := line("reason", reason, maxReason); err != nil {
		return nil, err
	}
	if !m.operators.enter() {
		return nil, model.Unavailablef("%d operations are under way already; ask again later", maxOperations)
	}
	defer m.operators.leave()
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	done, err := m.deps.Operator.Operate(ctx, Act{Actor: actorOf(ctx), Reason: reason}, op)
	var refused *RefusedError
	nothingDone := errors.Is(err, events.ErrUnavailable) || errors.Is(err, events.ErrBusy)
	switch {
	case errors.As(err, &refused):
		return model.Refusal{Code: refused.Code, Message: refused.Message}, nil
	case errors.Is(err, events.ErrUnknown), err != nil && ctx.Err() != nil && !nothingDone:
		return nil, &model.Error{
			Code:    model.Unavailable,
			Message: "whether it was done is not known; look, and ask again if it was not: doing it twice does no harm",
			More:    map[string]any{"outcome": "unknown"},
		}
	case err != nil:
		return nil, err
	}
	out := model.Accepted{Position: model.Position(done.Position)}
	if done.Saga != "" {
		out.SagaID = &done.Saga
	}
	return out, nil
}
