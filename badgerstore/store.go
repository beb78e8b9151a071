package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// ErrClosed answers every use of a store after Close.
var ErrClosed = errors.New("the projection store is closed")

// Store is one open store. See the package's doc for what it guarantees.
type Store struct {
	dir  string
	opts Options
	lock *os.File

	// writer is held by whoever changes rows or replaces the database. Taken
	// before mu and before whole.
	writer sync.Mutex

	// whole is held for reading while a snapshot is taken, and for writing while
	// one event is committed in several transactions.
	whole sync.RWMutex

	// mu guards the fields below; nothing is called out to while it is held.
	mu       sync.Mutex
	life     *life
	broken   error // why life is to be replaced, nil while it is sound
	closed   bool
	rebuilds int
	copies   map[events.Stream]*streamCopy
	refused  map[events.Stream]error // which rows are not served; replaced, never changed
	changed  chan struct{}           // closed at the next change
	ready    chan struct{}           // closed once every copy has reached its stream's end
	waiting  map[string]*waiter      // by completion: see await.go
	waiters  int
}

// streamCopy is what the store knows of its copy of one stream.
type streamCopy struct {
	checkpoint Checkpoint
	state      projections.CopyState
	why        string
	lag        uint64
	lagKnown   bool
	reached    bool                    // the stream's end, in this process
	follower   context.CancelCauseFunc // of the running Project; nil without one
	following  bool
}

func newStore(dir string, opts Options, lock *os.File, l *life, cps map[events.Stream]Checkpoint) *Store {
	s := &Store{
		dir: dir, opts: opts, lock: lock, life: l,
		copies:  map[events.Stream]*streamCopy{},
		changed: make(chan struct{}), ready: make(chan struct{}),
		waiting: map[string]*waiter{},
	}
	for _, st := range opts.Streams {
		s.copies[st] = newCopy(st, cps[st])
	}
	s.refreshLocked()
	return s
}

// newCopy is a copy that nobody has compared with its stream yet.
func newCopy(st events.Stream, cp Checkpoint) *streamCopy {
	cp.Stream = st
	c := &streamCopy{checkpoint: cp, state: projections.CopyUnknown, why: "the log was not read yet"}
	if !cp.Complete {
		c.state, c.why = projections.CopyRebuilding, "it was not read up to its end yet"
	}
	return c
}

// Close waits for readers, closes the database and lets go of the directory.
func (s *Store) Close() error {
	s.writer.Lock()
	defer s.writer.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	l := s.life
	s.wakeAllLocked()
	s.mu.Unlock()
	l.readers.Wait()
	return errors.Join(l.close(), unlockDir(s.lock))
}

// Checkpoint returns how far st was applied; false when nothing of it was.
func (s *Store) Checkpoint(st events.Stream) (Checkpoint, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.copies[st]
	if !ok || c.checkpoint.Seq == 0 {
		return Checkpoint{Stream: st}, false
	}
	return c.checkpoint, true
}

// Copy tells what the copy of st is worth. One that is not followed is unknown.
func (s *Store) Copy(st events.Stream) projections.Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.copies[st]
	if !ok {
		return projections.Copy{Stream: st, State: projections.CopyUnknown, Why: "this node does not follow the stream"}
	}
	return projections.Copy{Stream: st, State: c.state, Position: c.checkpoint.Seq, Lag: c.lag, LagKnown: c.lagKnown, Why: c.why}
}

// Ready is closed once the copies of all streams have reached the end that their
// stream had when it was read first in this process.
func (s *Store) Ready() <-chan struct{} { return s.ready }

// Changed is closed at the next commit or change of a copy's state. Take it
// before reading, so that no change falls between.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// change runs fn under mu and tells everybody who waits for a change.
func (s *Store) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
	s.refreshLocked()
	close(s.changed)
	s.changed = make(chan struct{})
}

// refreshLocked computes what follows from the copies' states.
func (s *Store) refreshLocked() {
	refused := map[events.Stream]error{}
	all := true
	for st, c := range s.copies {
		if c.state == projections.CopyRebuilding || c.state == projections.CopyOutOfService {
			refused[st] = &projections.NotServedError{Stream: st, State: c.state, Why: c.why}
		}
		all = all && c.reached
	}
	for _, st := range []events.Stream{events.StreamFleet, events.StreamWork, events.StreamDead} {
		if _, followed := s.copies[st]; !followed {
			refused[st] = &projections.NotServedError{Stream: st, State: projections.CopyUnknown, Why: "this node does not follow the stream"}
		}
	}
	if len(refused) < len(s.refused) {
		s.wakeAllLocked() // what they wait for may have been there all the time
	}
	s.refused = refused
	if all && !isClosed(s.ready) {
		close(s.ready)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// breakDown notes that l is damaged and ends all followers, one of which will
// rebuild it. From here on nothing is served.
func (s *Store) breakDown(l *life, damage error) {
	first, followers := false, []context.CancelCauseFunc{}
	s.change(func() {
		if s.life != l || s.broken != nil || s.closed {
			return
		}
		first, s.broken = true, damage
		for _, c := range s.copies {
			c.state, c.why, c.lagKnown = projections.CopyRebuilding, damage.Error(), false
			if c.follower != nil {
				followers = append(followers, c.follower)
			}
		}
	})
	for _, end := range followers {
		end(damage)
	}
	if first {
		s.opts.Logger.Warn(logDamaged, keyStore, s.dir, keyErr, damage.Error())
	}
}

// rebuild replaces a damaged database by an empty one. It does nothing when
// that has been done.
func (s *Store) rebuild() error {
	s.writer.Lock()
	defer s.writer.Unlock()
	s.mu.Lock()
	l, broken, closed, rebuilds := s.life, s.broken, s.closed, s.rebuilds
	s.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case broken == nil:
		return nil
	case rebuilds >= maxRebuilds:
		return fmt.Errorf("%w: it was rebuilt %d times since the start and is damaged again, check the disk and restart the node: %w", errGivenUp, rebuilds, broken)
	}
	l.readers.Wait()
	_ = l.close() // what it has to say of a damaged database changes nothing
	if err := wipe(s.dir); err != nil {
		return fmt.Errorf("%w: remove %s: %w", errNotRebuilt, s.dir, err)
	}
	fresh, _, _, err := openLife(s.dir, s.opts)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotRebuilt, err)
	}
	s.change(func() {
		s.life, s.broken, s.rebuilds = fresh, nil, s.rebuilds+1
		for st, c := range s.copies {
			c.checkpoint = Checkpoint{Stream: st}
		}
	})
	s.opts.Logger.Warn(logRebuilt, keyStore, s.dir, keyReason, broken.Error())
	return nil
}

var (
	// errNotRebuilt: a damaged store could not be replaced yet.
	errNotRebuilt = errors.New("the projection store could not be made anew")
	// errGivenUp: damage that came back too often to be mended.
	errGivenUp = errors.New("the projection store is out of service")
)
