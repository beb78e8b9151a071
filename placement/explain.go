package placement

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict says how a seat stands in the fleet.
type Verdict string

// Verdicts, in the order in which they are considered.
const (
	SeatUnknown     Verdict = "unknown"     // the company or the live nodes are not known
	SeatRemoved     Verdict = "removed"     // not in the company
	SeatUnproven    Verdict = "unproven"    // stuck here
	SeatUnplaceable Verdict = "unplaceable" // no counted node matches
	SeatFree        Verdict = "free"        // nobody holds it, as far as the hints know
	SeatWaiting     Verdict = "waiting"     // its holder has no live presence; its lease may still run
	SeatMisplaced   Verdict = "misplaced"   // its holder does not match its placement
	SeatLeaving     Verdict = "leaving"     // its holder is draining or withdrawn
	SeatSurplus     Verdict = "surplus"     // its holder is over its share of the group
	SeatPlaced      Verdict = "placed"      // where it belongs
)

// Explanation says why a seat is where it is, or why nobody runs it.
type Explanation struct {
	Handle   string
	Verdict  Verdict
	Holder   string // node id, by what this node holds and the hints; may be empty
	Group    string
	Eligible []string // counted nodes that may run it, sorted
	Rules    []string // ids of the rules that led to the verdict
	Why      string   // one sentence for a person
}

// Explain judges one seat by the arithmetic Sweep uses, from the whole fleet's
// side. What a peer knows of itself alone, that it is behind or has stuck seats,
// is not in the view and not in the answer.
func Explain(v View, handle string) Explanation {
	x := Explanation{Handle: handle, Holder: v.holder(handle)}
	if !v.CompanyKnown {
		return x.says(SeatUnknown, "this node has no company yet", "P5")
	}
	f := survey(v.Seats, v.nodes())
	g := f.of[handle]
	if g == nil {
		if x.Holder != "" {
			return x.says(SeatRemoved, "the company has no such seat; "+x.Holder+" gives it back at its next pass", "R1")
		}
		return x.says(SeatRemoved, "the company has no such seat", "R1")
	}
	x.Group = g.Name
	if !v.RosterKnown {
		return x.says(SeatUnknown, "the live nodes could not be read", "P1", "P11")
	}
	x.Eligible = slices.Clone(g.Eligible)
	switch {
	case slices.Contains(v.Stuck, handle):
		return x.says(SeatUnproven, "its teardown on "+v.Self+" could not be proven; only a success or a restart of that process frees it", "P7", "H6")
	case !g.placeable():
		return x.unplaceable(f, g)
	case x.Holder == "":
		return v.explainFree(x, g)
	}
	return v.explainHeld(x, f, g)
}

func (x Explanation) says(verdict Verdict, why string, rules ...string) Explanation {
	x.Verdict, x.Why, x.Rules = verdict, why, rules
	return x
}

// unplaceable names the matching nodes that are not counted, since those are
// what a person can bring back.
func (x Explanation) unplaceable(f *fleet, g *group) Explanation {
	rules := []string{"P3", "P9"}
	var why []string
	for _, id := range f.ids() {
		n := f.nodes[id]
		switch {
		case !g.matches(n):
		case !n.Seats:
			why = append(why, id+" does not run seats")
			rules = append(rules, "P13")
		case n.Withdrawn:
			why = append(why, id+" has withdrawn its seats")
			rules = append(rules, "P8")
		default:
			why = append(why, id+" is draining or cordoned")
			rules = append(rules, "P13")
		}
	}
	slices.Sort(rules)
	if len(why) == 0 {
		return x.says(SeatUnplaceable, "no live node matches its placement ("+g.Name+")", rules...)
	}
	return x.says(SeatUnplaceable, "no node that may take it matches its placement ("+g.Name+"): "+strings.Join(why, ", "), slices.Compact(rules)...)
}

func (v View) explainFree(x Explanation, g *group) Explanation {
	if v.Behind && slices.Equal(g.Eligible, []string{v.Self}) {
		return x.says(SeatFree, "only "+v.Self+" may run it, and claims nothing while it is behind", "P10")
	}
	// The shares cover the group and one seat of it is free, so somebody has room.
	held := v.tally(g)
	room := slices.DeleteFunc(slices.Clone(g.Eligible), func(id string) bool { return held[id] >= g.Share })
	return x.says(SeatFree, fmt.Sprintf("nobody holds it; nodes with room for it: %s (share %d), and one claims it at its next pass", strings.Join(room, ", "), g.Share), "P2", "P3")
}

func (v View) explainHeld(x Explanation, f *fleet, g *group) Explanation {
	n, live := f.nodes[x.Holder]
	switch held := v.tally(g)[x.Holder]; {
	case !live:
		return x.says(SeatWaiting, x.Holder+" has no live presence; the seat is claimed when its lease is released or lapses", "P1", "P12", "P13")
	case !n.Seats || !g.matches(n):
		return x.says(SeatMisplaced, x.Holder+" does not match its placement ("+g.Name+") and gives it back at its next pass", "P3", "P5")
	case n.Withdrawn:
		return x.says(SeatLeaving, x.Holder+" cannot serve its seats and gives them back", "P8")
	case n.Draining:
		return x.says(SeatLeaving, x.Holder+" is draining or cordoned: it serves the seat until it is handed over, and takes no other", "P6", "P13")
	case held > g.Share:
		return x.says(SeatSurplus, fmt.Sprintf("%s holds %d of the group's %d, more than its share of %d", x.Holder, held, g.Size, g.Share), "P3", "P4")
	default:
		return x.says(SeatPlaced, fmt.Sprintf("%s holds %d of the group's %d, within its share of %d", x.Holder, held, g.Size, g.Share), "P2", "P3")
	}
}

// holder is the node that holds the seat: first-hand if it is this one.
func (v View) holder(handle string) string {
	if slices.Contains(v.Held, handle) || slices.Contains(v.Stuck, handle) {
		return v.Self
	}
	return v.Owner[handle]
}

// tally counts what each node holds of g.
func (v View) tally(g *group) map[string]int {
	here := make(map[string]bool, len(v.Held)+len(v.Stuck))
	for _, h := range slices.Concat(v.Held, v.Stuck) {
		here[h] = true
	}
	held := make(map[string]int)
	for _, h := range g.seats {
		if here[h] {
			held[v.Self]++
		} else if id := v.Owner[h]; id != "" {
			held[id]++
		}
	}
	return held
}
