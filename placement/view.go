package placement

import "slices"

// Seat is a seat of the company and where it may run: on the node it is pinned
// to, on nodes that carry all of Labels, or, with neither, anywhere. With both,
// both must hold.
type Seat struct {
	Handle string
	Node   string
	Labels map[string]string
}

// Node is one live presence (P1). A node whose presence lapsed or was released
// is not listed.
type Node struct {
	ID        string
	Labels    map[string]string
	Seats     bool // it runs seats
	Draining  bool // or cordoned: claims nothing, keeps what it holds, is not counted (P13)
	Withdrawn bool // its presence says seats_withdrawn (P8)

	// SeatsHeld is how many seats it has leases of (P11); 0 where nobody can tell.
	SeatsHeld int
}

// Limits bound one pass. They are given, not computed: the adaptive limits need
// measurements, and LimitFloor is their floor (P2).
type Limits struct {
	Claim   int // successful claims
	Release int // seats given back to rebalance
}

// LimitFloor is the fixed limits, and the least the adaptive ones may be (P2, P4).
var LimitFloor = Limits{Claim: 4, Release: 2}

// View is what one node knows at the start of a pass.
type View struct {
	// Self is the id of the node that plans. A reader that only asks what is
	// placeable leaves it empty.
	Self string

	// Seats is the whole company. CompanyKnown is false until the node has one;
	// without it no seat reads as decommissioned.
	Seats        []Seat
	CompanyKnown bool

	// Nodes are the live presences, Self among them. Self's entry is what the
	// node knows of itself, never what it read: a node must not judge its own
	// labels by an old copy. RosterKnown is false when they could not be read.
	Nodes       []Node
	RosterKnown bool

	// Earlier are the presences as read at least one sweep interval before, nil
	// when there was no such pass. A seat is given back only if it was already
	// too many then: by now every peer whose read is no older than one sweep
	// has seen the join that made it so, and none of them takes the seat on a
	// share that is already out of date (case 11).
	Earlier []Node

	Held  []string // seats this node runs
	Stuck []string // seats whose teardown it could not prove; it wins over Held

	Preferred map[string]string // handle → node id of the last claim
	// Owner is a hint: handle → node id whose lease looks live. Absent or empty
	// when the seat was released or its lease has lapsed, as far as is known.
	Owner map[string]string

	// What this node knows of itself before its presence says so. Any one stops
	// claiming (P6, P8, P10); the first two also stop it from being counted.
	Draining, Withdrawn bool
	Behind              bool

	Limits Limits
}

// Without is the view as if those nodes had left and their seats were free.
func (v View) Without(ids ...string) View {
	v.Nodes = slices.DeleteFunc(slices.Clone(v.Nodes), func(n Node) bool { return slices.Contains(ids, n.ID) })
	owner := make(map[string]string, len(v.Owner))
	for handle, id := range v.Owner {
		if !slices.Contains(ids, id) {
			owner[handle] = id
		}
	}
	v.Owner = owner
	if slices.Contains(ids, v.Self) {
		v.Held, v.Stuck = nil, nil
	}
	return v
}
