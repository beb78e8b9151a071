package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/company"
)

// Limits of a fleet's start and of its end after a failed one.
const (
	// readyWithin bounds a start: a new cluster elects its leaders for 10 s, and
	// opening its streams has 45 s of its own.
	readyWithin = 90 * time.Second
	readyAgain  = 100 * time.Millisecond // /ready answers at once: ask again
	readyAnswer = 2 * time.Second
	endWithin   = 15 * time.Second // of the nodes beside one that did not start
)

// fleetRun is `tenure dev --nodes N` at work.
type fleetRun struct {
	dir     string
	nodes   []*devNode
	sup     *supervisor
	signals <-chan os.Signal // the first one ends the command's context too
}

// devFleet is what a fleet is started with.
type devFleet struct {
	nodes      int
	dir        string
	ephemeral  bool
	listen     string
	ttlSeconds int
	doc        *companyDoc
}

// runFleet runs a fleet of processes until ctx ends.
func runFleet(ctx context.Context, f devFleet, stdout, stderr io.Writer) error {
	acme, err := company.Parse(f.doc.name, f.doc.doc)
	if err != nil {
		return &exitError{exitBadConfig, err}
	}
	lock, err := broker.LockDir(ctx, f.dir, lockWait)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	plan, err := readFleetPlan(f.dir)
	if err == nil && plan == nil {
		plan, err = newFleetPlan(ctx, f.nodes)
	}
	if err != nil {
		return err
	}
	nodes, err := devNodes(plan, f.dir, f.listen, f.ttlSeconds)
	if err != nil {
		return err
	}
	if err := writeFleet(f.dir, plan, nodes, f.doc); err != nil {
		return err
	}
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	r := &fleetRun{dir: f.dir, nodes: nodes, sup: newSupervisor(stderr), signals: signals}
	defer r.sup.close()
	if err := r.start(ctx); err != nil {
		if ctx.Err() != nil { // told to stop while it was starting
			return r.stop()
		}
		_ = r.end(endWithin) // why it did not start is what matters
		return err
	}
	fmt.Fprint(stdout, r.banner(f, acme))
	return r.attend(ctx)
}

// What the supervisor reads in the nodes' logs.
var (
	servingLine  = regexp.MustCompile(`msg=node_started .*api=(\S+)`)
	returnedLine = regexp.MustCompile(`msg=node_seats_returned `)
)

// start starts every node and waits until all are ready; at the first that is
// not, it says why.
func (r *fleetRun) start(ctx context.Context) error {
	env := fleetEnviron(os.Environ())
	for _, n := range r.nodes {
		n.child = &child{name: n.id, end: n.gone, line: n.hears}
		if err := r.sup.start(n.child, env, "run", "--supervised", "--config", n.file, "--company", fleetCompanyFile(r.dir)); err != nil {
			return err
		}
		if err := n.here(); err != nil {
			return fmt.Errorf("data directory %s: %w", n.dir, pathError(err))
		}
	}
	starting, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	g, starting := errgroup.WithContext(starting)
	for _, n := range r.nodes {
		g.Go(func() error { return n.awaitReady(starting) })
	}
	return g.Wait()
}

// hears takes in a line of the node's log.
func (n *devNode) hears(line string) {
	if m := servingLine.FindStringSubmatch(line); m != nil {
		select {
		case n.url <- m[1]:
		default:
		}
	}
	if returnedLine.MatchString(line) {
		close(n.child.quiet) // a node says it once
	}
}

// awaitReady waits until the node serves and says that it is ready.
func (n *devNode) awaitReady(ctx context.Context) error {
	var url string
	select {
	case url = <-n.url:
	case <-n.child.done:
		return n.didNotStart()
	case <-ctx.Done():
		return fmt.Errorf("%s did not serve within %v; its log says what it waits for: %w", n.id, readyWithin, ctx.Err())
	}
	n.at = url
	if err := n.serves(url); err != nil {
		return fmt.Errorf("data directory %s: %w", n.dir, pathError(err))
	}
	again := time.NewTicker(readyAgain)
	defer again.Stop()
	for !answersReady(ctx, url) {
		select {
		case <-again.C:
		case <-n.child.done:
			return n.didNotStart()
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready within %v; %s/ready says what is missing: %w", n.id, readyWithin, url, ctx.Err())
		}
	}
	return nil
}

func (n *devNode) didNotStart() error {
	err := fmt.Errorf("%s did not start: %s", n.id, n.child.how())
	if code := n.child.cmd.ProcessState.ExitCode(); code > 0 {
		return &exitError{code, err}
	}
	return err
}

func answersReady(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, readyAnswer)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ready", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// attend says which nodes end, and ends the others when ctx does.
func (r *fleetRun) attend(ctx context.Context) error {
	for range r.nodes {
		select {
		case c := <-r.sup.ended:
			r.sup.out.say(r.obituary(c))
		case <-ctx.Done():
			return r.stop()
		}
	}
	return errors.New("every node of the fleet has ended")
}

func (r *fleetRun) stop() error {
	r.sup.out.say("stopping: each node gives its seats back, turns in flight first; a second signal does it at once, a third kills\n")
	return r.end(0)
}

// end stops what runs. A node that has given its seats back goes on serving the
// log until all others have: one server alone could not even record that it
// gives a seat back. After limit, unless it is 0, or at the third signal all are
// killed.
func (r *fleetRun) end(limit time.Duration) error {
	var running []*child
	for _, c := range r.sup.children {
		if !c.ended() {
			running = append(running, c)
		}
	}
	if !r.sup.stop(r.signals, limit) {
		return errors.New("killed before every node had given its seats back; those are free after one lease TTL")
	}
	var failed error
	for _, c := range running {
		if !c.cmd.ProcessState.Success() {
			failed = errors.Join(failed, fmt.Errorf("%s stopped with %s", c.name, c.how()))
		}
	}
	return failed
}
