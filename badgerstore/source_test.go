package badgerstore_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

const (
	fleet = events.StreamFleet
	work  = events.StreamWork
	nodeA = events.Incarnation("node-a:0000000a")
)

// source is one stream in memory. Its lock guards all fields.
type source struct {
	mu        sync.Mutex
	stream    events.Stream
	createdAt string
	first     uint64
	log       []events.Recorded
	batch     int                           // events handed over at once
	failing   func(r events.Recorded) error // asked before each event is handed over
	down      error                         // answers Check
	more      chan struct{}                 // closed when something changed
	following int                           // calls of Follow that run now
	most      int                           // that ran at once
}

func newSource(st events.Stream, log ...events.Recorded) *source {
	return &source{stream: st, createdAt: "2030-01-02T03:04:05.6Z", first: 1, log: log, batch: 7, more: make(chan struct{})}
}

// set changes the source and lets its followers know.
func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.more)
	s.more = make(chan struct{})
}

func (s *source) append(rs ...events.Recorded) { s.set(func() { s.log = append(s.log, rs...) }) }

func (s *source) Check(_ context.Context, cp badgerstore.Checkpoint) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return "", s.down
	}
	now := badgerstore.Bounds{CreatedAt: s.createdAt, First: s.first}
	if len(s.log) > 0 {
		now.Last = s.log[len(s.log)-1].Seq
	}
	return s.createdAt, cp.Verify(now, func(seq uint64) (events.Recorded, bool, error) {
		for _, r := range s.log {
			if r.Seq == seq {
				return r, true, nil
			}
		}
		return events.Recorded{}, false, nil
	})
}

func (s *source) Follow(ctx context.Context, from uint64, fn func(badgerstore.Batch) error) error {
	s.set(func() { s.following++; s.most = max(s.most, s.following) })
	defer s.set(func() { s.following-- })
	for told := false; ; {
		b, more, err := s.next(from)
		if len(b.Events) > 0 || (!told && err == nil) {
			if err := fn(b); err != nil {
				return err
			}
			told = true
		}
		if err != nil {
			return err
		}
		if len(b.Events) > 0 {
			from = b.Events[len(b.Events)-1].Seq + 1
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// followed waits until somebody follows.
func (s *source) followed() {
	for {
		s.mu.Lock()
		now, more := s.following, s.more
		s.mu.Unlock()
		if now > 0 {
			return
		}
		<-more
	}
}

func (s *source) next(from uint64) (badgerstore.Batch, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := badgerstore.Batch{CaughtUp: true, First: s.first}
	if s.down != nil {
		return badgerstore.Batch{}, s.more, s.down
	}
	start, _ := slices.BinarySearchFunc(s.log, max(from, s.first), func(r events.Recorded, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	for i, r := range s.log[start:] {
		if len(b.Events) == s.batch {
			b.CaughtUp, b.Pending = false, uint64(len(s.log)-start-i)
			break
		}
		if s.failing != nil {
			if err := s.failing(r); err != nil {
				b.CaughtUp = false
				return b, s.more, err
			}
		}
		b.Events = append(b.Events, r)
	}
	return b, s.more, nil
}

// claims is a fleet log of n claims over a few seats.
func claims(n int) []events.Recorded {
	var log []events.Recorded
	for i := range n {
		seq := uint64(i + 1)
		log = append(log, record(fleet, seq, events.LeaseClaimed{Lease: events.SeatLease(fmt.Sprintf("seat-%d", i%17)), Epoch: seq, Owner: nodeA, TTL: 45000, Protocol: 4}))
	}
	return log
}

func record(st events.Stream, seq uint64, e events.Event) events.Recorded {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seq) * time.Millisecond)
	return events.Recorded{Stream: st, Seq: seq, At: at, Meta: events.Meta{ID: fmt.Sprintf("%s-%d", st, seq)}, Event: e}
}

func completed(seq uint64, handle, id string) events.Recorded {
	return record(work, seq, events.TurnCompleted{Handle: handle, EventID: id, EventIDs: []string{id}, WorkKey: "k", Epoch: 1, Owner: nodeA, Outcome: events.OutcomeDone, Attempts: 1})
}

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), "msg="+name+" ")
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// options are quick to retry, and need little room.
func options(log *lines, streams ...events.Stream) badgerstore.Options {
	if streams == nil {
		streams = []events.Stream{fleet}
	}
	return badgerstore.Options{
		Fleet: "acme", Streams: streams, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo})),
		LockWait: time.Millisecond, MinFree: 1, RetryMin: time.Millisecond, RetryMax: 4 * time.Millisecond, Recheck: time.Millisecond,
	}
}

// open opens the store in dir and closes it when the test ends.
func open(t testing.TB, dir string, opts badgerstore.Options) *badgerstore.Store {
	t.Helper()
	s, err := badgerstore.Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	return s
}

func closed(t testing.TB, s *badgerstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// project follows src until stop, which waits for it.
func project(t testing.TB, s *badgerstore.Store, src *source) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Project(ctx, src, src.stream) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("project %s: %v", src.stream, err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// until waits for the copies' states to satisfy cond.
func until(t testing.TB, s *badgerstore.Store, what string, cond func() bool) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		changed := s.Changed()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("still waiting until %s; FLEET is %+v", what, s.Copy(fleet))
		}
	}
}

// reaches waits until the copy is current at that position.
func reaches(t testing.TB, s *badgerstore.Store, st events.Stream, seq uint64) {
	t.Helper()
	until(t, s, fmt.Sprintf("%s is current at %d", st, seq), func() bool {
		c := s.Copy(st)
		return c.State == projections.CopyCurrent && c.Position == seq
	})
}

// dump is every row of the store as text.
func dump(t testing.TB, s *badgerstore.Store) string {
	t.Helper()
	d, err := s.Dump()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rebuilt is the dump of a fresh store that read the whole of the sources.
func rebuilt(t testing.TB, srcs ...*source) string {
	t.Helper()
	var streams []events.Stream
	for _, src := range srcs {
		streams = append(streams, src.stream)
	}
	s, err := badgerstore.Open(t.Context(), t.TempDir(), options(&lines{}, streams...))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, s)
	for _, src := range srcs {
		stop := project(t, s, src)
		until(t, s, "the rebuild is current", func() bool { return s.Copy(src.stream).State == projections.CopyCurrent })
		stop()
	}
	return dump(t, s)
}
