package graph

import (
	"context"
	"strconv"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// Sagas lists sagas, newest first.
func (q queryResolver) Sagas(ctx context.Context, kind *model.SagaKind, open *bool, handle *string, first *int, after *string) (*model.SagaConnection, error) {
	size, err := pageSize(first, 50)
	if err != nil {
		return nil, err
	}
	f := projections.SagaFilter{Open: open}
	if kind != nil {
		f.Kind = projections.SagaKind(*kind)
	}
	if handle != nil {
		if err := token("handle", *handle); err != nil {
			return nil, err
		}
		f.Handle = *handle
	}
	before, err := positionBefore(cursorSaga, after)
	if err != nil {
		return nil, err
	}
	r := readingOf(ctx)
	var page projections.Page[projections.Saga]
	err = r.read(ctx, func(reader projections.Reader) (err error) {
		page, err = reader.Sagas(f, before, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &model.SagaConnection{AsOf: r.asOf, Edges: []*model.SagaEdge{}}
	var cursors []string
	for _, s := range page.Items {
		cursors = append(cursors, cursorOf(cursorSaga, strconv.FormatUint(s.Requested, 10)))
		out.Edges = append(out.Edges, &model.SagaEdge{Cursor: cursors[len(cursors)-1], Node: sagaOf(s)})
	}
	out.PageInfo = pageInfo(cursors, page.More, after)
	out.TotalCount = whole(len(out.Edges), page.More, after)
	return out, nil
}

func sagaOf(s projections.Saga) *model.Saga {
	out := &model.Saga{
		ID: s.ID, Kind: model.SagaKind(s.Kind), Step: string(s.Step), Handle: s.Handle,
		From: text(s.From.NodeID()), To: text(s.To.NodeID()), FromOwner: text(string(s.From)), ToOwner: text(string(s.To)),
		Reason: text(string(s.Reason)), By: text(s.By),
		StartedAt: s.RequestedAt, StartedPosition: model.Position(s.Requested), Cause: text(s.Cause),
	}
	if s.Open() {
		out.Deadline = deadline(s)
		return out
	}
	out.EndedAt, out.Outcome = stamped(s.LastAt), text(string(s.Outcome))
	if s.Kind == projections.SagaHandoff && s.Outcome == projections.SagaCompleted {
		dark := s.DarkFor.Duration()
		out.DarkFor = &dark
	}
	return out
}

// deadline is the wall clock's estimate of when an open saga's patience or grace is
// over, for people: the log clock and the observed absence decide.
func deadline(s projections.Saga) *time.Time {
	switch {
	case s.Deadline > 0:
		return stamped(s.LastAt.Add(s.Deadline.Duration()))
	case s.Kind == projections.SagaRetirement && s.Step == projections.SagaStep(events.RetireAbsent) && !s.RetiresAt.IsZero():
		return stamped(s.RetiresAt)
	default:
		return nil
	}
}
