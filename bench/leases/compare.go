package leases

import (
	"context"
	"fmt"

	"github.com/seat-tenure/tenure/bench/brokers"
	"github.com/seat-tenure/tenure/bench/measure"
	"github.com/seat-tenure/tenure/events"
)

// Writers are how many goroutines each contender has. One is how a node's pass
// claims; many are what a broker can do for a whole fleet, enough that nobody's
// time is spent waiting for one answer.
const Writers = 32

// Goals of the comparison: of a claim over a raw publish, and over the lease of a
// key-value bucket, with fsync and without. They are for one server.
func goals(f *brokers.Fleet) (raw, kv float64) {
	switch {
	case f.Replicas > 1:
		return 0, 0
	case f.Fsync:
		return 0.85, 3
	default:
		return 0.75, 4
	}
}

// Compare measures claims on the fleet beside the other contenders, all in one
// run. others are measured too, in the same rounds; over names the goal of the
// claim's ratio over each.
func Compare(ctx context.Context, f *brokers.Fleet, rounds measure.Rounds, over map[string]float64, others ...measure.Contender) ([]measure.Figure, error) {
	all, err := contenders(ctx, f)
	if err != nil {
		return nil, err
	}
	all = append(all, others...)
	var figures []measure.Figure
	for _, writers := range []int{1, Writers} {
		rounds.Workers = writers
		found, err := compare(ctx, f, rounds, over, all, others)
		if err != nil {
			return nil, err
		}
		figures = append(figures, found...)
	}
	return figures, nil
}

func compare(ctx context.Context, f *brokers.Fleet, rounds measure.Rounds, over map[string]float64, all, others []measure.Contender) ([]measure.Figure, error) {
	rates, err := rounds.Run(ctx, all...)
	if err != nil {
		return nil, err
	}
	prefix := fmt.Sprintf("leases/%s/%d-writers/", f.Conditions(), rounds.Workers)
	if rounds.Workers == 1 {
		prefix = fmt.Sprintf("leases/%s/1-writer/", f.Conditions())
	}
	figures := rates.Figures(prefix, "leases/s", all...)
	raw, kv := goals(f)
	figures = append(figures,
		rates.Ratio(prefix+"claim-over-raw-publish", Claim, Raw, raw),
		rates.Ratio(prefix+"claim-read-first-over-raw-publish", ClaimRead, Raw, 0),
		rates.Ratio(prefix+"claim-over-kv", Claim, KV, kv),
		rates.Ratio(prefix+"claim-read-first-over-kv", ClaimRead, KV, 0))
	for _, c := range others {
		figures = append(figures, rates.Ratio(prefix+"claim-over-"+c.Name, Claim, c.Name, over[c.Name]),
			rates.Ratio(prefix+"claim-read-first-over-"+c.Name, ClaimRead, c.Name, 0))
	}
	return figures, nil
}

func contenders(ctx context.Context, f *brokers.Fleet) ([]measure.Contender, error) {
	var all []measure.Contender
	var fleet string
	for _, readFirst := range []bool{false, true} {
		store, err := f.Store(ctx)
		if err != nil {
			return nil, err
		}
		fleet = store.Subjects().StreamName(events.StreamFleet)
		all = append(all, Claiming(store, readFirst))
	}
	publisher, err := f.Client()
	if err != nil {
		return nil, err
	}
	raw, err := Publishing(ctx, publisher, fleet)
	if err != nil {
		return nil, fmt.Errorf("the stream of raw publishes: %w", err)
	}
	bucket, err := f.Client()
	if err != nil {
		return nil, err
	}
	kv, err := ThreeWrites(ctx, bucket, f.Replicas)
	if err != nil {
		return nil, fmt.Errorf("the buckets: %w", err)
	}
	return append([]measure.Contender{raw, kv}, all...), nil
}
