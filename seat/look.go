package seat

import (
	"context"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/placement"
	"github.com/seat-tenure/tenure/projections"
)

// View runs fn on the node's read model at one instant.
type View func(fn func(projections.Reader) error) error

// Sighting reads what a pass needs from the node's read model, and the live
// presences from the log. *Sighting is the product's Fleet.
type Sighting struct {
	View View
	// Presences returns the newest message of both subjects of every presence:
	// a hint that may come from any replica.
	Presences func(ctx context.Context) ([]events.Message, error)
	Subjects  events.Subjects
	Behind    func() bool
	// Converged says whether this node runs the revision of the company that the
	// view has; nil: it always does. Of one that it could not take up it knows
	// nothing, and so judges no seat by it (R5).
	Converged func() bool
	// Reached returns once the read model has FLEET up to that position.
	Reached func(ctx context.Context, position uint64) error
	// Protocol is this build's; what is lower is older (V1).
	Protocol int
}

// Look implements Fleet.
func (s *Sighting) Look(ctx context.Context) (Sight, error) {
	sight := Sight{Owners: map[string]Owner{}, Behind: s.Behind()}
	converged := s.Converged == nil || s.Converged()
	err := s.View(func(r projections.Reader) error {
		_, known, err := r.Company()
		if err != nil {
			return err
		}
		sight.CompanyKnown = known && converged
		registered, err := registered(r)
		if err != nil {
			return err
		}
		if sight.Older, err = olderNodes(r, s.Protocol); err != nil {
			return err
		}
		return eachSeat(r, func(seat projections.Seat) {
			if seat.Listed() && registered[seat.Handle] { // no mailbox, no seat to run yet (R2)
				sight.Seats = append(sight.Seats, placed(seat))
			}
			sight.Older = appendOlder(sight.Older, s.Protocol, events.SeatLease(seat.Handle), seat.Holder)
			o := Owner{Preferred: seat.Preferred, Never: seat.Epoch == 0}
			if seat.Holder != nil {
				o.Incarnation, o.Held = seat.Holder.Owner, true
			}
			sight.Owners[seat.Handle] = o
		})
	})
	if err != nil {
		return Sight{}, err
	}
	sight.Presences, err = s.presences(ctx)
	return sight, err
}

func placed(s projections.Seat) placement.Seat {
	return placement.Seat{Handle: s.Handle, Node: s.Node, Labels: s.Labels}
}

// Offer implements Fleet.
func (s *Sighting) Offer(handle string) (Offer, error) {
	o := Offer{Behind: s.Behind()}
	err := s.View(func(r projections.Reader) error {
		seat, _, err := r.Seat(handle)
		o.Seat, o.Listed = placed(seat), seat.Listed()
		return err
	})
	return o, err
}

// OlderNodes implements Fleet.
func (s *Sighting) OlderNodes(ctx context.Context, upTo uint64) (older []Older, err error) {
	if err := s.Reached(ctx, upTo); err != nil {
		return nil, err
	}
	err = s.View(func(r projections.Reader) error {
		older, err = olderNodes(r, s.Protocol)
		return err
	})
	return older, err
}

// OlderLeases lists the presences and then the seats' leases that a view has at a
// lower protocol (V1).
func OlderLeases(r projections.Reader, protocol int) ([]Older, error) {
	older, err := olderNodes(r, protocol)
	if err != nil {
		return nil, err
	}
	err = eachSeat(r, func(seat projections.Seat) {
		older = appendOlder(older, protocol, events.SeatLease(seat.Handle), seat.Holder)
	})
	return older, err
}

func olderNodes(r projections.Reader, protocol int) ([]Older, error) {
	fleet, err := r.Fleet()
	if err != nil {
		return nil, err
	}
	var older []Older
	for _, n := range fleet.Nodes {
		older = appendOlder(older, protocol, events.NodeLease(n.ID), n.Holder)
	}
	return older, nil
}

func appendOlder(to []Older, protocol int, l events.Lease, holder *projections.Holder) []Older {
	if holder == nil || holder.Protocol >= protocol {
		return to
	}
	return append(to, Older{Lease: l, Owner: holder.Owner, Epoch: holder.Epoch, Protocol: holder.Protocol})
}

// registered lists the seats whose mailbox may be used.
func registered(r projections.Reader) (map[string]bool, error) {
	all := map[string]bool{}
	for after := ""; ; {
		page, err := r.Mailboxes(after, projections.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Items {
			all[m.Handle] = m.Usable() // one that is being deleted is waited for (R8)
			after = m.Handle
		}
		if !page.More {
			return all, nil
		}
	}
}

// eachSeat pages through all seats.
func eachSeat(r projections.Reader, fn func(projections.Seat)) error {
	for after := ""; ; {
		page, err := r.Seats(projections.SeatFilter{}, after, projections.MaxPage)
		if err != nil {
			return err
		}
		for _, seat := range page.Items {
			fn(seat)
			after = seat.Handle
		}
		if !page.More {
			return nil
		}
	}
}

// presences keeps the newest event of each presence that was not released, and
// what the node last said of itself, which stands on the tenure's subject.
func (s *Sighting) presences(ctx context.Context) ([]Presence, error) {
	msgs, err := s.Presences(ctx)
	if err != nil {
		return nil, err
	}
	byNode := map[string]*Presence{}
	for _, msg := range msgs { // by sequence: the later event of a family wins
		r, err := events.Decode(s.Subjects, msg)
		if err != nil {
			return nil, err
		}
		now := aggregates.EvolveLease(aggregates.Lease{}, r.Seq, r.Event)
		id, facts := about(r.Event)
		p := byNode[id]
		if p == nil {
			p = &Presence{}
			byNode[id] = p
		}
		p.Owner, p.Last = now.Owner, now.Last
		if now.Status == aggregates.LeaseFree {
			p.Owner = ""
		}
		if facts != nil {
			p.Facts = *facts
		}
	}
	var out []Presence
	for _, p := range byNode {
		if p.Owner != "" {
			out = append(out, *p)
		}
	}
	return out, nil
}

// about says whose presence the event is of, and what it says of the node.
func about(e events.Event) (id string, facts *events.NodeFacts) {
	switch e := e.(type) {
	case events.LeaseClaimed:
		return e.Lease.ID, e.Node
	case events.NodeReported:
		return e.Lease.ID, &e.Node
	case events.LeaseRenewed:
		return e.Lease.ID, nil
	case events.LeaseReleased:
		return e.Lease.ID, nil
	case events.LeaseFenced:
		return e.Lease.ID, nil
	}
	return "", nil
}
