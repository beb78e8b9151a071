package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// operator carries out what operators ask this node for: in the log where the
// log is all it takes, on this node's host, or over the bus on the node that is
// named or that holds the seat. It implements graph.Operator.
//
// A command that is asked for again does no harm: cordons and pauses are states,
// a second move of a seat is refused while the first goes on, and a second drain
// goes on with the new deadline.
type operator struct {
	n      *node
	log    *slog.Logger
	bus    *broker.Bus
	wishes chan drainWish
}

// Commands between nodes. Their arguments are busArgs, their replies busDone;
// fields are added, never changed: nodes of two versions speak to each other.
const (
	cmdDrain    = "node-drain"
	cmdCordon   = "node-cordon"
	cmdUncordon = "node-uncordon"
	cmdMove     = "seat-move"
	cmdRelease  = "seat-release"
)

type busArgs struct {
	Handle   string        `json:"handle,omitempty"`
	To       string        `json:"to,omitempty"`
	Deadline events.Millis `json:"deadline_ms,omitempty"`
}

type busDone struct {
	Position uint64 `json:"position"`
	Saga     string `json:"saga,omitempty"`
}

// work carries out one command on this node.
type work func(ctx context.Context, by graph.Act, a busArgs) (graph.Done, error)

// newOperator wires the bus, on a connection of its own: stopping drains it.
func newOperator(n *node) (*operator, error) {
	bus, err := broker.NewBus(broker.BusConfig{
		Connect: broker.ConnectConfig{
			Name: n.cfg.Node.ID + "-operators", Server: n.server,
			URLs: n.cfg.Stream.URLs, Credentials: n.cfg.Stream.Credentials, Log: n.log,
		},
		Prefix: n.cfg.Stream.Prefix, Self: n.self, Log: n.log,
	})
	if err != nil {
		return nil, err
	}
	o := &operator{n: n, log: n.log, bus: bus, wishes: make(chan drainWish)}
	for name, do := range o.works() {
		bus.Handle(name, func(ctx context.Context, req broker.Request) (json.RawMessage, error) {
			return o.serve(ctx, name, do, req)
		})
	}
	return o, nil
}

func (o *operator) works() map[string]work {
	return map[string]work{
		cmdDrain: o.drain, cmdCordon: o.cordon, cmdUncordon: o.uncordon,
		cmdMove: o.move, cmdRelease: o.release,
	}
}

// Run serves other nodes' commands and owns the drain under way, until ctx ends.
func (o *operator) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return o.bus.Run(ctx) })
	g.Go(func() error { return o.drains(ctx) })
	return g.Wait()
}

// serve answers a command of another node.
func (o *operator) serve(ctx context.Context, name string, do work, req broker.Request) (json.RawMessage, error) {
	var a busArgs
	if len(req.Args) > 0 {
		if err := json.Unmarshal(req.Args, &a); err != nil {
			return nil, &broker.CommandRefusedError{Code: broker.CodeUnreadable, Message: err.Error()}
		}
	}
	done, err := o.here(ctx, name, do, graph.Act{Actor: req.Actor, Reason: req.Reason}, a)
	var refused *graph.RefusedError
	if errors.As(err, &refused) {
		return nil, &broker.CommandRefusedError{Code: refused.Code, Message: refused.Message}
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(busDone{done.Position, done.Saga})
}

// here carries a command out on this node.
func (o *operator) here(ctx context.Context, name string, do work, by graph.Act, a busArgs) (graph.Done, error) {
	done, err := do(commands.Acting(ctx, by.Actor, by.Reason), by, a)
	err = refusal(err)
	args := []any{"command", name, "actor", by.Actor, "reason", by.Reason}
	if a.Handle != "" {
		args = append(args, "seat", a.Handle)
	}
	if err != nil {
		args = append(args, "err", err)
	}
	o.log.Info("operator_command", args...)
	return done, err
}

// on carries a command out on that node. only, unless "", is the one process
// that may act: what was decided on what one process held is not the next one's.
func (o *operator) on(ctx context.Context, node string, only events.Incarnation, name string, by graph.Act, a busArgs) (graph.Done, error) {
	if node == o.n.cfg.Node.ID && (only == "" || only == o.n.self) {
		return o.here(ctx, name, o.works()[name], by, a)
	}
	args, err := json.Marshal(a)
	if err != nil {
		return graph.Done{}, err
	}
	req := broker.Request{ID: uuid.NewString(), For: only, Actor: by.Actor, Reason: by.Reason, Args: args}
	raw, err := o.bus.Ask(ctx, node, name, req)
	if errors.Is(err, events.ErrUnknown) && ctx.Err() == nil {
		raw, err = o.bus.Ask(ctx, node, name, req) // the same id: it is settled, not done twice
	}
	if err != nil {
		return graph.Done{}, refusedBy(err, node)
	}
	var done busDone
	if err := json.Unmarshal(raw, &done); err != nil {
		return graph.Done{}, fmt.Errorf("what node %s answered to %s: %w", node, name, err)
	}
	return graph.Done{Position: done.Position, Saga: done.Saga}, nil
}

// Operate implements graph.Operator.
func (o *operator) Operate(ctx context.Context, by graph.Act, op graph.Operation) (graph.Done, error) {
	switch op := op.(type) {
	case graph.RetireMailbox:
		return o.retireMailbox(ctx, op, by)
	case graph.DrainNode:
		return o.onNode(ctx, op.Node, cmdDrain, by, busArgs{Deadline: events.MillisOf(op.Deadline)})
	case graph.CordonNode:
		name := cmdUncordon
		if op.On {
			name = cmdCordon
		}
		return o.onNode(ctx, op.Node, name, by, busArgs{})
	case graph.MoveSeat:
		return o.onHolder(ctx, op.Handle, cmdMove, by, busArgs{Handle: op.Handle, To: op.To})
	case graph.ReleaseSeat:
		return o.onHolder(ctx, op.Handle, cmdRelease, by, busArgs{Handle: op.Handle})
	default:
		return o.inLog(ctx, by, op)
	}
}

func (o *operator) onNode(ctx context.Context, id, name string, by graph.Act, a busArgs) (graph.Done, error) {
	if _, err := o.present(id); err != nil {
		return graph.Done{}, err
	}
	return o.on(ctx, id, "", name, by, a)
}

// onHolder finds the holder in the log itself: the view may be behind it.
func (o *operator) onHolder(ctx context.Context, handle, name string, by graph.Act, a busArgs) (graph.Done, error) {
	if err := o.known(handle); err != nil {
		return graph.Done{}, err
	}
	if a.To != "" {
		if _, err := o.present(a.To); err != nil {
			return graph.Done{}, err
		}
	}
	holder, err := o.holder(ctx, handle)
	if err != nil {
		return graph.Done{}, err
	}
	return o.on(ctx, holder.NodeID(), holder, name, by, a)
}

// inLog is what any node can do for all: an event is all that it takes.
func (o *operator) inLog(ctx context.Context, by graph.Act, op graph.Operation) (graph.Done, error) {
	var position uint64
	var err error
	shell := o.n.shell
	switch op := op.(type) {
	case graph.FenceSeat:
		if err = o.known(op.Handle); err == nil {
			position, err = o.fence(ctx, op.Handle, by)
		}
	case graph.PauseSeat:
		if err = o.known(op.Handle); err == nil {
			position, err = shell.Pause(ctx, op.Handle, op.StopTurn, by.Reason, by.Actor)
		}
	case graph.ResumeSeat:
		if err = o.known(op.Handle); err == nil {
			position, err = shell.Resume(ctx, op.Handle, by.Reason, by.Actor)
		}
	case graph.ReplayParked:
		position, err = o.replayParked(ctx, op, by)
	case graph.DropParked:
		position, err = o.dropParked(ctx, op, by)
	default:
		panic(fmt.Sprintf("operators cannot ask for %T", op))
	}
	if err != nil {
		return graph.Done{}, refusal(err)
	}
	o.log.Info("operator_command", "command", fmt.Sprintf("%T", op), "actor", by.Actor, "reason", by.Reason)
	return graph.Done{Position: position}, nil
}

func (o *operator) fence(ctx context.Context, handle string, by graph.Act) (uint64, error) {
	lease := events.SeatLease(handle)
	now, err := o.n.shell.Lease(ctx, lease)
	if err != nil {
		return 0, err
	}
	return o.n.shell.Fence(ctx, lease, now.Epoch, by.Reason, by.Actor)
}
