package audit_test

import (
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// inFleet is where a fault of FLEET is to be found.
func inFleet(seq uint64) (events.Stream, uint64) { return events.StreamFleet, seq }

// stranger is another run of beta's node.
const stranger events.Incarnation = "node-1:00000000"

// TestReservationsAreRespected proves that what a handoff reserved is taken,
// waited for and declined by nobody but those who may (design §5): one fault,
// one finding.
func TestReservationsAreRespected(t *testing.T) {
	for name, c := range map[string]illegal{
		"a claim of what is reserved for another": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			h.reserved()
			return inFleet(h.put(claimed(dev, 2, alpha)))
		}},
		"a claim before the reservation's time was up": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			release := h.reserved()
			return inFleet(h.put(waited(claimed(dev, 2, alpha), events.Waited{Successor: beta, LastSeq: release, Unseen: 9999})))
		}},
		"a claim that waited for another release": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			h.reserved()
			return inFleet(h.put(waited(claimed(dev, 2, alpha), events.Waited{Successor: beta, LastSeq: 1, Unseen: 10000})))
		}},
		"a claim that waited for another successor": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			release := h.reserved()
			return inFleet(h.put(waited(claimed(dev, 2, alpha), events.Waited{Successor: stranger, LastSeq: release, Unseen: 10000})))
		}},
		"a claim that waited for nothing": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			return inFleet(h.put(waited(claimed(dev, 2, alpha), events.Waited{Successor: beta, LastSeq: 2, Unseen: 10000})))
		}},
		"a claim for another handoff": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			h.reserved()
			return inFleet(h.put(forSaga(claimed(dev, 2, beta), "dev.2")))
		}},
		"a claim for a handoff over a lapsed lease": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			return inFleet(h.put(forSaga(takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: 1, Unseen: lapsed}), "dev.1")))
		}},
		"a reservation declined by another": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			h.reserved()
			return inFleet(h.put(declined(dev, 1, alpha, stranger, "dev.1")))
		}},
		"a reservation declined after the claim": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			h.reserved()
			h.put(forSaga(claimed(dev, 2, beta), "dev.1"))
			return inFleet(h.put(declined(dev, 1, alpha, beta, "dev.1")))
		}},
		"a reservation declined twice": {audit.RuleReserved, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.handOver(&b)
			h.put(events.HandoffDeclined{HandoffBody: b, Step: events.StepReleased, Cause: events.DeclineDraining})
			h.put(declined(dev, 1, alpha, beta, "dev.1"))
			return inFleet(h.put(declined(dev, 1, alpha, beta, "dev.1")))
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { c.found(t) })
	}
}

// handingOver claims the seat for alpha and says what a handoff of it says.
func (h *history) handingOver() events.HandoffBody {
	h.put(claimed(dev, 1, alpha))
	return moving(1, 1, alpha, beta)
}

// reserved has the seat handed over to beta, and returns where the release is.
func (h *history) reserved() uint64 {
	b := h.handingOver()
	return h.handOver(&b)
}

// TestHandoffsTakeTheirSteps proves that a step out of order, by another, of
// another handoff or without its other half is found, where it stands: one
// fault, one finding.
func TestHandoffsTakeTheirSteps(t *testing.T) {
	for name, c := range map[string]illegal{
		"a step left out": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			return inFleet(h.put(events.HandoffQuiesced{HandoffBody: b}))
		}},
		"a step twice": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			h.put(events.HandoffWarmed{HandoffBody: b})
			return inFleet(h.put(events.HandoffWarmed{HandoffBody: b}))
		}},
		"a step of no handoff": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			return inFleet(h.put(events.HandoffWarmed{HandoffBody: h.handingOver()}))
		}},
		"a step of another handoff": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			b.Number = 2
			return inFleet(h.put(events.HandoffWarmed{HandoffBody: b}))
		}},
		"a step that another wrote": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			seq := h.put(events.HandoffWarmed{HandoffBody: b})
			h.edit(events.StreamFleet, seq, func(m *events.Message) { m.Header.Set(events.HeaderSource, string(alpha)) })
			return inFleet(seq)
		}},
		"a step with another aim": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			b.Patience.Claim++
			return inFleet(h.put(events.HandoffWarmed{HandoffBody: b}))
		}},
		"a second handoff while one is open": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			h.put(events.HandoffRequested{HandoffBody: h.handingOver()})
			return inFleet(h.put(events.HandoffRequested{HandoffBody: moving(2, 1, alpha, stranger)}))
		}},
		"a handoff that was not the next": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			h.handingOver()
			return inFleet(h.put(events.HandoffRequested{HandoffBody: moving(2, 1, alpha, beta)}))
		}},
		"a handoff from a tenure that never was": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			h.handingOver()
			return inFleet(h.put(events.HandoffRequested{HandoffBody: moving(1, 2, alpha, beta)}))
		}},
		"a handoff from another's tenure": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			h.handingOver()
			return inFleet(h.put(events.HandoffRequested{HandoffBody: moving(1, 1, stranger, beta)}))
		}},
		"completed before anybody claimed": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.handOver(&b)
			return inFleet(h.put(events.HandoffCompleted{HandoffBody: b, ClaimedEpoch: 2}))
		}},
		"completed though another claimed": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			release := h.handOver(&b)
			h.put(waited(claimed(dev, 2, alpha), events.Waited{Successor: beta, LastSeq: release, Unseen: 10000}))
			return inFleet(h.put(events.HandoffCompleted{HandoffBody: b, ClaimedEpoch: 2}))
		}},
		"abandoned before its time": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			return inFleet(h.put(events.HandoffAbandoned{HandoffBody: b, Step: events.StepRequested, Cause: events.AbandonDeadline, Ender: "ops", Unseen: 999}))
		}},
		"abandoned as lost, and it is not": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			return inFleet(h.put(events.HandoffAbandoned{HandoffBody: b, Step: events.StepRequested, Cause: events.AbandonLost, Ender: "ops"}))
		}},
		"abandoned by an operator after the release": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.handOver(&b)
			return inFleet(h.put(events.HandoffAbandoned{HandoffBody: b, Step: events.StepReleased, Cause: events.AbandonOperator, Ender: "ops"}))
		}},
		"abandoned at another step": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			return inFleet(h.put(events.HandoffAbandoned{HandoffBody: b, Step: events.StepWarmed, Cause: events.AbandonOperator, Ender: "ops"}))
		}},
		"a step after its end": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			h.put(events.HandoffDeclined{HandoffBody: b, Step: events.StepRequested, Cause: events.DeclineGated})
			return inFleet(h.put(events.HandoffWarmed{HandoffBody: b}))
		}},
		"released, and the lease is not": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.flush(&b)
			seq := h.put(events.HandoffReleased{HandoffBody: b, ReservedFor: b.Patience.Claim})
			h.put(events.StreamMarked{Stream: events.StreamFleet, Marker: "m-2"})
			return inFleet(seq)
		}},
		"the lease released, and the handoff is not": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.flush(&b)
			return inFleet(h.put(handedOver(b)))
		}},
		"the lease released for longer than the handoff says": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.flush(&b)
			h.put(events.HandoffReleased{HandoffBody: b, ReservedFor: b.Patience.Claim})
			longer := handedOver(b)
			longer.ReservedFor++
			return inFleet(h.put(longer))
		}},
		"declined, and the reservation is not": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.handOver(&b)
			seq := h.put(events.HandoffDeclined{HandoffBody: b, Step: events.StepReleased, Cause: events.DeclineDraining})
			h.put(forSaga(claimed(dev, 2, beta), "dev.1"))
			return inFleet(seq)
		}},
		"the reservation declined, and the handoff is not": {audit.RuleHandoff, func(h *history) (events.Stream, uint64) {
			h.reserved()
			return inFleet(h.put(declined(dev, 1, alpha, beta, "dev.1")))
		}},
		"an unreadable step": {audit.RuleDecode, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.flush(&b)
			seq := h.unreadable(events.HandoffReleased{HandoffBody: b, ReservedFor: b.Patience.Claim})
			h.put(handedOver(b)) // what it stood with is not judged by it, nor what follows
			h.put(forSaga(claimed(dev, 2, beta), "dev.1"))
			h.put(events.HandoffCompleted{HandoffBody: b, ClaimedEpoch: 2})
			h.put(events.HandoffRequested{HandoffBody: moving(2, 2, beta, alpha)})
			h.put(events.HandoffWarmed{HandoffBody: moving(2, 2, beta, alpha)})
			return inFleet(seq)
		}},
		"an unreadable other half": {audit.RuleDecode, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.flush(&b)
			h.put(events.HandoffReleased{HandoffBody: b, ReservedFor: b.Patience.Claim})
			seq := h.unreadable(handedOver(b))
			h.put(events.SeatPaused{Handle: "dev", By: "ops", Reason: "r"})
			return inFleet(seq)
		}},
		"an unreadable claim, which it was for": {audit.RuleDecode, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.handOver(&b)
			seq := h.unreadable(forSaga(claimed(dev, 2, beta), "dev.1"))
			h.put(events.HandoffCompleted{HandoffBody: b, ClaimedEpoch: 2})
			return inFleet(seq)
		}},
		"an unreadable claim, by which it is lost": {audit.RuleDecode, func(h *history) (events.Stream, uint64) {
			b := h.handingOver()
			h.put(events.HandoffRequested{HandoffBody: b})
			seq := h.unreadable(takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: 1, Unseen: lapsed}))
			h.put(events.HandoffAbandoned{HandoffBody: b, Step: events.StepRequested, Cause: events.AbandonLost, Ender: "ops"})
			return inFleet(seq)
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { c.found(t) })
	}
}

// TestHalvesApartAreFoundTwice proves that a batch whose halves do not stand
// side by side was none: each is found alone, also when what stood between them
// was a renewal that is pruned.
func TestHalvesApartAreFoundTwice(t *testing.T) {
	for _, pruned := range []bool{false, true} {
		h := newHistory()
		b := h.handingOver()
		h.flush(&b)
		step := h.put(events.HandoffReleased{HandoffBody: b, ReservedFor: b.Patience.Claim})
		between := h.put(renewed(dev, 1, alpha))
		release := h.put(handedOver(b))
		if pruned {
			h.purge(events.StreamFleet, between)
		}
		r := h.check()
		if r.ViolationCount != 2 || r.Violations[0].Seq != step || r.Violations[1].Seq != release {
			t.Errorf("want the halves at %d and %d, found\n%s", step, release, found(r))
		}
	}
}

// TestDoubtOfAHandoffEndsWithTheNextRequest proves that after a step which could
// not be read no step is judged until the next handoff, and then every one is.
func TestDoubtOfAHandoffEndsWithTheNextRequest(t *testing.T) {
	h := newHistory()
	b := h.handingOver()
	unreadable := h.unreadable(events.HandoffRequested{HandoffBody: b})
	h.put(events.HandoffFlushed{HandoffBody: b})
	h.put(events.HandoffRequested{HandoffBody: moving(7, 1, alpha, beta)})
	skipped := h.put(events.HandoffQuiesced{HandoffBody: moving(7, 1, alpha, beta)})
	r := h.check()
	if r.ViolationCount != 2 || r.Violations[0].Seq != unreadable || r.Violations[1].Seq != skipped || r.Violations[1].Rule != audit.RuleHandoff {
		t.Errorf("want what is unreadable at %d and the step at %d, found\n%s", unreadable, skipped, found(r))
	}
}

// unreadable appends e damaged.
func (h *history) unreadable(e events.Event) uint64 {
	seq := h.put(e)
	h.edit(events.StreamFleet, seq, func(m *events.Message) { m.Data = []byte("{}") })
	return seq
}

// TestHistoryCutInsideABatch proves that a history which ends between the
// halves, as one up to a position may, is said to and is no less legal.
func TestHistoryCutInsideABatch(t *testing.T) {
	h := newHistory()
	b := h.handingOver()
	h.flush(&b)
	seq := h.put(events.HandoffReleased{HandoffBody: b, ReservedFor: b.Patience.Claim})
	r := h.check()
	if !r.OK() || r.NoteCount != 1 || r.Notes[0].Rule != audit.NoteCut || r.Notes[0].Seq != seq || r.Notes[0].Seat != "seat:dev" {
		t.Errorf("want one note %s at %d, found\n%s", audit.NoteCut, seq, found(r))
	}
}

// TestStepsOfANewerBuild proves that a step with fields of a newer build, which
// the decider of this one knows nothing of, is as legal (L9).
func TestStepsOfANewerBuild(t *testing.T) {
	h := newHistory()
	b := h.handingOver()
	h.handOver(&b)
	for _, m := range h.messages[events.StreamFleet] {
		if kind := m.Header.Get(events.HeaderType); strings.HasPrefix(kind, "handoff-") || kind == events.NameSeatReleased {
			h.edit(events.StreamFleet, m.Seq, func(m *events.Message) { m.Data = append(m.Data[:len(m.Data)-1], `,"zz":1}`...) })
		}
	}
	if r := h.check(); !r.OK() || r.NoteCount != 0 {
		t.Errorf("found\n%s", found(r))
	}
}

// TestReportsExtendThePresence proves that a node's report counts as a renewal:
// a claim over it has evidence about it and no older event, it is an illegal act
// once the presence has ended, and unlike a renewal it is never pruned.
func TestReportsExtendThePresence(t *testing.T) {
	report := events.NodeReported{Lease: node, Epoch: 1, Owner: alpha, Node: events.NodeFacts{Draining: true}}
	over := func(last uint64) events.LeaseClaimed {
		return takenOver(node, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: last, Unseen: lapsed})
	}
	for name, c := range map[string]struct {
		given []events.Event
		bad   uint64 // where the violation is; 0: there is none
	}{
		"reported":                       {[]events.Event{claimed(node, 1, alpha), report, report, renewed(node, 1, alpha)}, 0},
		"taken over after its report":    {[]events.Event{claimed(node, 1, alpha), report, over(2)}, 0},
		"evidence that misses a report":  {[]events.Event{claimed(node, 1, alpha), report, over(1)}, 3},
		"a report after the release":     {[]events.Event{claimed(node, 1, alpha), released(node, 1, alpha), report}, 3},
		"a report after the fence":       {[]events.Event{claimed(node, 1, alpha), fenced(node, 1, alpha), report}, 3},
		"a report after the takeover":    {[]events.Event{claimed(node, 1, alpha), over(1), report}, 3},
		"a report of what never was":     {[]events.Event{report}, 1},
		"evidence about what is to come": {[]events.Event{claimed(node, 1, alpha), report, over(7)}, 3},
		"another run of the same node's": {[]events.Event{claimed(node, 1, "node-0:00000000"), report}, 2},
	} {
		h := newHistory()
		for _, e := range c.given {
			h.put(e)
		}
		r := h.check()
		if (c.bad == 0) != r.OK() || (c.bad != 0 && (r.ViolationCount != 1 || r.Violations[0].Seq != c.bad || r.Violations[0].Seat != "node:node-0")) {
			t.Errorf("%s: want a violation at %d, found\n%s", name, c.bad, found(r))
		}
	}
}

// TestReportsAreNoRenewalsThatWereKept proves that a report, which pruning
// leaves, does not speak for the renewals behind it.
func TestReportsAreNoRenewalsThatWereKept(t *testing.T) {
	h := newHistory()
	h.put(claimed(node, 1, alpha))
	h.put(events.NodeReported{Lease: node, Epoch: 1, Owner: alpha})
	h.put(claimed(dev, 1, alpha))
	last := h.put(renewed(dev, 1, alpha))
	h.put(takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: last, Unseen: lapsed}))
	h.purge(events.StreamFleet, last)
	if r := h.check(); !r.OK() || r.NoteCount != 1 || r.Notes[0].Rule != audit.NoteEvidence {
		t.Errorf("want one note %s, found\n%s", audit.NoteEvidence, found(r))
	}
}

// TestPausesAreLegalAtAnyTime proves that a pause needs no tenure (H3).
func TestPausesAreLegalAtAnyTime(t *testing.T) {
	h := newHistory()
	for _, e := range []events.Event{
		events.SeatResumed{Handle: "dev", By: "ops", Reason: "r"}, events.SeatPaused{Handle: "dev", By: "ops", Reason: "r"},
		claimed(dev, 1, alpha), events.SeatPaused{Handle: "dev", By: "ops", Reason: "r", StopTurn: true}, released(dev, 1, alpha),
		events.SeatResumed{Handle: "dev", By: "ops", Reason: "r"},
	} {
		h.put(e)
	}
	if r := h.check(); !r.OK() || r.NoteCount != 0 {
		t.Errorf("found\n%s", found(r))
	}
}
