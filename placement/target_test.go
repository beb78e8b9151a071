package placement_test

import (
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// TestTargetsSpreadWhatLeaves: the seats of a node that leaves go to the nodes
// with the most room, promises counted, and to none beyond its share or its
// labels; what nobody has room for gets no target.
func TestTargetsSpreadWhatLeaves(t *testing.T) {
	view := placement.View{
		Self: "a", CompanyKnown: true, RosterKnown: true, Draining: true,
		Nodes: []placement.Node{
			{ID: "a", Seats: true}, {ID: "b", Seats: true}, {ID: "c", Seats: true, Labels: map[string]string{"gpu": "yes"}},
			{ID: "d", Seats: true, Draining: true},
		},
		Held:  []string{"s1", "s2", "s3", "p1"},
		Owner: map[string]string{"s4": "b"},
		Seats: []placement.Seat{{Handle: "s1"}, {Handle: "s2"}, {Handle: "s3"}, {Handle: "s4"},
			{Handle: "p1", Labels: map[string]string{"gpu": "yes"}}, {Handle: "p2", Labels: map[string]string{"gpu": "no"}}},
	}
	targets := view.Targets() // b and c share four seats: two each
	if got := targets.For("p1"); got != "c" {
		t.Errorf("the pinned seat goes to %q, want c", got)
	}
	if got := targets.For("p2"); got != "" {
		t.Errorf("a seat nobody matches goes to %q", got)
	}
	count := map[string]int{}
	for _, handle := range []string{"s1", "s2", "s3"} {
		count[targets.For(handle)]++
	}
	if count["b"] != 1 || count["c"] != 2 {
		t.Errorf("s1, s2 and s3 go to %v, want one to b, which has one, and two to c", count)
	}
	if eligible, room := targets.Takes("s1", "b"); !eligible || room {
		t.Errorf("b: eligible %v, room %v; it is at its share", eligible, room)
	}
	if eligible, _ := targets.Takes("s1", "d"); eligible {
		t.Error("a draining node is offered as a target")
	}
	view.RosterKnown = false
	if got := view.Targets().For("s1"); got != "" {
		t.Errorf("without known nodes a seat goes to %q", got)
	}
}
