package placement_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/placement"
)

// drawView draws small fleets in which everything that matters happens often.
func drawView(t *rapid.T) placement.View {
	placements := []placement.Seat{
		{}, {}, {}, {Node: "a"}, {Node: "b"}, {Labels: map[string]string{"gpu": "yes"}},
		{Labels: map[string]string{"gpu": "yes", "zone": "z1"}}, {Node: "a", Labels: map[string]string{"zone": "z1"}}, {Node: "nobody"},
	}
	var v placement.View
	all := []string{"gone-1", "gone-2"}
	for i := range rapid.IntRange(0, 14).Draw(t, "seats") {
		s := rapid.SampledFrom(placements).Draw(t, "placement")
		s.Handle = fmt.Sprintf("s%d", i)
		v.Seats = append(v.Seats, s)
		all = append(all, s.Handle)
	}
	ids := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(0, 5).Draw(t, "nodes")]
	v.Nodes = drawNodes(t, ids)
	if rapid.Bool().Draw(t, "earlier") {
		v.Earlier = drawNodes(t, ids)
	}
	v.Self = rapid.SampledFrom([]string{"a", "a", "a", "b", "e"}).Draw(t, "self")
	some := rapid.SliceOfN(rapid.SampledFrom(all), 0, 8)
	v.Held = some.Draw(t, "held")
	if rapid.IntRange(0, 2).Draw(t, "any stuck") == 0 {
		v.Stuck = rapid.SliceOfN(rapid.SampledFrom(all), 0, 3).Draw(t, "stuck")
	}
	names := rapid.SampledFrom([]string{"", "a", "b", "c", "dead"})
	v.Preferred = rapid.MapOfN(rapid.SampledFrom(all), names, 0, 8).Draw(t, "preferred")
	v.Owner = rapid.MapOfN(rapid.SampledFrom(all), names, 0, 8).Draw(t, "owner")
	v.Draining, v.Withdrawn, v.Behind = rarely(t, "draining"), rarely(t, "withdrawn"), rarely(t, "behind")
	v.CompanyKnown, v.RosterKnown = !rarely(t, "no company"), !rarely(t, "no roster")
	v.Limits = placement.Limits{Claim: rapid.IntRange(0, 5).Draw(t, "claim"), Release: rapid.IntRange(0, 5).Draw(t, "release")}
	return v
}

func drawNodes(t *rapid.T, ids []string) []placement.Node {
	var nodes []placement.Node
	for _, id := range ids {
		n := placement.Node{ID: id, Seats: !rarely(t, "no seats"), Draining: rarely(t, "draining"), Withdrawn: rarely(t, "withdrawn"), Labels: map[string]string{}}
		if rapid.Bool().Draw(t, "gpu") {
			n.Labels["gpu"] = "yes"
		}
		n.Labels["zone"] = rapid.SampledFrom([]string{"z1", "z2"}).Draw(t, "zone")
		n.SeatsHeld = rapid.IntRange(-1, 4).Draw(t, "count")
		nodes = append(nodes, n)
	}
	return nodes
}

func rarely(t *rapid.T, what string) bool { return rapid.IntRange(0, 9).Draw(t, what) == 9 }

// Sweep agrees with the naive arithmetic on every number and every set, and its
// order obeys P3, P4 and P12.
func TestSweepAgreesWithTheNaiveArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		got, want := placement.Sweep(v), naiveSweep(v)
		equal(t, "why none", got.WhyNone, want.why)
		equal(t, "capacity", got.Capacity, want.capacity)
		equal(t, "full", got.Full, want.full)
		equalList(t, "unplaceable", got.Unplaceable, want.unplaceable)
		equalList(t, "decommissioned", got.Decommissioned, want.decommissioned)
		equalList(t, "moved", got.Moved, want.moved)
		equalList(t, "claim, in any order", slices.Sorted(slices.Values(got.Claim)), slices.Sorted(maps.Keys(want.claim)))
		if len(got.Groups) != len(want.groups) {
			t.Fatalf("%d groups, want %d", len(got.Groups), len(want.groups))
		}
		groupOf := map[string]int{}
		for i, w := range want.groups {
			g := got.Groups[i]
			equal(t, "group", g.Name, w.name)
			equal(t, g.Name+": size", g.Size, len(w.seats))
			equal(t, g.Name+": share", g.Share, w.share)
			equal(t, g.Name+": room", g.Room, w.room)
			equal(t, g.Name+": held", g.Held, w.held)
			equalList(t, g.Name+": eligible", g.Eligible, w.eligible)
			for _, h := range w.seats {
				groupOf[h] = i
			}
		}
		checkClaimOrder(t, v, got.Claim, groupOf)
		var wantGroups, gotGroups []int
		for i := len(want.release) - 1; i >= 0; i-- {
			wantGroups = append(wantGroups, slices.Repeat([]int{i}, want.release[i])...)
		}
		for _, h := range got.Release {
			gotGroups = append(gotGroups, groupOf[h])
			if !has(v.Held, h) || has(v.Stuck, h) {
				t.Fatalf("gives back %s, which it does not run", h)
			}
		}
		if !slices.Equal(gotGroups, wantGroups) {
			t.Fatalf("gives back of groups %v, want %v", gotGroups, wantGroups)
		}
		equal(t, "given back once each", len(unique(got.Release)), len(got.Release))
	})
}

// checkClaimOrder: free before held by a live node (P12), groups with the fewest
// homes first, what ran here last before all else of its group (P3).
func checkClaimOrder(t *rapid.T, v placement.View, claim []string, groupOf map[string]int) {
	key := func(h string) []int {
		k := []int{0, groupOf[h], 1}
		if slices.ContainsFunc(v.Nodes, func(n placement.Node) bool { return n.ID == v.Owner[h] }) {
			k[0] = 1
		}
		if v.Preferred[h] == v.Self {
			k[2] = 0
		}
		return k
	}
	for i := 1; i < len(claim); i++ {
		if slices.Compare(key(claim[i-1]), key(claim[i])) > 0 {
			t.Fatalf("tries %s (%v) before %s (%v)", claim[i-1], key(claim[i-1]), claim[i], key(claim[i]))
		}
	}
}

// The order of its inputs does not change a plan, and a plan does not change them.
func TestSweepIsPureAndBlindToInputOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		before := fmt.Sprintf("%#v", v)
		p := placement.Sweep(v)
		for _, s := range v.Seats {
			placement.Explain(v, s.Handle)
		}
		if after := fmt.Sprintf("%#v", v); after != before {
			t.Fatalf("the view was changed:\n%s\n%s", before, after)
		}
		w := v
		w.Seats = rapid.Permutation(v.Seats).Draw(t, "seats again")
		w.Nodes = rapid.Permutation(v.Nodes).Draw(t, "nodes again")
		w.Held = rapid.Permutation(v.Held).Draw(t, "held again")
		if q := placement.Sweep(w); !reflect.DeepEqual(p, q) {
			t.Fatalf("another order, another plan:\n%+v\n%+v", p, q)
		}
	})
}

// Whatever is won or lost, and however many are under way, a pass stays within
// its limit and within every group's room (P2, P3); a node that obeys its plan
// can neither claim back what it gave back nor be made to give back what it
// claimed, on the same facts (P9).
func TestAPassNeverPassesItsRoomNorUndoesItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		p := placement.Sweep(v)
		c := p.Claims()
		var won, out, tried []string
		for range 60 {
			if h, ok := c.Next(); ok && rapid.Bool().Draw(t, "start another") {
				if has(tried, h) {
					t.Fatalf("%s is tried twice", h)
				}
				tried, out = append(tried, h), append(out, h)
			} else if ok {
				tried = append(tried, h)
				c.Lost(h)
			} else if len(out) == 0 {
				break
			}
			if len(out) > 0 && rapid.Bool().Draw(t, "answer") {
				if rapid.Bool().Draw(t, "won") {
					won = append(won, out[0])
				} else {
					c.Lost(out[0])
				}
				out = out[1:]
			}
		}
		won = append(won, out...)
		if len(won) > v.Limits.Claim {
			t.Fatalf("won %d, the limit is %d", len(won), v.Limits.Claim)
		}
		after := v
		after.Held = slices.DeleteFunc(slices.Concat(v.Held, won), func(h string) bool { return has(p.Release, h) })
		after.Owner = nil
		q := placement.Sweep(after)
		for i, g := range q.Groups {
			if g.Held > max(g.Room, p.Groups[i].Held) {
				t.Fatalf("%s: holds %d of room %d after the pass", g.Name, g.Held, g.Room)
			}
		}
		for _, h := range q.Release {
			if has(won, h) {
				t.Fatalf("gives back %s, which it has just claimed", h)
			}
		}
		for _, h := range take(q) {
			if has(p.Release, h) {
				t.Fatalf("claims %s, which it has just given back", h)
			}
		}
	})
}

// P9: over the nodes counted in them, the shares of a group cover it; a group is
// reported unplaceable when there is nobody to cover it, and only then.
func TestP9SharesCoverEveryPlaceableGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		v.Stuck, v.Draining, v.Withdrawn, v.CompanyKnown, v.RosterKnown = nil, false, false, true, true
		cover := map[string]int{}
		for _, n := range v.Nodes {
			v.Self = n.ID
			for _, g := range placement.Sweep(v).Groups {
				cover[g.Name] += g.Room
			}
		}
		p := placement.Sweep(v)
		uncovered := 0
		for _, g := range p.Groups {
			if len(g.Eligible) == 0 {
				uncovered += g.Size
			} else if cover[g.Name] < g.Size {
				t.Fatalf("%s: %d seats, shares for %d", g.Name, g.Size, cover[g.Name])
			}
		}
		equal(t, "unplaceable", len(p.Unplaceable), uncovered)
	})
}

func equal[T comparable](t *rapid.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func equalList(t *rapid.T, what string, got, want []string) {
	t.Helper()
	if len(got)+len(want) > 0 && !slices.Equal(got, want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}
