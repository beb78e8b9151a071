package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// mixed is n seats: most anywhere, some for a zone, some for two labels, a few
// pinned to one node.
func mixed(n int) []placement.Seat {
	seats := numbered("s", n)
	for i := range seats {
		switch {
		case i%11 == 3:
			seats[i].Labels = map[string]string{"zone": fmt.Sprint(i % 3)}
		case i%11 == 5:
			seats[i].Labels = map[string]string{"gpu": "yes"}
		case i%23 == 7:
			seats[i].Labels = map[string]string{"gpu": "yes", "zone": "1"}
		case i%29 == 9:
			seats[i].Node = fmt.Sprintf("n%d", i%7)
		}
	}
	return seats
}

// zoned is the i-th node: zones in turn, every fourth with a gpu.
func zoned(i int) placement.Node {
	n := node(fmt.Sprintf("n%d", i), "zone", fmt.Sprint(i%3))
	if i%4 == 1 {
		n.Labels["gpu"] = "yes"
	}
	return n
}

// P9: from small fleets to a thousand seats on fifty nodes, with joins and leaves
// by the dozen, a drain and late reads: at rest within the bound, every placeable
// seat run, no seat moved more often than the membership changed.
func TestP9FleetsOfEverySizeConverge(t *testing.T) {
	for _, size := range []struct{ seats, nodes int }{{7, 3}, {50, 7}, {200, 20}, {1000, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size.seats, size.nodes), func(t *testing.T) {
			f := newFleet(t, uint64(size.seats), 0.1, mixed(size.seats))
			half, few := (size.nodes+1)/2, max(1, size.nodes/10)
			for i := range half {
				f.join(zoned(i))
			}
			f.settle(0, half)
			for i := half; i < size.nodes; i++ {
				f.join(zoned(i))
			}
			f.settle(0, size.nodes-half) // scaled out: claiming alone would move nothing (P4)
			for i := range few {
				f.leave(fmt.Sprintf("n%d", i))
			}
			f.settle(0, few)
			last := f.nodes[fmt.Sprintf("n%d", size.nodes-1)]
			last.Draining = true
			f.settle(0, 1)
			if len(last.held) != 0 {
				t.Errorf("the drained node still holds %q", last.held)
			}
		})
	}
}

// change does one random thing to the membership; fresh numbers a node that joins.
func (f *fleet) change(rng *rand.Rand, fresh int) {
	ids := f.ids()
	m := f.nodes[ids[rng.IntN(len(ids))]]
	switch rng.IntN(6) {
	case 0:
		if len(ids) > 1 {
			f.leave(m.ID)
		}
	case 1:
		m.Labels = map[string]string{"zone": fmt.Sprint(rng.IntN(3)), "gpu": []string{"yes", "no"}[rng.IntN(2)]}
	case 2:
		m.Withdrawn = !m.Withdrawn
	case 3:
		m.Draining = !m.Draining // or cordoned, and uncordoned again
	default:
		if len(ids) < 9 {
			f.join(zoned(fresh))
		}
	}
}

// Random fleets under random changes, several at once and in the middle of
// convergence: joins, leaves, labels, withdrawals, drains, nodes that are behind
// for a while. Once the changes stop the fleet comes to rest within the bound,
// and no seat moved more often than the membership changed.
func TestP9RandomChangesNeverLeaveAFleetSwinging(t *testing.T) {
	for seed := range uint64(rounds(150, 5000)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			f := newFleet(t, seed, 0.3*rng.Float64(), mixed(1+rng.IntN(30)))
			f.join(zoned(0))
			f.settle(0, 1)
			fresh := 0
			for range 1 + rng.IntN(4) {
				changes := 0
				clear(f.claims)
				for range 1 + rng.IntN(8) {
					for range rng.IntN(3) {
						fresh++
						changes++
						f.change(rng, fresh)
					}
					for _, id := range f.ids() {
						f.nodes[id].behind = rng.IntN(10) == 0
					}
					f.round()
				}
				for _, m := range f.nodes {
					m.behind = false
				}
				f.rest(0)
				for h, n := range f.claims {
					if n > changes {
						t.Errorf("%s was claimed %d times in %d membership changes", h, n, changes)
					}
				}
			}
		})
	}
}

// P5, P7: a seat added, removed or placed elsewhere by a config apply moves only
// what it must, and so do seats that get stuck and come free again.
func TestP5FleetFollowsTheCompany(t *testing.T) {
	f := newFleet(t, 5, 0.1, mixed(40))
	for i := range 4 {
		f.join(zoned(i))
	}
	f.settle(0, 4)

	f.seats = append(f.seats, numbered("new", 10)...)
	f.settle(0, 1)
	f.seats = slices.Delete(f.seats, 0, 20)
	f.settle(0, 1)
	f.seats[len(f.seats)-1].Node = "n2"
	f.settle(0, 1)
	if got := f.owner[f.seats[len(f.seats)-1].Handle]; got != "n2" {
		t.Errorf("the seat pinned to n2 is on %q", got)
	}

	// Stuck seats of the least constrained group: their charge falls on that
	// group, and the peers' shares cover the rest.
	m := f.nodes["n0"]
	before := slices.Clone(m.held)
	for _, s := range f.seats {
		if has(before, s.Handle) && s.Node == "" && s.Labels == nil && len(m.stuck) < 2 {
			m.stuck = append(m.stuck, s.Handle)
		}
	}
	m.held = slices.DeleteFunc(m.held, func(h string) bool { return has(m.stuck, h) })
	f.settle(0, 1)
	if len(m.held) != len(before)-2 {
		t.Errorf("n0 runs %d seats beside two stuck ones, %d before", len(m.held), len(before))
	}
	for _, h := range m.stuck {
		delete(f.owner, h)
	}
	m.stuck = nil
	f.settle(0, 1)
}
