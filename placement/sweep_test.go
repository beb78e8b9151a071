package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// numbered is n seats that may run anywhere: prefix-0, prefix-1, …
func numbered(prefix string, n int) []placement.Seat {
	seats := make([]placement.Seat, n)
	for i := range seats {
		seats[i] = placement.Seat{Handle: fmt.Sprintf("%s-%d", prefix, i)}
	}
	return seats
}

// labelled is n seats for nodes with that one label.
func labelled(prefix string, n int, key, value string) []placement.Seat {
	seats := numbered(prefix, n)
	for i := range seats {
		seats[i].Labels = map[string]string{key: value}
	}
	return seats
}

// node runs seats; labels come in pairs.
func node(id string, labels ...string) placement.Node {
	n := placement.Node{ID: id, Seats: true, Labels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

// viewOf is what the first of nodes sees, all of it known.
func viewOf(seats []placement.Seat, nodes ...placement.Node) placement.View {
	return placement.View{Self: nodes[0].ID, Seats: seats, CompanyKnown: true, Nodes: nodes, RosterKnown: true, Limits: placement.LimitFloor}
}

func handles(seats []placement.Seat) []string {
	hs := make([]string, len(seats))
	for i, s := range seats {
		hs[i] = s.Handle
	}
	return hs
}

// groupNamed is the plan's group of that name.
func groupNamed(t *testing.T, p placement.Plan, name string) placement.Group {
	t.Helper()
	i := slices.IndexFunc(p.Groups, func(g placement.Group) bool { return g.Name == name })
	if i < 0 {
		t.Fatalf("no group %q in %+v", name, p.Groups)
	}
	return p.Groups[i]
}

// take claims everything the plan lets a node claim in one pass.
func take(p placement.Plan) []string {
	var won []string
	c := p.Claims()
	for h, ok := c.Next(); ok; h, ok = c.Next() {
		won = append(won, h)
	}
	return won
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got)+len(want) > 0 && !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

// P2, P14: the share is the ceiling of seats over live nodes, and a pass claims
// at most four of it.
func TestP2ShareIsTheCeilingAndAPassClaimsFour(t *testing.T) {
	for _, tt := range []struct{ seats, nodes, share, claims int }{
		{0, 1, 0, 0}, {1, 3, 1, 1}, {7, 3, 3, 3}, {9, 3, 3, 3}, {10, 3, 4, 4}, {7, 1, 7, 4}, {1000, 50, 20, 4},
	} {
		var nodes []placement.Node
		for i := range tt.nodes {
			nodes = append(nodes, node(fmt.Sprintf("n%d", i)))
		}
		p := placement.Sweep(viewOf(numbered("s", tt.seats), nodes...))
		if p.Capacity != tt.share {
			t.Errorf("%d seats on %d nodes: capacity %d, want %d", tt.seats, tt.nodes, p.Capacity, tt.share)
		}
		if got := len(take(p)); got != tt.claims {
			t.Errorf("%d seats on %d nodes: claims %d, want %d", tt.seats, tt.nodes, got, tt.claims)
		}
		if len(p.Claim) != tt.seats {
			t.Errorf("%d seats on %d nodes: %d candidates, want all: any may be lost to a peer", tt.seats, tt.nodes, len(p.Claim))
		}
	}
}

// P3: the share is per group, and room in one group is never room in another: a
// node with two gpu seats to claim and no room for anything else takes just them.
func TestP3RoomIsPerGroup(t *testing.T) {
	v := viewOf(slices.Concat(numbered("any", 6), labelled("gpu", 2, "gpu", "yes")), node("a", "gpu", "yes"), node("b"), node("c"))
	v.Held = []string{"any-0", "any-1"}
	p := placement.Sweep(v)
	if anywhere, gpu := groupNamed(t, p, "anywhere"), groupNamed(t, p, "gpu=yes"); anywhere.Room != 2 || gpu.Room != 2 {
		t.Fatalf("room %d anywhere, %d on gpu, want 2 and 2", anywhere.Room, gpu.Room)
	}
	got := take(p)
	slices.Sort(got)
	same(t, "claims", got, []string{"gpu-0", "gpu-1"})
}

// P3: fewest matching nodes first, so that a limited pass spends itself on seats
// with the fewest other homes; inside a group, what ran here last comes first.
func TestP3OrderIsMostConstrainedThenPreferred(t *testing.T) {
	pinned := placement.Seat{Handle: "pinned", Node: "a"}
	seats := slices.Concat(numbered("any", 3), labelled("gpu", 3, "gpu", "yes"), []placement.Seat{pinned})
	v := viewOf(seats, node("a", "gpu", "yes"), node("b", "gpu", "yes"), node("c"))
	v.Preferred = map[string]string{"gpu-2": "a", "gpu-0": "b", "any-1": "a"}
	got := placement.Sweep(v).Claim
	same(t, "first five", got[:5], []string{"pinned", "gpu-2", "gpu-1", "gpu-0", "any-1"})
}

// P3: a placement is a node id, labels, or both; a label must be there with the
// same value, even if that value is empty.
func TestP3WhatMatches(t *testing.T) {
	for _, tt := range []struct {
		seat placement.Seat
		want bool
	}{
		{placement.Seat{}, true},
		{placement.Seat{Node: "a"}, true},
		{placement.Seat{Node: "b"}, false},
		{placement.Seat{Labels: map[string]string{"zone": "z1"}}, true},
		{placement.Seat{Labels: map[string]string{"zone": "z2"}}, false},
		{placement.Seat{Labels: map[string]string{"zone": "z1", "gpu": "yes"}}, false},
		{placement.Seat{Labels: map[string]string{"gpu": ""}}, false},
		{placement.Seat{Node: "a", Labels: map[string]string{"zone": "z1"}}, true},
		{placement.Seat{Node: "a", Labels: map[string]string{"zone": "z2"}}, false},
	} {
		tt.seat.Handle = "s"
		p := placement.Sweep(viewOf([]placement.Seat{tt.seat}, node("a", "zone", "z1")))
		if got := len(p.Claim) == 1; got != tt.want {
			t.Errorf("%+v: claims it %t, want %t", tt.seat, got, tt.want)
		}
		if unplaceable := len(p.Unplaceable) == 1; unplaceable == tt.want {
			t.Errorf("%+v: unplaceable %t, want %t", tt.seat, unplaceable, !tt.want)
		}
	}
}

// P3: different placements are different groups, however their labels spell.
func TestP3GroupsAreNotConfusedBySpelling(t *testing.T) {
	v := viewOf([]placement.Seat{
		{Handle: "one", Labels: map[string]string{"k": "v, x=y"}},
		{Handle: "two", Labels: map[string]string{"k": "v", "x": "y"}},
		{Handle: "three", Labels: map[string]string{"node n": ""}},
		{Handle: "four", Node: "n"},
		{Handle: "five", Labels: map[string]string{"k": `"v"`}},
		{Handle: "six", Labels: map[string]string{}},
		{Handle: "seven"},
	}, node("a"))
	if got := len(placement.Sweep(v).Groups); got != 6 {
		t.Errorf("%d groups, want 6: %+v", got, placement.Sweep(v).Groups)
	}
}

// P4: what is above the share of a group goes back, two a pass, least
// constrained group first, even when the total is within capacity.
func TestP4GivesBackPerGroupLeastConstrainedFirst(t *testing.T) {
	seats := slices.Concat(numbered("any", 4), labelled("gpu", 4, "gpu", "yes"))
	nodes := []placement.Node{node("a", "gpu", "yes"), node("b", "gpu", "yes"), node("c"), node("d")}
	for _, tt := range []struct {
		name  string
		held  []string
		limit int
		any   int // of the seats given back
		gpu   int
	}{
		{"within every share", []string{"any-0", "gpu-0", "gpu-1"}, 2, 0, 0},
		{"total within capacity", []string{"any-0", "any-1"}, 2, 1, 0},
		{"limit cuts the pass short", handles(seats), 2, 2, 0},
		{"the pinned group is the last to go", handles(seats), 4, 3, 1},
		{"no limit given, nothing moves", handles(seats), 0, 0, 0},
	} {
		v := viewOf(seats, nodes...)
		v.Held, v.Limits.Release = tt.held, tt.limit
		p := placement.Sweep(v)
		want := slices.Concat(slices.Repeat([]string{"any"}, tt.any), slices.Repeat([]string{"gpu"}, tt.gpu))
		var got []string
		for _, h := range p.Release {
			got = append(got, h[:3])
		}
		same(t, tt.name, got, want)
	}
}

// P4: of one group a node gives back what it would claim last, which is what its
// peers would claim first.
func TestP4GivesBackWhatItWouldClaimLast(t *testing.T) {
	v := viewOf(numbered("s", 40), node("a"), node("b"), node("c"))
	last := placement.Sweep(v).Claim[37:]
	v.Held, v.Limits.Release = handles(v.Seats), 3
	slices.Reverse(last)
	same(t, "gives back", placement.Sweep(v).Release, last)
}

// P4, case 11: a seat is too much only if it already was at the earlier reading,
// so every peer has seen the join before the seat is free.
func TestP4WaitsUntilPeersHaveSeenTheJoin(t *testing.T) {
	seats := numbered("s", 7)
	v := viewOf(seats, node("a"), node("b"), node("c"))
	v.Held = []string{"s-0", "s-1", "s-2", "s-3"}
	v.Earlier = v.Nodes[:2]
	same(t, "at the pass that first sees c", placement.Sweep(v).Release, nil)
	v.Earlier = v.Nodes
	if got := placement.Sweep(v).Release; len(got) != 1 {
		t.Errorf("at the next pass gives back %q, want one seat", got)
	}
}

// P6, P8, P10, P13: who claims nothing, why, and who still counts in shares.
// A node that is behind keeps every seat, also the surplus.
func TestP6P8P10P13WhoClaimsAndWhoCounts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		self    func(*placement.View)
		peer    func(*placement.Node)
		why     placement.Reason
		share   int // of the 6 seats
		release bool
	}{
		{name: "all well", share: 3, release: true},
		{name: "P6 draining", self: func(v *placement.View) { v.Draining = true }, why: placement.Draining, share: 6},
		{name: "P6 draining, own entry", self: func(v *placement.View) { v.Nodes[0].Draining = true }, why: placement.Draining, share: 6},
		{name: "P8 withdrawn", self: func(v *placement.View) { v.Withdrawn = true }, why: placement.Withdrawn, share: 6},
		{name: "P10 behind", self: func(v *placement.View) { v.Behind = true }, why: placement.Behind, share: 3},
		{name: "P1 no presence", self: func(v *placement.View) { v.Nodes = v.Nodes[1:] }, why: placement.NotPlacing, share: 6},
		{name: "P11 roster unread", self: func(v *placement.View) { v.RosterKnown = false }, why: placement.RosterUnknown},
		{name: "no company", self: func(v *placement.View) { v.CompanyKnown = false }, why: placement.CompanyUnknown},
		{name: "P13 peer draining", peer: func(n *placement.Node) { n.Draining = true }, share: 6},
		{name: "P8 peer withdrawn", peer: func(n *placement.Node) { n.Withdrawn = true }, share: 6},
		{name: "P13 peer runs no seats", peer: func(n *placement.Node) { n.Seats = false }, share: 6},
	} {
		v := viewOf(numbered("s", 6), node("a"), node("b"))
		v.Held = []string{"s-0", "s-1"}
		if tt.peer != nil {
			tt.peer(&v.Nodes[1])
		}
		if tt.self != nil {
			tt.self(&v)
		}
		p := placement.Sweep(v)
		if p.WhyNone != tt.why || (len(p.Claim) == 0) != (tt.why != "") {
			t.Errorf("%s: claims %q, why none %q, want why %q", tt.name, p.Claim, p.WhyNone, tt.why)
		}
		if tt.share == 0 {
			if len(p.Groups) != 0 || p.Full || len(p.Unplaceable) != 0 || p.Capacity != 0 {
				t.Errorf("%s: unknown concluded something: %+v", tt.name, p)
			}
		} else if g := groupNamed(t, p, "anywhere"); g.Share != tt.share {
			t.Errorf("%s: share %d, want %d", tt.name, g.Share, tt.share)
		}
		same(t, tt.name+": moved", p.Moved, nil)
		same(t, tt.name+": decommissioned", p.Decommissioned, nil)

		v.Held = handles(v.Seats)
		if got := len(placement.Sweep(v).Release) > 0; got != tt.release {
			t.Errorf("%s: holding everything gives back %t, want %t", tt.name, got, tt.release)
		}
	}
}

// P5, H4: what left the company and what no longer belongs here goes back at
// once, outside the release limit, also while draining or behind.
func TestP5DecommissionedAndMovedGoAtOnce(t *testing.T) {
	seats := slices.Concat(labelled("gpu", 3, "gpu", "yes"), numbered("any", 1))
	v := viewOf(seats, node("a"), node("b", "gpu", "yes"))
	v.Held = []string{"gone-2", "gpu-2", "gpu-0", "any-0", "gone-1", "gpu-1", "gone-1"}
	v.Limits.Release = 0
	for _, flags := range [][2]bool{{}, {true, false}, {false, true}} {
		v.Draining, v.Behind = flags[0], flags[1]
		p := placement.Sweep(v)
		same(t, "decommissioned", p.Decommissioned, []string{"gone-1", "gone-2"})
		same(t, "moved", p.Moved, []string{"gpu-0", "gpu-1", "gpu-2"})
		if p.Held != 6 {
			t.Errorf("held %d, want 6", p.Held)
		}
	}
	v.Nodes[0].Seats = false // the role seats was taken away
	same(t, "moved without the role", placement.Sweep(v).Moved, []string{"any-0", "gpu-0", "gpu-1", "gpu-2"})
}
