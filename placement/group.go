package placement

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// group is a Group while it is being worked out.
type group struct {
	Group
	pin    string
	labels map[string]string
	seats  []string // handles, in the company's order
	mine   bool     // the planning node is counted and matches
}

// fleet is the company's groups over one reading of the live nodes.
type fleet struct {
	nodes  map[string]Node // by id
	groups []*group        // most constrained first
	of     map[string]*group
}

// survey sorts seats into groups and counts who matches each. A second seat of
// the same handle, or a second node of the same id, is not looked at.
func survey(seats []Seat, nodes []Node) *fleet {
	f := &fleet{nodes: make(map[string]Node, len(nodes)), of: make(map[string]*group, len(seats))}
	for _, n := range nodes {
		if _, twice := f.nodes[n.ID]; !twice {
			f.nodes[n.ID] = n
		}
	}
	byName := make(map[string]*group)
	for _, s := range seats {
		if _, twice := f.of[s.Handle]; twice {
			continue
		}
		name := groupName(s)
		g := byName[name]
		if g == nil {
			g = &group{Group: Group{Name: name}, pin: s.Node, labels: s.Labels}
			byName[name] = g
			f.groups = append(f.groups, g)
		}
		g.seats = append(g.seats, s.Handle)
		f.of[s.Handle] = g
	}
	counted := make([]Node, 0, len(f.nodes))
	for _, id := range f.ids() {
		if f.nodes[id].counted() {
			counted = append(counted, f.nodes[id])
		}
	}
	for _, g := range f.groups {
		for _, n := range counted {
			if g.matches(n) {
				g.Eligible = append(g.Eligible, n.ID)
			}
		}
		g.Size = len(g.seats)
		if n := len(g.Eligible); n > 0 {
			g.Share = (g.Size + n - 1) / n
		}
	}
	slices.SortFunc(f.groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(a.Eligible), len(b.Eligible)), strings.Compare(a.Name, b.Name))
	})
	return f
}

// counted says whether a live presence has a part in the shares (P13).
func (n Node) counted() bool { return n.Seats && !n.Draining && !n.Withdrawn }

// matches says whether the seats of g belong on n, counted or not.
func (g *group) matches(n Node) bool { return Seat{Node: g.pin, Labels: g.labels}.Fits(n) }

// Fits says whether the seat's placement names n (P3), whether or not n counts.
func (s Seat) Fits(n Node) bool {
	if s.Node != "" && s.Node != n.ID {
		return false
	}
	for k, v := range s.Labels {
		if have, ok := n.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

func (g *group) placeable() bool { return len(g.Eligible) > 0 }

// handOut gives id its room in each group. Stuck seats are charged first,
// wherever they sit; what is left of the node's shares goes to its most
// constrained groups first, so that a stuck seat costs the seats with the most
// other homes (P7).
func (f *fleet) handOut(id string, stuck int) {
	left := -stuck
	for _, g := range f.groups {
		_, g.mine = slices.BinarySearch(g.Eligible, id)
		if g.mine {
			left += g.Share
		}
	}
	for _, g := range f.groups {
		if g.mine {
			g.Room = min(g.Share, max(left, 0))
			left -= g.Room
		}
	}
}

// groupName is a placement as people write it. Equal names are equal
// placements: whatever could be mistaken for the syntax around it is quoted.
func groupName(s Seat) string {
	if s.Node == "" && len(s.Labels) == 0 {
		return "anywhere"
	}
	var terms []string
	if s.Node != "" {
		terms = append(terms, "node "+quoted(s.Node))
	}
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		terms = append(terms, quoted(k)+"="+quoted(s.Labels[k]))
	}
	return strings.Join(terms, ", ")
}

func quoted(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./", r)
	}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// ids are the live nodes, sorted.
func (f *fleet) ids() []string { return slices.Sorted(maps.Keys(f.nodes)) }
