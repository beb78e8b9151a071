package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Contender is one of those that are measured against each other.
type Contender struct {
	Name string
	// Do does one operation, or as many as it returns. It is called by several
	// goroutines at once, each with a worker number of its own.
	Do func(ctx context.Context, worker int) (done int, err error)
}

// Rounds says how contenders are measured: each for Slot by Workers goroutines,
// in turn, Count times over; the first round only warms up and is not kept.
type Rounds struct {
	Count   int
	Slot    time.Duration
	Workers int
}

// Rates are operations per second, by contender, one for each round.
type Rates map[string][]float64

// Run measures the contenders in turn. In every other round the order is
// reversed: who comes last finds the machine as the others left it.
func (r Rounds) Run(ctx context.Context, contenders ...Contender) (Rates, error) {
	rates := Rates{}
	order := slices.Clone(contenders)
	for round := range r.Count + 1 {
		for _, c := range order {
			rate, err := r.slot(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			if round > 0 {
				rates[c.Name] = append(rates[c.Name], rate)
			}
		}
		slices.Reverse(order)
	}
	return rates, nil
}

func (r Rounds) slot(ctx context.Context, c Contender) (float64, error) {
	var (
		work   sync.WaitGroup
		mu     sync.Mutex
		total  int
		failed error
	)
	began := time.Now()
	for worker := range r.Workers {
		work.Go(func() {
			n := 0
			var err error
			for time.Since(began) < r.Slot && err == nil {
				var done int
				done, err = c.Do(ctx, worker)
				n += done
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
			if failed == nil {
				failed = err
			}
		})
	}
	work.Wait()
	return float64(total) / time.Since(began).Seconds(), failed
}

// Figures are the contenders' median rates, by name, under prefix.
func (r Rates) Figures(prefix, unit string, contenders ...Contender) []Figure {
	figures := make([]Figure, 0, len(contenders))
	for _, c := range contenders {
		figures = append(figures, spread(prefix+c.Name, unit, r[c.Name]))
	}
	return figures
}

// Ratio is the median of a's rate over b's within each round.
func (r Rates) Ratio(name, a, b string, goal float64) Figure {
	ratios := make([]float64, len(r[a]))
	for i := range ratios {
		ratios[i] = r[a][i] / r[b][i]
	}
	f := spread(name, "ratio", ratios)
	f.Goal = goal
	return f
}

func spread(name, unit string, all []float64) Figure {
	return Figure{Name: name, Unit: unit, Value: Round(Median(all)), Low: Round(slices.Min(all)), High: Round(slices.Max(all))}
}

// Median is the middle of all, or the mean of the two in the middle.
func Median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Percentile is the p-th of all, by rank.
func Percentile(all []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(math.Ceil(float64(len(sorted))*p/100))-1)]
}

// Milliseconds is a duration as a figure.
func Milliseconds(name string, d time.Duration) Figure {
	return Figure{Name: name, Unit: "ms", Value: Round(float64(d) / float64(time.Millisecond))}
}

// Round keeps three digits that count: more would claim a precision that no run
// of a few seconds has.
func Round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	if scale < 1 {
		scale = 1 // whole numbers stay whole
	}
	return math.Round(v*scale) / scale
}
