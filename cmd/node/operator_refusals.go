package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
)

// Codes of refusals, beside those of the seat's host. They are part of the API.
const (
	codeUnknownNode   = "UNKNOWN_NODE"
	codeDepartedNode  = "DEPARTED_NODE"
	codeUnknownSeat   = "UNKNOWN_SEAT"
	codeAlreadyFenced = "ALREADY_FENCED"

	codeUnknownMail    = "UNKNOWN_MAIL"
	codeNothingParked  = "NOTHING_PARKED"
	codeAlreadyDecided = "ALREADY_DECIDED"
	codeClipped        = "CLIPPED"

	codeSeatPresent    = "SEAT_PRESENT"
	codeUnknownMailbox = "UNKNOWN_MAILBOX"
	codeAlreadyRetired = "ALREADY_RETIRED"
	codeRetiring       = "RETIRING"
	codeInGrace        = "IN_GRACE"
	codeSeatHeld       = "HELD"
	codeOlderProtocol  = "OLDER_PROTOCOL"
	codeMailSwapped    = "MAIL_SWAPPED"
)

const nearestNames = 3 // offered to somebody who wrote an unknown one

func refuse(code, format string, args ...any) error {
	return &graph.RefusedError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func meant(nearest []string) string {
	if len(nearest) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(nearest, ", ") + "?"
}

// present returns the process that has that node's presence. It refuses a node
// that the log has never had, and one that took leave or is dead; that nobody
// can tell yet whether it lives is no refusal: it is asked.
func (o *operator) present(id string) (events.Incarnation, error) {
	var known projections.Node
	var found bool
	var ids []string
	err := o.n.view(func(r projections.Reader) (err error) {
		if known, found, err = r.Node(id); err != nil || found {
			return err
		}
		fleet, err := r.Fleet()
		for _, n := range fleet.Nodes {
			ids = append(ids, n.ID)
		}
		return err
	})
	switch {
	case err != nil:
		return "", err
	case found && known.Holder == nil:
		return "", refuse(codeDepartedNode, "node %q has taken leave; start it again to give it anything to do", id)
	case found && (apiLeases{o.n}).Liveness(known.Holder.Owner) == graph.Lapsed:
		return "", refuse(codeDepartedNode, "node %q is dead or cut off: its presence has lapsed, and its seats are the others' to take", id)
	case found:
		return known.Holder.Owner, nil
	case id == o.n.cfg.Node.ID:
		return o.n.self, nil
	case o.n.views.Copy(events.StreamFleet).State != projections.CopyCurrent:
		return "", fmt.Errorf("%w: this node has not read the whole log yet, and cannot tell whether there is a node %q", events.ErrUnavailable, id)
	}
	return "", refuse(codeUnknownNode, "the log has never had a node %q%s", id, meant(strictyaml.Nearest(id, ids, nearestNames)))
}

// known refuses a handle that names no agent's seat. One that the company has
// removed is known for as long as somebody holds it.
func (o *operator) known(handle string) error {
	c, applied := o.n.roster.current()
	role, listed := c.Role(handle)
	if listed && role.Kind == company.Agent {
		return nil
	}
	if listed {
		return refuse(codeUnknownSeat, "%q is a person's place: no node runs anything on it", handle)
	}
	held := false
	err := o.n.view(func(r projections.Reader) error {
		s, _, err := r.Seat(handle)
		held = s.Holder != nil
		return err
	})
	switch {
	case err != nil:
		return err
	case held:
		return nil
	case !applied:
		return refuse(codeUnknownSeat, "there is no company yet, so there are no seats")
	}
	return refuse(codeUnknownSeat, "the company has no seat %q%s", handle, meant(c.Nearest(handle, nearestNames)))
}

// holder reads who has the seat from the log's leader.
func (o *operator) holder(ctx context.Context, handle string) (events.Incarnation, error) {
	now, err := o.n.shell.Lease(ctx, events.SeatLease(handle))
	if err != nil {
		return "", err
	}
	if now.Status != aggregates.LeaseFree {
		return now.Owner, nil
	}
	err = o.n.view(func(r projections.Reader) error {
		s, open, err := r.OpenHandoff(handle)
		if open {
			return refuse(seat.CodeMoving, "seat %q is on its way to node %q (%s); see `tenure saga ls --open`", handle, s.To.NodeID(), s.ID)
		}
		return err
	})
	if err == nil {
		err = refuse(seat.CodeNotHeld, "nobody holds seat %q; `tenure seat explain %s` says why", handle, handle)
	}
	return "", err
}

// refusal makes one kind of all that says no for good; other errors pass.
func refusal(err error) error {
	var (
		host   *seat.RefusedError
		open   *sagas.OpenError
		torn   *sagas.TornDownError
		lost   *sagas.NotHolderError
		twice  *aggregates.FencedTwiceError
		ended  *aggregates.EndedError
		nobody *graph.RefusedError
	)
	switch {
	case err == nil, errors.As(err, &nobody):
		return err
	case errors.As(err, &host):
		return refuse(host.Code, "%s", host.Message)
	case errors.As(err, &open), errors.As(err, &torn):
		return refuse(seat.CodeMoving, "%v", err)
	case errors.As(err, &lost), errors.As(err, &ended):
		return refuse(seat.CodeNotHeld, "%v", err)
	case errors.As(err, &twice):
		return refuse(codeAlreadyFenced, "%v", err)
	}
	return err
}

// refusedBy is what another node's answer means to whoever asked us.
func refusedBy(err error, node string) error {
	var refused *broker.CommandRefusedError
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case broker.CodeOtherIncarnation:
		return refuse(seat.CodeNotHeld, "node %q was restarted and does not hold the seat any more; look again", node)
	case broker.CodePanicked, broker.CodeFailed, broker.CodeReplyUnusable, broker.CodeUnreadable, broker.CodeIDReused:
		return err // a fault, of theirs or ours
	}
	return &graph.RefusedError{Code: refused.Code, Message: refused.Message}
}
