package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// P7: a stuck seat is charged first, wherever it sits, and what is left goes to
// the most constrained groups; claiming and giving back read that one number.
func TestP7StuckSeatsSqueezeTheLeastConstrained(t *testing.T) {
	seats := slices.Concat(numbered("any", 6), labelled("gpu", 2, "gpu", "yes"))
	nodes := []placement.Node{node("c", "gpu", "yes"), node("b", "gpu", "yes"), node("a")}
	for _, tt := range []struct {
		name             string
		stuck            []string
		gpuRoom, anyRoom int
	}{
		{"none", nil, 1, 2},
		{"one of an unpinned group", []string{"any-5"}, 1, 1},
		{"one in no group: its role is gone", []string{"gone"}, 1, 1},
		{"one of the pinned group", []string{"gpu-1"}, 1, 1},
		{"the same one twice", []string{"gone", "gone"}, 1, 1},
		{"the whole unpinned share", []string{"gone", "any-5"}, 1, 0},
		{"more than the node's shares", []string{"w", "x", "y", "z"}, 0, 0},
	} {
		v := viewOf(seats, nodes...)
		v.Stuck = tt.stuck
		v.Held = []string{"any-0", "any-1"}
		p := placement.Sweep(v)
		gpu, anywhere := groupNamed(t, p, "gpu=yes"), groupNamed(t, p, "anywhere")
		if gpu.Room != tt.gpuRoom || anywhere.Room != tt.anyRoom {
			t.Errorf("%s: room %d on gpu, %d anywhere, want %d and %d", tt.name, gpu.Room, anywhere.Room, tt.gpuRoom, tt.anyRoom)
		}
		if got, want := len(p.Release), max(0, 2-tt.anyRoom); got != want {
			t.Errorf("%s: gives back %q, want %d seats", tt.name, p.Release, want)
		}
		if got := len(take(p)); got != tt.gpuRoom {
			t.Errorf("%s: claims %d seats, want %d", tt.name, got, tt.gpuRoom)
		}
		for _, h := range tt.stuck {
			if slices.Contains(p.Release, h) || slices.Contains(p.Decommissioned, h) || slices.Contains(p.Claim, h) {
				t.Errorf("%s: plans with the stuck seat %s: %+v", tt.name, h, p)
			}
		}
	}
}

// P7: stuck wins when a seat is named in both lists.
func TestP7StuckWinsOverHeld(t *testing.T) {
	v := viewOf(numbered("s", 2), node("a"))
	v.Held, v.Stuck = []string{"s-0", "s-1"}, []string{"s-1", "gone"}
	if p := placement.Sweep(v); p.Held != 1 || p.SeatsHeld != 2 {
		t.Errorf("held %d, advertised %d, want 1 and 2", p.Held, p.SeatsHeld)
	}
}

// P8, P9, P13: a seat is unplaceable when no counted node matches it, and only
// then; a node that is behind still stands for its seats.
func TestP9UnplaceableByTheSameArithmetic(t *testing.T) {
	seats := slices.Concat([]placement.Seat{{Handle: "pinned", Node: "b"}}, labelled("gpu", 1, "gpu", "yes"), numbered("any", 1))
	for _, tt := range []struct {
		name string
		peer placement.Node
		want []string
	}{
		{"b is well", node("b", "gpu", "yes"), nil},
		{"b has no gpu", node("b"), []string{"gpu-0"}},
		{"b is draining", placement.Node{ID: "b", Seats: true, Draining: true, Labels: map[string]string{"gpu": "yes"}}, []string{"gpu-0", "pinned"}},
		{"b has withdrawn", placement.Node{ID: "b", Seats: true, Withdrawn: true, Labels: map[string]string{"gpu": "yes"}}, []string{"gpu-0", "pinned"}},
		{"b runs no seats", placement.Node{ID: "b", Labels: map[string]string{"gpu": "yes"}}, []string{"gpu-0", "pinned"}},
	} {
		p := placement.Sweep(viewOf(seats, node("a"), tt.peer))
		same(t, tt.name, p.Unplaceable, tt.want)
	}
	reader := viewOf(seats, node("a"))
	reader.Self = ""
	same(t, "for a reader that is no node", placement.Sweep(reader).Unplaceable, []string{"gpu-0", "pinned"})
}

// P11: the counts of all live presences together cover every placeable seat, or
// the pass tries on; every doubt errs towards trying.
func TestP11FleetFull(t *testing.T) {
	held := func(id string, n int) placement.Node {
		m := node(id)
		m.SeatsHeld = n
		return m
	}
	draining := held("b", 3)
	draining.Draining = true
	for _, tt := range []struct {
		name string
		own  []string
		peer []placement.Node
		full bool
	}{
		{"covered", []string{"s-0", "s-1"}, []placement.Node{held("b", 3)}, true},
		{"one is free", []string{"s-0"}, []placement.Node{held("b", 3)}, false},
		{"a draining node still holds", []string{"s-0", "s-1"}, []placement.Node{draining, held("c", 0)}, true},
		{"a negative count is nothing", []string{"s-0", "s-1"}, []placement.Node{held("b", 3), held("c", -9)}, true},
		{"counts too large to add", nil, []placement.Node{held("b", int(^uint(0)>>1)), held("c", int(^uint(0)>>1))}, true},
		{"a held seat nobody may run stands for no free one", []string{"s-0", "gpu-0"}, []placement.Node{held("b", 3)}, false},
		{"nor does one that left the company", []string{"s-0", "gone"}, []placement.Node{held("b", 3)}, false},
	} {
		v := viewOf(slices.Concat(numbered("s", 5), labelled("gpu", 1, "gpu", "yes")), slices.Concat([]placement.Node{held("a", 5)}, tt.peer)...)
		v.Held = tt.own
		p := placement.Sweep(v)
		if p.Full != tt.full {
			t.Errorf("%s: full %t, want %t", tt.name, p.Full, tt.full)
		}
		if tt.full && (len(p.Claim) > 0 || p.WhyNone != placement.FleetFull) {
			t.Errorf("%s: full, yet tries %q (%q)", tt.name, p.Claim, p.WhyNone)
		}
	}
	v := viewOf(labelled("gpu", 1, "gpu", "yes"), node("a"))
	if placement.Sweep(v).Full {
		t.Error("a fleet that can run none of its seats calls itself full")
	}
}

// P11: a stuck seat counts in what is advertised while some node may run it.
func TestP11AdvertisesPlaceableLeasesOnly(t *testing.T) {
	v := viewOf(slices.Concat(numbered("s", 3), labelled("gpu", 2, "gpu", "yes")), node("a"))
	v.Held, v.Stuck = []string{"s-0", "gpu-0", "gone-0"}, []string{"s-1", "gpu-1", "gone-1"}
	if got := placement.Sweep(v).SeatsHeld; got != 2 {
		t.Errorf("advertises %d, want 2 (s-0 and s-1)", got)
	}
	v.RosterKnown = false
	if got := placement.Sweep(v).SeatsHeld; got != 0 {
		t.Errorf("advertises %d without a roster, want 0", got)
	}
}

// P12: what a live peer holds by the hints comes after everything that is free,
// and not at all once the counts cover the company. An owner without a presence
// holds nothing; one's own name without the seat is a lease to look at last.
func TestP12HeldByALivePeerComesLast(t *testing.T) {
	seats := slices.Concat(labelled("gpu", 1, "gpu", "yes"), numbered("s", 4))
	v := viewOf(seats, node("a", "gpu", "yes"), node("b"))
	v.Owner = map[string]string{"gpu-0": "b", "s-0": "b", "s-1": "dead", "s-2": "", "s-3": "a"}
	got := placement.Sweep(v).Claim
	slices.Sort(got[:2])
	slices.Sort(got[3:])
	same(t, "candidates", got, []string{"s-1", "s-2", "gpu-0", "s-0", "s-3"})

	v.Nodes[1].SeatsHeld = 5
	same(t, "when the counts cover", placement.Sweep(v).Claim, nil)
}

// WhyNone tells no room from nothing to try.
func TestWhyNoneNamesTheReason(t *testing.T) {
	v := viewOf(numbered("s", 4), node("a"), node("b"))
	v.Held = []string{"s-0", "s-1"}
	if got := placement.Sweep(v).WhyNone; got != placement.NoRoom {
		t.Errorf("at its share: %q, want %q", got, placement.NoRoom)
	}
	// The pinned group has room that only its stuck seat could fill.
	v = viewOf(slices.Concat([]placement.Seat{{Handle: "pinned", Node: "a"}}, numbered("s", 4)), node("a"), node("b"))
	v.Stuck, v.Held = []string{"pinned"}, []string{"s-0"}
	if got := placement.Sweep(v).WhyNone; got != placement.NothingToTry {
		t.Errorf("only stuck seats left: %q, want %q", got, placement.NothingToTry)
	}
	v.Stuck, v.Held = nil, handles(v.Seats)
	if got := placement.Sweep(v).WhyNone; got != placement.FleetFull {
		t.Errorf("everything is here: %q, want %q", got, placement.FleetFull)
	}
}

// The order is stable but each node's own: nodes that see the same fleet start at
// different seats, so that a cold start is not one race for the same four.
func TestNodesDoNotAllTryTheSameSeat(t *testing.T) {
	const n = 50
	nodes := make([]placement.Node, n)
	for i := range nodes {
		nodes[i] = node(fmt.Sprintf("node-%d", i))
	}
	tried := make(map[string]string)
	for _, self := range nodes {
		v := viewOf(numbered("seat", 1000), nodes...)
		v.Self = self.ID
		for _, h := range take(placement.Sweep(v)) {
			if other, twice := tried[h]; twice {
				t.Errorf("%s and %s both start at %s", other, self.ID, h)
			}
			tried[h] = self.ID
		}
	}
	if len(tried) != n*placement.LimitFloor.Claim {
		t.Errorf("%d seats tried, want %d", len(tried), n*placement.LimitFloor.Claim)
	}
}
