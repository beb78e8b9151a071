package placement

import "slices"

// Sweep plans one pass.
func Sweep(v View) Plan {
	f := survey(v.Seats, v.nodes())
	if v.RosterKnown {
		f.handOut(v.Self, len(unique(v.Stuck)))
	}
	p := Plan{limit: max(v.Limits.Claim, 0)}
	v.judgeHeld(f, &p)
	if v.CompanyKnown && v.RosterKnown {
		p.SeatsHeld = v.seatsHeld(f)
		p.Full = v.full(f, p.SeatsHeld)
		for _, g := range f.groups {
			if !g.placeable() {
				p.Unplaceable = append(p.Unplaceable, g.seats...)
			}
			p.Capacity += g.Room
			p.Groups = append(p.Groups, g.Group)
		}
		slices.Sort(p.Unplaceable)
	}
	if p.WhyNone = v.withheld(f, p); p.WhyNone == "" {
		v.planClaims(f, &p)
	}
	v.planReleases(f, &p)
	return p
}

// nodes are the live nodes with what the planning node knows of itself.
func (v View) nodes() []Node {
	i := slices.IndexFunc(v.Nodes, func(n Node) bool { return n.ID == v.Self })
	if i < 0 {
		return v.Nodes
	}
	nodes := slices.Clone(v.Nodes)
	nodes[i].Draining = nodes[i].Draining || v.Draining
	nodes[i].Withdrawn = nodes[i].Withdrawn || v.Withdrawn
	return nodes
}

// running are the seats that are held and not stuck, sorted.
func (v View) running() []string {
	stuck := unique(v.Stuck)
	return slices.DeleteFunc(unique(v.Held), func(h string) bool {
		_, is := slices.BinarySearch(stuck, h)
		return is
	})
}

// judgeHeld sorts what the node runs into what must go at once and what counts
// as held in a group. Without the node's own entry its labels are not known, and
// nothing is taken for moved.
func (v View) judgeHeld(f *fleet, p *Plan) {
	self, known := f.nodes[v.Self]
	for _, h := range v.running() {
		p.Held++
		g := f.of[h]
		switch {
		case !v.CompanyKnown: // nothing is known of its seats
		case g == nil:
			p.Decommissioned = append(p.Decommissioned, h)
		case known && (!self.Seats || !g.matches(self)):
			p.Moved = append(p.Moved, h)
		default:
			g.Held++
		}
	}
}

// seatsHeld counts the leases on seats that some counted node may run. One that
// nobody may run would stand in the sum for a seat that is free (P11).
func (v View) seatsHeld(f *fleet) int {
	n := 0
	for _, h := range unique(slices.Concat(v.Held, v.Stuck)) {
		if g := f.of[h]; g != nil && g.placeable() {
			n++
		}
	}
	return n
}

// full says whether the counts cover every placeable seat. All live presences
// count here, also those that are in no share: a draining node still holds what
// it has not handed over (P13). own is known first-hand, so the node's presence
// is not asked.
func (v View) full(f *fleet, own int) bool {
	placeable := 0
	for _, g := range f.groups {
		if g.placeable() {
			placeable += g.Size
		}
	}
	free := placeable - own
	for id, n := range f.nodes {
		if id != v.Self && free > 0 {
			free -= min(max(n.SeatsHeld, 0), free)
		}
	}
	return placeable > 0 && free <= 0
}

// withheld says why this pass may not claim at all, if it may not.
func (v View) withheld(f *fleet, p Plan) Reason {
	self, live := f.nodes[v.Self]
	switch {
	case !v.CompanyKnown:
		return CompanyUnknown
	case !v.RosterKnown:
		return RosterUnknown
	case v.Draining || self.Draining:
		return Draining
	case v.Withdrawn || self.Withdrawn:
		return Withdrawn
	case !live || !self.Seats:
		return NotPlacing
	case v.Behind:
		return Behind
	case p.Full:
		return FleetFull
	case !slices.ContainsFunc(f.groups, func(g *group) bool { return g.Room > g.Held }):
		return NoRoom
	}
	return ""
}

// planClaims lists what to try: first what the hints call free, most
// constrained group first (P3), then what they say a live node holds. Those are
// tried only because the counts do not cover the company, so some hint is wrong
// (P12). A seat whose owner has no live presence reads as free.
func (v View) planClaims(f *fleet, p *Plan) {
	here := make(map[string]bool, len(v.Held)+len(v.Stuck))
	for _, h := range slices.Concat(v.Held, v.Stuck) {
		here[h] = true
	}
	var later []string
	p.claimGroup = make(map[string]int)
	for i, g := range f.groups {
		if g.Room <= g.Held {
			continue
		}
		var free, taken []string
		for _, h := range g.seats {
			if here[h] {
				continue
			}
			p.claimGroup[h] = i
			if _, live := f.nodes[v.Owner[h]]; live && v.Owner[h] != "" {
				taken = append(taken, h)
			} else {
				free = append(free, h)
			}
		}
		p.Claim = append(p.Claim, g.order(v.Self, free, v.Preferred)...)
		later = append(later, g.order(v.Self, taken, v.Preferred)...)
	}
	p.Claim = append(p.Claim, later...)
	if len(p.Claim) == 0 {
		p.WhyNone = NothingToTry
	}
}

// planReleases gives back what is above the node's room, least constrained
// group first, and in a group what it would claim last (P4). A node that is
// behind keeps what it holds (P10). One that is not counted has no group of its
// own here: it is being emptied by other means, or is not to be moved at all.
func (v View) planReleases(f *fleet, p *Plan) {
	if v.Behind {
		return
	}
	left := max(v.Limits.Release, 0)
	var before map[string]int
	running := v.running()
	for i := len(f.groups) - 1; i >= 0 && left > 0; i-- {
		g := f.groups[i]
		if !g.mine || g.Held <= g.Room {
			continue
		}
		if before == nil {
			before = v.roomBefore()
		}
		excess := min(g.Held-max(g.Room, before[g.Name]), left)
		if excess <= 0 {
			continue
		}
		var held []string
		for _, h := range running {
			if f.of[h] == g {
				held = append(held, h)
			}
		}
		held = g.order(v.Self, held, v.Preferred)
		slices.Reverse(held)
		p.Release = append(p.Release, held[:excess]...)
		left -= excess
	}
}

// roomBefore is the node's room by the earlier reading of the live nodes; see
// View.Earlier.
func (v View) roomBefore() map[string]int {
	room := make(map[string]int)
	if v.Earlier == nil {
		return room
	}
	f := survey(v.Seats, v.Earlier)
	f.handOut(v.Self, len(unique(v.Stuck)))
	for _, g := range f.groups {
		room[g.Name] = g.Room
	}
	return room
}

// unique is a sorted copy without repeats.
func unique(handles []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(handles)))
}
