package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/requestreply"
	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/events"
)

// Ask sends a command to a node and returns its reply. It sends once and waits
// until ctx ends, at most MaxAsk. Instead of a reply there can be:
//
//   - a *CommandRefusedError: the node's answer, and final for this id
//   - a *RefusedError: the command is malformed or too large, nothing was sent
//   - events.ErrUnavailable: no process listens for the node, it stops, it could
//     not do it now, or nothing was sent. Nothing was done.
//   - events.ErrBusy: too much is under way there, or here. Nothing was done.
//   - events.ErrUnknown: sent, and the answer did not come, or says so itself. The
//     command may have been carried out, or be later. To settle it, ask again
//     with the same id.
func (b *Bus) Ask(ctx context.Context, node, name string, req Request) (json.RawMessage, error) {
	reply, err := b.ask(ctx, node, name, req)
	if err != nil {
		return nil, fmt.Errorf("ask node %s to %s: %w", node, name, err)
	}
	return reply, nil
}

func (b *Bus) ask(ctx context.Context, node, name string, req Request) (json.RawMessage, error) {
	if err := checkRequest(node, name, req); err != nil {
		return nil, err
	}
	line := b.running.Load()
	switch {
	case line == nil:
		return nil, fmt.Errorf("%w: the bus between nodes does not run", events.ErrUnavailable)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: nothing was sent: %w", events.ErrUnavailable, context.Cause(ctx))
	}
	ctx, cancel := line.conn.bound(ctx, MaxAsk)
	defer cancel()
	deadline, _ := ctx.Deadline()
	reply, err := requestreply.SendWithReply(ctx, line.send, line, &busCommand{
		node: node, Name: name, ID: req.ID, For: req.For, From: b.cfg.Self, Actor: req.Actor, Reason: req.Reason,
		Budget: max(1, time.Until(deadline).Milliseconds()), Args: req.Args,
	})
	switch {
	case errors.Is(err, events.ErrBusy):
		return nil, err
	case err != nil:
		return nil, sendError(err)
	case errors.Is(reply.Error, nats.ErrNoResponders):
		return nil, fmt.Errorf("%w: no process of that node is connected; is it running, and its id right?", events.ErrUnavailable)
	case reply.Error != nil:
		return nil, fmt.Errorf("%w: %w", events.ErrUnknown, reply.Error)
	}
	return reply.HandlerResult.result()
}

func checkRequest(node, name string, req Request) error {
	why := ""
	switch {
	case events.ValidHandle(node) != nil:
		why = fmt.Sprintf("%q is not a node id", node)
	case events.ValidHandle(name) != nil:
		why = fmt.Sprintf("%q is not a command's name", name)
	case req.ID == "" || len(req.ID) > maxCommandID:
		why = fmt.Sprintf("the command's id needs 1 to %d characters", maxCommandID)
	case len(req.Args) > MaxBusPayload:
		why = fmt.Sprintf("the arguments have %d bytes; at most %d are sent", len(req.Args), MaxBusPayload)
	case len(req.Actor)+len(req.Reason) > maxMessageOf:
		why = fmt.Sprintf("actor and reason have more than %d bytes", maxMessageOf)
	case len(req.Args) > 0 && !json.Valid(req.Args):
		why = "the arguments are no JSON"
	default:
		return nil
	}
	return &RefusedError{Why: why}
}
