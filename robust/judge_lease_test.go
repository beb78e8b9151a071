package robust_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operations on a seat's lease. Claims, releases and fences are the log's; calls
// are the agents', each of them a statement of a node that the fence is open: the
// seat is held under that epoch by that node.
const (
	opClaim   = "claim"
	opRelease = "release"
	opFence   = "fence"
	opCall    = "call"
)

// leaseOp is the input of an operation. None has an output: that it was accepted
// is the statement.
type leaseOp struct {
	op    string
	epoch uint64
	owner string // of a claim: the incarnation; of a call: the node
}

// leaseState is the register: one lease.
type leaseState struct {
	epoch uint64
	owner string
	free  bool // given back, or never claimed
}

// leaseModel is a lease as the design has it, seen from outside and in real time.
// A claim takes the next epoch, over whatever was there: whether it might is the
// audit's to judge. A call needs the newest epoch, by its owner's node, and not
// given back. What porcupine adds to the audit is the order in time: the audit
// believes the log's order, here it must agree with what agents saw happen.
var leaseModel = porcupine.Model{
	Init: func() any { return leaseState{free: true} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(leaseState), input.(leaseOp)
		switch in.op {
		case opClaim:
			return in.epoch == s.epoch+1, leaseState{epoch: in.epoch, owner: in.owner}
		case opRelease:
			return in.epoch == s.epoch && !s.free, leaseState{epoch: s.epoch, owner: s.owner, free: true}
		case opFence: // ends renewals; the holder has the time it bought
			return in.epoch == s.epoch && !s.free, s
		}
		return in.epoch == s.epoch && !s.free && strings.HasPrefix(s.owner, in.owner+":"), s
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// checkLimit bounds the search for one seat. Not found in time is a failure.
const checkLimit = 60 * time.Second

// leaseHistory is one seat's operations. An event of the log began when its
// writer stamped it, right before sending, and ended when the watcher saw it; one
// that was never seen stays open. Calls after a pause that no clock shows are
// left out: judgeEpochs bounds them.
func (e *evidence) leaseHistory(seat string) (ops []porcupine.Operation) {
	add := func(client int, op leaseOp, call, ret int64) {
		ops = append(ops, porcupine.Operation{ClientId: client, Input: op, Call: call, Return: max(ret, call+1)})
	}
	for _, l := range e.log.leases {
		if l.seat != seat {
			continue
		}
		ret, known := e.seen[l.seq]
		if !known {
			ret = math.MaxInt64 - 1
		}
		add(0, leaseOp{l.kind, l.epoch, l.owner}, e.stamped(l.wrote), ret)
	}
	for _, r := range e.records {
		if r.Seat == seat && letThrough(r) && !e.afterHiddenPause(r) {
			add(1, leaseOp{opCall, r.Epoch, r.Node}, e.checkedFrom(r), r.At)
		}
	}
	return ops
}

// stamped is when a writer stamped an event. Its wall clock may have been off by
// an hour either way; a run is shorter, so only one reading falls into it.
func (e *evidence) stamped(wrote time.Time) int64 {
	const slack = int64(50 * time.Millisecond) // the machine's clocks are slewed
	for _, off := range []time.Duration{0, time.Hour, -time.Hour} {
		if t := e.toMono(wrote.Add(-off)) - slack; t >= e.from-int64(time.Second) && t <= e.end {
			return t
		}
	}
	return 0 // from before all: says nothing
}

// judgeLeases: the history of each seat is that of one lease (L1, L2, A1, F2).
func judgeLeases(e *evidence) (violations []string, operations int) {
	var names []string
	for _, l := range e.log.leases {
		if !slices.Contains(names, l.seat) {
			names = append(names, l.seat)
		}
	}
	slices.Sort(names)
	for _, seat := range names {
		ops := e.leaseHistory(seat)
		operations += len(ops)
		switch result := porcupine.CheckOperationsTimeout(leaseModel, ops, checkLimit); result {
		case porcupine.Ok:
		case porcupine.Illegal:
			violations = append(violations, fmt.Sprintf("%s: its %d operations are not those of one lease", seat, len(ops)))
		default:
			violations = append(violations, fmt.Sprintf("%s: whether its %d operations are those of one lease was not found out in %v (%v)", seat, len(ops), checkLimit, result))
		}
	}
	return violations, operations
}

// TestJudgeLeases: histories that no single lease can have had are refused, and
// those are not in which time leaves room.
func TestJudgeLeases(t *testing.T) {
	stamp := func(at int64) time.Time { return time.Unix(0, at) }
	claim := func(seq, epoch uint64, node string, at int64) leaseEvent {
		return leaseEvent{seq, opClaim, "s", epoch, node + ":1", stamp(at), node}
	}
	release := func(seq, epoch uint64, node string, at int64) leaseEvent {
		return leaseEvent{seq, opRelease, "s", epoch, node + ":1", stamp(at), node}
	}
	const unit = int64(time.Second)
	for name, c := range map[string]struct {
		leases []leaseEvent
		calls  []record
		unseen uint64
		want   int
	}{
		"in order": {
			[]leaseEvent{claim(1, 1, "a", 1), release(2, 1, "a", 4), claim(3, 2, "b", 6)},
			[]record{call("s", "a", 1, 2*unit, 3*unit), call("s", "b", 2, 8*unit, 9*unit)}, 0, 0},
		"call by a stranger": {[]leaseEvent{claim(1, 1, "a", 1)}, []record{call("s", "b", 1, 4*unit, 5*unit)}, 0, 1},
		"call after the release": {
			[]leaseEvent{claim(1, 1, "a", 1), release(2, 1, "a", 4)}, []record{call("s", "a", 1, 8*unit, 9*unit)}, 0, 1},
		"call after the next claim": {
			[]leaseEvent{claim(1, 1, "a", 1), claim(2, 2, "b", 4)}, []record{call("s", "a", 1, 8*unit, 9*unit)}, 0, 1},
		"call before the claim": {[]leaseEvent{claim(1, 1, "a", 8)}, []record{call("s", "a", 1, 2*unit, 3*unit)}, 0, 1},
		"an epoch twice":        {[]leaseEvent{claim(1, 1, "a", 1), claim(2, 1, "b", 4)}, nil, 0, 1},
		"an epoch left out":     {[]leaseEvent{claim(1, 1, "a", 1), claim(2, 3, "b", 4)}, nil, 0, 1},
		"never seen, so open": {
			[]leaseEvent{claim(1, 1, "a", 1), claim(2, 2, "b", 4)}, []record{call("s", "a", 1, 8*unit, 9*unit)}, 2, 0},
	} {
		e := &evidence{log: &history{leases: c.leases}, records: c.calls, seen: map[uint64]int64{}, end: 100 * unit,
			toMono: func(t time.Time) int64 { return t.UnixNano() * unit }}
		for _, l := range c.leases {
			if l.seq != c.unseen {
				e.seen[l.seq] = l.wrote.UnixNano()*unit + unit/2
			}
		}
		if got, _ := judgeLeases(e); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
