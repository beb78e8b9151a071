package projections

import (
	"encoding/json"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Holder is a tenure in force, as far as the log says.
type Holder struct {
	Owner         events.Incarnation `json:"owner"`
	Epoch         uint64             `json:"epoch"`
	Since         time.Time          `json:"since"`   // broker's stamp of the claim (L5)
	Claimed       uint64             `json:"claimed"` // position of the claim
	Preferred     string             `json:"preferred,omitempty"`
	TTL           events.Millis      `json:"ttl_ms"`
	Protocol      int                `json:"protocol"`
	Established   uint64             `json:"established,omitempty"` // position, 0: not yet
	EstablishedAt *time.Time         `json:"established_at,omitempty"`
}

// NodeID is the stable id of the node that holds.
func (h Holder) NodeID() string { return h.Owner.NodeID() }

// End says how a tenure ended.
type End string

// How tenures end. Lapsed: by the claim that took over, at that claim's position.
const (
	EndReleased End = "RELEASED"
	EndFenced   End = "FENCED"
	EndLapsed   End = "LAPSED"
)

// Ended is the end of a tenure.
type Ended struct {
	End      End       `json:"end"`
	Position uint64    `json:"position"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"` // who fenced
}

// Tenancy is what the log says of one lease: its newest tenure.
type Tenancy struct {
	Epoch  uint64  `json:"epoch,omitempty"`  // of the newest tenure, 0: never claimed
	Holder *Holder `json:"holder,omitempty"` // nil: released or fenced, or never claimed
	Ended  *Ended  `json:"ended,omitempty"`  // of the newest tenure, nil while it is in force
	// Preferred is the node that the newest claim names, also after its end:
	// who comes back looks first for what it held (P3).
	Preferred string `json:"preferred,omitempty"`
}

// SeatState is what a seat can be seen to be from the log alone.
type SeatState string

// States of a seat. Others that the API knows (unplaceable, unknown) need more
// than the log.
const (
	SeatHeld         SeatState = "HELD"
	SeatEstablishing SeatState = "ESTABLISHING"
	SeatUnproven     SeatState = "UNPROVEN" // held, and its teardown cannot be proven (H6)
	SeatUnowned      SeatState = "UNOWNED"
	SeatRemoved      SeatState = "REMOVED"
)

// Seat is one seat of the company, or one that was.
type Seat struct {
	Handle  string            `json:"handle"`
	AgentID string            `json:"agent_id,omitempty"` // "": no revision ever named the seat
	Title   string            `json:"title,omitempty"`
	Node    string            `json:"node,omitempty"`   // placement pinned to a node id
	Labels  map[string]string `json:"labels,omitempty"` // placement by label selector
	Removed bool              `json:"removed,omitempty"`
	Tenancy
	Paused   *Paused   `json:"paused,omitempty"`   // nil: it is not; rests on no tenure (H3)
	Unproven *Unproven `json:"unproven,omitempty"` // of the tenure in force (O3)
	// HandoffAt is where the seat's open handoff was requested, 0: none is open.
	HandoffAt uint64 `json:"handoff,omitempty"`
	Handoff   *Saga  `json:"-"` // that handoff
}

// Paused is an operator's pause in force.
type Paused struct {
	By       string    `json:"by"`
	Reason   string    `json:"reason"`
	StopTurn bool      `json:"stop_turn,omitempty"`
	Position uint64    `json:"position"` // where the pause began
	Since    time.Time `json:"since"`    // broker's stamp of that event
}

// Unproven is a teardown that its holder cannot prove.
type Unproven struct {
	Position uint64    `json:"position"`
	Since    time.Time `json:"since"` // as the holder says, else the broker's stamp
}

// Listed says whether the active company revision has the seat.
func (s Seat) Listed() bool { return s.AgentID != "" && !s.Removed }

// State tells what the seat is. A removed seat may still have a Holder: the one
// that has not let go yet, or the duty that retires its mailbox (O2).
func (s Seat) State() SeatState {
	switch {
	case s.Removed:
		return SeatRemoved
	case s.Holder == nil:
		return SeatUnowned
	case s.Unproven != nil:
		return SeatUnproven
	case s.Holder.Established == 0:
		return SeatEstablishing
	default:
		return SeatHeld
	}
}

// Node is a node's presence. Holder.Owner is its incarnation; Holder is nil for
// a node that took leave, whose last words stay. A node that died is told by
// clocks, not from here.
type Node struct {
	ID        string            `json:"id"`
	Roles     []string          `json:"roles,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Draining  bool              `json:"draining,omitempty"`
	Cordoned  bool              `json:"cordoned,omitempty"`
	Withdrawn bool              `json:"withdrawn,omitempty"`
	// SeatsSaid is how many seats the node says it holds (P11); nil: it does
	// not say.
	SeatsSaid *int `json:"seats_said,omitempty"`
	// CompanyRevision is what the node says it has applied; 0: it does not say.
	CompanyRevision uint64 `json:"company_revision,omitempty"`
	Tenancy
	SeatsHeld int `json:"-"` // seats whose tenure in force is an incarnation of this node
}

// Facts is what the node says of itself, as its newest claim or report has it.
func (n Node) Facts() events.NodeFacts {
	return events.NodeFacts{
		Roles: n.Roles, Labels: n.Labels, Draining: n.Draining, Cordoned: n.Cordoned,
		Withdrawn: n.Withdrawn, SeatsHeld: n.SeatsSaid, CompanyRevision: n.CompanyRevision,
	}
}

func (n *Node) said(f events.NodeFacts) {
	n.Roles, n.Labels, n.SeatsSaid = f.Roles, f.Labels, f.SeatsHeld
	n.Draining, n.Cordoned, n.Withdrawn = f.Draining, f.Cordoned, f.Withdrawn
	n.CompanyRevision = f.CompanyRevision
}

// Duty is a singleton duty (Y1).
type Duty struct {
	Name string `json:"name"`
	Tenancy
}

// Counts sums up the seats.
type Counts struct {
	Seats       int `json:"seats"`       // in the active company revision
	Held        int `json:"held"`        // with a tenure in force, removed seats too
	Established int `json:"established"` // of those, admitting turns
}

// Fleet is the whole at one position.
type Fleet struct {
	AsOf
	Counts
	Nodes  []Node // by id
	Duties []Duty // by name
}

// AsOf is how far the answer has read FLEET.
type AsOf struct {
	Position uint64    `json:"position"` // 0: nothing read yet
	At       time.Time `json:"at"`       // broker's stamp of that event
	First    uint64    `json:"first"`    // where the history that was read begins
}

// Tenure is one claim of a seat and its end.
type Tenure struct {
	Handle        string             `json:"handle"`
	Epoch         uint64             `json:"epoch"`
	Owner         events.Incarnation `json:"owner"`
	Claimed       uint64             `json:"claimed"`
	ClaimedAt     time.Time          `json:"claimed_at"`
	Established   uint64             `json:"established,omitempty"`
	EstablishedAt *time.Time         `json:"established_at,omitempty"`
	Ended         *Ended             `json:"ended,omitempty"`
}

// NodeID is the stable id of the node that held.
func (t Tenure) NodeID() string { return t.Owner.NodeID() }

// Company is one revision. The seats of the active one are read as Seats; a
// revision's document stands in FLEET at its position.
type Company struct {
	Revision uint64             `json:"revision"`
	Name     string             `json:"name"`
	Digest   string             `json:"digest"`
	Seats    int                `json:"seats"` // how many agents' seats it has
	Position uint64             `json:"position"`
	At       time.Time          `json:"at"`
	Source   events.Incarnation `json:"source,omitempty"` // the process that wrote it
	Actor    string             `json:"actor,omitempty"`  // "": a node brought it along at its start
	Reason   string             `json:"reason,omitempty"`
}

// Skip is a trigger that was settled without a turn (K5, B3).
type Skip struct {
	EventID  string             `json:"event_id"`
	Why      events.SkipReason  `json:"why"`
	Detail   string             `json:"detail,omitempty"` // its first maxDetail bytes
	Epoch    uint64             `json:"epoch"`
	Owner    events.Incarnation `json:"owner"`
	Position uint64             `json:"position"`
	At       time.Time          `json:"at"`
}

// Completion is the record that one event's work is done.
type Completion struct {
	Handle   string             `json:"handle"`
	EventID  string             `json:"event_id"`
	EventIDs []string           `json:"event_ids"`
	WorkKey  string             `json:"work_key,omitempty"`
	Epoch    uint64             `json:"epoch"`
	Owner    events.Incarnation `json:"owner"`
	Outcome  events.Outcome     `json:"outcome"`
	Attempts int                `json:"attempts"`
	// Reply is nil when it is over MaxReply: read it from WORK at Position.
	Reply      json.RawMessage `json:"reply,omitempty"`
	ReplyBytes int             `json:"reply_bytes,omitempty"`
	Why        string          `json:"why,omitempty"`
	Position   uint64          `json:"position"` // in WORK
	At         time.Time       `json:"at"`
	// Skipped: the event came again and was settled by this record, as far back
	// as the seat's kept skips go, and false while FLEET is not served.
	Skipped bool `json:"-"`
}

// CopyState says what a store's copy of a stream is worth.
type CopyState string

// States of a copy. Current and Behind serve, Unknown serves what it has; the
// other two refuse with *NotServedError.
const (
	CopyCurrent      CopyState = "CURRENT"
	CopyBehind       CopyState = "BEHIND"
	CopyRebuilding   CopyState = "REBUILDING"
	CopyOutOfService CopyState = "OUT_OF_SERVICE"
	CopyUnknown      CopyState = "UNKNOWN" // the log cannot be read just now
)

// Copy is what a store knows of its copy of one stream.
type Copy struct {
	Stream   events.Stream
	State    CopyState
	Position uint64 // of the checkpoint, 0: nothing applied
	// Lag is how many events the log is known to have beyond Position; it means
	// nothing unless LagKnown.
	Lag      uint64
	LagKnown bool
	Why      string // what keeps the copy from being current, "" when nothing does
}
