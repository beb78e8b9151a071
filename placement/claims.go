package placement

// Claims hands out a plan's candidates within its limit and each group's room,
// so that a pass cannot claim more than its share while it goes. It belongs to
// one goroutine.
type Claims struct {
	runs  []run
	room  map[int]int    // by group: what may still be claimed
	tried map[string]int // under way or won, with the group
	limit int
}

// run is consecutive candidates of one group.
type run struct {
	group   int
	handles []string
}

// Claims starts a pass over p.Claim.
func (p Plan) Claims() *Claims {
	c := &Claims{room: make(map[int]int), tried: make(map[string]int), limit: p.limit}
	for start := 0; start < len(p.Claim); {
		g := p.claimGroup[p.Claim[start]]
		end := start + 1
		for end < len(p.Claim) && p.claimGroup[p.Claim[end]] == g {
			end++
		}
		c.runs = append(c.runs, run{group: g, handles: p.Claim[start:end]})
		c.room[g] = p.Groups[g].Room - p.Groups[g].Held
		start = end
	}
	return c
}

// Next is the next seat to try. Room is set aside for it, so several may be
// under way at once. False means that nothing is left to try, unless one of
// those under way is lost.
func (c *Claims) Next() (handle string, ok bool) {
	if c.limit <= 0 {
		return "", false
	}
	for i := range c.runs {
		r := &c.runs[i]
		if len(r.handles) == 0 || c.room[r.group] <= 0 {
			continue
		}
		handle, r.handles = r.handles[0], r.handles[1:]
		c.tried[handle] = r.group
		c.room[r.group]--
		c.limit--
		return handle, true
	}
	return "", false
}

// Lost says that a seat Next returned was not won: its room goes to another.
// The seat is not tried again in this pass.
func (c *Claims) Lost(handle string) {
	g, ok := c.tried[handle]
	if !ok {
		return
	}
	delete(c.tried, handle)
	c.room[g]++
	c.limit++
}
