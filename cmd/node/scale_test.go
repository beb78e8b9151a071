package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/bench/measure"
	"github.com/seat-tenure/tenure/broker/natstest"
)

// scaleSize is "nodes x seats", as `make scale` gives it; scaleOut the file that
// the figures are added to.
var scaleSize, scaleOut = os.Getenv("TENURE_SCALE"), os.Getenv("TENURE_SCALE_OUT")

// scaleLimit bounds each step.
const scaleLimit = 30 * time.Minute

// TestScale brings up a whole fleet in this process, nodes as they are wired in the
// product against three brokers with fsync, and measures how long it takes until
// every seat runs, what a restart of one broker costs, and how soon the seats of a
// node that is cut off run elsewhere. It is `make scale`, and skipped otherwise.
func TestScale(t *testing.T) {
	var nodes, seats int
	if n, _ := fmt.Sscanf(scaleSize, "%dx%d", &nodes, &seats); n != 2 {
		t.Skip("a whole fleet: run make scale")
	}
	f := newScaleFleet(t, nodes, seats)
	prefix := fmt.Sprintf("scale/%dx%d/", nodes, seats)
	note := func(name, unit string, value float64) {
		t.Logf("%s: %s %s", name, measure.Number(measure.Round(value)), unit)
		f.report.Add(measure.Figure{Name: prefix + name, Unit: unit, Value: measure.Round(value)})
	}

	cpu, began := cpuTime(t), time.Now()
	f.run()
	f.await("every seat runs", func(held []int) bool { return sum(held) == seats })
	note("cold-all-run", "s", time.Since(began).Seconds())
	share := (seats + nodes - 1) / nodes
	f.await("no node has more than its share", func(held []int) bool { return sum(held) == seats && most(held) <= share+1 })
	note("cold-all-shares", "s", time.Since(began).Seconds())
	note("cold-cpu", "core-s", (cpuTime(t) - cpu).Seconds())

	cpu, began = cpuTime(t), time.Now()
	f.pause(time.Minute)
	note("idle-cpu", "% of a core", 100*(cpuTime(t)-cpu).Seconds()/time.Since(began).Seconds())
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	note("heap", "MB", float64(memory.HeapInuse)/(1<<20))

	began = time.Now()
	f.brokers.Stop(1)
	f.brokers.Start(1)
	fewest := seats
	quiet := time.Now() // since when all have run
	f.await("all seats have run for a TTL again", func(held []int) bool {
		if now := sum(held); now < seats {
			fewest, quiet = min(fewest, now), time.Now()
		}
		return time.Since(quiet) > DefaultConfig().TTL()
	})
	note("broker-restart-not-admitting", "seats", float64(seats-fewest))
	note("broker-restart-over-after", "s", max(0, quiet.Sub(began).Seconds()))

	last := len(f.nodes) - 1
	began = time.Now()
	f.lost = last
	if err := f.nodes[last].store.Close(); err != nil { // and comes back on no other broker
		t.Fatal(err)
	}
	f.await("the lost node's seats run elsewhere", func(held []int) bool { return sum(held[:last]) == seats })
	note("node-lost-all-run-elsewhere", "s", time.Since(began).Seconds())
	if scaleOut != "" {
		if err := f.report.Save(scaleOut); err != nil {
			t.Error(err)
		}
	}
}

// scaleFleet is nodes that are booted, and run when told.
type scaleFleet struct {
	tb      testing.TB
	brokers *natstest.Brokers
	nodes   []*node
	lost    int // the node that is cut off, -1 for none
	report  measure.Report

	running sync.WaitGroup
}

func newScaleFleet(tb testing.TB, nodes, seats int) *scaleFleet {
	f := &scaleFleet{tb: tb, brokers: natstest.R3(tb), lost: -1, report: measure.Begin()}
	if before, err := measure.Load(scaleOut); err == nil {
		f.report.Figures = before.Figures
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	for i := range nodes {
		cfg := hostedConfig(tb, fmt.Sprintf("n%03d", i), f.brokers.Server(i%3).NodeURL())
		cfg.Stream.Replicas, cfg.Node.Roles = 3, []string{"seats", "workers", "data"}
		cfg.Coordination.LeaseTTLSeconds, cfg.Seat = DefaultConfig().Coordination.LeaseTTLSeconds, DefaultConfig().Seat
		var doc *companyDoc
		if i == 0 {
			doc = &companyDoc{name: "company.yaml", doc: echoes(seats, "")}
		}
		n, err := boot(tb.Context(), cfg, log, doc)
		if err != nil {
			tb.Fatalf("node %d: %v", i, err)
		}
		f.nodes = append(f.nodes, n)
	}
	return f
}

// run runs all nodes until the test ends.
func (f *scaleFleet) run() {
	ctx, end := context.WithCancel(context.WithoutCancel(f.tb.Context()))
	ended := make([]error, len(f.nodes))
	for i, n := range f.nodes {
		f.running.Go(func() { ended[i] = n.run(ctx) })
	}
	f.tb.Cleanup(func() {
		end()
		f.running.Wait()
		for i, err := range ended {
			if err != nil && i != f.lost {
				f.tb.Errorf("node %s ended: %v", f.nodes[i].cfg.Node.ID, err)
			}
		}
	})
}

// await looks each half second until what the nodes hold and admit is as wanted.
func (f *scaleFleet) await(what string, ok func(held []int) bool) {
	f.tb.Helper()
	began, told := time.Now(), time.Now()
	for {
		held := make([]int, len(f.nodes))
		for i, n := range f.nodes {
			if i != f.lost {
				held[i] = (&hosted{node: n}).held()
			}
		}
		if ok(held) {
			return
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			f.tb.Logf("%v: %d seats run, at most %d on a node", time.Since(began).Round(time.Second), sum(held), most(held))
		}
		if time.Since(began) > scaleLimit {
			f.tb.Fatalf("within %v it did not come to this: %s; %d seats run", scaleLimit, what, sum(held))
		}
		f.pause(500 * time.Millisecond)
	}
}

func (f *scaleFleet) pause(d time.Duration) {
	f.tb.Helper()
	select {
	case <-f.tb.Context().Done():
		f.tb.Fatal(context.Cause(f.tb.Context()))
	case <-time.After(d):
	}
}

// cpuTime is what this process has used, of all cores.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func sum(all []int) (n int) {
	for _, one := range all {
		n += one
	}
	return n
}

func most(all []int) (n int) {
	for _, one := range all {
		n = max(n, one)
	}
	return n
}
