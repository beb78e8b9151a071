package main

import (
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// chaosNode is one node of a fleet that a test kills, stops and drains: a process
// after the other under one node id and data directory.
type chaosNode struct {
	id      string
	program string
	args    []string

	p        *process
	logs     []*logLines // of every run
	out      string      // "killed" or "stopped"; empty while it runs
	since    time.Time   // when that began
	cordoned bool        // it was asked to drain
	faults   []nodeFault
}

// nodeFault is a time in which the node did not run, or was thought not to.
type nodeFault struct{ from, to time.Time }

// chaosFleet is nodes on one broker, and what is done to them.
type chaosFleet struct {
	t     *testing.T
	ttl   time.Duration
	rng   *rand.Rand
	nodes []*chaosNode
	first time.Duration  // in which all seats were claimed and attached at the start
	done  map[string]int // how often what was done
}

// startChaosFleet starts so many nodes of the program on that broker and waits
// until all seats are attached.
func startChaosFleet(t *testing.T, seed uint64, n, seats int, url, company string) *chaosFleet {
	t.Helper()
	const ttl = minTTLSeconds * time.Second
	sweep := ttl / 9 // as 5 s are to 45 s, which is shipped: what a fleet is over in so many TTLs hangs on it
	f := &chaosFleet{t: t, ttl: ttl, rng: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
	program := buildProgram(t)
	for i := range n {
		node := &chaosNode{id: string(rune('a' + i)), program: program}
		node.args = []string{
			"run", "--node-id", node.id, "--data-dir", t.TempDir(), "--api-listen", "127.0.0.1:0",
			"--stream-type", "external", "--stream-urls", url, "--coordination-type", "embedded-kv",
			"--coordination-lease-ttl-seconds", strconv.Itoa(minTTLSeconds), "--seat-sweep-interval", sweep.String(), "--company", company,
		}
		f.nodes = append(f.nodes, node)
		f.start(node)
	}
	all := func(line string) (n int) {
		for _, node := range f.nodes {
			n += node.p.logs.count(line)
		}
		return n
	}
	eventually(t, startLimit, "a seat is claimed", func() bool { return all(`msg=seat_claimed `) > 0 })
	f.first = eventually(t, startLimit, "all seats are attached", func() bool { return all(`msg=seat_attached `) >= seats })
	return f
}

func (f *chaosFleet) start(n *chaosNode) {
	n.p = launchProgram(f.t, n.program, "", nil, n.args...)
	n.logs = append(n.logs, n.p.logs)
}

// serves says whether the node's run has come up, and notes where.
func (n *chaosNode) serves() bool {
	if n.p.url != "" {
		return true
	}
	all, _ := n.p.logs.from(0)
	for _, line := range all {
		if m := apiLine.FindStringSubmatch(line); m != nil {
			n.p.url = m[1]
		}
	}
	return n.p.url != ""
}

// disturb does something to a node at random: what is out comes back, what is
// cordoned may be let in again, what runs is killed, stopped past its TTL, or
// drained. One node is always up.
func (f *chaosFleet) disturb() {
	n := f.nodes[f.rng.IntN(len(f.nodes))]
	up := 0
	for _, other := range f.nodes {
		if other.out == "" {
			up++
		}
	}
	switch what := f.rng.IntN(6); {
	case n.out != "":
		if n.out == "killed" || time.Since(n.since) > f.ttl+time.Second {
			f.back(n)
		}
	case n.cordoned && what < 3:
		f.act(n, "uncordon")
	case what < 2 && !n.cordoned:
		f.act(n, "drain")
	case up < 2:
	case what < 4:
		f.strike(n, "killed", syscall.SIGKILL)
	default:
		f.strike(n, "stopped", syscall.SIGSTOP)
	}
}

func (f *chaosFleet) strike(n *chaosNode, how string, signal syscall.Signal) {
	n.out, n.since = how, time.Now()
	n.p.signal(signal)
	if signal == syscall.SIGKILL {
		<-n.p.done
	}
	f.done[how]++
}

// back resumes or restarts a node.
func (f *chaosFleet) back(n *chaosNode) {
	n.faults = append(n.faults, nodeFault{n.since, time.Now()})
	if n.out == "killed" {
		f.start(n)
	} else {
		n.p.signal(syscall.SIGCONT)
	}
	n.out = ""
}

// act is an operator's. That a node which has just come up cannot do it yet is
// part of the disorder; whether it did is asked at the end.
func (f *chaosFleet) act(n *chaosNode, verb string) {
	if !n.serves() {
		return
	}
	args := []string{"node", verb, n.id, "--reason", "chaos"}
	if verb == "drain" {
		args = append(args, "--no-wait")
		n.cordoned = true
	}
	if _, _, code := n.p.tenure(args...); code != 0 {
		f.done[verb+" not done"]++
		return
	}
	n.cordoned = verb == "drain"
	f.done[verb]++
}

// heal brings every node back, and returns when the last one was up again; then it
// lets all of them take seats.
func (f *chaosFleet) heal() (at time.Time) {
	f.t.Helper()
	for _, n := range f.nodes {
		if n.out == "stopped" {
			<-time.After(time.Until(n.since.Add(f.ttl + time.Second))) // stopped past the TTL, as all were
		}
		if n.out != "" {
			f.back(n)
		}
	}
	for _, n := range f.nodes {
		eventually(f.t, startLimit, n.id+" serves", n.serves)
	}
	at = time.Now()
	for _, n := range f.nodes {
		if n.cordoned {
			eventually(f.t, startLimit, n.id+" is uncordoned", func() bool { f.act(n, "uncordon"); return !n.cordoned })
		}
	}
	return at
}

// struckIn says whether the node was killed or stopped between two moments, of
// which the second may be zero: open.
func (n *chaosNode) struckIn(from, to time.Time) bool {
	for _, fault := range n.faults {
		if fault.to.After(from) && (to.IsZero() || fault.from.Before(to)) {
			return true
		}
	}
	return false
}
