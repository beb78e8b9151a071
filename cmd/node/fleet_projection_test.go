package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
)

// watchedSource hands FLEET of a real broker to a read model and notes what was
// applied, and by how many at once.
type watchedSource struct {
	store  broker.Store
	active atomic.Int32
	most   atomic.Int32

	mu      sync.Mutex
	applied []uint64
}

// Check implements badgerstore.Source.
func (s *watchedSource) Check(ctx context.Context, _ badgerstore.Checkpoint) (string, error) {
	info, err := s.store.Stream(events.StreamFleet).Info(ctx)
	return info.CreatedAt.UTC().Format(time.RFC3339Nano), err
}

// Follow implements badgerstore.Source.
func (s *watchedSource) Follow(ctx context.Context, from uint64, fn func(badgerstore.Batch) error) error {
	s.most.Store(max(s.most.Load(), s.active.Add(1)))
	defer s.active.Add(-1)
	return broker.NewSource(s.store).Follow(ctx, events.StreamFleet, from, func(batch []events.Recorded, caughtUp bool) error {
		if err := fn(badgerstore.Batch{Events: batch, CaughtUp: caughtUp}); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range batch {
			s.applied = append(s.applied, r.Seq)
		}
		return nil
	})
}

// TestCase17ProjectionRestarted: a projection on a real broker is stopped and
// started again and again while the log grows. There is never more than one
// writer, a second one is refused, each event is applied once and in order, and
// the broker is left with no consumer of one that was stopped (case 17).
func TestCase17ProjectionRestarted(t *testing.T) {
	t.Parallel()
	brokers := natstest.R1(t)
	store := brokers.Store(0)
	views, err := badgerstore.Open(t.Context(), t.TempDir(), badgerstore.Options{
		Fleet: natstest.Prefix, Streams: []events.Stream{events.StreamFleet}, Logger: slogDiscard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer views.Close()

	loading, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	op := outsider(store)
	load.Go(func() {
		never := func(uint64) (time.Duration, bool) { return 0, false }
		for i := 0; loading.Err() == nil; i++ {
			lease := events.Lease{Kind: events.KindWorker, ID: fmt.Sprintf("w-%d", i)}
			if _, err := op.Claim(t.Context(), lease, commands.Claim{Preferred: "op", TTL: time.Minute, Protocol: seat.Protocol}, never); err != nil {
				t.Error(err)
				return
			}
		}
	})

	src := &watchedSource{store: store}
	for range times(10, 100) {
		ctx, end := context.WithCancel(t.Context())
		var following sync.WaitGroup
		at := views.Copy(events.StreamFleet).Position
		following.Go(func() {
			if err := views.Project(ctx, src, events.StreamFleet); err != nil {
				t.Error(err)
			}
		})
		eventually(t, 30*time.Second, "it applies more", func() bool { return views.Copy(events.StreamFleet).Position > at })
		if err := views.Project(ctx, src, events.StreamFleet); !errors.Is(err, badgerstore.ErrFollowed) {
			t.Errorf("a second writer: got %v, want %v", err, badgerstore.ErrFollowed)
		}
		end()
		following.Wait()
	}
	stop()
	load.Wait()
	if n := src.most.Load(); n != 1 {
		t.Errorf("%d writers ran at once", n)
	}
	for i := 1; i < len(src.applied); i++ {
		if src.applied[i] <= src.applied[i-1] {
			t.Fatalf("event %d was applied after %d", src.applied[i], src.applied[i-1])
		}
	}
	if len(src.applied) < times(10, 100) || src.applied[len(src.applied)-1] != views.Copy(events.StreamFleet).Position {
		t.Errorf("%d events were applied and the copy stands at %d", len(src.applied), views.Copy(events.StreamFleet).Position)
	}
	eventually(t, 10*time.Second, "no consumer is left", func() bool {
		return brokers.Consumers(t, broker.Config{Prefix: natstest.Prefix}, events.StreamFleet) == 0
	})
}
