package model

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Fleet is the fleet; its nodes and unplaceable seats are read when asked for.
type Fleet struct {
	AsOf      *AsOf
	SeatCount int
	HeldCount int
	LeaseTTL  time.Duration
}

// Node is a node with a presence.
type Node struct {
	ID          string
	Incarnation string
	State       NodeState
	Roles       []string
	Labels      []*Label
	Protocol    int
	Since       *time.Time
	SeatsHeld   *int

	SeatsWithdrawn  bool
	CompanyRevision *int

	Epoch uint64 // of its presence, by which its expiry is read
}

// Seat is a seat, with what reading more of it takes.
type Seat struct {
	Handle    string
	AgentID   string
	Title     *string
	State     SeatState
	Owner     *string
	Epoch     *Epoch
	Since     *time.Time
	Preferred *string
	Paused    bool
	Pause     *Pause
	Handoff   *Saga

	Unproven *time.Time         // since when, by the log; nil: its teardown does not fail
	Holder   events.Incarnation // "" when nobody holds it
	Listed   int                // how many seats stand in the list it was read for
}
