package company

import "slices"

// Changes is what a new revision does to the seats: handles, each list sorted.
// A human's role is no seat, so a role that turns from agent to human is
// removed (spec R1) and one that turns into an agent is added.
type Changes struct {
	Added   []string
	Removed []string
	Moved   []string // placement
	Changed []string // title or runner; a seat may be moved and changed
	Renamed bool     // the company, and with it every agent id (spec G1)
}

// Empty says that the revisions differ in nothing that concerns a seat.
func (c Changes) Empty() bool { return !c.Sweeps() && len(c.Changed) == 0 && !c.Renamed }

// Sweeps says that the seats themselves changed, so that a placement pass is
// due at once and not on the next tick (spec P5).
func (c Changes) Sweeps() bool { return len(c.Added)+len(c.Removed)+len(c.Moved) > 0 }

// Diff compares two revisions. The zero Company stands for none before.
func Diff(before, after Company) Changes {
	c := Changes{Renamed: before.Name != "" && before.Name != after.Name}
	was, is := seats(before), seats(after)
	for handle, now := range is {
		then, ok := was[handle]
		if !ok {
			c.Added = append(c.Added, handle)
			continue
		}
		if !then.Placement.Equal(now.Placement) {
			c.Moved = append(c.Moved, handle)
		}
		if then.Title != now.Title || !then.Runner.Equal(now.Runner) {
			c.Changed = append(c.Changed, handle)
		}
	}
	for handle := range was {
		if _, ok := is[handle]; !ok {
			c.Removed = append(c.Removed, handle)
		}
	}
	for _, list := range [][]string{c.Added, c.Removed, c.Moved, c.Changed} {
		slices.Sort(list)
	}
	return c
}

func seats(c Company) map[string]Role {
	m := make(map[string]Role, len(c.Roles))
	for _, r := range c.AgentSeats() {
		m[r.Handle] = r
	}
	return m
}
