package company

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/events"
)

// Kind says who fills a role.
type Kind string

// The two kinds of role. Only an agent's role is a seat: it has a lease, a
// mailbox and a runner.
const (
	Agent Kind = "agent"
	Human Kind = "human"
)

// Company is a document that was found good.
type Company struct {
	Name  string
	Roles []Role // in the document's order
}

// Role is one place in the company.
type Role struct {
	Handle    string
	Title     string
	Kind      Kind
	Placement Placement // zero: any node
	Runner    Runner    // zero for a human
}

// Placement narrows the nodes that may run a seat: to one node, or to those
// that carry all the labels, never both (spec P3).
type Placement struct {
	Node   string
	Labels map[string]string
}

// Equal says whether both place a seat alike.
func (p Placement) Equal(o Placement) bool {
	return p.Node == o.Node && maps.Equal(p.Labels, o.Labels)
}

// Runner is what carries out a seat's turns: exactly one of the two.
type Runner struct {
	Exec Exec // when Program is not empty
	Echo bool // answers each turn with what it was given
}

// Exec is a program that speaks the JSON-lines protocol of exec runners.
type Exec struct {
	Program []string // the program and its arguments
	Timeout time.Duration
}

// Equal says whether both run turns alike.
func (r Runner) Equal(o Runner) bool {
	return r.Echo == o.Echo && r.Exec.Timeout == o.Exec.Timeout && slices.Equal(r.Exec.Program, o.Exec.Program)
}

// AgentSeats returns the roles that are seats, in the document's order.
func (c Company) AgentSeats() []Role {
	var seats []Role
	for _, r := range c.Roles {
		if r.Kind == Agent {
			seats = append(seats, r)
		}
	}
	return seats
}

// Role returns the role with that handle.
func (c Company) Role(handle string) (Role, bool) {
	for _, r := range c.Roles {
		if r.Handle == handle {
			return r, true
		}
	}
	return Role{}, false
}

// Nearest returns up to n handles that somebody who wrote handle may have
// meant, the likeliest first.
func (c Company) Nearest(handle string, n int) []string {
	handles := make([]string, len(c.Roles))
	for i, r := range c.Roles {
		handles[i] = r.Handle
	}
	return strictyaml.Nearest(handle, handles, n)
}

// Roster is what routing and placement need of each seat (spec G1), in the form
// in which a revision's event carries it.
func (c Company) Roster() []events.RosterSeat {
	var roster []events.RosterSeat
	for _, r := range c.AgentSeats() {
		roster = append(roster, events.RosterSeat{
			Handle:  r.Handle,
			AgentID: AgentID(c.Name, r.Handle),
			Title:   r.Title,
			Node:    r.Placement.Node,
			Labels:  maps.Clone(r.Placement.Labels),
		})
	}
	return roster
}

// agentNamespace is the UUID namespace of agent ids: UUIDv5 of this URL in the
// URL namespace. It is part of the wire format and never changes; another
// namespace would give every agent of every company another identity.
var agentNamespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/seat-tenure/tenure/agent"))

// AgentID is the identity of the agent on a seat: UUIDv5 over the company's
// name, a zero byte, and the handle (spec G1). Neither part can hold a zero
// byte, so no two pairs share an id. It needs no registry and survives every
// move and removal; renaming the company makes every agent another one.
func AgentID(companyName, handle string) string {
	return uuid.NewSHA1(agentNamespace, []byte(companyName+"\x00"+handle)).String()
}
