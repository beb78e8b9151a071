package robust_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// evidence is all that the judges go by.
type evidence struct {
	records  []record // by time
	mails    []*mail
	reads    []reading
	log      *history
	seen     map[uint64]int64 // when the watcher saw a position of FLEET
	nodes    map[string]nodeEvidence
	troubles []trouble
	// unwritten are the works of which a node logged that their completion could
	// not be written (K3).
	unwritten map[string]bool
	end       int64
	toMono    func(time.Time) int64 // by the machine's own wall clock
	from      int64                 // when the first node was started
	shown     int64                 // from when on times are shown
}

// nodeEvidence is what was done to a node's process.
type nodeEvidence struct{ stopped, hidden []span }

// trouble is a stretch in which a node, or the log that all share, was hit.
type trouble struct {
	node string // "" for all
	span
}

// letThrough says whether a record stands for a call that passed the fence.
func letThrough(r record) bool { return r.Kind == recCall || r.Kind == recSent }

// checkedFrom is the earliest moment at which the node can have checked the
// fence for the call: after it was made, and not while the node was stopped.
func (e *evidence) checkedFrom(r record) int64 {
	for _, s := range e.nodes[r.Node].stopped {
		if r.Asked >= s.from && r.Asked < s.to {
			return s.to
		}
	}
	return r.Asked
}

// afterHiddenPause says whether a call may be that of a turn which a pause no
// clock shows ran through: the fence inside of the turn rests on clocks, so until
// a renewal is refused, a heartbeat later at most, it cannot know (design §4).
func (e *evidence) afterHiddenPause(r record) bool {
	const grace = ttl/3 + 3*time.Second
	for _, s := range e.nodes[r.Node].hidden {
		if from := e.checkedFrom(r); from >= s.to && from <= s.to+int64(grace) {
			return true
		}
	}
	return false
}

// judgeEpochs: once a call of one epoch was let through, none of an older epoch
// of that seat is checked and let through any more (F2, design §4). A call is
// judged by the earliest moment at which it can have been checked, so that none
// is blamed that may have been in time.
func judgeEpochs(e *evidence) (violations []string, excused int) {
	first := map[string]map[uint64]record{} // by seat and epoch: the first answered call
	for _, r := range e.records {
		if !letThrough(r) {
			continue
		}
		of := first[r.Seat]
		if of == nil {
			of = map[uint64]record{}
			first[r.Seat] = of
		}
		for epoch, newer := range of {
			if epoch <= r.Epoch || newer.At >= e.checkedFrom(r) {
				continue
			}
			if e.afterHiddenPause(r) {
				excused++
				break
			}
			violations = append(violations, fmt.Sprintf(
				"%s: a call under epoch %d on %s was let through at %s, after one under epoch %d on %s at %s",
				r.Seat, r.Epoch, r.Node, e.at(e.checkedFrom(r)), epoch, newer.Node, e.at(newer.At)))
			break
		}
		if _, known := of[r.Epoch]; !known {
			of[r.Epoch] = r
		}
	}
	return violations, excused
}

// at shows a moment as the transcript does.
func (e *evidence) at(mono int64) string {
	return fmt.Sprintf("%.3fs", time.Duration(mono-e.shown).Seconds())
}

// mailCount says what became of the mail.
type mailCount struct {
	acked, relayed, once, again, failed, unwritten int
}

// judgeMail: whatever was acknowledged has its effect; once, or once more where
// the run before was broken off by a fault, and then the completion says so (K1,
// W1, case 15); or, where its completion came after the next holder had begun, that
// one's attempt. A ledger that cannot be written fails open, and its node says so
// (K3): then there is one effect and no completion, or none, where the work had
// failed after it had reached outside (B1). What agents sent counts as acknowledged.
func judgeMail(e *evidence) (violations []string, n mailCount) {
	effects := map[string][]record{}
	owed := map[string]string{} // seat and id: who promised it
	for _, r := range e.records {
		switch r.Kind {
		case recEffect:
			for _, id := range r.Events {
				effects[workID(r.Seat, id)] = append(effects[workID(r.Seat, id)], r)
			}
		case recSent:
			if id := workID(r.To, r.Sent); owed[id] == "" {
				owed[id] = "sent by the agent of " + r.Seat
				n.relayed++
			}
		}
	}
	for _, m := range e.mails {
		if m.acked != 0 {
			owed[workID(m.seat, m.id)] = "acknowledged at " + e.at(m.acked)
			n.acked++
		} else if id := workID(m.seat, m.id); len(effects[id]) > 0 {
			owed[id] = "sent and not acknowledged"
		}
	}
	for id, who := range owed {
		if wrong := e.judgeOne(id, who, effects[id], &n); wrong != "" {
			violations = append(violations, wrong)
		}
	}
	slices.Sort(violations)
	return violations, n
}

func (e *evidence) judgeOne(id, who string, effects []record, n *mailCount) string {
	done, recorded := e.log.completions[id]
	reason, parked := e.log.parked[id]
	switch {
	case len(effects) == 0 && parked:
		return fmt.Sprintf("%s, %s, was parked: %s", id, who, reason)
	case len(effects) == 0 && !recorded && e.unwritten[id] && e.acted(id):
		n.unwritten++ // the same, and its failure could not be recorded: K3
		return ""
	case len(effects) == 0 && !recorded:
		return fmt.Sprintf("%s, %s, is lost or pending: no effect and no completion", id, who)
	case len(effects) == 0 && done.Outcome == events.OutcomeFailed:
		n.failed++ // B1: it broke after a call had reached outside; recorded, not run again
		return ""
	case len(effects) == 0:
		return fmt.Sprintf("%s, %s, is recorded as %s and had no effect", id, who, done.Outcome)
	case !recorded && e.unwritten[id] && len(effects) == 1:
		n.unwritten++ // K3: the ledger fails open, and it was reported
		return ""
	case !recorded:
		return fmt.Sprintf("%s, %s, had its effect and has no completion", id, who)
	case len(effects) == 1:
		n.once++
		return ""
	}
	n.again++
	told, last := done.Attempts, effects[len(effects)-1]
	if done.Epoch < last.Epoch {
		// A former holder's completion landed after its successor had looked for one:
		// nothing fences it (W4). The successor told its agent, and its log, of the
		// attempt.
		told = last.Attempt
	}
	if told < len(effects) {
		return fmt.Sprintf("%s, %s, had %d effects, and %d attempts are told of", id, who, len(effects), told)
	}
	for _, r := range effects[:len(effects)-1] {
		if !e.broken(r) {
			return fmt.Sprintf("%s, %s, had %d effects, and no fault broke off the run on %s at %s (epoch %d, attempt %d)",
				id, who, len(effects), r.Node, e.at(r.At), r.Epoch, r.Attempt)
		}
	}
	return ""
}

// acted says whether an agent made a call for the work.
func (e *evidence) acted(id string) bool {
	return slices.ContainsFunc(e.records, func(r record) bool {
		return letThrough(r) && slices.ContainsFunc(r.Events, func(event string) bool { return workID(r.Seat, event) == id })
	})
}

// broken says whether a fault can have kept a run's effect from being recorded:
// one on its node or on the log, from a TTL before the effect, for a node cut off
// so long is fenced, to a moment after it.
func (e *evidence) broken(r record) bool {
	const before, after = int64(ttl + time.Second), int64(2 * time.Second)
	return slices.ContainsFunc(e.troubles, func(t trouble) bool {
		return (t.node == "" || t.node == r.Node) && t.from <= r.At+after && t.to >= r.At-before
	})
}

// judgeReads: what a node said of who holds what is what the log says at the
// position it named.
func judgeReads(e *evidence) (violations []string) {
	bySeat := map[string][]leaseEvent{}
	for _, l := range e.log.leases {
		bySeat[l.seat] = append(bySeat[l.seat], l)
	}
	for _, read := range e.reads {
		for seat, got := range read.holders {
			var want holding
			for _, l := range bySeat[seat] {
				if l.seq > read.position {
					break
				}
				want = holding{}
				if l.kind == opClaim {
					want = holding{l.owner, l.epoch}
				}
			}
			if got != want {
				violations = append(violations, fmt.Sprintf("%s said at position %d that %s is held by %q under epoch %d; the log has %q under epoch %d",
					read.node, read.position, seat, got.owner, got.epoch, want.owner, want.epoch))
			}
		}
	}
	return violations
}

// call is a let-through call for the tests below.
func call(seat, node string, epoch uint64, asked, at int64) record {
	return record{Kind: recCall, Seat: seat, Node: node, Epoch: epoch, Asked: asked, At: at}
}

// TestJudgeEpochs: an older epoch's call after a newer one's is found; one that
// may have been checked before is not; one that was asked while its node was
// stopped is judged by when the node ran again; and a pause that no clock shows
// excuses for a heartbeat and no longer.
func TestJudgeEpochs(t *testing.T) {
	const sec = int64(time.Second)
	stopped := map[string]nodeEvidence{"a": {stopped: []span{{5 * sec, 25 * sec}}}}
	hidden := map[string]nodeEvidence{"a": {stopped: []span{{5 * sec, 25 * sec}}, hidden: []span{{5 * sec, 25 * sec}}}}
	for name, c := range map[string]struct {
		records       []record
		nodes         map[string]nodeEvidence
		want, excused int
	}{
		"in order":        {[]record{call("s", "a", 1, 0, 1), call("s", "b", 2, 2, 3)}, nil, 0, 0},
		"goes back":       {[]record{call("s", "b", 2, 2, 3), call("s", "a", 1, 4, 5)}, nil, 1, 0},
		"at the same":     {[]record{call("s", "b", 2, 2, 3), call("s", "a", 1, 2, 5)}, nil, 0, 0},
		"another seat":    {[]record{call("s", "b", 2, 2, 3), call("r", "a", 1, 4, 5)}, nil, 0, 0},
		"asked stopped":   {[]record{call("s", "b", 2, 20*sec, 21*sec), call("s", "a", 1, 6*sec, 26*sec)}, stopped, 1, 0},
		"hidden pause":    {[]record{call("s", "b", 2, 20*sec, 21*sec), call("s", "a", 1, 6*sec, 26*sec)}, hidden, 0, 1},
		"hidden too long": {[]record{call("s", "b", 2, 20*sec, 21*sec), call("s", "a", 1, 60*sec, 61*sec)}, hidden, 1, 0},
	} {
		got, excused := judgeEpochs(&evidence{records: c.records, nodes: c.nodes})
		if len(got) != c.want || excused != c.excused {
			t.Errorf("%s: %d violations, %d excused, want %d and %d: %v", name, len(got), excused, c.want, c.excused, got)
		}
	}
}

// TestJudgeMail: mail that is lost, parked, recorded without an effect, or has
// two effects that no fault and no attempt explains is found, and nothing else.
func TestJudgeMail(t *testing.T) {
	effect := func(attempt int, at int64) record {
		return record{Kind: recEffect, Seat: "s", Node: "a", Events: []string{"m"}, Attempt: attempt, At: at}
	}
	later := func(attempt int, at int64) record { // by the seat's next holder
		r := effect(attempt, at)
		r.Epoch++
		return r
	}
	id := workID("s", "m")
	done := func(attempts int, outcome events.Outcome) map[string]events.TurnCompleted {
		return map[string]events.TurnCompleted{id: {Attempts: attempts, Outcome: outcome}}
	}
	hit := []trouble{{"a", span{1, 2}}}
	for name, c := range map[string]struct {
		records     []record
		completions map[string]events.TurnCompleted
		parked      map[string]string
		troubles    []trouble
		want        int
		unwritten   bool
	}{
		"once":              {[]record{effect(1, 1)}, done(1, events.OutcomeDone), nil, nil, 0, false},
		"lost":              {nil, nil, nil, nil, 1, false},
		"parked":            {nil, nil, map[string]string{id: "budget"}, nil, 1, false},
		"recorded only":     {nil, done(1, events.OutcomeDone), nil, nil, 1, false},
		"failed":            {nil, done(1, events.OutcomeFailed), nil, nil, 0, false},
		"never recorded":    {[]record{effect(1, 1)}, nil, nil, nil, 1, false},
		"twice, explained":  {[]record{effect(1, 1), effect(2, 2)}, done(2, events.OutcomeDone), nil, hit, 0, false},
		"twice, no attempt": {[]record{effect(1, 1), effect(1, 2)}, done(1, events.OutcomeDone), nil, hit, 1, false},
		"twice, no fault":   {[]record{effect(1, 1), effect(2, 2)}, done(2, events.OutcomeDone), nil, nil, 1, false},
		"twice, late":       {[]record{effect(1, 1), later(2, 2)}, done(1, events.OutcomeDone), nil, hit, 0, false},
		"late, no attempt":  {[]record{effect(1, 1), later(1, 2)}, done(1, events.OutcomeDone), nil, hit, 1, false},
		"reported":          {[]record{effect(1, 1)}, nil, nil, nil, 0, true},
		"reported, lost":    {nil, nil, nil, nil, 1, true},
		"reported, failed":  {[]record{{Kind: recCall, Seat: "s", Node: "a", Events: []string{"m"}, At: 1}}, nil, nil, nil, 0, true},
		"reported, twice":   {[]record{effect(1, 1), effect(2, 2)}, nil, nil, hit, 1, true},
	} {
		e := &evidence{records: c.records, troubles: c.troubles, mails: []*mail{{id: "m", seat: "s", acked: 1}},
			log: &history{completions: c.completions, parked: c.parked}, unwritten: map[string]bool{id: c.unwritten}}
		if got, _ := judgeMail(e); len(got) != c.want {
			t.Errorf("%s: %d violations, want %d: %v", name, len(got), c.want, got)
		}
	}
	// What an agent sent is owed as well, to the seat it was sent to.
	relay := record{Kind: recSent, Seat: "s", Node: "a", Sent: "r", To: "z"}
	if got, n := judgeMail(&evidence{records: []record{relay}, log: &history{}}); len(got) != 1 || n.relayed != 1 {
		t.Errorf("lost mail of an agent: %v", got)
	}
}

// TestJudgeReads: an answer that is not the log at its position is found.
func TestJudgeReads(t *testing.T) {
	log := &history{leases: []leaseEvent{
		{seq: 3, kind: opClaim, seat: "s", epoch: 1, owner: "a:1"},
		{seq: 5, kind: opRelease, seat: "s", epoch: 1, owner: "a:1"},
		{seq: 7, kind: opClaim, seat: "s", epoch: 2, owner: "b:1"},
	}}
	for _, c := range []struct {
		position uint64
		says     holding
		want     int
	}{
		{2, holding{}, 0}, {4, holding{"a:1", 1}, 0}, {6, holding{}, 0}, {8, holding{"b:1", 2}, 0},
		{8, holding{"a:1", 1}, 1}, {6, holding{"a:1", 1}, 1}, {4, holding{"b:1", 2}, 1},
	} {
		e := &evidence{log: log, reads: []reading{{"n", c.position, map[string]holding{"s": c.says}, 0}}}
		if got := judgeReads(e); len(got) != c.want {
			t.Errorf("position %d says %v: %v", c.position, c.says, got)
		}
	}
}
