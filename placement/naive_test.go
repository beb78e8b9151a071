package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/seat-tenure/tenure/placement"
)

// naive is a second implementation of the arithmetic, written from the rules
// with loops and nothing clever, to compare Sweep with. It does not decide the
// order inside a group.
type naive struct {
	groups   []naiveGroup // most constrained first
	capacity int
	full     bool
	why      placement.Reason

	unplaceable, decommissioned, moved []string
	claim                              map[string]bool
	release                            []int // how many, by group
}

type naiveGroup struct {
	name              string
	seats, eligible   []string
	share, room, held int
}

func has(list []string, x string) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

func fits(s placement.Seat, n placement.Node) bool {
	for k, v := range s.Labels {
		if got, ok := n.Labels[k]; !ok || got != v {
			return false
		}
	}
	return s.Node == "" || s.Node == n.ID
}

// naiveGroups puts seats with equal placements together and counts (P3, P13).
func naiveGroups(seats []placement.Seat, nodes []placement.Node) []naiveGroup {
	var groups []naiveGroup
	for _, s := range seats {
		at := -1
		for i, g := range groups {
			for _, other := range seats {
				if other.Handle == g.seats[0] && other.Node == s.Node && maps.Equal(other.Labels, s.Labels) {
					at = i
				}
			}
		}
		if at >= 0 {
			groups[at].seats = append(groups[at].seats, s.Handle)
			continue
		}
		g := naiveGroup{name: plainName(s), seats: []string{s.Handle}}
		for _, n := range nodes {
			if n.Seats && !n.Draining && !n.Withdrawn && fits(s, n) {
				g.eligible = append(g.eligible, n.ID)
			}
		}
		sort.Strings(g.eligible)
		groups = append(groups, g)
	}
	for i, g := range groups {
		for len(g.eligible) > 0 && g.share*len(g.eligible) < len(g.seats) {
			g.share++ // the least share that covers the group
		}
		groups[i] = g
	}
	sort.Slice(groups, func(i, j int) bool {
		a, b := groups[i], groups[j]
		return len(a.eligible) < len(b.eligible) || len(a.eligible) == len(b.eligible) && a.name < b.name
	})
	return groups
}

// plainName holds for the plain labels that the tests draw, at most two.
func plainName(s placement.Seat) string {
	name := ""
	if s.Node != "" {
		name = "node " + s.Node
	}
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		if name != "" {
			name += ", "
		}
		name += fmt.Sprintf("%s=%s", k, s.Labels[k])
	}
	if name == "" {
		return "anywhere"
	}
	return name
}

// naiveRoom hands capacity out one seat at a time (P7).
func naiveRoom(groups []naiveGroup, self string, stuck int) {
	capacity := 0
	for _, g := range groups {
		if has(g.eligible, self) {
			capacity += g.share
		}
	}
	for capacity -= stuck; capacity > 0; capacity-- {
		for i, g := range groups {
			if has(g.eligible, self) && g.room < g.share {
				groups[i].room++
				break
			}
		}
	}
}

// naiveSweep expects no seat and no node twice.
func naiveSweep(v placement.View) naive {
	out := naive{claim: map[string]bool{}}
	nodes := slices.Clone(v.Nodes)
	var self placement.Node
	for i, n := range nodes {
		if n.ID == v.Self {
			nodes[i].Draining = n.Draining || v.Draining
			nodes[i].Withdrawn = n.Withdrawn || v.Withdrawn
			self = nodes[i]
		}
	}
	stuck, held := map[string]bool{}, map[string]bool{}
	for _, h := range v.Stuck {
		stuck[h] = true
	}
	for _, h := range v.Held {
		if !stuck[h] {
			held[h] = true
		}
	}
	seat := map[string]placement.Seat{}
	for _, s := range v.Seats {
		seat[s.Handle] = s
	}
	for _, h := range slices.Sorted(maps.Keys(held)) {
		s, exists := seat[h]
		if !v.CompanyKnown {
			continue
		}
		if !exists {
			out.decommissioned = append(out.decommissioned, h)
			delete(held, h)
		} else if self.ID != "" && (!self.Seats || !fits(s, self)) {
			out.moved = append(out.moved, h)
			delete(held, h)
		}
	}
	if !v.CompanyKnown || !v.RosterKnown {
		out.why = placement.RosterUnknown
		if !v.CompanyKnown {
			out.why = placement.CompanyUnknown
		}
		return out
	}
	out.groups = naiveGroups(v.Seats, nodes)
	naiveRoom(out.groups, v.Self, len(stuck))
	placeable, counted := 0, 0
	for i, g := range out.groups {
		if len(g.eligible) == 0 {
			out.unplaceable = append(out.unplaceable, g.seats...)
		} else {
			placeable += len(g.seats)
		}
		out.capacity += g.room
		for _, h := range g.seats {
			if held[h] {
				out.groups[i].held++
			}
			if len(g.eligible) > 0 && (has(v.Held, h) || stuck[h]) {
				counted++
			}
		}
	}
	sort.Strings(out.unplaceable)
	for _, n := range nodes {
		if n.ID != v.Self && n.SeatsHeld > 0 {
			counted += n.SeatsHeld
		}
	}
	out.full = placeable > 0 && counted >= placeable
	out.claims(v, self, held, stuck)
	out.releases(v, self)
	return out
}

func (out *naive) claims(v placement.View, self placement.Node, held, stuck map[string]bool) {
	room := false
	for _, g := range out.groups {
		if g.held < g.room {
			room = true
			for _, h := range g.seats {
				if !held[h] && !stuck[h] {
					out.claim[h] = true
				}
			}
		}
	}
	switch {
	case self.Draining || v.Draining:
		out.why = placement.Draining
	case self.Withdrawn || v.Withdrawn:
		out.why = placement.Withdrawn
	case !self.Seats:
		out.why = placement.NotPlacing
	case v.Behind:
		out.why = placement.Behind
	case out.full:
		out.why = placement.FleetFull
	case !room:
		out.why = placement.NoRoom
	case len(out.claim) == 0:
		out.why = placement.NothingToTry
	}
	if out.why != "" {
		out.claim = map[string]bool{}
	}
}

func (out *naive) releases(v placement.View, self placement.Node) {
	out.release = make([]int, len(out.groups))
	if v.Behind || self.Draining || self.Withdrawn || !self.Seats {
		return
	}
	earlier := naiveGroups(v.Seats, v.Earlier)
	naiveRoom(earlier, v.Self, len(unique(v.Stuck)))
	for left := v.Limits.Release; left > 0; left-- {
		for i := len(out.groups) - 1; i >= 0; i-- {
			g := out.groups[i]
			may := g.room
			for _, e := range earlier {
				if e.name == g.name && e.room > may {
					may = e.room
				}
			}
			if g.held-out.release[i] > may {
				out.release[i]++
				break
			}
		}
	}
}

func unique(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
