package events

import (
	"errors"
	"time"
)

// SeatEstablished: the acquire hook returned and the seat admits turns (H2).
type SeatEstablished struct {
	Handle string      `json:"-"`
	Epoch  uint64      `json:"epoch"`
	Owner  Incarnation `json:"owner"`
	Kept
}

// SeatPaused: the seat starts no turn until it is resumed, by an operator's
// hand. It rests on no tenure and stays when the seat moves (H3).
type SeatPaused struct {
	Handle   string `json:"-"`
	By       string `json:"by"`
	Reason   string `json:"reason"`
	StopTurn bool   `json:"stop_turn,omitempty"` // the turn in flight is to stop, too
	Kept
}

// SeatResumed ends a pause.
type SeatResumed struct {
	Handle string `json:"-"`
	By     string `json:"by"`
	Reason string `json:"reason"`
	Kept
}

// SeatUnproven: the seat's teardown failed, so its holder keeps the lease and
// tries again (H6). It lasts until SeatProven, or until the tenure ends.
type SeatUnproven struct {
	Handle string      `json:"-"`
	Epoch  uint64      `json:"epoch"`
	Owner  Incarnation `json:"owner"`
	Since  time.Time   `json:"since,omitzero"` // the holder's wall clock, for people (O3)
	Kept
}

// SeatProven: the teardown succeeded at last; the release follows.
type SeatProven struct {
	Handle string      `json:"-"`
	Epoch  uint64      `json:"epoch"`
	Owner  Incarnation `json:"owner"`
	Kept
}

// TriggerSkipped: a trigger was settled without running a turn (K5, B3).
type TriggerSkipped struct {
	Handle  string      `json:"-"`
	Epoch   uint64      `json:"epoch"`
	Owner   Incarnation `json:"owner"`
	EventID string      `json:"event_id"`
	Why     SkipReason  `json:"why"`
	Detail  string      `json:"detail,omitempty"`
	Kept
}

// SkipReason says why a trigger will not come back.
type SkipReason string

// Why a trigger was skipped.
const (
	SkipCompleted    SkipReason = "already_completed" // the ledger has it (K1)
	SkipBrokeOutside SkipReason = "broke_after_acting"
	SkipPanicked     SkipReason = "panicked"
	SkipParked       SkipReason = "parked" // it stands in DEAD
)

// MailboxRegistered: the seat's mailbox exists from here on (U1, R2).
type MailboxRegistered struct {
	Handle  string `json:"-"`
	AgentID string `json:"agent_id"`
	Kept
}

// StreamMarked puts a random id at a position of a stream, so that a stream
// recreated, restored or swapped underneath its readers is noticed (design §2).
type StreamMarked struct {
	Stream    Stream `json:"stream"`
	Marker    string `json:"marker"`
	CreatedAt string `json:"created_at"` // the stream's, RFC 3339 with nanoseconds
	Kept
}

func (SeatEstablished) event()   {}
func (SeatPaused) event()        {}
func (SeatResumed) event()       {}
func (SeatUnproven) event()      {}
func (SeatProven) event()        {}
func (TriggerSkipped) event()    {}
func (MailboxRegistered) event() {}
func (StreamMarked) event()      {}

func (e SeatEstablished) validate() error { return tenure(e.Epoch, e.Owner) }

func (e SeatPaused) validate() error {
	return errors.Join(present("by", e.By), present("reason", e.Reason))
}

func (e SeatResumed) validate() error {
	return errors.Join(present("by", e.By), present("reason", e.Reason))
}

func (e SeatUnproven) validate() error { return tenure(e.Epoch, e.Owner) }
func (e SeatProven) validate() error   { return tenure(e.Epoch, e.Owner) }

func (e TriggerSkipped) validate() error {
	return errors.Join(tenure(e.Epoch, e.Owner), present("event_id", e.EventID), present("why", string(e.Why)))
}

func (e MailboxRegistered) validate() error { return present("agent_id", e.AgentID) }

func (e StreamMarked) validate() error {
	return errors.Join(present("stream", string(e.Stream)), present("marker", e.Marker))
}
