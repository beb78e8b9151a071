package projections_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// A handoff's row after each event of it and of the seat that it waits for: its
// step, the patience of that step (design §5), and its end.
func TestHandoffStepByStep(t *testing.T) {
	log := append([]events.Event{company(1, "dev"), claim("dev", 1, nodeA)}, handoffEvents("dev", 1, 1)...)
	for i, want := range []struct {
		step     projections.SagaStep
		deadline events.Millis
		last     uint64
	}{
		{"requested", 1, 3}, {"warmed", 2, 4}, {"quiesced", 3, 5}, {"flushed", 4, 6}, {"released", 11, 7}, {"released", 11, 7},
		{"claimed", 11, 7}, {"established", 11, 7}, {"completed", 0, 11},
	} {
		v := given(t, fleet(log[:i+3]...)...)
		s, found, err := v.Saga("dev.1")
		if err != nil || !found || s.Step != want.step || s.Deadline != want.deadline || s.Last != want.last {
			t.Fatalf("after %s: got %s, patience %d ms, newest event at %d, found %v (%v); want %+v", events.Name(log[i+2]), s.Step, s.Deadline, s.Last, found, err, want)
		}
		if s.Requested != 3 || !s.RequestedAt.Equal(start.Add(3*time.Second)) || s.From != nodeA || s.To != nodeB || s.Epoch != 1 ||
			s.Kind != projections.SagaHandoff || s.Handle != "dev" || s.Reason != events.HandoffDrain || s.By != "ops" {
			t.Errorf("after %s: got %+v", events.Name(log[i+2]), s)
		}
		seat, _, _ := v.Seat("dev")
		open, isOpen, err := v.OpenHandoff("dev")
		if err != nil || isOpen != s.Open() || isOpen != (seat.Handoff != nil) || isOpen && (open != s || *seat.Handoff != s) {
			t.Errorf("after %s: the seat has %+v open, found %v (%v); want %+v", events.Name(log[i+2]), open, isOpen, err, s)
		}
		if s.Open() != (i < 8) {
			t.Errorf("after %s: open is %v", events.Name(log[i+2]), s.Open())
		}
	}
	s, _, _ := given(t, fleet(log...)...).Saga("dev.1")
	if s.Outcome != projections.SagaCompleted || s.EndedBy != string(nodeB) || s.ClaimedEpoch != 2 || s.DarkFor != 41 || !s.LastAt.Equal(start.Add(11*time.Second)) {
		t.Errorf("completed: got %+v", s)
	}
}

// A handoff that ends early says where, how and by whom, and its seat has none
// open. What it says later, or another's event says, changes nothing.
func TestHandoffsThatEndEarly(t *testing.T) {
	body := handoffOf("dev", 1, 1)
	whole := handoffEvents("dev", 1, 1)
	other := handoffOf("dev", 2, 1)
	for name, c := range map[string]struct {
		then    []events.Event
		outcome projections.SagaOutcome
		step    projections.SagaStep
		cause   string
		by      string
	}{
		"declined": {[]events.Event{whole[0], events.HandoffDeclined{HandoffBody: body, Step: events.StepRequested, Cause: events.DeclineGated}},
			projections.SagaDeclined, "requested", "gated", string(nodeB)},
		"abandoned": {[]events.Event{whole[0], whole[1], whole[2], events.HandoffAbandoned{HandoffBody: body, Step: events.StepQuiesced, Cause: events.AbandonDeadline, Ender: string(nodeA)}},
			projections.SagaAbandoned, "quiesced", "deadline", string(nodeA)},
		"abandoned, then late": {[]events.Event{whole[0], events.HandoffAbandoned{HandoffBody: body, Step: events.StepRequested, Cause: events.AbandonOperator, Ender: "ops"}, whole[1]},
			projections.SagaAbandoned, "requested", "operator", "ops"},
		"another's step":             {[]events.Event{whole[0], events.HandoffWarmed{HandoffBody: other}}, "", "requested", "", ""},
		"a later claim of its aim's": {append(whole[:6:6], claim("dev", 3, nodeB)), "", "released", "", ""},
		"another's claim":            {append(whole[:6:6], claim("dev", 2, nodeA)), "", "released", "", ""},
		"a claim before its release": {append(whole[:2:2], claim("dev", 2, nodeB)), "", "warmed", "", ""},
	} {
		v := given(t, fleet(append([]events.Event{company(1, "dev"), claim("dev", 1, nodeA)}, c.then...)...)...)
		s, found, err := v.Saga("dev.1")
		if err != nil || !found || s.Outcome != c.outcome || s.Step != c.step || s.Cause != c.cause || s.EndedBy != c.by {
			t.Errorf("%s: got %+v, found %v (%v); want %+v", name, s, found, err, c)
		}
		if _, open, _ := v.OpenHandoff("dev"); open != (c.outcome == "") || open != s.Open() {
			t.Errorf("%s: open is %v", name, open)
		}
	}
}

// No log has a request over an open handoff. The view of one that did goes by the
// newest, and keeps nothing of the other that could stay open for ever.
func TestRequestOverAnOpenHandoff(t *testing.T) {
	v := given(t, fleet(claim("dev", 1, nodeA), events.HandoffRequested{HandoffBody: handoffOf("dev", 1, 1)}, events.HandoffRequested{HandoffBody: handoffOf("dev", 2, 1)})...)
	for _, f := range []projections.SagaFilter{{}, {Open: new(true)}, {Handle: "dev"}} {
		if page := must(v.Sagas(f, 0, 9)); len(page.Items) != 1 || page.Items[0].ID != "dev.2" {
			t.Errorf("%+v: got %+v, want dev.2 alone", f, page.Items)
		}
	}
}

// Sagas are listed newest first, page by page by the position of the request,
// of the fleet or of a seat, open ones, ended ones or both.
func TestSagasPages(t *testing.T) {
	log := []events.Event{claim("dev", 1, nodeA), claim("pm", 1, nodeA)}
	for n := range uint64(3) { // dev.1 at 3, dev.2 at 5, dev.3 at 7
		log = append(log, events.HandoffRequested{HandoffBody: handoffOf("dev", n+1, 1)},
			events.HandoffAbandoned{HandoffBody: handoffOf("dev", n+1, 1), Step: events.StepRequested, Cause: events.AbandonOperator, Ender: "ops"})
	}
	log = append(log, events.HandoffRequested{HandoffBody: handoffOf("pm", 1, 1)}, events.HandoffRequested{HandoffBody: handoffOf("dev", 4, 1)}) // 9, 10
	v := given(t, fleet(log...)...)
	for _, c := range []struct {
		filter projections.SagaFilter
		before uint64
		limit  int
		want   string
	}{
		{projections.SagaFilter{}, 0, 9, "dev.4 pm.1 dev.3 dev.2 dev.1"},
		{projections.SagaFilter{}, 0, 2, "dev.4 pm.1 …"},
		{projections.SagaFilter{}, 9, 2, "dev.3 dev.2 …"},
		{projections.SagaFilter{}, 5, 2, "dev.1"},
		{projections.SagaFilter{Handle: "dev"}, 0, 2, "dev.4 dev.3 …"},
		{projections.SagaFilter{Handle: "dev"}, 7, 9, "dev.2 dev.1"},
		{projections.SagaFilter{Open: new(true)}, 0, 9, "dev.4 pm.1"},
		{projections.SagaFilter{Open: new(true)}, 10, 9, "pm.1"},
		{projections.SagaFilter{Open: new(false)}, 0, 2, "dev.3 dev.2 …"},
		{projections.SagaFilter{Handle: "dev", Open: new(true)}, 0, 9, "dev.4"},
		{projections.SagaFilter{Handle: "pm", Open: new(false)}, 0, 9, ""},
		{projections.SagaFilter{Handle: "qa"}, 0, 9, ""},
	} {
		page, err := v.Sagas(c.filter, c.before, c.limit)
		var ids []string
		for _, s := range page.Items {
			ids = append(ids, s.ID)
		}
		if page.More {
			ids = append(ids, "…")
		}
		if got := strings.Join(ids, " "); err != nil || got != c.want {
			t.Errorf("%+v before %d: got %q (%v), want %q", c.filter, c.before, got, err, c.want)
		}
	}
	for _, unknown := range []string{"dev.9", "qa.1", "dev", ""} {
		if s, found, err := v.Saga(unknown); found || err != nil {
			t.Errorf("%q: found %+v (%v)", unknown, s, err)
		}
	}
}

// A seat's ended handoffs are bounded: the newest stay, whole, the open one
// beside them, and of those that went no row is left.
func TestHandoffsAreBounded(t *testing.T) {
	rows := rowstest.Memory{}
	log := []events.Event{claim("dev", 1, nodeA)}
	const more = 3
	for n := range uint64(projections.MaxSagas + more) {
		log = append(log, events.HandoffRequested{HandoffBody: handoffOf("dev", n+1, 1)},
			events.HandoffDeclined{HandoffBody: handoffOf("dev", n+1, 1), Step: events.StepRequested, Cause: events.DeclineBehind})
	}
	last := uint64(projections.MaxSagas + more + 1)
	apply(t, rows, fleet(append(log, events.HandoffRequested{HandoffBody: handoffOf("dev", last, 1)})...))
	page := must(projections.NewView(rows).Sagas(projections.SagaFilter{Handle: "dev"}, 0, 1000))
	if len(page.Items) != projections.MaxSagas+1 || page.Items[0].Number != last || page.Items[projections.MaxSagas].Number != more+1 {
		t.Errorf("kept %d, from %d to %d", len(page.Items), page.Items[0].Number, page.Items[len(page.Items)-1].Number)
	}
	count := map[string]int{}
	for key := range rows {
		if parts := strings.SplitN(key, "/", 3); strings.HasPrefix(parts[1], "saga") {
			count[parts[1]]++
		}
	}
	if got, want := fmt.Sprint(count), fmt.Sprintf("map[saga:%d saga-open:1 saga-seat:%[1]d]", projections.MaxSagas+1); got != want {
		t.Errorf("rows: %s, want %s", got, want)
	}
}
