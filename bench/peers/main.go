// Command peers measures Tenure's claim beside what users would pick instead, all
// in one run on one machine: a raw JetStream publish, the three-write lease of a
// NATS key-value bucket, and etcd's lease transaction; with fsync and without. It
// is a module of its own, so that etcd is in nobody's build but its own.
//
//	cd bench/peers && go run . -out ../../docs/bench/peers.json
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seat-tenure/tenure/bench/brokers"
	"github.com/seat-tenure/tenure/bench/leases"
	"github.com/seat-tenure/tenure/bench/measure"
)

// overEtcd is the goal of a claim over etcd's transaction, with fsync.
const overEtcd = 1.5

func main() {
	out := flag.String("out", "", "file to write the figures to, as JSON")
	short := flag.Bool("short", false, "few rounds: whether it runs, not how fast")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *out, *short); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, short bool) error {
	report := measure.Begin()
	rounds := measure.Rounds{Count: 11, Slot: 500 * time.Millisecond, Workers: leases.Writers}
	if short {
		rounds.Count, rounds.Slot = 2, 200*time.Millisecond
	}
	for _, replicas := range []int{1, 3} {
		for _, fsync := range []bool{false, true} {
			figures, err := compare(ctx, replicas, fsync, rounds)
			if err != nil {
				return fmt.Errorf("%s: %w", brokers.Conditions(replicas, fsync), err)
			}
			report.Add(figures...)
			fmt.Fprint(os.Stdout, measure.Text(figures))
		}
	}
	if out == "" {
		return nil
	}
	return report.Save(out)
}

// compare measures all on fresh servers. etcd is one server, and stands beside
// one broker only.
func compare(ctx context.Context, replicas int, fsync bool, rounds measure.Rounds) ([]measure.Figure, error) {
	f, err := brokers.Start(ctx, replicas, fsync)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if replicas > 1 {
		return leases.Compare(ctx, f, rounds, nil)
	}
	client, stop, err := startEtcd(ctx, fsync)
	if err != nil {
		return nil, err
	}
	defer stop()
	etcd, err := transaction(ctx, client)
	if err != nil {
		return nil, err
	}
	goals := map[string]float64{}
	if fsync {
		goals[nameEtcd] = overEtcd
	}
	return leases.Compare(ctx, f, rounds, goals, etcd)
}
