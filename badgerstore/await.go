package badgerstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// ErrTooManyWaiters: more calls wait for completions than the store takes.
var ErrTooManyWaiters = errors.New("too many requests wait for completions on this node")

// waiter is shared by all who wait for one completion.
type waiter struct {
	done  chan struct{} // closed when there is a reason to look again
	users int
}

func waitKey(handle, eventID string) string { return handle + "\n" + eventID }

// AwaitCompletion returns the completion of the event by the seat as soon as
// the copy of WORK has it. It waits through copies that are not served. Errors:
// the cause of ctx's end, ErrTooManyWaiters, ErrClosed.
func (s *Store) AwaitCompletion(ctx context.Context, handle, eventID string) (projections.Completion, error) {
	key := waitKey(handle, eventID)
	for {
		w, err := s.enlist(key)
		if err != nil {
			return projections.Completion{}, err
		}
		c, found, err := s.completion(handle, eventID)
		if err == nil && !found {
			select {
			case <-w.done:
			case <-ctx.Done():
				err = fmt.Errorf("await the completion of %s by %s: %w", eventID, handle, context.Cause(ctx))
			}
		}
		s.dismiss(key, w)
		if err != nil || found {
			return c, err
		}
	}
}

// AwaitPosition returns as soon as the copy of st was read up to that position,
// or with the cause of ctx's end, or ErrClosed.
func (s *Store) AwaitPosition(ctx context.Context, st events.Stream, position uint64) error {
	for {
		changed := s.Changed() // before looking, so that no change falls between
		s.mu.Lock()
		closed, c := s.closed, s.copies[st]
		reached := c != nil && c.checkpoint.Seq >= position
		s.mu.Unlock()
		switch {
		case closed:
			return ErrClosed
		case reached:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("await position %d of %s: %w", position, st, context.Cause(ctx))
		}
	}
}

// completion looks once; a copy that is not served has nothing yet.
func (s *Store) completion(handle, eventID string) (c projections.Completion, found bool, err error) {
	err = s.View(func(v projections.View) (err error) {
		c, found, err = v.Completion(handle, eventID)
		return err
	})
	if errors.Is(err, projections.ErrNotServed) {
		return projections.Completion{}, false, nil
	}
	return c, found, err
}

func (s *Store) enlist(key string) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters >= maxWaiters {
		return nil, ErrTooManyWaiters
	}
	w := s.waiting[key]
	if w == nil {
		w = &waiter{done: make(chan struct{})}
		s.waiting[key] = w
	}
	w.users++
	s.waiters++
	return w, nil
}

func (s *Store) dismiss(key string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters--
	if w.users--; w.users == 0 && s.waiting[key] == w {
		delete(s.waiting, key)
	}
}

// wakeLocked wakes those who wait for what was just committed.
func (s *Store) wakeLocked(applied []events.Recorded) {
	for _, r := range applied {
		if e, ok := r.Event.(events.TurnCompleted); ok {
			key := waitKey(e.Handle, e.EventID)
			if w := s.waiting[key]; w != nil {
				close(w.done)
				delete(s.waiting, key)
			}
		}
	}
}

func (s *Store) wakeAllLocked() {
	for key, w := range s.waiting {
		close(w.done)
		delete(s.waiting, key)
	}
}
