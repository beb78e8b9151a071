package broker

import (
	"context"
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// readAhead is how many batches a Source reads and decodes while its reader is at
// work on one: on two processors a rebuild folds and commits in one half of the
// time and reads in the other.
const readAhead = 2

// Source reads a stream as decoded events, in order, from a position on.
type Source struct {
	store   Store
	filters map[events.Stream][]string
}

// NewSource returns a source of the fleet's events. Of FLEET it reads the edges
// only: renewals carry nothing that a reader of ownership keeps (design §7).
func NewSource(store Store) *Source {
	return &Source{store, map[events.Stream][]string{events.StreamFleet: store.Subjects().FleetEdges()}}
}

// batch is what a Source hands over at once.
type batch struct {
	events   []events.Recorded
	caughtUp bool // when it was read
}

// Follow hands decoded batches to fn, one at a time and in the caller's goroutine,
// until ctx ends. It stops at the first message that this build cannot read, with
// *events.UnknownError or *events.DecodeError, after handing over what stands
// before it: never skips.
func (s *Source) Follow(ctx context.Context, st events.Stream, from uint64, fn func(batch []events.Recorded, caughtUp bool) error) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan batch, readAhead)
	var ended error // set before batches is closed
	go func() {
		defer close(batches)
		ended = s.read(reading, st, from, batches)
	}()
	stop := func(why error) error {
		cancel()
		for range batches { // until the reading has ended
		}
		return why
	}
	for b := range batches {
		if ctx.Err() != nil {
			return stop(context.Cause(ctx))
		}
		if err := fn(b.events, b.caughtUp); err != nil {
			return stop(err)
		}
	}
	return ended
}

// read puts the decoded batches of the stream into batches until ctx ends.
func (s *Source) read(ctx context.Context, st events.Stream, from uint64, batches chan<- batch) error {
	put := func(b batch) error {
		select {
		case batches <- b:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s.store.Stream(st).Follow(ctx, from, s.filters[st], func(msgs []events.Message, caughtUp bool) error {
		decoded := make([]events.Recorded, 0, len(msgs))
		for _, msg := range msgs {
			r, err := events.Decode(s.store.Subjects(), msg)
			if err != nil {
				if len(decoded) > 0 {
					if ended := put(batch{decoded, false}); ended != nil {
						return ended
					}
				}
				return fmt.Errorf("read %s: %w", st, err)
			}
			decoded = append(decoded, r)
		}
		return put(batch{decoded, caughtUp})
	})
}
