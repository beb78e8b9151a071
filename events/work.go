package events

import (
	"encoding/json"
	"errors"
)

// Outcome says how a turn ended, for its completion.
type Outcome string

// Outcomes of a recorded turn.
const (
	OutcomeDone    Outcome = "done"
	OutcomeStopped Outcome = "stopped" // a person stopped it (F4)
	OutcomeFailed  Outcome = "failed"  // it broke after acting, or panicked: it will not run again (B1)
)

// TurnCompleted is the ledger's record that the work behind one event is done:
// one record per constituent id, write-once (K1, K2).
type TurnCompleted struct {
	Handle   string          `json:"-"`
	EventID  string          `json:"event_id"`
	EventIDs []string        `json:"event_ids"` // all constituents of the turn
	WorkKey  string          `json:"work_key"`
	Epoch    uint64          `json:"epoch"`
	Owner    Incarnation     `json:"owner"`
	Outcome  Outcome         `json:"outcome"`
	Attempts int             `json:"attempts"` // turns started, this one included
	Reply    json.RawMessage `json:"reply,omitempty"`
	Why      string          `json:"why,omitempty"` // of a failed turn
	Kept
}

func (TurnCompleted) event() {}

func (e TurnCompleted) validate() error {
	return errors.Join(tenure(e.Epoch, e.Owner), present("event_id", e.EventID), present("outcome", string(e.Outcome)))
}
