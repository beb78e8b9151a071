package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// What operators ask this node's own host for.

// cordon makes this node claim nothing.
func (o *operator) cordon(ctx context.Context, _ graph.Act, _ busArgs) (graph.Done, error) {
	return o.cordoned(ctx, true)
}

// uncordon lets it claim again, and calls a drain off.
func (o *operator) uncordon(ctx context.Context, _ graph.Act, _ busArgs) (graph.Done, error) {
	if err := o.wish(ctx, drainWish{}); err != nil {
		return graph.Done{}, err
	}
	return o.cordoned(ctx, false)
}

// cordoned returns the place of the report in which the node says so.
func (o *operator) cordoned(ctx context.Context, on bool) (graph.Done, error) {
	if err := o.n.host.Cordon(ctx, on); err != nil {
		return graph.Done{}, fmt.Errorf("%w: this node does as it was told, and could not tell the fleet: %w", events.ErrUnknown, err)
	}
	msg, err := o.n.store.Stream(events.StreamFleet).Last(ctx, o.n.store.Subjects().Tenure(events.NodeLease(o.n.cfg.Node.ID)))
	return graph.Done{Position: msg.Seq}, err
}

// drain cordons this node at once, so that nobody who sees the answer sees it
// claim, and goes on emptying it.
func (o *operator) drain(ctx context.Context, by graph.Act, a busArgs) (graph.Done, error) {
	done, err := o.cordoned(ctx, true)
	if err != nil {
		return graph.Done{}, err
	}
	return done, o.wish(ctx, drainWish{by: by, limit: a.Deadline.Duration()})
}

// move hands a seat that runs here to that node.
func (o *operator) move(ctx context.Context, by graph.Act, a busArgs) (graph.Done, error) {
	saga, position, err := o.n.host.Move(ctx, a.Handle, a.To, by.Actor)
	return graph.Done{Position: position, Saga: saga}, err
}

// release gives a seat that runs here back. What comes of it stands after the
// tenure's newest event.
func (o *operator) release(ctx context.Context, _ graph.Act, a busArgs) (graph.Done, error) {
	now, err := o.n.shell.Lease(ctx, events.SeatLease(a.Handle))
	if err != nil {
		return graph.Done{}, err
	}
	return graph.Done{Position: now.Last}, o.n.host.GiveBack(ctx, a.Handle)
}

// drainWish begins a drain, or, without a limit, ends the one under way.
type drainWish struct {
	by    graph.Act
	limit time.Duration
	taken chan struct{} // closed when it is so
}

var (
	errDrainLate   = errors.New("its time was up")
	errDrainCalled = errors.New("it was called off")
)

// wish hands the wish to drains, which owns the goroutine that empties the node.
func (o *operator) wish(ctx context.Context, w drainWish) error {
	w.taken = make(chan struct{})
	select {
	case o.wishes <- w:
	case <-ctx.Done():
		return fmt.Errorf("%w: this node starts or stops: %w", events.ErrUnavailable, context.Cause(ctx))
	}
	select {
	case <-w.taken:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: the drain before has not ended yet: %w", events.ErrUnknown, context.Cause(ctx))
	}
}

// drains runs one drain at a time; the next one takes its place. It returns when
// ctx ends and the drain under way has returned.
func (o *operator) drains(ctx context.Context) error {
	var under sync.WaitGroup
	end := func(error) {}
	for {
		select {
		case <-ctx.Done():
			end(context.Cause(ctx))
			under.Wait()
			return context.Cause(ctx)
		case w := <-o.wishes:
			end(errDrainCalled)
			under.Wait()
			end = func(error) {}
			if w.limit > 0 {
				emptying, cancel := context.WithCancelCause(commands.Acting(ctx, w.by.Actor, w.by.Reason))
				end = cancel
				under.Go(func() {
					defer cancel(nil)
					o.empty(emptying, w)
				})
			}
			close(w.taken)
		}
	}
}

// empty gives every seat up, until the time is up: what the node still has then
// it keeps, and stays cordoned.
func (o *operator) empty(ctx context.Context, w drainWish) {
	ctx, cancel := context.WithTimeoutCause(ctx, w.limit, errDrainLate)
	defer cancel()
	began := time.Now()
	err := o.n.host.Drain(ctx, w.by.Actor, o.n.progress)
	if err != nil {
		o.log.Warn("node_drain_ended", "node", o.n.cfg.Node.ID, "seats", len(o.n.host.Held()), "err", err)
		return
	}
	o.log.Info("node_drained", "node", o.n.cfg.Node.ID, "actor", w.by.Actor, "took", time.Since(began).Round(time.Millisecond))
}
