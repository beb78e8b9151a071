package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// health says that the process answers, and what runs in it (O1, O3).
func (a *api) health(w http.ResponseWriter, r *http.Request) {
	type health struct {
		Status   string           `json:"status"`
		Node     string           `json:"node"`
		Owner    string           `json:"owner"`
		Seats    *[]string        `json:"seats,omitempty"` // left out where it may not be seen
		Unproven map[string]int64 `json:"unproven_seconds,omitempty"`
	}
	out := health{Status: "ok", Node: a.deps.Node, Owner: string(a.deps.Self)}
	if a.admits(r) {
		unproven := a.deps.Host.Unproven()
		seats := slices.DeleteFunc(slices.Sorted(slices.Values(a.deps.Host.Held())), func(handle string) bool {
			_, stranded := unproven[handle]
			return stranded
		})
		if seats == nil {
			seats = []string{}
		}
		out.Seats, out.Unproven = &seats, map[string]int64{}
		for handle, since := range unproven {
			out.Unproven[handle] = int64(since.Seconds())
		}
	}
	a.answer(w, http.StatusOK, mediaJSON, out)
}

// ready says whether the node can do its work.
func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	type ready struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons,omitempty"`
	}
	if reasons := a.deps.Readiness.NotReady(); len(reasons) > 0 {
		a.answer(w, http.StatusServiceUnavailable, mediaJSON, ready{false, reasons})
		return
	}
	a.answer(w, http.StatusOK, mediaJSON, ready{Ready: true})
}

// fleetNode is a node in the answer of /query/fleet.
type fleetNode struct {
	ID                string            `json:"id"`
	Incarnation       string            `json:"incarnation"`
	State             model.NodeState   `json:"state"`
	Seats             []string          `json:"seats"`
	Roles             []string          `json:"roles"`
	Labels            map[string]string `json:"labels"`
	Protocol          int               `json:"protocol"`
	PresenceExpiresAt *time.Time        `json:"presence_expires_at"`
	Since             *time.Time        `json:"since"`
	CompanyRevision   *int              `json:"company_revision"` // null until the node says
}

// queryFleet lists the nodes with what they hold (O1, O2).
func (a *api) queryFleet(w http.ResponseWriter, r *http.Request) {
	type answeredAs struct {
		AnsweredBy string          `json:"answered_by"`
		Position   string          `json:"position"`
		AsOf       *time.Time      `json:"as_of"`
		Lag        *int            `json:"lag"`
		Copy       model.CopyState `json:"copy"`
	}
	ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
	defer cancel()
	var as *model.AsOf
	var nodes []fleetNode
	var failed error
	err := a.deps.withReading(ctx, func(ctx context.Context, reading *reading) {
		as = reading.asOf
		nodes, failed = reading.fleetNodes(ctx)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, http.StatusOK, mediaJSON, struct {
		AsOf  answeredAs  `json:"as_of"`
		Nodes []fleetNode `json:"nodes"`
	}{answeredAs{as.AnsweredBy, fmt.Sprint(uint64(as.Position)), as.AsOf, as.Lag, as.Copy}, nodes})
}

func (r *reading) fleetNodes(ctx context.Context) ([]fleetNode, error) {
	present, err := r.roster()
	if err != nil {
		return nil, err
	}
	nodes := make([]fleetNode, 0, len(present.nodes))
	for _, n := range present.nodes {
		out := fleetNode{
			ID: n.ID, Incarnation: string(n.Holder.Owner), State: nodeState(present.lives[n.Holder.Owner], n),
			Seats: []string{}, Roles: append([]string{}, n.Roles...), Labels: map[string]string{},
			Protocol: n.Holder.Protocol, Since: stamped(n.Holder.Since),
		}
		maps.Copy(out.Labels, n.Labels)
		if n.CompanyRevision > 0 {
			out.CompanyRevision = number(n.CompanyRevision)
		}
		expires, err := r.deps.Leases.Expires(ctx, events.NodeLease(n.ID), n.Holder.Epoch)
		if err != nil && !errors.Is(err, events.ErrUnavailable) {
			return nil, err
		}
		out.PresenceExpiresAt = stamped(expires) // null while the log does not answer
		err = r.eachSeat(ctx, projections.SeatFilter{Node: n.ID}, "", projections.MaxPage, func(seats []projections.Seat) (bool, error) {
			for _, s := range seats {
				out.Seats = append(out.Seats, s.Handle)
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, out)
	}
	return nodes, nil
}
