package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/events"
)

// viewSource feeds one stream to the read model. Of FLEET it feeds the log clock
// on the way, and tells of each company revision once the view has it.
type viewSource struct {
	n       *node
	stream  events.Stream
	applied func(events.CompanyApplied)
	told    uint64 // position of the newest event that tell was given
}

// Follow implements badgerstore.Source.
func (s *viewSource) Follow(ctx context.Context, from uint64, fn func(badgerstore.Batch) error) error {
	info, err := s.n.store.Stream(s.stream).Info(ctx)
	if err != nil {
		return err
	}
	first := info.First
	err = broker.NewSource(s.n.store).Follow(ctx, s.stream, from, func(batch []events.Recorded, caughtUp bool) error {
		if s.stream == events.StreamFleet && len(batch) > 0 {
			// Received first, then the clock: all up to here happened before.
			s.n.logClock.Observe(batch[len(batch)-1].Seq, clock.System())
		}
		// A view that cannot take the batch stops, and nothing else does: the seats
		// go on without it.
		err := fn(badgerstore.Batch{Events: batch, CaughtUp: caughtUp, First: first})
		first = 0 // once in each life of the follower is often enough to drop what aged out
		s.tell(batch, err == nil)
		if s.stream == events.StreamFleet && caughtUp {
			s.n.host.Live()
		}
		return err
	})
	var swapped *broker.IdentityError
	if errors.As(err, &swapped) {
		return fmt.Errorf("%w: %w", badgerstore.ErrSwapped, err)
	}
	return err
}

// tell tells the node of a batch; viewed says that the view has it. A batch comes
// again when the view could not take it, and all of them do when the view is made
// anew: an old pause must not stop a turn that runs now.
func (s *viewSource) tell(batch []events.Recorded, viewed bool) {
	for _, r := range batch {
		again := r.Seq <= s.told
		s.told = max(s.told, r.Seq)
		switch {
		case s.stream != events.StreamFleet:
		case !again:
			s.n.host.Edge(r)
			s.n.paused(r)
		case viewed:
			s.n.pausedBefore(r)
		}
		if c, ok := r.Event.(events.CompanyApplied); ok {
			s.applied(c)
		}
	}
}

// Check implements badgerstore.Source.
func (s *viewSource) Check(ctx context.Context, cp badgerstore.Checkpoint) (createdAt string, err error) {
	stream := s.n.store.Stream(s.stream)
	info, err := stream.Info(ctx)
	if err != nil {
		return "", err
	}
	bounds := badgerstore.Bounds{CreatedAt: info.CreatedAt.UTC().Format(time.RFC3339Nano), First: info.First, Last: info.Last}
	return bounds.CreatedAt, cp.Verify(bounds, func(seq uint64) (events.Recorded, bool, error) {
		msg, err := stream.Get(ctx, seq)
		if errors.Is(err, events.ErrNotFound) {
			return events.Recorded{}, false, nil
		}
		if err != nil {
			return events.Recorded{}, false, err
		}
		r, err := events.Decode(s.n.store.Subjects(), msg)
		return r, err == nil, err
	})
}
