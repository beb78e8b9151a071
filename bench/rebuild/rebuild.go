// Package rebuild measures what making the read model anew costs: a log of that
// many events is read from the broker, decoded, folded and committed, beside
// reading and decoding the same events and doing nothing with them.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/bench/brokers"
	"github.com/seat-tenure/tenure/bench/measure"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

const goal = 0.4 // of the rate of reading and decoding

// Measure writes a history of n events and measures both, in turn.
func Measure(ctx context.Context, f *brokers.Fleet, rounds, n int) ([]measure.Figure, error) {
	store, err := f.Store(ctx)
	if err != nil {
		return nil, err
	}
	js, err := f.Client()
	if err != nil {
		return nil, err
	}
	if err := write(ctx, js, store.Subjects(), n); err != nil {
		return nil, fmt.Errorf("write the history: %w", err)
	}
	info, err := store.Stream(events.StreamFleet).Info(ctx)
	if err != nil {
		return nil, err
	}
	rates := measure.Rates{}
	sides := []side{{"read-and-decode", read}, {"rebuild", rebuild}}
	for range rounds {
		for _, s := range sides {
			runtime.GC() // what the other side left is not this one's to clear up
			began := time.Now()
			if err := s.run(ctx, store); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			rates[s.name] = append(rates[s.name], float64(info.Messages)/time.Since(began).Seconds())
		}
		slices.Reverse(sides)
	}
	prefix := "rebuild/"
	return append(rates.Figures(prefix, "events/s", measure.Contender{Name: "read-and-decode"}, measure.Contender{Name: "rebuild"}),
		measure.Figure{Name: prefix + "events", Unit: "events", Value: float64(info.Messages)},
		rates.Ratio(prefix+"rebuild-over-read-and-decode", "rebuild", "read-and-decode", goal)), nil
}

type side struct {
	name string
	run  func(context.Context, *broker.JetStream) error
}

// read reads the stream to its end.
func read(ctx context.Context, store *broker.JetStream) error {
	err := broker.NewSource(store).Follow(ctx, events.StreamFleet, 1, func(_ []events.Recorded, caughtUp bool) error {
		if caughtUp {
			return io.EOF
		}
		return nil
	})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// rebuild makes a read model of the stream in an empty directory.
func rebuild(ctx context.Context, store *broker.JetStream) error {
	dir, err := os.MkdirTemp("", "tenure-bench-views-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	views, err := badgerstore.Open(ctx, dir, badgerstore.Options{Fleet: brokers.Prefix, Streams: []events.Stream{events.StreamFleet}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- views.Project(ctx, source{store}, events.StreamFleet) }()
	select {
	case <-views.Ready():
		cancel()
		return errors.Join(<-ended, views.Close())
	case err := <-ended:
		return errors.Join(err, views.Close())
	}
}

// source feeds FLEET to a read model, as a node does.
type source struct{ store *broker.JetStream }

func (s source) Follow(ctx context.Context, from uint64, fn func(badgerstore.Batch) error) error {
	return broker.NewSource(s.store).Follow(ctx, events.StreamFleet, from, func(batch []events.Recorded, caughtUp bool) error {
		return fn(badgerstore.Batch{Events: batch, CaughtUp: caughtUp})
	})
}

func (s source) Check(ctx context.Context, _ badgerstore.Checkpoint) (string, error) {
	info, err := s.store.Stream(events.StreamFleet).Info(ctx)
	return info.CreatedAt.UTC().Format(time.RFC3339Nano), err
}

// inFlight is how many publishes wait for their answers at once.
const inFlight = 4096

// write stores the history, without fsync: how it came there is not measured.
func write(ctx context.Context, js jetstream.JetStream, subjects events.Subjects, n int) error {
	js, err := jetstream.New(js.Conn(), jetstream.WithPublishAsyncMaxPending(inFlight))
	if err != nil {
		return err
	}
	for w, err := range history(subjects, n) {
		if err != nil {
			return err
		}
		if _, err := js.PublishMsgAsync(&nats.Msg{Subject: w.Subject, Header: nats.Header(w.Header), Data: w.Data}); err != nil {
			return err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
