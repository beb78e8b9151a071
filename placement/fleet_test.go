package placement_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// fleet is a whole fleet of pure views: in each round every node reads, plans
// and acts once, in a random order. owner stands for the log, which lets a claim
// win only if nobody holds the seat. What a node reads may be a round old.
type fleet struct {
	t     testing.TB
	rng   *rand.Rand
	late  float64 // how much of what is read is a round old
	seats []placement.Seat
	nodes map[string]*member

	owner, ownerBefore map[string]string
	preferred          map[string]string
	now, before        map[string]placement.Node // presences at the start of this round, and of the last
	claims             map[string]int            // per seat, since settle began
	acted              bool                      // somebody claimed or gave back in this round
}

type member struct {
	placement.Node
	held, stuck   []string
	behind        bool
	read, earlier []placement.Node
}

func newFleet(t testing.TB, seed uint64, late float64, seats []placement.Seat) *fleet {
	return &fleet{
		t: t, rng: rand.New(rand.NewPCG(seed, 11)), late: late, seats: seats, nodes: map[string]*member{},
		owner: map[string]string{}, preferred: map[string]string{}, claims: map[string]int{},
	}
}

func (f *fleet) join(n placement.Node) { f.nodes[n.ID] = &member{Node: n} }

// hold puts seats on a node without a pass.
func (f *fleet) hold(id string, seats ...string) {
	f.nodes[id].held = append(f.nodes[id].held, seats...)
	for _, h := range seats {
		f.owner[h], f.preferred[h] = id, id
	}
}

// leave ends a process: its leases lapse.
func (f *fleet) leave(id string) {
	for _, h := range slices.Concat(f.nodes[id].held, f.nodes[id].stuck) {
		delete(f.owner, h)
	}
	delete(f.nodes, id)
}

func (f *fleet) ids() []string { return slices.Sorted(maps.Keys(f.nodes)) }

func (f *fleet) view(id string, roster []placement.Node) placement.View {
	m := f.nodes[id]
	return placement.View{
		Self: id, Seats: f.seats, CompanyKnown: true, Nodes: roster, RosterKnown: true, Earlier: m.earlier,
		Held: m.held, Stuck: m.stuck, Preferred: f.preferred, Owner: f.owner, Behind: m.behind, Limits: placement.LimitFloor,
	}
}

// round is one pass of every node.
func (f *fleet) round() {
	f.acted = false
	f.before, f.now = f.now, make(map[string]placement.Node, len(f.nodes))
	for id, m := range f.nodes {
		f.now[id] = m.Node
	}
	held := maps.Clone(f.owner)
	order := f.ids()
	f.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, id := range order {
		f.pass(id)
	}
	f.ownerBefore = held
}

// roster reads each presence by itself, some a round late; its own never.
func (f *fleet) roster(self string) []placement.Node {
	var nodes []placement.Node
	every := maps.Clone(f.now)
	maps.Copy(every, f.before)
	for _, id := range slices.Sorted(maps.Keys(every)) {
		n, live := f.before[id]
		if id == self || f.before == nil || f.rng.Float64() >= f.late {
			m := f.nodes[id]
			if live = m != nil; live {
				n = m.Node
			}
		}
		if live {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (f *fleet) pass(id string) {
	m := f.nodes[id]
	m.earlier, m.read = m.read, f.roster(id)
	v := f.view(id, m.read)
	if f.ownerBefore != nil && f.rng.Float64() < f.late {
		v.Owner = f.ownerBefore
	}
	p := placement.Sweep(v)
	if len(p.Release) > v.Limits.Release {
		f.t.Fatalf("%s gives back %d in one pass", id, len(p.Release))
	}
	give := slices.Concat(p.Release, p.Moved, p.Decommissioned)
	if m.Withdrawn {
		give = slices.Clone(m.held) // the unserviceable path (P8)
	} else if m.Draining {
		give = slices.Concat(give, m.held[:min(3, len(m.held))]) // the drain's own pace (P6)
	}
	for _, h := range give {
		f.acted = true
		delete(f.owner, h)
		m.held = slices.DeleteFunc(m.held, func(x string) bool { return x == h })
	}
	won := 0
	for c, ok := p.Claims(), true; ok; {
		var h string
		if h, ok = c.Next(); !ok {
			break
		}
		if f.owner[h] != "" {
			c.Lost(h)
			continue
		}
		won++
		f.acted = true
		f.owner[h], f.preferred[h] = id, id
		f.claims[h]++
		m.held = append(m.held, h)
	}
	if won > v.Limits.Claim {
		f.t.Fatalf("%s claims %d in one pass", id, won)
	}
	// A count changes in the pass that changes it (P11).
	m.SeatsHeld = p.SeatsHeld
	if won+len(give) > 0 {
		v.Held = m.held
		m.SeatsHeld = placement.Sweep(v).SeatsHeld
	}
}

// bound is in how many rounds the fleet must be at rest from here: the give-back
// of the largest excess, the claims of the largest share, and a round each for
// the late read, the wait for it, hints that are late too, and the race's end.
func (f *fleet) bound() int {
	roster := f.live()
	excess, share := 0, 0
	for id := range f.nodes {
		p := placement.Sweep(f.view(id, roster))
		over := 0
		for _, g := range p.Groups {
			over += max(0, g.Held-g.Room)
		}
		if f.nodes[id].Draining {
			over = len(f.nodes[id].held)
		}
		excess, share = max(excess, over), max(share, p.Capacity)
	}
	return (excess+1)/placement.LimitFloor.Release + (share+3)/placement.LimitFloor.Claim + 4
}

func (f *fleet) live() []placement.Node {
	var nodes []placement.Node
	for _, id := range f.ids() {
		nodes = append(nodes, f.nodes[id].Node)
	}
	return nodes
}

// settle runs rounds passes after so many changes of membership or company, and
// checks case 11: at rest within the bound, then not one move; no seat moved more
// often than there were changes, and after one change no move but those it forced;
// and everything is where the arithmetic says (P9).
func (f *fleet) settle(rounds, changes int) {
	f.t.Helper()
	clear(f.claims)
	forced := f.forced()
	f.rest(rounds)
	moves := 0
	for h, n := range f.claims {
		moves += n
		if n > changes {
			f.t.Errorf("%s was claimed %d times for %d changes", h, n, changes)
		}
	}
	if changes == 1 && moves > forced {
		f.t.Errorf("%d moves for one change that forces %d: %v", moves, forced, f.claims)
	}
}

// forced is how many seats must find a new home: run by nobody, or by a node that
// may not run them, must leave, or holds more than its room.
func (f *fleet) forced() int {
	n := len(f.seats)
	roster := f.live()
	for id, m := range f.nodes {
		p := placement.Sweep(f.view(id, roster))
		if !m.Draining && !m.Withdrawn {
			for _, g := range p.Groups {
				n -= min(g.Held, g.Room)
			}
		}
		for _, s := range f.seats {
			if has(m.stuck, s.Handle) {
				n--
			}
		}
	}
	return n
}

// rest runs at least so many rounds, and past the bound, and checks that nothing moves past bound.
func (f *fleet) rest(rounds int) {
	f.t.Helper()
	bound := f.bound()
	for r := range max(rounds, bound+3) {
		f.round()
		if f.acted && r >= bound {
			f.t.Fatalf("still moving in round %d; at rest was due in %d", r, bound)
		}
	}
	f.atRest()
}

// atRest checks that every seat some counted node may run is run by a node that
// matches it and is within its room, and every other by nobody.
func (f *fleet) atRest() {
	f.t.Helper()
	roster := f.live()
	for _, id := range f.ids() {
		p := placement.Sweep(f.view(id, roster))
		if len(p.Moved)+len(p.Decommissioned) > 0 {
			f.t.Errorf("%s runs %q, which it must not", id, slices.Concat(p.Moved, p.Decommissioned))
		}
		for _, g := range p.Groups {
			if g.Held > g.Room {
				f.t.Errorf("%s holds %d of %s, room %d", id, g.Held, g.Name, g.Room)
			}
		}
	}
	reader := f.view(f.ids()[0], roster)
	unplaceable := placement.Sweep(reader).Unplaceable
	for _, s := range f.seats {
		if nobody := has(unplaceable, s.Handle); nobody != (f.owner[s.Handle] == "") {
			f.t.Errorf("%s is unplaceable %t, and held by %q", s.Handle, nobody, f.owner[s.Handle])
		}
	}
}
