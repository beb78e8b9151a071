package robust_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// kind is a kind of fault.
type kind string

const (
	killNode    kind = "kill"                         // SIGKILL, later started again
	killLeader  kind = "kill leader of FLEET"         // the broker that leads it, wherever that is
	stopNode    kind = "stop"                         // SIGSTOP, SIGCONT within the TTL
	stopLong    kind = "stop past the TTL"            // and after it
	stopHidden  kind = "pause no clock shows"         // past the TTL, and its clocks do not show it
	restartNode kind = "restart"                      // SIGTERM, started again at once
	killAll     kind = "kill all"                     // every node at once
	restartAll  kind = "restart all"                  // SIGTERM to every node at once
	outage      kind = "stop two brokers"             // no quorum for a while
	partition   kind = "partition"                    // a node from all others, both ways
	cutOut      kind = "cut one way, outgoing"        // what the node sends is lost
	cutIn       kind = "cut one way, incoming"        // what is sent to it is lost
	cutBroker   kind = "cut from one broker"          // a client from one of the three
	cutLink     kind = "cut broker from broker"       // both still see the third
	cutMinority kind = "cut broker from both brokers" // its clients still reach it (case 8)
	cutLinkWay  kind = "cut broker from broker, one way"
	wallStep    kind = "wall clock steps"                   // ±1 h, and back
	wallLeader  kind = "wall clock of FLEET's leader steps" // case 35
	suspend     kind = "boot clock +1 h"                    // as after a suspend
	drift       kind = "clocks drift"                       // within what the bound allows
	diskFull    kind = "disk full"                          // and room again
	drainNode   kind = "drain"                              // uncordoned later
	cordonNode  kind = "cordon"                             // uncordoned later
	moveSeat    kind = "move"                               //
	releaseSeat kind = "release"                            //
	fenceSeat   kind = "fence"                              //
	pauseSeat   kind = "pause seat"                         // resumed later
	applyRev    kind = "apply"                              // a node restarts with a new company revision
)

// where is what a fault may be done to.
type where int

const (
	atClient   where = 1 << iota // a node without a broker
	atBroker                     // a node that carries the log
	atFleet                      // everything: nothing else at the same time
	atOperator                   // a wish of an operator, at any time
)

// kindRow says how often a kind is drawn, on what, and how long it lasts.
type kindRow struct {
	kind     kind
	weight   int
	at       where
	min, max time.Duration
	network  bool // takes namespaces and small disks
	wall     bool // takes a wall clock that can be stepped
}

const ms = time.Millisecond

// past is what outlasts a lease.
const past = ttl + 1500*ms

var kindRows = []kindRow{
	{killNode, 8, atClient, 100 * ms, 22 * time.Second, false, false},
	{killNode, 4, atBroker, 100 * ms, 15 * time.Second, false, false},
	{killLeader, 4, atBroker, 100 * ms, 8 * time.Second, false, false},
	{stopNode, 6, atClient, 300 * ms, 8 * time.Second, false, false},
	{stopNode, 3, atBroker, 300 * ms, 8 * time.Second, false, false},
	{stopLong, 6, atClient, past, past + 5*time.Second, false, false},
	{stopLong, 2, atBroker, past, past + 3*time.Second, false, false},
	{stopHidden, 5, atClient, past, past + 4*time.Second, false, false},
	{restartNode, 3, atClient | atBroker, 0, 0, false, false},
	{partition, 6, atClient, time.Second, past + 5*time.Second, true, false},
	{partition, 4, atBroker, time.Second, past, true, false},
	{cutOut, 4, atClient | atBroker, time.Second, past, true, false},
	{cutIn, 4, atClient | atBroker, time.Second, past, true, false},
	{cutBroker, 3, atClient, 2 * time.Second, past, true, false},
	{cutLink, 3, atBroker, 2 * time.Second, 12 * time.Second, true, false},
	{cutMinority, 4, atBroker, 2 * time.Second, past, true, false},
	{cutLinkWay, 2, atBroker, 2 * time.Second, 12 * time.Second, true, false},
	{wallStep, 4, atClient | atBroker, 2 * time.Second, 20 * time.Second, false, true},
	{wallLeader, 3, atBroker, 2 * time.Second, 20 * time.Second, false, true},
	{suspend, 4, atClient | atBroker, 0, 0, false, false},
	{drift, 2, atClient, 5 * time.Second, 30 * time.Second, false, false},
	{diskFull, 4, atClient, 2 * time.Second, 8 * time.Second, true, false},
	{diskFull, 2, atBroker, 2 * time.Second, 6 * time.Second, true, false},
	{drainNode, 5, atOperator, time.Second, 8 * time.Second, false, false},
	{cordonNode, 3, atOperator, time.Second, 8 * time.Second, false, false},
	{moveSeat, 16, atOperator, 0, 0, false, false},
	{releaseSeat, 7, atOperator, 0, 0, false, false},
	{fenceSeat, 4, atOperator, 0, 0, false, false},
	{pauseSeat, 4, atOperator, 500 * ms, 6 * time.Second, false, false},
	{applyRev, 3, atClient, 0, 0, false, false},
	{killAll, 1, atFleet, 0, 2 * time.Second, false, false},
	{restartAll, 1, atFleet, 0, 0, false, false},
	{outage, 1, atFleet, 3 * time.Second, past + 3*time.Second, false, false},
}

// fault is one line of a script.
type fault struct {
	at   time.Duration
	kind kind
	node int           // which, where the kind has one
	peer int           // the other end of a cut, or where a seat goes
	seat int           // which, where the kind has one
	last time.Duration // until it ends
	sign int64         // of a clock's step
}

// wish says whether it is one of an operator.
func (f fault) wish() bool {
	return slices.ContainsFunc(kindRows, func(r kindRow) bool { return r.kind == f.kind && r.at == atOperator })
}

func (f fault) String() string {
	s := fmt.Sprintf("%7.1fs  %-32s", f.at.Seconds(), f.kind)
	switch f.kind {
	case moveSeat:
		s += fmt.Sprintf(" %s to n%d", seatName(f.seat), f.peer+1)
	case releaseSeat, fenceSeat, pauseSeat:
		s += " " + seatName(f.seat)
	case killAll, restartAll, killLeader, wallLeader:
	case cutBroker, cutLink, cutLinkWay:
		s += fmt.Sprintf(" n%d - n%d", f.node+1, f.peer+1)
	default:
		s += fmt.Sprintf(" n%d", f.node+1)
	}
	if f.last > 0 {
		s += fmt.Sprintf(" for %.1fs", f.last.Seconds())
	}
	return s
}

// Distances within a script.
const (
	warmUp       = 4 * time.Second
	settleBroker = 7 * time.Second // a broker catches up before the next is hit
	settleClient = 2 * time.Second
	settleFleet  = 20 * time.Second
	fleetEvery   = 150 * time.Second // between two faults of the whole fleet
)

// writer draws a script.
type writer struct {
	random    *rand.Rand
	rows      []kindRow
	free      [nodeCount]time.Duration // from when on a node may be hit
	log       time.Duration            // the same for the brokers together
	nextFleet time.Duration
}

// writeScript draws a script of that length. Of the brokers at most one at a
// time is hit, so that the log stands; of the clients, all but one may be.
func writeScript(seed uint64, length time.Duration, network, wall bool) []fault {
	w := &writer{random: rand.New(rand.NewPCG(seed, 5)), nextFleet: min(fleetEvery, length-length/8)}
	for _, r := range kindRows {
		if (network || !r.network) && (wall || !r.wall) {
			w.rows = append(w.rows, r)
		}
	}
	var all []fault
	for t := warmUp; t < length; t += 1200*ms + time.Duration(w.random.Int64N(int64(2400*ms))) {
		if t >= w.nextFleet {
			t = max(t, slices.Max(w.free[:]))
			if t >= length {
				break
			}
			f := w.whole(t)
			all = append(all, f)
			t += f.last + settleFleet
			continue
		}
		for range 20 { // others are drawn where one finds no room
			if f, ok := w.draw(t); ok {
				all = append(all, f)
				break
			}
		}
	}
	return all
}

// pick draws a row of those places.
func (w *writer) pick(at where) kindRow {
	sum := 0
	for _, r := range w.rows {
		if r.at&at != 0 {
			sum += r.weight
		}
	}
	n := w.random.IntN(sum)
	for _, r := range w.rows {
		if r.at&at != 0 {
			if n -= r.weight; n < 0 {
				return r
			}
		}
	}
	panic("weights")
}

func (w *writer) lasts(r kindRow) time.Duration {
	if r.max == r.min {
		return r.min
	}
	// Short ones more often: the square of an even draw.
	x := w.random.Float64()
	return r.min + time.Duration(x*x*float64(r.max-r.min))
}

func (w *writer) whole(t time.Duration) fault {
	r := w.pick(atFleet)
	f := fault{at: t, kind: r.kind, last: w.lasts(r), node: w.random.IntN(brokers)}
	w.nextFleet = t + fleetEvery
	for i := range w.free {
		w.free[i] = t + f.last + settleFleet
	}
	w.log = t + f.last + settleFleet
	return f
}

// draw draws one fault at t; ok is false when what it needs is not free.
func (w *writer) draw(t time.Duration) (f fault, ok bool) {
	r := w.pick(atClient | atBroker | atOperator)
	f = fault{at: t, kind: r.kind, last: w.lasts(r), seat: w.random.IntN(seats), sign: 1 - 2*w.random.Int64N(2)}
	if t+f.last+settleBroker >= w.nextFleet && r.at != atOperator {
		return f, false
	}
	switch {
	case r.at == atOperator:
		f.node, f.peer = w.random.IntN(nodeCount), w.random.IntN(nodeCount)
		return f, true
	case r.at&atBroker != 0 && (r.at&atClient == 0 || w.random.IntN(3) == 0):
		f.node = w.random.IntN(brokers)
		f.peer = (f.node + 1 + w.random.IntN(brokers-1)) % brokers
		if t < w.log {
			return f, false
		}
		w.log = t + f.last + settleBroker
		w.free[f.node], w.free[f.peer] = w.log, w.log
		return f, true
	}
	f.node = brokers + w.random.IntN(nodeCount-brokers)
	f.peer = w.random.IntN(brokers)
	busy := 0
	for _, until := range w.free[brokers:] {
		if until > t {
			busy++
		}
	}
	if t < w.free[f.node] || busy >= nodeCount-brokers-1 {
		return f, false
	}
	w.free[f.node] = t + f.last + settleClient
	return f, true
}

// TestScript: a seed gives the same script each time, another seed another; the
// brokers are hit one at a time, a node by one fault at a time, and within half
// an hour every kind comes up and there are more than 300.
func TestScript(t *testing.T) {
	const long = 30 * time.Minute
	script := writeScript(1, long, true, true)
	if again := writeScript(1, long, true, true); !slices.Equal(script, again) {
		t.Error("one seed gave two scripts")
	}
	if slices.Equal(script, writeScript(2, long, true, true)) {
		t.Error("two seeds gave one script")
	}
	t.Logf("%d faults in half an hour", len(script))
	if len(script) < 300 {
		t.Errorf("%d faults in half an hour", len(script))
	}
	for _, r := range kindRows {
		if !slices.ContainsFunc(script, func(f fault) bool { return f.kind == r.kind }) {
			t.Errorf("no %q in half an hour", r.kind)
		}
	}
	var brokersFree time.Duration
	for _, f := range script {
		operator := slices.ContainsFunc(kindRows, func(r kindRow) bool { return r.kind == f.kind && r.at&(atOperator|atFleet) != 0 })
		if operator || f.node >= brokers {
			continue
		}
		if f.at < brokersFree {
			t.Errorf("a second broker is hit before %v: %v", brokersFree, f)
		}
		brokersFree = f.at + f.last
	}
	for _, f := range writeScript(3, long, false, false) {
		if strings.HasPrefix(string(f.kind), "cut") || f.kind == partition || f.kind == diskFull || f.kind == wallStep {
			t.Errorf("without a network: %v", f)
		}
	}
}
