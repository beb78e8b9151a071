package graph

import (
	"context"

	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// HolderAt answers who held a seat at an instant, by the log's order alone.
func (q queryResolver) HolderAt(ctx context.Context, handle string, at model.PointInTime) (*model.Tenure, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	var instant projections.PointInTime
	switch {
	case (at.Time == nil) == (at.Position == nil):
		return nil, model.Badf("at", "write either time or position")
	case at.Time != nil:
		instant = projections.AtTime(*at.Time)
	default:
		instant = projections.AtPosition(uint64(*at.Position))
	}
	var held projections.Holding
	err := readingOf(ctx).read(ctx, func(reader projections.Reader) (err error) {
		held, err = reader.HolderAt(handle, instant)
		return err
	})
	if err != nil || held.Tenure == nil {
		return nil, err
	}
	return tenureOf(*held.Tenure), nil
}
