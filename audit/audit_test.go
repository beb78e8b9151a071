package audit_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// TestOrdinaryHistoryIsLegal proves that a history with every kind of legal act
// audits clean, and is counted right.
func TestOrdinaryHistoryIsLegal(t *testing.T) {
	h := ordinary()
	r := h.check()
	if !r.OK() || r.NoteCount != 0 {
		t.Fatalf("found in a legal history:\n%s", found(r))
	}
	if r.Events != uint64(len(h.all())) || r.Seats != 1 || r.Tenures != 5 {
		t.Errorf("%d events, %d seats, %d tenures; want %d, 1, 5", r.Events, r.Seats, r.Tenures, len(h.all()))
	}
}

// illegal is a history that breaks one rule at one place.
type illegal struct {
	rule audit.Rule
	// build makes the history and returns where the rule is broken.
	build func(h *history) (events.Stream, uint64)
}

// TestViolations proves that each kind of illegal act is found, at its line and
// sequence, about its seat, and that nothing else is: one fault, one finding.
func TestViolations(t *testing.T) {
	inFleet := func(seq uint64) (events.Stream, uint64) { return events.StreamFleet, seq }
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
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
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
		})
	}
}

// TestNotes proves that what breaks no rule is said and no violation.
func TestNotes(t *testing.T) {
	for name, c := range map[string]struct {
		rule  audit.Rule
		build func(h *history)
	}{
		"a gap in the epochs (L2)": {audit.NoteEpochGap, func(h *history) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			h.put(claimed(dev, 9, beta))
		}},
		"evidence about a renewal that is pruned": {audit.NoteEvidence, func(h *history) {
			h.put(claimed(dev, 1, alpha))
			last := h.put(renewed(dev, 1, alpha))
			h.put(takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: last, Unseen: lapsed}))
			h.put(renewed(dev, 2, beta))
			h.purge(events.StreamFleet, last)
		}},
		"a completion after the release": {audit.NoteLate, func(h *history) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			h.put(completed("dev", "x", 1, alpha))
		}},
		"a completion after the takeover": {audit.NoteLate, func(h *history) {
			h.put(claimed(dev, 1, alpha))
			h.put(takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: 1, Unseen: lapsed}))
			h.put(completed("dev", "x", 1, alpha))
		}},
		"a completion on a tenure claimed since FLEET was read": {audit.NoteUnseen, func(h *history) {
			h.put(claimed(dev, 1, alpha))
			h.put(released(dev, 1, alpha))
			h.claimed[tenureKey{"dev", 2}] = 3
			h.put(completed("dev", "x", 2, beta))
		}},
	} {
		h := newHistory()
		c.build(h)
		r := h.check()
		if !r.OK() || r.NoteCount != 1 || r.Notes[0].Rule != c.rule || r.Notes[0].Seat != "seat:dev" {
			t.Errorf("%s: want one note %s and no violation, found\n%s", name, c.rule, found(r))
		}
	}
}

// TestPrunedRenewalsAreNoViolation proves that a history without its renewals
// is as legal as with them: only the edges of tenures are kept for ever.
func TestPrunedRenewalsAreNoViolation(t *testing.T) {
	h := ordinary()
	for _, m := range slices.Clone(h.messages[events.StreamFleet]) {
		if strings.HasSuffix(m.Subject, ".renewal") {
			h.purge(events.StreamFleet, m.Seq)
		}
	}
	if r := h.check(); !r.OK() {
		t.Errorf("found\n%s", found(r))
	}
}

// TestCursorNeverGoesBack proves, on a history that was read while it happened
// and so has every record of a cursor, that its epoch and its place only rise.
func TestCursorNeverGoesBack(t *testing.T) {
	body := func(epoch uint64, owner events.Incarnation, read uint64) events.CursorBody {
		return cursorBody("dev", events.Inbox, epoch, owner, read)
	}
	for name, c := range map[string]struct {
		first, second events.Event
		violations    uint64
	}{
		"forward":             {events.CursorOpened{CursorBody: body(1, alpha, 4)}, events.CursorOpened{CursorBody: body(2, beta, 4)}, 0},
		"an older epoch":      {events.CursorOpened{CursorBody: body(2, beta, 4)}, events.CursorSettled{CursorBody: body(1, alpha, 5)}, 1},
		"created anew":        {events.CursorOpened{CursorBody: body(2, beta, 4)}, events.CursorCreated{CursorBody: body(0, "", 4)}, 1},
		"mail that is unread": {events.CursorSettled{CursorBody: body(2, beta, 4)}, events.CursorSettled{CursorBody: body(2, beta, 3)}, 1},
	} {
		h := newHistory()
		h.put(claimed(dev, 1, alpha))
		h.put(takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: 1, Unseen: lapsed}))
		a := audit.New(fleet)
		for _, m := range h.messages[events.StreamFleet] {
			a.Add(m)
		}
		for _, e := range []events.Event{c.first, c.second} {
			h.put(e)
			a.Add(h.messages[events.StreamCursor][0])
		}
		r := a.Finish()
		if r.ViolationCount != c.violations || (c.violations == 1 && (r.Violations[0].Rule != audit.RuleCursor || r.Violations[0].Seq != 2)) {
			t.Errorf("%s: want %d violations at CURSOR 2, found\n%s", name, c.violations, found(r))
		}
	}
}

// TestFindingsAreBounded proves that a report lists the first findings, counts
// all, and says how many it left out.
func TestFindingsAreBounded(t *testing.T) {
	h := newHistory()
	for range audit.MaxFindings + 7 {
		h.put(renewed(dev, 1, alpha))
	}
	r := h.check()
	if len(r.Violations) != audit.MaxFindings || r.ViolationCount != audit.MaxFindings+7 {
		t.Errorf("%d listed of %d, want %d of %d", len(r.Violations), r.ViolationCount, audit.MaxFindings, audit.MaxFindings+7)
	}
	if got := found(r); !strings.Contains(got, "violation: 7 more are not listed\n") {
		t.Errorf("the text does not say that 7 more are not listed: …%s", got[len(got)-300:])
	}
}

// TestReportRenderings proves what people and programs read.
func TestReportRenderings(t *testing.T) {
	h := newHistory()
	h.put(claimed(dev, 1, alpha))
	h.put(released(dev, 1, alpha))
	h.put(renewed(dev, 1, alpha))
	r := h.check()
	want := "violation: line 4: FLEET sequence 3: seat:dev: [ended] epoch 1 of node-0:0badcafe was renewed, but nobody held the lease\n" +
		"the history is NOT legal: 3 events, 1 seats, 1 tenures, 1 violations, 0 notes\n" +
		"chain " + r.Chain + "\n"
	if got := found(r); got != want {
		t.Errorf("text\n%s\nwant\n%s", got, want)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	v := back["violations"].([]any)[0].(map[string]any)
	if back["violation_count"] != 1.0 || v["rule"] != "ended" || v["line"] != 4.0 || v["seq"] != 3.0 || len(back["notes"].([]any)) != 0 {
		t.Errorf("JSON %s", b.Bytes())
	}
}

// TestStampsDecideNothing proves that no rule rests on a stamp (L6, Schedule1):
// the same history under a clock that ran an hour back is as legal.
func TestStampsDecideNothing(t *testing.T) {
	h := ordinary()
	for stream, messages := range h.messages {
		for i := range messages {
			h.messages[stream][i].At = messages[i].At.Add(-time.Duration(i) * time.Hour)
		}
	}
	if r := h.check(); !r.OK() {
		t.Errorf("found\n%s", found(r))
	}
}
