package placement

import (
	"cmp"
	"slices"
	"strings"
)

// How a node stands to a seat it might claim, best first.
const (
	preferredHere  = iota // it ran here last (P3)
	preferredByNo         // nobody eligible ran it last
	preferredThere        // an eligible peer ran it last and will try it first
)

// candidate is a seat with what orders it among others of its group.
type candidate struct {
	handle string
	class  int
	rank   int // how many eligible nodes stand before this one for the seat
	score  uint64
}

// order sorts handles, all of g, as node self should try them. Each seat ranks
// its eligible nodes by a hash of both names, and a node tries first the seats
// that rank it first: nodes that see the same facts then start at different
// seats, and seldom race for one.
func (g *group) order(self string, handles []string, preferred map[string]string) []string {
	own := hash(self)
	rivals := make([]uint64, 0, len(g.Eligible))
	for _, id := range g.Eligible {
		if id != self {
			rivals = append(rivals, hash(id))
		}
	}
	cs := make([]candidate, len(handles))
	for i, h := range handles {
		seat := hash(h)
		c := candidate{handle: h, class: g.class(self, preferred[h]), score: mix(own, seat)}
		for _, rival := range rivals {
			if mix(rival, seat) > c.score {
				c.rank++
			}
		}
		cs[i] = c
	}
	slices.SortFunc(cs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.rank, b.rank),
			cmp.Compare(b.score, a.score), strings.Compare(a.handle, b.handle))
	})
	sorted := make([]string, len(cs))
	for i, c := range cs {
		sorted[i] = c.handle
	}
	return sorted
}

func (g *group) class(self, last string) int {
	if last == self {
		return preferredHere
	}
	if _, ok := slices.BinarySearch(g.Eligible, last); ok {
		return preferredThere
	}
	return preferredByNo
}

// hash is FNV-1a: the same in every process and build, and without allocation.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix spreads a pair of hashes over all bits (the finalizer of splitmix64).
func mix(node, seat uint64) uint64 {
	z := node*0x9e3779b97f4a7c15 + seat
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
