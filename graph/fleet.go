package graph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

type fleetResolver struct{ deps *Deps }

type nodeResolver struct{ deps *Deps }

// AsOf answers who answers.
func (q queryResolver) AsOf(ctx context.Context) (*model.AsOf, error) {
	return readingOf(ctx).asOf, nil
}

// Fleet answers the counts; the rest is read when asked for.
func (q queryResolver) Fleet(ctx context.Context) (*model.Fleet, error) {
	r := readingOf(ctx)
	known, err := r.roster()
	if err != nil {
		return nil, err
	}
	return &model.Fleet{
		AsOf: r.asOf, SeatCount: known.counts.Seats, HeldCount: known.counts.Held, LeaseTTL: q.deps.LeaseTTL,
	}, nil
}

// Node answers one node.
func (q queryResolver) Node(ctx context.Context, id string) (*model.Node, error) {
	if err := token("id", id); err != nil {
		return nil, err
	}
	r := readingOf(ctx)
	known, err := r.roster()
	if err != nil {
		return nil, err
	}
	return r.node(known, id), nil
}

// node is nil where the log has no presence under id.
func (r *reading) node(known roster, id string) *model.Node {
	i, found := slices.BinarySearchFunc(known.nodes, id, func(n projections.Node, id string) int {
		return strings.Compare(n.ID, id)
	})
	if !found {
		return nil
	}
	return nodeOf(known, known.nodes[i])
}

func nodeOf(known roster, n projections.Node) *model.Node {
	out := &model.Node{
		ID: n.ID, Incarnation: string(n.Holder.Owner), State: nodeState(known.lives[n.Holder.Owner], n),
		Roles: n.Roles, Labels: []*model.Label{}, Protocol: n.Holder.Protocol,
		Since: stamped(n.Holder.Since), SeatsHeld: &n.SeatsHeld, SeatsWithdrawn: n.Withdrawn, Epoch: n.Holder.Epoch,
	}
	if n.CompanyRevision > 0 {
		out.CompanyRevision = number(n.CompanyRevision)
	}
	if out.Roles == nil {
		out.Roles = []string{}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		out.Labels = append(out.Labels, &model.Label{Key: key, Value: n.Labels[key]})
	}
	return out
}

func nodeState(l Liveness, n projections.Node) model.NodeState {
	switch {
	case l == Lapsed:
		return model.NodeStateLapsed
	case l != Live:
		return model.NodeStateUnknown
	case n.Draining:
		return model.NodeStateDraining
	case n.Cordoned:
		return model.NodeStateCordoned
	case n.Withdrawn:
		return model.NodeStateWithdrawn
	default:
		return model.NodeStateReady
	}
}

// Nodes lists the nodes that are present.
func (f fleetResolver) Nodes(ctx context.Context, _ *model.Fleet) ([]*model.Node, error) {
	known, err := readingOf(ctx).roster()
	if err != nil {
		return nil, err
	}
	if len(known.nodes) > maxNodes {
		return nil, &model.Error{
			Code:    model.TooComplex,
			Message: fmt.Sprintf("the fleet has %d nodes, and at most %d are listed at once; ask for each with node(id)", len(known.nodes), maxNodes),
		}
	}
	nodes := make([]*model.Node, len(known.nodes))
	for i, n := range known.nodes {
		nodes[i] = nodeOf(known, n)
	}
	return nodes, nil
}

// Unplaceable lists the seats that nobody may run. While that rests on a node
// of which nobody can tell whether it lives, a list would be a guess.
func (f fleetResolver) Unplaceable(ctx context.Context, _ *model.Fleet) ([]string, error) {
	r := readingOf(ctx)
	known, err := r.roster()
	if err != nil {
		return nil, err
	}
	var seats []projections.Seat
	err = r.eachSeat(ctx, projections.SeatFilter{Listed: true}, "", projections.MaxPage, func(page []projections.Seat) (bool, error) {
		seats = append(seats, page...)
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	surely, maybe := known.unplaceable(seats)
	if len(maybe) > 0 {
		return nil, model.Unavailablef("%d seats may or may not be unplaceable: this node cannot tell yet whether the nodes live that could run them; ask again within a lease's time, or ask another node", len(maybe))
	}
	if surely == nil {
		surely = []string{}
	}
	return surely, nil
}

// PresenceExpiresAt reads the presence from the log.
func (n nodeResolver) PresenceExpiresAt(ctx context.Context, node *model.Node) (*time.Time, error) {
	at, err := n.deps.Leases.Expires(ctx, events.NodeLease(node.ID), node.Epoch)
	return stamped(at), err
}

// Seats lists what the node holds.
func (n nodeResolver) Seats(ctx context.Context, node *model.Node, first *int, after *string) (*model.SeatConnection, error) {
	size, err := pageSize(first, 100)
	if err != nil {
		return nil, err
	}
	page, err := readingOf(ctx).seats(ctx, seatQuery{rows: projections.SeatFilter{Node: node.ID}}, size, after)
	if err == nil {
		page.TotalCount = node.SeatsHeld
	}
	return page, err
}
