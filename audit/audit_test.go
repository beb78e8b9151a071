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
	if r.Events != uint64(len(h.all())) || r.Seats != 1 || r.Tenures != 8 {
		t.Errorf("%d events, %d seats, %d tenures; want %d, 1, 8", r.Events, r.Seats, r.Tenures, len(h.all()))
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

// TestDoubtEndsWithTheNextClaim proves that an event which cannot be read hides
// no more than it must: from the next claim on the lease is judged again, and a
// record that names no tenure at all is found meanwhile.
func TestDoubtEndsWithTheNextClaim(t *testing.T) {
	h := newHistory()
	unread := h.put(claimed(dev, 1, alpha))
	h.edit(events.StreamFleet, unread, func(m *events.Message) { m.Header.Set(events.HeaderVersion, "2") })
	h.put(claimed(dev, 2, beta))
	h.put(renewed(dev, 1, alpha))
	work := h.put(completed("dev", "x", 1, alpha))
	h.edit(events.StreamWork, work, func(m *events.Message) { delete(m.Header, events.HeaderFleetSeq) })
	r := h.check()
	wantRules(t, r, "decode@2", "ended@4", "completion@5")
	if r.NoteCount != 0 {
		t.Errorf("a gap that is an unread event is noted as one:\n%s", found(r))
	}
}

// TestEpochsRiseAboveAllBefore proves L2 over more than one step: an epoch that
// went back does not make room for those it skipped.
func TestEpochsRiseAboveAllBefore(t *testing.T) {
	h := newHistory()
	for _, epoch := range []uint64{7, 6, 7, 8} {
		h.put(claimed(dev, epoch, alpha))
		h.put(released(dev, epoch, alpha))
	}
	wantRules(t, h.check(), "epoch@4", "epoch@6")
}

// TestOrderIsJudged proves that a history which is not by stream and sequence
// is found to be none, also when no chain says so.
func TestOrderIsJudged(t *testing.T) {
	h := ordinary()
	last := func(s events.Stream) events.Message { return h.messages[s][len(h.messages[s])-1] }
	for name, m := range map[string]events.Message{
		"the last message again": last(events.StreamDead),
		"an earlier stream":      {Stream: events.StreamMail, Seq: 1, Subject: fleet.Mail("dev", events.Inbox)},
		"no stream of a fleet":   {Stream: "OTHER", Seq: 1},
	} {
		a := audit.New(fleet)
		for _, ordered := range h.all() {
			if name != "no stream of a fleet" {
				a.Add(ordered)
			}
		}
		if name == "an earlier stream" {
			a.Add(events.Message{Stream: events.StreamMemory, Seq: 1})
		}
		a.Add(m)
		r := a.Finish()
		if !slices.ContainsFunc(r.Violations, func(v audit.Finding) bool { return v.Rule == audit.RuleOrder && v.Seq == m.Seq }) {
			t.Errorf("%s: not found:\n%s", name, found(r))
		}
	}
}

// TestMailIsNobodysFact proves that mail and memory rows, which are no events,
// pass through an audit, while their streams' markers are read.
func TestMailIsNobodysFact(t *testing.T) {
	h := ordinary()
	tally := audit.NewTally(fleet)
	a := audit.New(fleet)
	mail := events.Message{Stream: events.StreamMail, Seq: 1, Subject: fleet.Mail("dev", events.Inbox), Data: []byte("no JSON")}
	w := must(events.Encode(fleet, events.Meta{ID: "m", Time: h.now}, events.StreamMarked{Stream: events.StreamMail, Marker: "m-9"}))
	marker := events.Message{Stream: events.StreamMail, Seq: 2, Subject: w.Subject, Header: w.Header, Data: w.Data}
	row := events.Message{Stream: events.StreamMemory, Seq: 1, Subject: "crewlet.memory.dev.diary.1", Data: []byte("{}")}
	known := marker // FLEET records the other streams' markers too (design §2)
	known.Stream, known.Seq, known.Subject = events.StreamFleet, h.seq[events.StreamFleet]+1, fleet.FleetLog()
	h.raw(known)
	for _, m := range append(h.all(), mail, marker, row) {
		a.Add(m)
		tally.Add(m)
	}
	if r := a.Finish(); !r.OK() {
		t.Errorf("found\n%s", found(r))
	}
	header := tally.Header(h.created)
	if got := header.Streams[4]; got != (audit.StreamHeader{Stream: events.StreamMail, Generation: "m-9", First: 1, Last: 2, Count: 2}) {
		t.Errorf("the header says of MAIL %+v", got)
	}
	if got := header.Streams[0].Generation; got != "first of FLEET" {
		t.Errorf("the header says that the generation of FLEET is %q, want its own newest marker", got)
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
