package placement

// Plan is what a node should do in one pass.
//
// Decommissioned and Moved are given back at once and do not count against the
// release limit: nobody may run the one, and this node may not run the other.
// A drain and an unserviceable node give back every seat on their own path;
// a Plan then adds no rebalancing to it.
type Plan struct {
	Claim   []string // candidates, in the order to try; Claims enforces limit and room
	Release []string // excess to give back, least constrained group first (P4)

	Decommissioned []string // held, but no longer in the company (R1)
	Moved          []string // held, but the seat's placement does not match this node

	// Unplaceable are the company's seats that no counted node may run (P9),
	// sorted.
	Unplaceable []string

	// Groups are all groups, most constrained first.
	Groups []Group

	Held      int    // seats this node runs, stuck ones not among them
	Capacity  int    // seats it may run: the sum of its groups' Room (P14)
	SeatsHeld int    // leases that this node has on placeable seats (P11)
	Full      bool   // the counts cover every placeable seat: fleet_full (P11)
	WhyNone   Reason // why Claim is empty; empty when it is not

	claimGroup map[string]int // candidate → index in Groups
	limit      int
}

// Group is the seats that share one placement, and what they mean for the node
// that plans.
type Group struct {
	Name     string   // the placement, as people write it; equal names are equal placements
	Size     int      // seats in it
	Eligible []string // counted nodes that match it, sorted; none: unplaceable
	Share    int      // ceil(Size / Eligible), for each of them; 0 when there is none
	Room     int      // what this node may run of it: Share less what stuck seats cost it (P7)
	Held     int      // what this node runs of it
}

// Reason says why a pass tries no claim.
type Reason string

// Why nothing is tried, in the order in which they are checked.
const (
	CompanyUnknown Reason = "company_unknown"
	RosterUnknown  Reason = "roster_unknown" // the live nodes could not be read (P11)
	Draining       Reason = "draining"       // P6
	Withdrawn      Reason = "withdrawn"      // P8
	NotPlacing     Reason = "not_placing"    // no live presence of its own that runs seats (P13)
	Behind         Reason = "behind"         // seat_claims_withheld (P10)
	FleetFull      Reason = "fleet_full"     // P11
	NoRoom         Reason = "no_room"        // at its share of every group it matches
	NothingToTry   Reason = "nothing_to_try" // room, but every seat there is already here
)
