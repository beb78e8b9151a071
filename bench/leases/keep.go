package leases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seat-tenure/tenure/bench/brokers"
	"github.com/seat-tenure/tenure/bench/measure"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// Names of the contenders in figures.
const (
	Renew    = "renew-batched"
	Takeover = "takeover"
)

// renewGoal is of batched renewals over single publishes, with fsync.
const renewGoal = 12

// Renewing measures the renewal of that many seats by their one holder, in the
// batches that a heartbeat sends, beside raw publishes one after the other, and
// by many writers.
func Renewing(ctx context.Context, f *brokers.Fleet, rounds measure.Rounds, seats int) ([]measure.Figure, error) {
	store, err := f.Store(ctx)
	if err != nil {
		return nil, err
	}
	shell := commands.New(broker.NewLog(store), store.Subjects(), self)
	tenures, err := claimed(ctx, shell, "r", seats)
	if err != nil {
		return nil, err
	}
	renewing := measure.Contender{Name: Renew, Do: func(ctx context.Context, _ int) (int, error) {
		for i, r := range shell.Renew(ctx, tenures) {
			if r.Err != nil {
				return 0, r.Err
			}
			tenures[i] = r.Tenure
		}
		return len(tenures), nil
	}}
	client, err := f.Client()
	if err != nil {
		return nil, err
	}
	raw, err := Publishing(ctx, client, store.Subjects().StreamName(events.StreamFleet))
	if err != nil {
		return nil, err
	}
	rounds.Workers = 1
	rates, err := rounds.Run(ctx, raw, renewing)
	if err != nil {
		return nil, err
	}
	goal := 0.0
	if f.Fsync && f.Replicas == 1 {
		goal = renewGoal
	}
	prefix := fmt.Sprintf("renew/%s/", f.Conditions())
	return append(rates.Figures(prefix, "renewals/s", renewing, raw),
		rates.Ratio(prefix+"renew-over-raw-publish", Renew, Raw, goal)), nil
}

// claimed makes that many tenures.
func claimed(ctx context.Context, shell *commands.Shell, name string, n int) ([]commands.Tenure, error) {
	tenures, errs := make([]commands.Tenure, n), make([]error, n)
	var work sync.WaitGroup
	for worker := range Writers {
		work.Go(func() {
			for i := worker; i < n; i += Writers {
				lease := events.SeatLease(fmt.Sprintf("%s-%d", name, i))
				tenures[i], errs[i] = shell.Claim(ctx, lease, commands.Claim{TTL: ttl, Protocol: 4}, unseen)
			}
		})
	}
	work.Wait()
	return tenures, errors.Join(errs...)
}

// TakingOver measures what a successor does once a lease has lapsed: a claim over
// the tenure that nobody released, with its evidence, and the batch that takes
// over the seat's three cursors, after which the former holder can start nothing.
// Two nodes take the seats from each other, to whose log clocks all has lapsed.
func TakingOver(ctx context.Context, f *brokers.Fleet, rounds measure.Rounds, seats int) ([]measure.Figure, error) {
	store, err := f.Store(ctx)
	if err != nil {
		return nil, err
	}
	var nodes [2]*taker
	for i := range nodes {
		shell := commands.New(broker.NewLog(store), store.Subjects(), events.Incarnation(fmt.Sprintf("node-%d:5ea7be4c", i)))
		nodes[i] = &taker{shell: shell, cursors: shell.Cursors(broker.NewMailboxes(store))}
	}
	if _, err := (broker.Marks{Store: store, Source: self}).Mark(ctx); err != nil {
		return nil, err
	}
	if err := registered(ctx, nodes[0].cursors, seats); err != nil {
		return nil, err
	}
	var n atomic.Int64
	times := &times{}
	taking := measure.Contender{Name: Takeover, Do: func(ctx context.Context, _ int) (int, error) {
		at := n.Add(1) - 1
		began := time.Now()
		err := nodes[at/int64(seats)%2].take(ctx, seat(int(at)%seats))
		times.add(time.Since(began))
		return 1, err
	}}
	prefix := fmt.Sprintf("takeover/%s/", f.Conditions())
	rounds.Workers = 1
	alone, err := rounds.Run(ctx, taking)
	if err != nil {
		return nil, err
	}
	figures := []measure.Figure{
		measure.Milliseconds(prefix+"one-by-one-p50", times.percentile(50)), measure.Milliseconds(prefix+"one-by-one-p99", times.percentile(99)),
	}
	rounds.Workers = Writers
	many, err := rounds.Run(ctx, taking)
	if err != nil {
		return nil, err
	}
	figures = append(figures, alone.Figures(prefix+"one-by-one-", "seats/s", taking)...)
	return append(figures, many.Figures(prefix+"32-at-once-", "seats/s", taking)...), nil
}

type taker struct {
	shell   *commands.Shell
	cursors *commands.Cursors
}

// lapsed is a log clock to which everything has lapsed.
func lapsed(uint64) (time.Duration, bool) { return time.Hour, true }

func (t *taker) take(ctx context.Context, handle string) error {
	tenure, err := t.shell.Claim(ctx, events.SeatLease(handle), commands.Claim{TTL: ttl, Protocol: 4}, lapsed)
	if err != nil {
		return err
	}
	_, err = t.cursors.TakeOver(ctx, tenure)
	return err
}

func seat(i int) string { return fmt.Sprintf("t-%d", i) }

func registered(ctx context.Context, cursors *commands.Cursors, seats int) error {
	all := make([]commands.Registration, seats)
	for i := range all {
		all[i] = commands.Registration{Handle: seat(i), AgentID: "agent-" + seat(i)}
	}
	return errors.Join(cursors.RegisterAll(ctx, all)...)
}

// times gathers durations from any goroutine.
type times struct {
	mu  sync.Mutex
	all []time.Duration
}

func (t *times) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, d)
}

func (t *times) percentile(p float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return measure.Percentile(t.all, p)
}
