package seattest

import (
	"context"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

// Skew is a broker's wall clock that is wrong: what it stamps on messages, and
// when it says that a stream was created, is off by what was set.
type Skew struct {
	mu sync.Mutex
	by time.Duration // guarded by mu
}

// Set makes the broker's clock that much wrong from now on.
func (s *Skew) Set(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = by
}

func (s *Skew) stamp(m events.Message) events.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.At = m.At.Add(s.by)
	return m
}

func (s *Skew) all(msgs []events.Message) []events.Message {
	out := make([]events.Message, len(msgs))
	for i, m := range msgs {
		out[i] = s.stamp(m)
	}
	return out
}

// Wrap shows a store as its broker's clock stamps it.
func (s *Skew) Wrap(store broker.Store) broker.Store { return skewedStore{store, s} }

type skewedStore struct {
	broker.Store
	skew *Skew
}

func (s skewedStore) Stream(st events.Stream) broker.Stream {
	return skewedStream{s.Store.Stream(st), s.skew}
}

type skewedStream struct {
	broker.Stream
	skew *Skew
}

func (s skewedStream) Get(ctx context.Context, seq uint64) (events.Message, error) {
	m, err := s.Stream.Get(ctx, seq)
	return s.skew.stamp(m), err
}

func (s skewedStream) Last(ctx context.Context, filter string) (events.Message, error) {
	m, err := s.Stream.Last(ctx, filter)
	return s.skew.stamp(m), err
}

func (s skewedStream) Next(ctx context.Context, filter string, from uint64) (events.Message, error) {
	m, err := s.Stream.Next(ctx, filter, from)
	return s.skew.stamp(m), err
}

func (s skewedStream) LastPerSubject(ctx context.Context, filter string) ([]events.Message, error) {
	msgs, err := s.Stream.LastPerSubject(ctx, filter)
	return s.skew.all(msgs), err
}

func (s skewedStream) Follow(ctx context.Context, from uint64, filters []string, fn func([]events.Message, bool) error) error {
	return s.Stream.Follow(ctx, from, filters, func(batch []events.Message, caughtUp bool) error {
		return fn(s.skew.all(batch), caughtUp)
	})
}
