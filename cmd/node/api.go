package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/turn"
)

// apiDeps is what the API of this node stands on.
func (n *node) apiDeps() graph.Deps {
	return graph.Deps{
		Node: n.cfg.Node.ID, Self: n.self, LeaseTTL: n.store.LeaseTTL(), Subjects: n.store.Subjects(),
		Views: apiViews{n.views}, Leases: apiLeases{n}, Company: apiCompany{n.roster, n}, Mail: n.shell, Inboxes: inboxes{n},
		Completions: apiCompletions{n.views}, Host: n.host, Readiness: n, Events: apiEvents{n}, Operator: n.operator, Mailboxes: mailboxes{n}, Tokens: n.tokens, Log: n.log,
	}
}

type apiViews struct{ store *badgerstore.Store }

func (v apiViews) View(_ context.Context, fn func(projections.Reader) error) error {
	return v.store.View(func(r projections.View) error { return fn(r) })
}

func (v apiViews) Copy(st events.Stream) projections.Copy { return v.store.Copy(st) }

type apiCompletions struct{ store *badgerstore.Store }

func (c apiCompletions) Await(ctx context.Context, handle, eventID string) (projections.Completion, error) {
	return c.store.AwaitCompletion(ctx, handle, eventID)
}

// apiLeases answers from the log what views do not keep.
type apiLeases struct{ n *node }

// Liveness judges a presence by its newest event, as a pass does.
func (l apiLeases) Liveness(owner events.Incarnation) graph.Liveness {
	_, here := l.n.host.Presence()
	if here && owner == l.n.self {
		return graph.Live
	}
	last, known := l.n.host.Seen(owner)
	if !known {
		return graph.LivenessUnknown
	}
	age, known := l.n.logClock.UnseenFor(last)
	switch {
	case !known:
		return graph.LivenessUnknown
	case age < events.LapsesAfter(l.n.store.LeaseTTL()):
		return graph.Live
	case !here: // cut off itself, it hears of nobody, whoever renews (L8)
		return graph.LivenessUnknown
	}
	return graph.Lapsed
}

// Expires is the broker's stamp of the family's newest event plus the TTL: for
// people (L6).
func (l apiLeases) Expires(ctx context.Context, lease events.Lease, epoch uint64) (time.Time, error) {
	msg, err := l.n.store.Stream(events.StreamFleet).Last(ctx, l.n.store.Subjects().Family(lease))
	if err != nil {
		return time.Time{}, err
	}
	r, err := events.Decode(l.n.store.Subjects(), msg)
	if err != nil {
		return time.Time{}, err
	}
	now := aggregates.EvolveLease(aggregates.Lease{}, r.Seq, r.Event)
	if now.Status == aggregates.LeaseFree || now.Epoch != epoch {
		return time.Time{}, nil
	}
	return msg.At.Add(l.n.store.LeaseTTL()), nil
}

type apiEvents struct{ n *node }

func (e apiEvents) Bounds(ctx context.Context, st events.Stream) (graph.Bounds, error) {
	info, err := e.n.store.Stream(st).Info(ctx)
	return graph.Bounds{CreatedAt: info.CreatedAt, First: info.First, Last: info.Last}, err
}

func (e apiEvents) Follow(ctx context.Context, st events.Stream, from uint64, fn func([]events.Message, bool) error) error {
	return e.n.store.Stream(st).Follow(ctx, from, nil, fn)
}

// Company implements graph.Company.
func (r *roster) Company(context.Context) (company.Company, bool, error) {
	c, known := r.current()
	return c, known, nil
}

// seatMail is the `send` tool's way out: addressed by the company, never by the
// seats that run here.
type seatMail struct{ n *node }

// Send implements turn.Sender.
func (m seatMail) Send(ctx context.Context, mail events.Mail) error {
	if err := m.n.roster.addressable(mail.Handle); err != nil {
		return &turn.RefusedError{Tool: turn.ToolSend, Err: err}
	}
	_, err := m.n.shell.Send(ctx, mail)
	return err
}

// seatStatus answers the `seat_status` tool from the read model.
type seatStatus struct{ store *badgerstore.Store }

// SeatStatus implements turn.Status.
func (s seatStatus) SeatStatus(_ context.Context, handle string) (json.RawMessage, error) {
	var status struct {
		Seat   string `json:"seat"`
		State  string `json:"state"`
		Title  string `json:"title,omitempty"`
		Holder string `json:"holder,omitempty"`
		Epoch  uint64 `json:"epoch,omitempty"`
	}
	err := s.store.View(func(v projections.View) error {
		seat, found, err := v.Seat(handle)
		if err != nil {
			return err
		}
		if !found {
			return &turn.RefusedError{Tool: turn.ToolSeatStatus, Err: fmt.Errorf("there is no seat %q", handle)}
		}
		status.Seat, status.State, status.Title = handle, string(seat.State()), seat.Title
		if seat.Holder != nil {
			status.Holder, status.Epoch = seat.Holder.NodeID(), seat.Holder.Epoch
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(status)
}
