package graph

import (
	"context"
	"strconv"

	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// Tenures lists tenures, newest claim first.
func (q queryResolver) Tenures(ctx context.Context, handle, node *string, first *int, after *string) (*model.TenureConnection, error) {
	size, err := pageSize(first, 50)
	if err != nil {
		return nil, err
	}
	var f projections.TenureFilter
	if handle != nil {
		if err := token("handle", *handle); err != nil {
			return nil, err
		}
		f.Handle = *handle
	}
	if node != nil {
		if err := token("node", *node); err != nil {
			return nil, err
		}
		f.Node = *node
	}
	return readingOf(ctx).tenures(ctx, f, size, after)
}

func (r *reading) tenures(ctx context.Context, f projections.TenureFilter, size int, cursor *string) (*model.TenureConnection, error) {
	before, err := positionBefore(cursorTenure, cursor)
	if err != nil {
		return nil, err
	}
	var page projections.Page[projections.Tenure]
	err = r.read(ctx, func(reader projections.Reader) (err error) {
		page, err = reader.Tenures(f, before, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &model.TenureConnection{AsOf: r.asOf, Edges: []*model.TenureEdge{}}
	var cursors []string
	for _, t := range page.Items {
		cursors = append(cursors, cursorOf(cursorTenure, strconv.FormatUint(t.Claimed, 10)))
		out.Edges = append(out.Edges, &model.TenureEdge{Cursor: cursors[len(cursors)-1], Node: tenureOf(t)})
	}
	out.PageInfo = pageInfo(cursors, page.More, cursor)
	out.TotalCount = whole(len(out.Edges), page.More, cursor)
	return out, nil
}

func tenureOf(t projections.Tenure) *model.Tenure {
	out := &model.Tenure{
		Handle: t.Handle, Epoch: model.Epoch(t.Epoch), Owner: string(t.Owner), NodeID: t.NodeID(),
		ClaimedAt: t.ClaimedAt, ClaimedPosition: model.Position(t.Claimed),
	}
	if e := t.Ended; e != nil {
		position, end := model.Position(e.Position), model.TenureEnd(e.End)
		out.EndedAt, out.EndedPosition, out.End, out.Reason = stamped(e.At), &position, &end, text(e.Reason)
	}
	return out
}
