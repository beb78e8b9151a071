package events_test

import (
	"bytes"
	"testing"

	"github.com/seat-tenure/tenure/events"
)

// TestReportsAreRefusedWhenDamaged proves that what a node, a holder or an
// operator reports is neither written nor read without what makes it count: a
// pause names who and why, a node reports on itself alone.
func TestReportsAreRefusedWhenDamaged(t *testing.T) {
	for name, e := range map[string]events.Event{
		"a seat reports like a node":  events.NodeReported{Lease: events.SeatLease("dev"), Epoch: 1, Owner: alpha},
		"a node of no incarnation":    events.NodeReported{Lease: events.NodeLease("n"), Epoch: 1, Owner: "n"},
		"fewer seats than none":       events.NodeReported{Lease: events.NodeLease("n"), Epoch: 1, Owner: alpha, Node: events.NodeFacts{SeatsHeld: new(-1)}},
		"paused by nobody":            events.SeatPaused{Handle: "dev", Reason: "r"},
		"paused for nothing":          events.SeatPaused{Handle: "dev", By: "o"},
		"resumed by nobody":           events.SeatResumed{Handle: "dev", Reason: "r"},
		"resumed for nothing":         events.SeatResumed{Handle: "dev", By: "o"},
		"unproven under no tenure":    events.SeatUnproven{Handle: "dev", Owner: alpha},
		"proven under nobody's":       events.SeatProven{Handle: "dev", Epoch: 1},
		"a pause of no seat at all":   events.SeatPaused{Handle: "*", By: "o", Reason: "r"},
		"unproven, and no seat named": events.SeatUnproven{Epoch: 1, Owner: alpha},
	} {
		if w, err := events.Encode(fleet, minMeta, e); err == nil {
			t.Errorf("%s: written to %s %s", name, w.Subject, w.Data)
		}
	}
	node := stored(t, events.NodeReported{Lease: events.NodeLease("n"), Epoch: 1, Owner: alpha, Node: events.NodeFacts{SeatsHeld: new(0)}})
	if !bytes.Contains(node.Data, []byte(`"seats_held":0`)) {
		t.Errorf("%s: no seat held is not the same as not said (P11)", node.Data)
	}
	for _, wrong := range []string{fleet.Renewal(events.NodeLease("n")), fleet.Tenure(events.SeatLease("n")), fleet.Host("n")} {
		node.Subject = wrong
		if rec, err := events.Decode(fleet, node); err == nil {
			t.Errorf("read under %s: %+v", wrong, rec.Event)
		}
	}
}
