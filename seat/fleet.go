package seat

import (
	"context"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/placement"
)

// Fleet is what a pass reads. All of it is hints: it orders what is tried, and
// decides nothing (design §3).
type Fleet interface {
	// Look returns what this node can see now. An error concludes nothing.
	Look(ctx context.Context) (Sight, error)
	// Offer reads what counts for taking one seat now.
	Offer(handle string) (Offer, error)
	// OlderNodes lists the presences at a lower protocol once the view has read up
	// to that position. An error leaves it unknown.
	OlderNodes(ctx context.Context, upTo uint64) ([]Older, error)
}

// Offer is one seat that a handoff offers to this node.
type Offer struct {
	Seat   placement.Seat
	Listed bool // the active company revision has it
	Behind bool // the view is not level with the log (P10)
}

// Sight is the fleet as one node sees it at one moment.
type Sight struct {
	Seats        []placement.Seat // the active company revision
	CompanyKnown bool
	Owners       map[string]Owner // by handle: tenures in force, removed seats too
	Presences    []Presence
	Behind       bool // the view is not level with the log (P10)
	// Older are the leases in force at a lower protocol than this build's, the
	// presences first (V1).
	Older []Older
}

// heldBy counts the company's seats by the process that the log says has them.
// The count moves with the claim and with the release themselves (P11).
func (s Sight) heldBy() map[events.Incarnation]int {
	count := map[events.Incarnation]int{}
	for _, seat := range s.Seats {
		if o := s.Owners[seat.Handle]; o.Held {
			count[o.Incarnation]++
		}
	}
	return count
}

// Owner is who has a seat's newest tenure.
type Owner struct {
	Incarnation events.Incarnation
	Preferred   string // of the newest claim, also after a release
	Held        bool
	// Never: no tenure of the seat is in the log, as far as the view has read it.
	Never bool
}

// Presence is a node's presence lease by its newest event.
type Presence struct {
	Owner events.Incarnation
	Last  uint64 // position of that event
	Facts events.NodeFacts
}

// live says whether a presence may still be good: only the log clock can tell
// that it is not, and unknown is not lapsed (L6).
func (h *Host) live(p Presence) bool {
	age, known := h.deps.LogClock.UnseenFor(p.Last)
	return !known || age < events.LapsesAfter(h.cfg.TTL)
}

// view turns what the node sees and what it holds into placement's terms.
func (h *Host) view(s Sight, earlier []placement.Node) placement.View {
	v := placement.View{
		Self: h.cfg.NodeID, Seats: s.Seats, CompanyKnown: s.CompanyKnown, RosterKnown: true,
		Nodes: []placement.Node{h.ownNode()}, Earlier: earlier, Behind: s.Behind,
		Preferred: map[string]string{}, Owner: map[string]string{}, Limits: h.cfg.Limits.ceiling(),
	}
	alive, heldBy := map[events.Incarnation]bool{h.deps.Self: true}, s.heldBy()
	for _, p := range s.Presences {
		if p.Owner.NodeID() == h.cfg.NodeID || !h.live(p) {
			continue
		}
		alive[p.Owner] = true
		v.Nodes = append(v.Nodes, placement.Node{
			ID: p.Owner.NodeID(), Labels: p.Facts.Labels, Seats: runsSeats(p.Facts.Roles),
			Draining: p.Facts.Draining || p.Facts.Cordoned, Withdrawn: p.Facts.Withdrawn,
			SeatsHeld: heldBy[p.Owner],
		})
	}
	for handle, o := range s.Owners {
		v.Preferred[handle] = o.Preferred
		if o.Held && alive[o.Incarnation] {
			v.Owner[handle] = o.Incarnation.NodeID()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v.Draining = h.draining || h.cordoned
	for _, handle := range h.handles() {
		delete(v.Owner, handle) // what it holds it knows better than any view
		switch h.held[handle].phase {
		case undead:
			v.Stuck = append(v.Stuck, handle) // charged first (P7)
		case acquiring, held:
			if _, going := h.runner.open(handle); !going {
				v.Held = append(v.Held, handle)
			}
		case leaving, flushed, letGo: // going already: given back once, and no room is kept for it
		}
	}
	return v
}

func (h *Host) ownNode() placement.Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	return placement.Node{
		ID: h.cfg.NodeID, Labels: h.cfg.Facts.Labels, Seats: h.cfg.RunsSeats, Draining: h.draining || h.cordoned,
		SeatsHeld: len(h.held),
	}
}

func runsSeats(roles []string) bool {
	for _, r := range roles {
		if r == RoleSeats {
			return true
		}
	}
	return len(roles) == 0
}

// RoleSeats is the role of nodes that run seats.
const RoleSeats = "seats"

// Limits bound a pass (P2, P4). Adaptive ones are floors: a pass goes on
// claiming beyond them while what it has done took less than half a sweep
// interval, and gives back up to maxReleases at once.
type Limits struct {
	Claim    int
	Release  int
	Adaptive bool
}

// What bounds an adaptive pass.
const (
	maxClaims = 512
	// maxReleases bounds what one pass begins to hand over; how many seats are
	// dark at once is maxDark's to say, so this may be high: 900 seats are to have
	// reached a node that joins within a minute, of which two passes go by until
	// all have seen it join.
	maxReleases = 128
)

// ceiling is what placement may plan for one pass.
func (l Limits) ceiling() placement.Limits {
	if l.Adaptive {
		return placement.Limits{Claim: max(maxClaims, l.Claim), Release: max(maxReleases, l.Release)}
	}
	return placement.Limits{Claim: l.Claim, Release: l.Release}
}

// mayClaim says whether a pass that has claimed n, in that time, may go on.
func (l Limits) mayClaim(n int, took, interval time.Duration) bool {
	return n < l.Claim || (l.Adaptive && took < interval/2)
}
