package placement_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// Every verdict, with the nodes that may run the seat, the rules behind it and a
// sentence that names who a person should look at.
func TestExplainSaysWhyASeatIsWhereItIs(t *testing.T) {
	seats := slices.Concat(labelled("gpu", 2, "gpu", "yes"), numbered("any", 4))
	base := func() placement.View {
		v := viewOf(seats, node("a"), node("b", "gpu", "yes"), node("c"))
		v.Held = []string{"any-0", "any-1"}
		v.Owner = map[string]string{"gpu-0": "b", "any-2": "b"}
		return v
	}
	for _, tt := range []struct {
		name, handle string
		with         func(*placement.View)
		verdict      placement.Verdict
		holder       string
		eligible     string
		rules        string
		says         string
	}{
		{name: "in place", handle: "any-0", verdict: placement.SeatPlaced, holder: "a", eligible: "a b c", rules: "P2 P3", says: "a holds 2 of the group's 4"},
		{name: "a peer's", handle: "gpu-0", verdict: placement.SeatPlaced, holder: "b", eligible: "b", rules: "P2 P3", says: "within its share of 2"},
		{name: "free, with room", handle: "any-3", verdict: placement.SeatFree, eligible: "a b c", rules: "P2 P3", says: "room for it: b, c"},
		{name: "not in the company", handle: "gone", verdict: placement.SeatRemoved, rules: "R1", says: "no such seat"},
		{name: "not in the company, still held", handle: "gone", with: func(v *placement.View) { v.Held = append(v.Held, "gone") }, verdict: placement.SeatRemoved, holder: "a", rules: "R1", says: "a gives it back"},
		{name: "no company", handle: "any-0", with: func(v *placement.View) { v.CompanyKnown = false }, verdict: placement.SeatUnknown, holder: "a", rules: "P5"},
		{name: "roster unread", handle: "gpu-0", with: func(v *placement.View) { v.RosterKnown = false }, verdict: placement.SeatUnknown, holder: "b", rules: "P1 P11"},
		{name: "stuck", handle: "any-0", with: func(v *placement.View) { v.Stuck = []string{"any-0"} }, verdict: placement.SeatUnproven, holder: "a", eligible: "a b c", rules: "P7 H6", says: "a"},
		{name: "no node has the label", handle: "gpu-1", with: func(v *placement.View) { v.Nodes[1].Labels = nil }, verdict: placement.SeatUnplaceable, rules: "P3 P9", says: "no live node matches its placement (gpu=yes)"},
		{name: "the only node has withdrawn", handle: "gpu-1", with: func(v *placement.View) { v.Nodes[1].Withdrawn = true }, verdict: placement.SeatUnplaceable, rules: "P3 P8 P9", says: "b has withdrawn"},
		{name: "the only node drains", handle: "gpu-0", with: func(v *placement.View) { v.Nodes[1].Draining = true }, verdict: placement.SeatUnplaceable, holder: "b", rules: "P13 P3 P9", says: "b is draining"},
		{name: "the only node runs no seats", handle: "gpu-0", with: func(v *placement.View) { v.Nodes[1].Seats = false }, verdict: placement.SeatUnplaceable, holder: "b", rules: "P13 P3 P9", says: "b does not run seats"},
		{name: "its holder is gone", handle: "any-2", with: func(v *placement.View) { v.Owner["any-2"] = "dead" }, verdict: placement.SeatWaiting, holder: "dead", eligible: "a b c", rules: "P1 P12 P13", says: "dead has no live presence"},
		{name: "on a node it does not match", handle: "gpu-0", with: func(v *placement.View) { v.Owner["gpu-0"] = "c" }, verdict: placement.SeatMisplaced, holder: "c", eligible: "b", rules: "P3 P5", says: "c does not match"},
		{name: "its holder has withdrawn", handle: "any-2", with: func(v *placement.View) { v.Nodes[1].Withdrawn = true }, verdict: placement.SeatLeaving, holder: "b", eligible: "a c", rules: "P8"},
		{name: "this node drains", handle: "any-0", with: func(v *placement.View) { v.Draining = true }, verdict: placement.SeatLeaving, holder: "a", eligible: "b c", rules: "P6 P13"},
		{name: "its holder has too many", handle: "any-2", with: func(v *placement.View) { v.Owner["any-3"] = "b"; v.Owner["any-1"], v.Held = "b", v.Held[:1] }, verdict: placement.SeatSurplus, holder: "b", eligible: "a b c", rules: "P3 P4", says: "more than its share of 2"},
		{name: "only this node, behind", handle: "mine", with: func(v *placement.View) {
			v.Seats, v.Behind = append(slices.Clone(seats), placement.Seat{Handle: "mine", Node: "a"}), true
		}, verdict: placement.SeatFree, eligible: "a", rules: "P10", says: "behind"},
	} {
		v := base()
		if tt.with != nil {
			tt.with(&v)
		}
		x := placement.Explain(v, tt.handle)
		if x.Verdict != tt.verdict || x.Holder != tt.holder || strings.Join(x.Eligible, " ") != tt.eligible || strings.Join(x.Rules, " ") != tt.rules {
			t.Errorf("%s: got %+v", tt.name, x)
		}
		if !strings.Contains(x.Why, tt.says) || x.Why == "" {
			t.Errorf("%s: says %q, want it to say %q", tt.name, x.Why, tt.says)
		}
	}
}

// What if: a view without some nodes is explained as if they had left.
func TestExplainWithout(t *testing.T) {
	v := viewOf(slices.Concat(labelled("gpu", 1, "gpu", "yes"), numbered("any", 2)), node("a"), node("b", "gpu", "yes"))
	v.Held = []string{"any-0"}
	v.Owner = map[string]string{"gpu-0": "b", "any-1": "b"}
	if x := placement.Explain(v.Without("b"), "any-1"); x.Verdict != placement.SeatFree || !slices.Equal(x.Eligible, []string{"a"}) {
		t.Errorf("without b: %+v, want it free for a", x)
	}
	if x := placement.Explain(v.Without("b"), "gpu-0"); x.Verdict != placement.SeatUnplaceable {
		t.Errorf("without b: %+v, want it unplaceable", x)
	}
	if x := placement.Explain(v.Without("a"), "any-0"); x.Verdict != placement.SeatFree || !slices.Equal(x.Eligible, []string{"b"}) {
		t.Errorf("without a: %+v, want it free for b", x)
	}
	if x := placement.Explain(v, "any-1"); x.Verdict != placement.SeatPlaced || len(v.Nodes) != 2 || len(v.Owner) != 2 {
		t.Errorf("asking changed the view: %+v, %+v", x, v)
	}
}
