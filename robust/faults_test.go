package robust_test

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stopLimit is how long a node may take to stop when it is asked to.
const stopLimit = 75 * time.Second

// behindBy is how far behind its script a run may be.
const behindBy = 2 * time.Second

// tally counts what was done to the fleet, by kind.
type tally struct {
	done, not map[kind]int
	last      int64 // when the last fault ended, monotonic
}

// play does what the script says, each at its time, and waits for all of it.
func (w *world) play(ctx context.Context, script []fault) *tally {
	t := &tally{done: map[kind]int{}, not: map[kind]int{}}
	begin := time.Now()
	results := make(chan error, len(script))
	for _, f := range script {
		// A machine that stood still for a while is no reason to do a hundred faults
		// in one instant: the script goes on where it was.
		if late := time.Since(begin.Add(f.at)); late > behindBy {
			w.note("the harness itself stood still for %v", late.Round(time.Second))
			begin = begin.Add(late)
		}
		wait := time.NewTimer(time.Until(begin.Add(f.at)))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			results <- ctx.Err()
			t.not[f.kind]++
			continue
		}
		w.say("fault %s", f)
		go func() {
			err := w.troubled(f, func() error { return w.inflict(ctx, f) })
			if err != nil {
				w.say("fault %s: not done: %v", f.kind, err)
			}
			w.mu.Lock()
			if err != nil {
				t.not[f.kind]++
			} else {
				t.done[f.kind]++
			}
			w.mu.Unlock()
			results <- err
		}()
	}
	for range script {
		<-results
	}
	t.last = monotonic()
	return t
}

// troubled does a fault and notes when and on whom it may have broken off a run.
// What hits a broker, and a fence, may do so anywhere; what an operator asks for,
// or a restart that is asked for, must not.
func (w *world) troubled(f fault, do func() error) error {
	t := trouble{node: w.nodes[f.node].id, span: span{from: monotonic()}}
	err := do()
	t.to = monotonic()
	switch {
	case f.kind == fenceSeat, f.node < brokers && !f.wish():
		t.node = ""
	case f.wish(), f.kind == restartNode, f.kind == applyRev:
		return err
	}
	w.mu.Lock()
	w.troubles = append(w.troubles, t)
	w.mu.Unlock()
	return err
}

// lasting waits for as long as a fault lasts. A run that ends early ends it too.
func lasting(ctx context.Context, f fault) {
	timer := time.NewTimer(f.last)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// inflict does one fault and undoes what can be undone.
func (w *world) inflict(ctx context.Context, f fault) error {
	n := w.nodes[f.node]
	switch f.kind {
	case killNode:
		return w.kill(ctx, n, f)
	case killLeader:
		leader, err := w.leader(ctx)
		if err != nil {
			return err
		}
		w.say("  %s leads FLEET", leader.id)
		return w.kill(ctx, leader, f)
	case stopNode, stopLong, stopHidden:
		if !n.pause() {
			return fmt.Errorf("%s does not run", n.id)
		}
		lasting(ctx, f)
		return n.resume(f.kind == stopHidden)
	case restartNode:
		return w.restart(n)
	case applyRev:
		doc, err := w.company()
		if err != nil {
			return err
		}
		return w.restart(n, "--company", doc)
	case partition, cutOut, cutIn, cutBroker, cutLink, cutMinority, cutLinkWay:
		ways := w.ways(f)
		if err := w.cut(ways, true); err != nil {
			return err
		}
		lasting(ctx, f)
		return w.cut(ways, false)
	case wallStep, wallLeader, suspend, drift:
		return w.bendClocks(ctx, n, f)
	case diskFull:
		return w.fillDisk(ctx, n, f)
	case killAll, restartAll, outage:
		return w.hitAll(ctx, f)
	default:
		return w.order(ctx, f)
	}
}

func (w *world) kill(ctx context.Context, n *node, f fault) error {
	err := n.end(syscall.SIGKILL, 0)
	lasting(ctx, f)
	n.start()
	return err
}

func (w *world) restart(n *node, more ...string) error {
	err := n.end(syscall.SIGTERM, stopLimit)
	n.start(more...)
	if err != nil {
		w.note("%v", err)
	}
	return nil
}

// ways are the directions that a cut drops.
func (w *world) ways(f fault) (ways []way) {
	for i := range w.nodes {
		if i == f.node {
			continue
		}
		switch f.kind {
		case partition:
			ways = append(ways, way{f.node, i}, way{i, f.node})
		case cutMinority:
			if i < brokers {
				ways = append(ways, way{f.node, i}, way{i, f.node})
			}
		case cutOut:
			ways = append(ways, way{f.node, i})
		case cutIn:
			ways = append(ways, way{i, f.node})
		case cutBroker, cutLink:
			if i == f.peer {
				ways = append(ways, way{f.node, i}, way{i, f.node})
			}
		default:
			if i == f.peer {
				ways = append(ways, way{f.node, i})
			}
		}
	}
	return ways
}

func (w *world) bendClocks(ctx context.Context, n *node, f fault) error {
	switch f.kind {
	case suspend:
		return n.bendBy(func(d *deviation) { d.BootOffset += time.Hour })
	case drift:
		if err := n.bendBy(func(d *deviation) { d.Rate = 1 + float64(f.sign)*0.004 }); err != nil {
			return err
		}
		lasting(ctx, f)
		return n.bendBy(func(d *deviation) { d.Rate = 1 })
	case wallLeader:
		leader, err := w.leader(ctx)
		if err != nil {
			return err
		}
		w.say("  %s leads FLEET", leader.id)
		n = leader
	default: // the wall clock of the node that was drawn
	}
	if err := n.stepWall(f.sign * 3600); err != nil {
		return err
	}
	lasting(ctx, f)
	return n.stepWall(0)
}

// fillDisk fills a node's disk and makes room again. A broker whose disk was full
// keeps its streams frozen until it is started again, as nats-server has it; a
// person would do the same.
func (w *world) fillDisk(ctx context.Context, n *node, f fault) error {
	if err := n.fill(); err != nil {
		return err
	}
	lasting(ctx, f)
	err := n.drainDisk()
	if n.i < brokers {
		_ = n.end(syscall.SIGKILL, 0)
		n.start()
	}
	return err
}

// hitAll does something to the whole fleet.
func (w *world) hitAll(ctx context.Context, f fault) error {
	switch f.kind {
	case outage:
		var down []*node
		for i := range brokers {
			if i != f.node {
				if w.nodes[i].pause() {
					down = append(down, w.nodes[i])
				}
			}
		}
		lasting(ctx, f)
		for _, n := range down {
			if err := n.resume(false); err != nil {
				return err
			}
		}
		return nil
	case killAll:
		for _, n := range w.nodes {
			n.mu.Lock()
			n.wanted = false
			if n.cmd != nil {
				_ = n.cmd.Process.Kill()
			}
			n.mu.Unlock()
		}
		for _, n := range w.nodes {
			_ = n.end(syscall.SIGKILL, 0)
		}
	default:
		w.stopAll()
	}
	lasting(ctx, f)
	for _, n := range w.nodes {
		n.start()
	}
	return nil
}

// order asks a node that answers for an operator's act, and for its undoing.
func (w *world) order(ctx context.Context, f fault) error {
	const why = "robustness"
	n, seat := w.nodes[f.node], seatName(f.seat)
	do, args, undo := "", map[string]string{"handle": seat, "reason": why}, ""
	switch f.kind {
	case moveSeat:
		do, args["to"] = "moveSeat", w.nodes[f.peer].id
	case releaseSeat:
		do = "releaseSeat"
	case fenceSeat:
		do = "fenceSeat"
	case pauseSeat:
		do, undo = "pauseSeat", "resumeSeat"
	case drainNode:
		do, args, undo = "drainNode", map[string]string{"id": n.id, "reason": why}, "uncordonNode"
	case cordonNode:
		do, args, undo = "cordonNode", map[string]string{"id": n.id, "reason": why}, "uncordonNode"
	default:
		return fmt.Errorf("no way to do %q", f.kind)
	}
	said, err := w.anyNode(ctx, do, args)
	if err == nil {
		w.say("  %s: %s", f.kind, said)
	}
	if undo == "" {
		return err
	}
	lasting(ctx, f)
	// What was asked for and not answered may stand: it is undone in any case,
	// and a node that has no cordon refuses without harm.
	undone := func() bool {
		said, err := w.anyNode(ctx, undo, args)
		if err == nil {
			w.say("  %s: %s", undo, said)
		}
		return err == nil
	}
	for range 20 {
		if undone() {
			return err
		}
		<-time.After(2 * time.Second)
	}
	w.note("%s of %s was not answered in 20 tries", undo, f)
	return err
}

// anyNode asks one node after the other until one answers.
func (w *world) anyNode(ctx context.Context, do string, args map[string]string) (said string, err error) {
	for _, n := range w.nodes {
		if said, err = n.operate(ctx, do, args); err == nil {
			return said, nil
		}
	}
	return "", err
}

// leader is the node whose broker leads FLEET, as a broker tells.
func (w *world) leader(ctx context.Context) (*node, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var last error
	for i := range brokers {
		id, err := w.askLeader(ctx, i)
		if err != nil {
			last = err
			continue
		}
		for _, n := range w.nodes {
			if n.id == id {
				return n, nil
			}
		}
		last = fmt.Errorf("FLEET is led by %q", id)
	}
	return nil, last
}

func (w *world) askLeader(ctx context.Context, i int) (string, error) {
	conn, err := nats.Connect("nats://"+w.brokerAddr[i], nats.UserInfo("node", secret), nats.Timeout(time.Second))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return "", err
	}
	s, err := js.Stream(ctx, "CREWLET_FLEET")
	if err != nil {
		return "", err
	}
	if c := s.CachedInfo().Cluster; c != nil {
		return c.Leader, nil
	}
	return "", fmt.Errorf("n%d tells of no cluster", i+1)
}
