package robust_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What `make robust` sets.
const (
	envSeconds = "ROBUST_SECONDS" // for how long faults are done; unset: nothing runs
	envSeed    = "ROBUST_SEED"    // of the script; unset: from the time
	envKeep    = "ROBUST_KEEP"    // directory that is kept whatever comes of the run
	envWall    = "ROBUST_WALL"    // 1: wall clocks are stepped too; compiles everything anew once
	envLess    = "ROBUST_LESS"    // 1: without namespaces, do what can be done
	envTenure  = "ROBUST_TENURE"  // a program that is built already, with the clock seam
	envInside  = "ROBUST_INSIDE"  // set by this program for itself
)

// TestRobust is a run: a fleet, a script of faults, and the judges (conventions,
// "Tests and CI"). It takes minutes, so only `make robust` asks for it.
func TestRobust(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv(envSeconds))
	if err != nil {
		t.Skip("this takes minutes: run `make robust`")
	}
	inside := os.Getenv(envInside)
	if inside == "" {
		inside = enter(t)
		if inside == "" {
			return
		}
	}
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	dir, err := evidenceDir()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok := runOnce(ctx, t, dir, seed, time.Duration(seconds)*time.Second, inside == "network")
	if ok && os.Getenv(envKeep) == "" {
		_ = os.RemoveAll(dir)
		return
	}
	t.Logf("kept: %s", dir)
}

// evidenceDir makes the directory for the evidence, which must outlive the test
// when that fails.
func evidenceDir() (string, error) {
	dir := os.Getenv(envKeep)
	if dir == "" {
		return os.MkdirTemp("", "robust-")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// enter runs the test again where it may make networks and disks, and says "";
// where that cannot be had it says how to go on, or fails.
func enter(t *testing.T) string {
	problem := missingTools()
	if problem != "" {
		problem = "missing: " + problem
	} else if err := isolated(envInside+"=probe", envSeconds+"=0").Run(); err != nil {
		problem = "this machine does not let us make network namespaces: " + err.Error()
	}
	if problem == "" {
		cmd := isolated(envInside + "=network")
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(signals)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			for s := range signals {
				_ = cmd.Process.Signal(s)
			}
		}()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the run failed: %v", err)
		}
		return ""
	}
	if os.Getenv(envLess) != "1" {
		t.Fatalf("robust: %s\nInstall what is missing, run as root, or allow unprivileged user namespaces. LESS=1 runs without a network: processes and clocks only.", problem)
	}
	fmt.Fprintf(os.Stderr, "robust: %s\nrobust: no cuts and no full disks in this run; processes and clocks only\n", problem)
	return "processes"
}

// runOnce runs one script and judges; it says whether all was well.
func runOnce(ctx context.Context, t *testing.T, dir string, seed uint64, length time.Duration, network bool) bool {
	if os.Getenv(envInside) == "probe" {
		if err := openNetwork(); err != nil {
			t.Fatal(err)
		}
		return true
	}
	wall := os.Getenv(envWall) == "1"
	w, err := newWorld(dir, network, wall)
	if err != nil {
		t.Fatal(err)
	}
	if w.tenure = os.Getenv(envTenure); w.tenure == "" {
		w.say("building")
		if w.tenure, err = buildTenure(dir, wall); err != nil {
			t.Fatal(err)
		}
	}
	script := writeScript(seed, length, network, wall)
	w.say("seed %d: %d faults in %v; network %v, wall clocks %v; evidence in %s", seed, len(script), length, network, wall, dir)
	e, done := w.live(ctx, t, seed, script)
	if e != nil {
		w.judge(e, done)
	}
	for _, v := range w.violations {
		t.Errorf("seed %d: %s", seed, v)
	}
	return len(w.violations) == 0 && !t.Failed()
}

// live runs the fleet through the script and gathers the evidence.
func (w *world) live(ctx context.Context, t *testing.T, seed uint64, script []fault) (*evidence, *tally) {
	defer w.down()
	doc, err := w.company()
	if err != nil {
		t.Fatal(err)
	}
	wall, mono := time.Now().Round(0), monotonic()
	for i, n := range w.nodes {
		if i == 0 {
			n.start("--company", doc)
		} else {
			n.start()
		}
	}
	if err := w.settled(ctx, 90*time.Second, nil); err != nil {
		t.Errorf("the fleet did not come up: %v", err)
		return nil, nil
	}
	w.say("the fleet is up")
	w.began = time.Now()
	began := monotonic()
	l, v := &load{w: w, failed: map[string]int{}}, &watch{w: w, seen: map[uint64]int64{}}
	working, stopWork := context.WithCancel(ctx)
	watching, stopWatch := context.WithCancel(ctx)
	var work, seeing sync.WaitGroup
	work.Go(func() { l.run(working, seed) })
	seeing.Go(func() { v.run(watching) })
	done := w.play(ctx, script)
	stopWork()
	work.Wait()
	w.heal()
	w.say("faults are over; the fleet has %v to come to rest", 3*ttl)
	if err := w.settled(ctx, 3*ttl, l); err != nil {
		w.fail("not at rest %v after the last fault: %v", 3*ttl, err)
	}
	w.audited(ctx)
	stopWatch()
	seeing.Wait()
	w.stopAll()
	told := w.readLogs()
	e := &evidence{unwritten: told, mails: l.mails, reads: l.reads, seen: v.seen, nodes: map[string]nodeEvidence{}, troubles: w.troubles,
		end: monotonic(), from: mono, shown: began, toMono: func(at time.Time) int64 { return mono + int64(at.Sub(wall)) }}
	for _, n := range w.nodes {
		e.nodes[n.id] = nodeEvidence{n.stopped, n.hidden}
	}
	if e.records, err = readSink(w.sink); err != nil {
		w.fail("the sink: %v", err)
		return nil, nil
	}
	if e.log, err = readExport(w.export()); err != nil {
		w.fail("the export: %v", err)
		return nil, nil
	}
	w.note("answers that were none: %v", l.failed)
	return e, done
}

func (w *world) export() string { return filepath.Join(w.dir, "export.jsonl") }

// heal takes back whatever faults have left.
func (w *world) heal() {
	if w.network {
		if err := sh("flush set bridge robust cuts\n", "nft", "-f", "-"); err != nil {
			w.fail("heal: %v", err)
		}
	}
	for _, n := range w.nodes {
		n.mu.Lock()
		if n.cmd != nil {
			_ = n.cmd.Process.Signal(syscall.SIGCONT)
		}
		n.mu.Unlock()
		n.start()
	}
}

// settled waits until every node is ready, every seat is held, and, when there is
// a load, every acknowledged mail is recorded.
func (w *world) settled(ctx context.Context, limit time.Duration, l *load) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	why := errors.New("nobody was asked")
	for ctx.Err() == nil {
		if why = w.rest(ctx, l); why == nil {
			return nil
		}
		pause(ctx, 500*ms)
	}
	return why
}

func (w *world) rest(ctx context.Context, l *load) error {
	for _, n := range w.nodes {
		if !n.ready(ctx) {
			return fmt.Errorf("%s is not ready", n.id)
		}
	}
	var out seatsAnswer
	if err := w.nodes[nodeCount-1].ask(ctx, 3*time.Second, readQuery, nil, &out); err != nil {
		return err
	}
	held := 0
	for _, e := range out.Seats.Edges {
		if e.Node.State == "HELD" {
			held++
		} else if e.Node.State != "REMOVED" {
			return fmt.Errorf("%s is %s", e.Node.Handle, e.Node.State)
		}
	}
	if held < seats {
		return fmt.Errorf("%d of %d seats are held", held, seats)
	}
	if l == nil {
		return nil
	}
	return l.settledMail(w)
}

// settledMail says which acknowledged mail had no effect yet. The exact judgement
// comes later, from the log; this is only what there is to wait for.
func (l *load) settledMail(w *world) error {
	records, err := readSink(w.sink)
	if err != nil {
		return err
	}
	ended := w.brokeOff() // it is recorded as failed, and not run again (B1)
	for _, r := range records {
		if r.Kind == recEnd {
			for _, id := range r.Events {
				ended[workID(r.Seat, id)] = true
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []string
	for _, m := range l.mails {
		if id := workID(m.seat, m.id); m.acked != 0 && !ended[id] {
			open = append(open, id)
		}
	}
	for _, r := range records {
		if id := workID(r.To, r.Sent); r.Kind == recSent && !ended[id] && !slices.Contains(open, id) {
			open = append(open, id)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d mails have had no effect: %s", len(open), strings.Join(open[:min(4, len(open))], ", "))
	}
	return nil
}
