package graph

import "github.com/seat-tenure/tenure/graph/generated"

// resolver answers every field that is more than its parent's value.
type resolver struct {
	deps      *Deps
	code      coder
	waiters   gate
	operators gate
}

type (
	queryResolver    struct{ *resolver }
	mutationResolver struct{ *resolver }
)

var _ generated.ResolverRoot = (*resolver)(nil)

func (r *resolver) CompanyRevision() generated.CompanyRevisionResolver {
	return revisionResolver{r.deps}
}
func (r *resolver) Fleet() generated.FleetResolver       { return fleetResolver{r.deps} }
func (r *resolver) Mutation() generated.MutationResolver { return mutationResolver{r} }
func (r *resolver) Node() generated.NodeResolver         { return nodeResolver{r.deps} }
func (r *resolver) Query() generated.QueryResolver       { return queryResolver{r} }
func (r *resolver) Seat() generated.SeatResolver         { return seatResolver{r.deps} }
