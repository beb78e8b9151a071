// Command bench measures what Tenure does, each figure with what it is compared
// with in the same run, and writes them as text and as JSON. What its figures
// mean is in docs/benchmarks.md. The comparison with etcd is a program of its own
// in bench/peers, whose modules the product does not need.
//
//	go run ./bench -out docs/bench/tenure.json
//	go run ./bench -only leases,rebuild -short
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seat-tenure/tenure/bench/brokers"
	"github.com/seat-tenure/tenure/bench/leases"
	"github.com/seat-tenure/tenure/bench/measure"
	"github.com/seat-tenure/tenure/bench/nodes"
	"github.com/seat-tenure/tenure/bench/rebuild"
)

// suite is what can be chosen with -only.
type suite struct {
	name string
	run  func(ctx context.Context, short bool) ([]measure.Figure, error)
}

var suites = []suite{
	{"leases", onEach(comparing)}, {"renew", onEach(renewing)}, {"takeover", onEach(takingOver)},
	{"rebuild", rebuilding}, {"move", moving}, {"nodes", running},
}

func main() {
	out := flag.String("out", "", "file to write the figures to, as JSON; figures of suites that are not run stay in it")
	only := flag.String("only", "", "suites to run, by comma: leases, renew, takeover, rebuild, move, nodes; all when empty")
	short := flag.Bool("short", false, "small sizes and few rounds: whether it runs, not how fast")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *out, *only, *short); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out, only string, short bool) error {
	report := measure.Begin()
	if before, err := measure.Load(out); out != "" && err == nil {
		report.Figures = before.Figures
	}
	chosen := strings.Split(only, ",")
	for _, s := range suites {
		if only != "" && !slices.Contains(chosen, s.name) {
			continue
		}
		figures, err := s.run(ctx, short)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		report.Add(figures...)
		fmt.Fprint(os.Stdout, measure.Text(figures))
		if out == "" {
			continue
		}
		if err := report.Save(out); err != nil { // a later suite may fail
			return err
		}
	}
	return nil
}

// onEach runs a suite on one server and on three, without fsync and with.
func onEach(suite func(ctx context.Context, f *brokers.Fleet, short bool) ([]measure.Figure, error)) func(context.Context, bool) ([]measure.Figure, error) {
	return func(ctx context.Context, short bool) (all []measure.Figure, err error) {
		for _, replicas := range []int{1, 3} {
			for _, fsync := range []bool{false, true} {
				f, err := brokers.Start(ctx, replicas, fsync)
				if err != nil {
					return nil, err
				}
				figures, err := suite(ctx, f, short)
				f.Close()
				if err != nil {
					return nil, fmt.Errorf("%s: %w", brokers.Conditions(replicas, fsync), err)
				}
				all = append(all, figures...)
			}
		}
		return all, nil
	}
}

func rounds(short bool) measure.Rounds {
	if short {
		return measure.Rounds{Count: 2, Slot: 200 * time.Millisecond, Workers: leases.Writers}
	}
	return measure.Rounds{Count: 9, Slot: 500 * time.Millisecond, Workers: leases.Writers}
}

func comparing(ctx context.Context, f *brokers.Fleet, short bool) ([]measure.Figure, error) {
	return leases.Compare(ctx, f, rounds(short), nil)
}

func renewing(ctx context.Context, f *brokers.Fleet, short bool) ([]measure.Figure, error) {
	if short {
		return leases.Renewing(ctx, f, rounds(short), 1000)
	}
	return leases.Renewing(ctx, f, rounds(short), 10_000)
}

func takingOver(ctx context.Context, f *brokers.Fleet, short bool) ([]measure.Figure, error) {
	return leases.TakingOver(ctx, f, rounds(short), 1000)
}

func rebuilding(ctx context.Context, short bool) ([]measure.Figure, error) {
	f, err := brokers.Start(ctx, 1, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if short {
		return rebuild.Measure(ctx, f, 2, 50_000)
	}
	return rebuild.Measure(ctx, f, 2, 1_000_000)
}

func moving(ctx context.Context, short bool) ([]measure.Figure, error) {
	if short {
		return nodes.Moves(ctx, 1)
	}
	return nodes.Moves(ctx, 10)
}

func running(ctx context.Context, short bool) ([]measure.Figure, error) {
	dir, err := os.MkdirTemp("", "tenure-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program, err := nodes.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	sizes := nodes.Sizes{Few: 100, Many: 10_000, Idle: time.Minute, Pages: 2000, Mails: 500}
	if short {
		sizes = nodes.Sizes{Few: 10, Many: 200, Idle: 2 * time.Second, Pages: 20, Mails: 10}
	}
	return nodes.Measure(ctx, program, sizes)
}
