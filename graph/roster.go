package graph

import (
	"context"
	"slices"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/placement"
	"github.com/seat-tenure/tenure/projections"
)

// roster is who is there: the nodes that the log has a presence of, and whether
// they live. It is read once per request, so that one answer has one opinion.
type roster struct {
	nodes  []projections.Node // by id; all have a Holder
	lives  map[events.Incarnation]Liveness
	counts projections.Counts
}

func (r *reading) readRoster() (roster, error) {
	var known roster
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reader == nil {
		return known, r.failed
	}
	fleet, err := r.reader.Fleet()
	if err != nil {
		return known, err
	}
	known.counts, known.lives = fleet.Counts, map[events.Incarnation]Liveness{}
	for _, n := range fleet.Nodes {
		if n.Holder != nil { // else it took leave
			known.nodes = append(known.nodes, n)
			known.lives[n.Holder.Owner] = r.deps.Leases.Liveness(n.Holder.Owner)
		}
	}
	return known, nil
}

// liveness is whether an incarnation lives. One without a presence of its own,
// such as the one before a restart, is asked about by itself.
func (r *reading) liveness(known roster, owner events.Incarnation) Liveness {
	if l, present := known.lives[owner]; present {
		return l
	}
	return r.deps.Leases.Liveness(owner)
}

// nodeSeats is the role of nodes that run seats; a node without roles has all.
const nodeSeats = "seats"

// placing are the live nodes as placement counts them. Whoever may or may not
// live is counted when unknownLives.
func (known roster) placing(unknownLives bool) []placement.Node {
	var nodes []placement.Node
	for _, n := range known.nodes {
		live := known.lives[n.Holder.Owner]
		if live == Live || live == LivenessUnknown && unknownLives {
			nodes = append(nodes, placement.Node{
				ID: n.ID, Labels: n.Labels, Seats: len(n.Roles) == 0 || slices.Contains(n.Roles, nodeSeats),
				Draining: n.Draining || n.Cordoned, Withdrawn: n.Withdrawn,
				SeatsHeld: n.SeatsHeld,
			})
		}
	}
	return nodes
}

// unplaceable says which of the seats no live node may run, by the arithmetic
// that nodes place seats by (P9): surely are unplaceable whoever lives, maybe
// those for which it depends on nodes of which nobody can tell.
func (known roster) unplaceable(seats []projections.Seat) (surely, maybe []string) {
	view := placement.View{CompanyKnown: true, RosterKnown: true, Seats: placed(seats)}
	view.Nodes = known.placing(true)
	surely = placement.Sweep(view).Unplaceable
	if len(known.placing(false)) == len(view.Nodes) {
		return surely, nil
	}
	view.Nodes = known.placing(false)
	maybe = slices.DeleteFunc(placement.Sweep(view).Unplaceable, func(h string) bool {
		_, sure := slices.BinarySearch(surely, h)
		return sure
	})
	return surely, maybe
}

// heldState is what a seat of a live holder is.
func heldState(s projections.Seat) model.SeatState {
	if s.Handoff != nil && s.State() == projections.SeatHeld {
		switch events.HandoffStep(s.Handoff.Step) {
		case events.StepQuiesced, events.StepFlushed:
			return model.SeatStateReleasing
		default: // it serves yet, or serves already
		}
	}
	return model.SeatState(s.State())
}

// states tells what each of the seats is. The log alone does not say it: a
// holder that died is in the log until somebody takes its seat over.
func (r *reading) states(ctx context.Context, seats []projections.Seat) (map[string]model.SeatState, error) {
	states := make(map[string]model.SeatState, len(seats))
	var free []projections.Seat
	for _, s := range seats {
		switch {
		case s.Removed:
			states[s.Handle] = model.SeatStateRemoved
		case s.Holder == nil:
			free = append(free, s)
		default:
			known, err := r.roster()
			if err != nil {
				return nil, err
			}
			switch r.liveness(known, s.Holder.Owner) {
			case Live:
				states[s.Handle] = heldState(s)
			case Lapsed:
				free = append(free, s)
			default:
				states[s.Handle] = model.SeatStateUnknown
			}
		}
	}
	if len(free) == 0 {
		return states, nil
	}
	known, err := r.roster()
	if err != nil {
		return nil, err
	}
	for _, s := range free {
		states[s.Handle] = model.SeatStateUnowned
	}
	surely, maybe := known.unplaceable(free)
	for _, h := range surely {
		states[h] = model.SeatStateUnplaceable
	}
	for _, h := range maybe {
		states[h] = model.SeatStateUnknown
	}
	return states, context.Cause(ctx)
}
