package graph

import (
	"context"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

type seatResolver struct{ deps *Deps }

// Seat answers one seat.
func (q queryResolver) Seat(ctx context.Context, handle string) (*model.Seat, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	r := readingOf(ctx)
	var s projections.Seat
	var found bool
	err := r.read(ctx, func(reader projections.Reader) (err error) {
		s, found, err = reader.Seat(handle)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	states, err := r.states(ctx, []projections.Seat{s})
	if err != nil {
		return nil, err
	}
	return seatOf(s, states[handle], 1), nil
}

func seatOf(s projections.Seat, state model.SeatState, listed int) *model.Seat {
	out := &model.Seat{Handle: s.Handle, AgentID: s.AgentID, Title: text(s.Title), State: state, Listed: listed}
	if h := s.Holder; h != nil {
		epoch := model.Epoch(h.Epoch)
		out.Owner, out.Epoch, out.Since, out.Preferred = text(string(h.Owner)), &epoch, stamped(h.Since), text(h.Preferred)
		out.Holder = h.Owner
	}
	if p := s.Paused; p != nil {
		out.Paused, out.Pause = true, &model.Pause{By: p.By, Reason: p.Reason, Since: stamped(p.Since), StopTurn: p.StopTurn}
	}
	if s.Unproven != nil {
		out.Unproven = &s.Unproven.Since
	}
	if s.Handoff != nil {
		out.Handoff = sagaOf(*s.Handoff)
	}
	return out
}

// Seats lists seats by handle.
func (q queryResolver) Seats(ctx context.Context, filter *model.SeatFilter, first *int, after *string) (*model.SeatConnection, error) {
	size, err := pageSize(first, 50)
	if err != nil {
		return nil, err
	}
	query, err := seatQueryOf(filter)
	if err != nil {
		return nil, err
	}
	return readingOf(ctx).seats(ctx, query, size, after)
}

// seatQuery is what rows are read, and which of them are wanted.
type seatQuery struct {
	rows  projections.SeatFilter
	state model.SeatState // "" for any
}

func seatQueryOf(filter *model.SeatFilter) (seatQuery, error) {
	var q seatQuery
	if filter == nil {
		return q, nil
	}
	if filter.Node != nil {
		if err := token("filter.node", *filter.Node); err != nil {
			return q, err
		}
		q.rows.Node = *filter.Node
	}
	if filter.HandlePrefix != nil && *filter.HandlePrefix != "" {
		if err := token("filter.handlePrefix", *filter.HandlePrefix); err != nil {
			return q, err
		}
		q.rows.HandlePrefix = *filter.HandlePrefix
	}
	if filter.State == nil {
		return q, nil
	}
	// The rows know what the log says; what a seat is takes more (see states).
	// The five below can only come from the same state of the row.
	switch q.state = *filter.State; q.state {
	case model.SeatStateHeld, model.SeatStateEstablishing, model.SeatStateUnproven, model.SeatStateRemoved:
		q.rows.State = projections.SeatState(q.state)
	case model.SeatStateReleasing:
		q.rows.State = projections.SeatHeld
	default: // any row may be one
	}
	return q, nil
}

// eachSeat hands over seats by handle, so many rows at a time.
func (r *reading) eachSeat(ctx context.Context, f projections.SeatFilter, after string, rows int, fn func([]projections.Seat) (more bool, err error)) error {
	for {
		var page projections.Page[projections.Seat]
		err := r.read(ctx, func(reader projections.Reader) (err error) {
			page, err = reader.Seats(f, after, rows)
			return err
		})
		if err != nil {
			return err
		}
		if more, err := fn(page.Items); err != nil || !more || !page.More {
			return err
		}
		after = page.Items[len(page.Items)-1].Handle
	}
}

// seats reads one page. It walks over the rows that are not wanted, at most the
// whole company and what was removed from it.
func (r *reading) seats(ctx context.Context, q seatQuery, size int, cursor *string) (*model.SeatConnection, error) {
	after, err := handleAfter(cursorSeat, cursor)
	if err != nil {
		return nil, err
	}
	out := &model.SeatConnection{AsOf: r.asOf, Edges: []*model.SeatEdge{}}
	var cursors []string
	more, step := false, projections.MaxPage
	if q.state == "" {
		step = size + 1 // every row is one of the page, and one tells whether there are more
	}
	err = r.eachSeat(ctx, q.rows, after, step, func(rows []projections.Seat) (bool, error) {
		states, err := r.states(ctx, rows)
		if err != nil {
			return false, err
		}
		for _, s := range rows {
			state := states[s.Handle]
			if q.state != "" && state != q.state {
				continue
			}
			if more = len(out.Edges) == size; more {
				return false, nil
			}
			cursors = append(cursors, cursorOf(cursorSeat, s.Handle))
			out.Edges = append(out.Edges, &model.SeatEdge{Cursor: cursors[len(cursors)-1], Node: seatOf(s, state, 0)})
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	for _, e := range out.Edges {
		e.Node.Listed = len(out.Edges)
	}
	out.PageInfo = pageInfo(cursors, more, cursor)
	out.TotalCount = whole(len(out.Edges), more, cursor)
	return out, nil
}

// Holder is the node that holds the seat. After a restart its presence is of a
// newer incarnation than the seat's owner, which is then dead.
func (s seatResolver) Holder(ctx context.Context, seat *model.Seat) (*model.Node, error) {
	if seat.Holder == "" {
		return nil, nil
	}
	r := readingOf(ctx)
	known, err := r.roster()
	if err != nil {
		return nil, err
	}
	return r.node(known, seat.Holder.NodeID()), nil
}

// ExpiresAt reads the lease from the log, unless the list is long.
func (s seatResolver) ExpiresAt(ctx context.Context, seat *model.Seat) (*time.Time, error) {
	if seat.Holder == "" || seat.Listed > maxExpiryReads {
		return nil, nil
	}
	at, err := s.deps.Leases.Expires(ctx, events.SeatLease(seat.Handle), uint64(*seat.Epoch))
	return stamped(at), err
}

// UnprovenSeconds asks this node's own host of what it holds (O3), and the log
// of what others hold.
func (s seatResolver) UnprovenSeconds(_ context.Context, seat *model.Seat) (*int, error) {
	age, stranded := s.deps.Host.Unproven()[seat.Handle]
	switch {
	case stranded:
	case seat.Unproven == nil || seat.Holder == s.deps.Self:
		return nil, nil
	default:
		age = s.deps.Now().Sub(*seat.Unproven)
	}
	seconds := max(int(age.Seconds()), 0)
	return &seconds, nil
}

// Tenures lists the seat's past.
func (s seatResolver) Tenures(ctx context.Context, seat *model.Seat, first *int, after *string) (*model.TenureConnection, error) {
	size, err := pageSize(first, 20)
	if err != nil {
		return nil, err
	}
	return readingOf(ctx).tenures(ctx, projections.TenureFilter{Handle: seat.Handle}, size, after)
}
