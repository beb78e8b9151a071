package projections_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// A completion is found by its event and by its turn's work key, and only there.
func TestCompletions(t *testing.T) {
	big := done("dev", "e3", "")
	big.Reply = []byte(`"` + strings.Repeat("x", projections.MaxReply) + `"`)
	v := given(t,
		at(events.StreamWork, 1, done("dev", "e1", "k1")), at(events.StreamWork, 2, done("dev", "e2", "k1")),
		at(events.StreamWork, 3, done("pm", "e1", "k1")), at(events.StreamWork, 4, big),
		at(events.StreamFleet, 9, events.TriggerSkipped{Handle: "dev", EventID: "e1", Why: events.SkipCompleted, Epoch: 2, Owner: nodeB}))
	c, found, err := v.Completion("dev", "e1")
	if err != nil || !found || c.Position != 1 || c.WorkKey != "k1" || string(c.Reply) != `{"ok":"<&>"}` || !c.Skipped {
		t.Errorf("e1: got %+v, found %v, err %v", c, found, err)
	}
	if c, _, _ = v.Completion("dev", "e2"); c.Skipped {
		t.Error("e2 counts as skipped though it never came again")
	}
	if _, found, _ := v.Completion("dev", "e9"); found {
		t.Error("an event without a record was found")
	}
	if all := must(v.CompletionsOf("dev", "k1")); len(all) != 2 {
		t.Errorf("by work key: got %+v", all)
	}
	if all := must(v.CompletionsOf("dev", "")); len(all) != 0 {
		t.Errorf("records without a work key are found under none: got %+v", all)
	}
	if c, _, _ = v.Completion("dev", "e3"); c.Reply != nil || c.ReplyBytes != len(big.Reply) {
		t.Errorf("a reply over the bound: got %d bytes kept, %d told", len(c.Reply), c.ReplyBytes)
	}
}

// Skipped triggers and free text are bounded; the newest are kept.
func TestSkipsAreBounded(t *testing.T) {
	var log []events.Recorded
	for i := range uint64(projections.MaxSkips + 5) {
		log = append(log, at(events.StreamFleet, i+1, events.TriggerSkipped{Handle: "dev", EventID: fmt.Sprint(i + 1), Why: events.SkipPanicked, Detail: strings.Repeat("é", 4000)}))
	}
	skips := must(given(t, log...).Skips("dev"))
	if len(skips) != projections.MaxSkips || skips[0].EventID != fmt.Sprint(projections.MaxSkips+5) {
		t.Errorf("got %d skips, newest %s", len(skips), skips[0].EventID)
	}
	if d := skips[0].Detail; len(d) > 1024 || strings.Trim(d, "é") != "" {
		t.Errorf("detail: %d bytes, cut inside a character: %v", len(d), strings.Trim(d, "é") != "")
	}
}

// Case18, as far as WORK and DEAD go: rows of events that the stream dropped go
// in bounded steps, and what is left equals a rebuild from what is left.
func TestCase18TrimmedEqualsRebuilt(t *testing.T) {
	log := []events.Recorded{
		at(events.StreamWork, 1, done("dev", "e1", "k1")), at(events.StreamWork, 3, done("dev", "e2", "k1")),
		at(events.StreamWork, 5, done("dev", "e1", "k5")), // e1's record was dropped, and made anew
		at(events.StreamDead, 2, parked("dev", "e1", 1)), at(events.StreamDead, 4, parked("dev", "e2", 2)), at(events.StreamDead, 6, parked("pm", "e2", 3)),
	}
	for first := range uint64(8) {
		incremental, rebuilt := rowstest.Memory{}, rowstest.Memory{}
		apply(t, incremental, log)
		steps := 0
		for _, st := range []events.Stream{events.StreamWork, events.StreamDead, events.StreamFleet} {
			for more := true; more; steps++ {
				more = must(projections.Trim(incremental, st, first, 1))
			}
		}
		if steps > 9 {
			t.Errorf("trimming to %d took %d steps", first, steps)
		}
		for _, r := range log {
			if r.Seq >= first {
				apply(t, rebuilt, []events.Recorded{r})
			}
		}
		// What was recorded anew is gone from the stream where it first stood.
		if got, want := incremental.Dump(), rebuilt.Dump(); got != want {
			t.Errorf("trimmed to %d:\ngot\n%s\nwant\n%s", first, got, want)
		}
	}
	v := given(t, log...)
	if n := must(v.ParkedCount("dev")); n != 2 {
		t.Errorf("parked: got %d, want 2", n)
	}
	p := must(v.Parked("dev", false, 0, 1))
	if !p.More || p.Items[0].Position != 4 {
		t.Errorf("parked, newest first: got %+v", p)
	}
	if p = must(v.Parked("dev", false, 4, 1)); p.More || p.Items[0].Position != 2 {
		t.Errorf("parked, next page: got %+v", p)
	}
}
