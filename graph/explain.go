package graph

import (
	"context"
	"slices"

	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/placement"
	"github.com/seat-tenure/tenure/projections"
)

// ExplainPlacement judges one seat by the arithmetic that nodes place seats by.
func (q queryResolver) ExplainPlacement(ctx context.Context, handle string, without []string) (*model.PlacementExplanation, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	if len(without) > maxNodes {
		return nil, model.Badf("without", "at most %d nodes can be taken away at once", maxNodes)
	}
	r := readingOf(ctx)
	var seat projections.Seat
	var found, company bool
	err := r.read(ctx, func(reader projections.Reader) (err error) {
		for _, id := range without {
			if err = departing(reader, id); err != nil {
				return err
			}
		}
		if _, company, err = reader.Company(); err != nil {
			return err
		}
		seat, found, err = reader.Seat(handle)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	known, err := r.roster()
	if err != nil {
		return nil, err
	}
	seats, err := r.allSeats(ctx)
	if err != nil {
		return nil, err
	}
	x := placement.Explain(r.placementView(known, seats, seat, company, true).Without(without...), handle)
	y := placement.Explain(r.placementView(known, seats, seat, company, false).Without(without...), handle)
	if x.Verdict != y.Verdict || !slices.Equal(x.Eligible, y.Eligible) {
		// It depends on nodes of which nobody can tell whether they live.
		v := r.placementView(known, seats, seat, company, true)
		v.RosterKnown = false
		x = placement.Explain(v, handle)
	}
	if x.Verdict == placement.SeatFree && seat.Ended != nil && seat.Ended.End == projections.EndFenced {
		// Placement knows no holder, and the lease may not be free yet (L6).
		x.Why += "; its last tenure was fenced, so not before its holder gives it back or that tenure's time is over"
	}
	out := &model.PlacementExplanation{
		Handle: x.Handle, Verdict: string(x.Verdict), Holder: text(x.Holder), Group: x.Group,
		Eligible: x.Eligible, Rules: x.Rules, Why: x.Why,
	}
	if out.Eligible == nil {
		out.Eligible = []string{}
	}
	return out, nil
}

// departing refuses a name that the log has no presence of: a fleet without it
// is the fleet, which would read as "nothing would happen".
func departing(reader projections.Reader, id string) error {
	if err := token("without", id); err != nil {
		return err
	}
	_, found, err := reader.Node(id)
	if err == nil && !found {
		err = model.Badf("without", "the log has never had a node %q", id)
	}
	return err
}

func (r *reading) allSeats(ctx context.Context) ([]projections.Seat, error) {
	var seats []projections.Seat
	err := r.eachSeat(ctx, projections.SeatFilter{}, "", projections.MaxPage, func(page []projections.Seat) (bool, error) {
		seats = append(seats, page...)
		return true, nil
	})
	return seats, err
}

// placementView is the fleet as the seat's holder would plan with it: a teardown
// that fails is charged where it sits (P7). A node of which nobody can tell
// whether it lives counts, and holds, when unknownLives.
func (r *reading) placementView(known roster, seats []projections.Seat, of projections.Seat, company, unknownLives bool) placement.View {
	v := placement.View{
		Seats: placed(seats), CompanyKnown: company, RosterKnown: true,
		Nodes: known.placing(unknownLives), Owner: map[string]string{},
	}
	if of.Holder != nil {
		v.Self = of.Holder.NodeID()
	}
	for _, s := range seats {
		if s.Holder == nil {
			continue
		}
		node := s.Holder.NodeID()
		switch l := r.liveness(known, s.Holder.Owner); {
		case l == Lapsed && s.Handle != of.Handle, l == LivenessUnknown && !unknownLives && s.Handle != of.Handle:
			// free for all that anybody can tell
		case node == v.Self && s.Unproven != nil && l != Lapsed:
			v.Stuck = append(v.Stuck, s.Handle)
		default:
			v.Owner[s.Handle] = node
		}
	}
	return v
}

func placed(seats []projections.Seat) []placement.Seat {
	var out []placement.Seat
	for _, s := range seats {
		if s.Listed() {
			out = append(out, placement.Seat{Handle: s.Handle, Node: s.Node, Labels: s.Labels})
		}
	}
	return out
}
