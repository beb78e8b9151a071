package audit_test

import (
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// illegal is a history that breaks one rule at one place.
type illegal struct {
	rule audit.Rule
	// build makes the history and returns where the rule is broken.
	build func(h *history) (events.Stream, uint64)
}

// TestViolations proves that each kind of illegal act is found, at its line and
// sequence, about its seat, and that nothing else is: one fault, one finding.
func TestViolations(t *testing.T) {
	over := events.Over{Epoch: 1, Owner: alpha, LastSeq: 1, Unseen: lapsed}
	for name, c := range map[string]illegal{
		"an epoch repeated": {audit.RuleEpoch, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			return inFleet(h.put(claimed(dev, 1, beta)))
		}},
		"an epoch that went back": {audit.RuleEpoch, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 7, alpha))
			h.put(released(dev, 7, alpha))
			return inFleet(h.put(claimed(dev, 6, beta)))
		}},
		"a claim that another wrote": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			seq := h.put(claimed(dev, 1, alpha))
			h.edit(events.StreamFleet, seq, func(m *events.Message) { m.Header.Set(events.HeaderSource, string(beta)) })
			return inFleet(seq)
		}},
		"a renewal that another wrote": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			seq := h.put(renewed(dev, 1, alpha))
			h.edit(events.StreamFleet, seq, func(m *events.Message) { m.Header.Set(events.HeaderSource, string(beta)) })
			return inFleet(seq)
		}},
		"a release whose envelope names another epoch": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			seq := h.put(released(dev, 1, alpha))
			h.edit(events.StreamFleet, seq, func(m *events.Message) { m.Header.Set(events.HeaderEpoch, "2") })
			return inFleet(seq)
		}},
		"a claim over a live lease": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			return inFleet(h.put(claimed(dev, 2, beta)))
		}},
		"a claim over a fenced lease": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(fenced(dev, 1, alpha))
			return inFleet(h.put(claimed(dev, 2, beta)))
		}},
		"a re-claim of its own live lease": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			return inFleet(h.put(claimed(dev, 2, alpha)))
		}},
		"evidence of too short a time": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			o := over
			o.Unseen--
			return inFleet(h.put(takenOver(dev, 2, beta, o)))
		}},
		"evidence by the successor's own TTL": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			o := over
			o.Unseen = 5250
			c := takenOver(dev, 2, beta, o)
			c.TTL = 5000
			return inFleet(h.put(c))
		}},
		"evidence over another tenure": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 2, alpha))
			return inFleet(h.put(takenOver(dev, 3, beta, over)))
		}},
		"evidence over another owner": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, beta))
			return inFleet(h.put(takenOver(dev, 2, alpha, over)))
		}},
		"evidence that misses a renewal": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(renewed(dev, 1, alpha))
			return inFleet(h.put(takenOver(dev, 2, beta, over)))
		}},
		"evidence about an event that never was": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(renewed(dev, 1, alpha)) // what stands below a renewal was not pruned
			h.put(events.StreamMarked{Stream: events.StreamFleet, Marker: "m-2"})
			o := over
			o.LastSeq = 3
			return inFleet(h.put(takenOver(dev, 2, beta, o)))
		}},
		"evidence about itself": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			o := over
			o.LastSeq = 2
			return inFleet(h.put(takenOver(dev, 2, beta, o)))
		}},
		"evidence over a free lease": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			return inFleet(h.put(takenOver(dev, 2, beta, over)))
		}},
		"Schedule19: local over a client's lease": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			c := takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: 1, Local: true})
			c.Local = "d-1"
			return inFleet(h.put(c))
		}},
		"local over another data directory's": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			c := claimed(dev, 1, alpha)
			c.Local = "d-2"
			h.put(c)
			c = takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: 1, Local: true})
			c.Local = "d-1"
			return inFleet(h.put(c))
		}},
		"local over its own incarnation": {audit.RuleClaim, func(h *history) (events.Stream, uint64) {
			c := claimed(dev, 1, alpha)
			c.Local = "d-1"
			h.put(c)
			c = takenOver(dev, 2, alpha, events.Over{Epoch: 1, Owner: alpha, LastSeq: 1, Local: true})
			c.Local = "d-1"
			return inFleet(h.put(c))
		}},
		"a renewal after the release": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			return inFleet(h.put(renewed(dev, 1, alpha)))
		}},
		"Case4: a renewal after the takeover": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(takenOver(dev, 2, beta, over))
			return inFleet(h.put(renewed(dev, 1, alpha)))
		}},
		"a renewal after the fence": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(fenced(dev, 1, alpha))
			return inFleet(h.put(renewed(dev, 1, alpha)))
		}},
		"a renewal of what was never claimed": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			return inFleet(h.put(renewed(dev, 1, alpha)))
		}},
		"Case13: a renewal by another run of the node": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			return inFleet(h.put(renewed(dev, 1, "node-0:0badcaf2")))
		}},
		"a release of a tenure that moved": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(takenOver(dev, 2, beta, over))
			return inFleet(h.put(released(dev, 1, alpha)))
		}},
		"a release twice": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			return inFleet(h.put(released(dev, 1, alpha)))
		}},
		"a fence of a tenure that ended": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			return inFleet(h.put(fenced(dev, 1, alpha)))
		}},
		"a fence twice": {audit.RuleFence, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(fenced(dev, 1, alpha))
			return inFleet(h.put(fenced(dev, 1, alpha)))
		}},
		"a holder established after its release": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			return inFleet(h.put(events.SeatEstablished{Handle: "dev", Epoch: 1, Owner: alpha}))
		}},
		"a teardown not proven after its release": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			return inFleet(h.put(events.SeatUnproven{Handle: "dev", Epoch: 1, Owner: alpha}))
		}},
		"a teardown proven by a former holder": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(events.SeatUnproven{Handle: "dev", Epoch: 1, Owner: alpha})
			h.put(takenOver(dev, 2, beta, over))
			return inFleet(h.put(events.SeatProven{Handle: "dev", Epoch: 1, Owner: alpha}))
		}},
		"a trigger skipped by a former holder": {audit.RuleEnded, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(takenOver(dev, 2, beta, over))
			return inFleet(h.put(events.TriggerSkipped{Handle: "dev", Epoch: 1, Owner: alpha, EventID: "x", Why: events.SkipCompleted}))
		}},
		"a cursor taken over by nobody": {audit.RuleCursor, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.claimed[tenureKey{"dev", 2}] = 1
			return events.StreamCursor, h.put(events.CursorOpened{CursorBody: cursorBody("dev", events.Inbox, 2, beta, 0)})
		}},
		"a cursor created on no tenure": {audit.RuleCursor, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			return events.StreamCursor, h.put(events.CursorCreated{CursorBody: cursorBody("dev", events.Inbox, 2, beta, 0)})
		}},
		"a cursor on another seat's tenure": {audit.RuleCursor, func(h *history) (events.Stream, uint64) {
			h.put(claimed(events.SeatLease("dev-2"), 1, alpha))
			h.claimed[tenureKey{"dev", 1}] = 1
			return events.StreamCursor, h.put(events.CursorOpened{CursorBody: cursorBody("dev", events.Inbox, 1, alpha, 0)})
		}},
		"Schedule10: a cursor that is lost": {audit.RuleCursor, func(h *history) (events.Stream, uint64) {
			h.register("dev")
			h.purge(events.StreamCursor, 5)
			return inFleet(1)
		}},
		"a completion on no tenure": {audit.RuleCompletion, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			return events.StreamWork, h.put(completed("dev", "x", 9, alpha))
		}},
		"a completion on another's tenure": {audit.RuleCompletion, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			return events.StreamWork, h.put(completed("dev", "x", 1, beta))
		}},
		"a completion at a place where nobody claimed": {audit.RuleCompletion, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(renewed(dev, 1, alpha))
			h.claimed[tenureKey{"dev", 1}] = 2
			return events.StreamWork, h.put(completed("dev", "x", 1, alpha))
		}},
		"a completion on a tenure of another epoch": {audit.RuleCompletion, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.claimed[tenureKey{"dev", 2}] = 1
			return events.StreamWork, h.put(completed("dev", "x", 2, alpha))
		}},
		"a completion that another wrote": {audit.RuleCompletion, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			seq := h.put(completed("dev", "x", 1, alpha))
			h.edit(events.StreamWork, seq, func(m *events.Message) { m.Header.Set(events.HeaderSource, string(beta)) })
			return events.StreamWork, seq
		}},
		"a completion whose envelope says another epoch": {audit.RuleCompletion, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			seq := h.put(completed("dev", "x", 1, alpha))
			h.edit(events.StreamWork, seq, func(m *events.Message) { m.Header.Set(events.HeaderEpoch, "2") })
			return events.StreamWork, seq
		}},
		"mail parked on no tenure": {audit.RuleDead, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			return events.StreamDead, h.put(parked("dev", "x", 1, 9, alpha))
		}},
		"an event of a newer build": {audit.RuleDecode, func(h *history) (events.Stream, uint64) {
			seq := h.put(claimed(dev, 1, alpha))
			h.edit(events.StreamFleet, seq, func(m *events.Message) { m.Header.Set(events.HeaderVersion, "2") })
			h.put(renewed(dev, 1, alpha)) // of a tenure that could not be read: not judged
			h.put(completed("dev", "x", 1, alpha))
			h.put(claimed(dev, 2, beta))
			return inFleet(seq)
		}},
		"a damaged event": {audit.RuleDecode, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			seq := h.put(released(dev, 1, alpha))
			h.edit(events.StreamFleet, seq, func(m *events.Message) { m.Data = []byte(`{"epoch":1}`) })
			h.put(released(dev, 1, alpha))
			h.put(claimed(dev, 2, beta))
			return inFleet(seq)
		}},
		"an event in another's stream": {audit.RuleDecode, func(h *history) (events.Stream, uint64) {
			h.put(claimed(dev, 1, alpha))
			h.put(completed("dev", "x", 1, alpha))
			m := h.messages[events.StreamWork][0]
			h.purge(events.StreamWork, 1)
			m.Stream, m.Seq = events.StreamFleet, 2
			return inFleet(h.raw(m))
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { c.found(t) })
	}
}

// found builds the history and fails unless just the one fault is found.
func (c illegal) found(t *testing.T) {
	t.Helper()
	h := newHistory()
	h.register("other") // so that no position is 1 by chance
	h.messages[events.StreamFleet], h.seq[events.StreamFleet] = nil, 0
	stream, seq := c.build(h)
	r := h.check()
	if r.ViolationCount != 1 || len(r.Violations) != 1 {
		t.Fatalf("want one violation of %s at %s sequence %d, found\n%s", c.rule, stream, seq, found(r))
	}
	v := r.Violations[0]
	if v.Rule != c.rule || v.Stream != stream || v.Seq != seq || v.Line != h.line(stream, seq) {
		t.Errorf("found %s; want %s at line %d, %s sequence %d", v, c.rule, h.line(stream, seq), stream, seq)
	}
	if c.rule != audit.RuleDecode && v.Seat != "seat:dev" {
		t.Errorf("found about %q, want seat:dev", v.Seat)
	}
}
