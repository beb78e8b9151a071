package placement

// Targets says where the seats that leave a node should go, one after the
// other: each goes to the eligible node with the most room in its group, with
// what was promised to it before counted in. A node at its share takes nothing,
// since it would only give the surplus back.
type Targets struct {
	self string
	f    *fleet
	load map[string]map[string]int // group → node → seats it holds or was promised
}

// Targets counts who holds what by the view's hints. A view whose company or
// live nodes are not known offers no target.
func (v View) Targets() *Targets {
	t := &Targets{self: v.Self, load: map[string]map[string]int{}}
	if !v.CompanyKnown || !v.RosterKnown {
		return t
	}
	t.f = survey(v.Seats, v.nodes())
	for handle, node := range v.Owner {
		if g := t.f.of[handle]; g != nil && node != v.Self {
			t.promise(g.Name, node)
		}
	}
	return t
}

// For chooses a node for the seat and counts the promise; "" when there is no
// node that has room for it.
func (t *Targets) For(handle string) (node string) {
	if t.f == nil || t.f.of[handle] == nil {
		return ""
	}
	g := t.f.of[handle]
	most := 0
	for _, id := range g.Eligible { // sorted, so equal room goes by name and seat
		if id == t.self {
			continue
		}
		room := g.Share - t.load[g.Name][id]
		if room > most || room == most && room > 0 && mix(hash(id), hash(handle)) > mix(hash(node), hash(handle)) {
			node, most = id, room
		}
	}
	if node != "" {
		t.promise(g.Name, node)
	}
	return node
}

// Takes says whether that node may run the seat and has room for it.
func (t *Targets) Takes(handle, node string) (eligible, room bool) {
	if t.f == nil || t.f.of[handle] == nil {
		return false, false
	}
	g := t.f.of[handle]
	for _, id := range g.Eligible {
		if id == node {
			return true, t.load[g.Name][id] < g.Share
		}
	}
	return false, false
}

func (t *Targets) promise(group, node string) {
	if t.load[group] == nil {
		t.load[group] = map[string]int{}
	}
	t.load[group][node]++
}
