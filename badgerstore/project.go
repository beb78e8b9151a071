package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// Source is a stream of the log as a copy of it is made.
type Source interface {
	// Check compares the stream with a checkpoint, as Checkpoint.Verify does,
	// and returns when the stream was created. Errors: ErrSwapped,
	// ErrBelowFloor; any other means that it could not be read just now.
	Check(ctx context.Context, cp Checkpoint) (createdAt string, err error)

	// Follow hands over the stream's events from that sequence on, in order and
	// without gap or duplicate, until ctx ends or fn fails (it returns that
	// error). An event that this build cannot decode ends it with
	// *events.UnknownError or *events.DecodeError, after those before it were
	// handed over; a stream that was recreated meanwhile with ErrSwapped.
	Follow(ctx context.Context, from uint64, fn func(Batch) error) error
}

// Batch is what a Source hands over at once; it may be empty, to say that the
// end was reached.
type Batch struct {
	Events   []events.Recorded
	CaughtUp bool   // nothing more was pending after the last of them
	Pending  uint64 // how many events follow, as far as known
	First    uint64 // the stream's first kept sequence, 0 when not asked for
}

// ErrFollowed: the stream has a follower in this store already.
var ErrFollowed = errors.New("the stream is followed already")

// errOutOfOrder is for a source that breaks its contract.
var errOutOfOrder = errors.New("the source hands over events out of order")

// Project keeps the copy of st up to the log until ctx ends, and then returns
// nil. Whatever goes wrong on the way it says in the copy's state and in the
// log, and tries again: a wrong copy is no reason to give up seats. It returns
// an error only for a stream that has a follower or is not one of the store's,
// and when the store was closed.
func (s *Store) Project(ctx context.Context, src Source, st events.Stream) error {
	if err := s.engage(st); err != nil {
		return err
	}
	defer s.disengage(st)
	t := trouble{store: s, stream: st}
	for ctx.Err() == nil {
		err := s.follow(ctx, src, st, &t)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrClosed) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(t.pause(err)):
		}
	}
	return nil
}

// engage makes the caller the only follower of st.
func (s *Store) engage(st events.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.copies[st]
	switch {
	case s.closed:
		return ErrClosed
	case !ok:
		return fmt.Errorf("follow %s: it is not one of the store's streams %v", st, s.opts.Streams)
	case c.following:
		return fmt.Errorf("follow %s: %w", st, ErrFollowed)
	}
	c.following = true
	return nil
}

func (s *Store) disengage(st events.Stream) {
	s.change(func() {
		c := s.copies[st]
		c.following = false
		if c.state == projections.CopyCurrent || c.state == projections.CopyBehind {
			c.state, c.why, c.lagKnown = projections.CopyUnknown, "the log is not read any more", false
		}
	})
}

// follow reads the stream from the checkpoint on until something goes wrong.
func (s *Store) follow(ctx context.Context, src Source, st events.Stream, t *trouble) error {
	if err := s.rebuild(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l, cp, err := s.arm(st, cancel)
	if err != nil {
		return err
	}
	defer s.disarm(st)
	createdAt, err := src.Check(ctx, cp)
	switch {
	case errors.Is(err, ErrBelowFloor):
		s.breakDown(l, fmt.Errorf("%w: %w", errDamaged, err))
		return err
	case err != nil:
		return err
	case cp.CreatedAt == "":
		cp.CreatedAt = createdAt
	case cp.CreatedAt != createdAt:
		return fmt.Errorf("%w: %s was created at %s, the one read before at %s", ErrSwapped, st, createdAt, cp.CreatedAt)
	}
	err = src.Follow(ctx, cp.Seq+1, func(b Batch) error {
		next, err := s.apply(l, cp, b)
		cp = next
		if err == nil {
			t.over(b.CaughtUp, next.Seq)
		}
		return err
	})
	if cause := context.Cause(ctx); errors.Is(cause, errDamaged) {
		return cause // found by a reader meanwhile
	}
	if err == nil {
		err = fmt.Errorf("following %s ended without a reason", st)
	}
	return err
}

// arm lets damage end the follower, and returns what it has to work on.
func (s *Store) arm(st events.Stream, cancel context.CancelCauseFunc) (*life, Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, Checkpoint{}, ErrClosed
	case s.broken != nil:
		return nil, Checkpoint{}, s.broken
	}
	c := s.copies[st]
	c.follower = cancel
	return s.life, c.checkpoint, nil
}

func (s *Store) disarm(st events.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies[st].follower = nil
}

// apply commits a batch and returns the checkpoint that stands. When an event
// cannot be applied those before it are committed all the same.
func (s *Store) apply(l *life, cp Checkpoint, in Batch) (Checkpoint, error) {
	last := uint64(0)
	for _, r := range in.Events {
		if r.Stream != cp.Stream || r.Seq <= last {
			return cp, fmt.Errorf("%w: %s sequence %d after %d", errOutOfOrder, r.Stream, r.Seq, last)
		}
		last = r.Seq
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if err := s.writable(l); err != nil {
		return cp, err
	}
	committed, applied, err := s.write(l, cp, in)
	if errors.Is(err, errDamaged) {
		s.breakDown(l, err)
		return cp, err
	}
	s.committed(committed, applied, in, err)
	return committed, err
}

// writable refuses a database that was replaced since the follower started, and
// a disk that is nearly full.
func (s *Store) writable(l *life) error {
	s.mu.Lock()
	current, broken, closed := s.life, s.broken, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case broken != nil:
		return broken
	case current != l:
		return fmt.Errorf("%w: it was rebuilt meanwhile", errDamaged)
	}
	free, err := freeBytes(s.dir)
	if err == nil && free < s.opts.MinFree {
		err = fmt.Errorf("%w: %d MB left, %d MB needed", errFull, free>>20, s.opts.MinFree>>20)
	}
	return err
}

var errFull = errors.New("the disk under the projection store is nearly full")

// write puts the batch into the database and returns what stands there.
func (s *Store) write(l *life, cp Checkpoint, in Batch) (Checkpoint, []events.Recorded, error) {
	b, err := newBatch(l, &s.whole, cp)
	if err != nil {
		return cp, nil, err
	}
	defer func() { b.discard() }()
	var refused error
	applied := 0
	for _, r := range in.Events {
		if r.Seq > cp.Seq { // else it was applied before
			if refused = b.add(cp.after(r), func(rows projections.Rows) error { return projections.Apply(rows, r) }); refused != nil {
				break
			}
			cp = cp.after(r)
		}
		applied++
	}
	if errors.Is(refused, errDamaged) {
		return b.committed, nil, refused
	}
	for step, more := 0, in.First > 0; more && step < trimSteps && refused == nil; step++ {
		refused = b.add(cp, func(rows projections.Rows) (err error) {
			more, err = projections.Trim(rows, cp.Stream, in.First, trimStep)
			return err
		})
	}
	if in.CaughtUp && refused == nil && !cp.Complete {
		b.pending.Complete, b.dirty = true, true
	}
	if b.dirty {
		if err := b.commit(); err != nil {
			return b.committed, nil, err
		}
	}
	return b.committed, in.Events[:applied], refused
}

// committed publishes what now stands.
func (s *Store) committed(cp Checkpoint, applied []events.Recorded, in Batch, err error) {
	s.change(func() {
		c := s.copies[cp.Stream]
		c.checkpoint = cp
		s.wakeLocked(applied)
		if err != nil {
			return // the state is told by whoever deals with the error
		}
		c.lag, c.lagKnown, c.why = in.Pending, in.CaughtUp || in.Pending > 0, ""
		switch {
		case in.CaughtUp:
			c.state, c.lag, c.reached = projections.CopyCurrent, 0, true
		case cp.Complete:
			c.state, c.why = projections.CopyBehind, "the log has more than was read"
		default:
			c.state, c.why = projections.CopyRebuilding, "it was not read up to its end yet"
		}
	})
}
