package events

import (
	"errors"
	"fmt"
	"time"
)

// Event is a fact that a fleet recorded. The set is closed: see the registry
// in codec.go.
type Event interface {
	event()
	kept() Fields
	// validate says what is missing or impossible in the payload, or nil.
	validate() error
}

// Millis is a duration in whole milliseconds on the wire.
type Millis int64

// MillisOf rounds d down to whole milliseconds.
func MillisOf(d time.Duration) Millis { return Millis(d.Milliseconds()) }

// Duration is the same as a time.Duration.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// LapsesAfter is how long a lease's last event must have been behind the log
// before another may claim: the TTL and a bound for what two clocks differ by
// over one TTL (design §3). They may run apart by one part in a hundred, far more
// than any quartz does; its floor covers the steps in which clocks are read and
// slewed.
func LapsesAfter(ttl time.Duration) time.Duration {
	return ttl + max(250*time.Millisecond, ttl/100)
}

// LeaseClaimed begins a tenure: Epoch is the family's last epoch plus one (L2).
type LeaseClaimed struct {
	Lease     Lease       `json:"-"`
	Epoch     uint64      `json:"epoch"`
	Owner     Incarnation `json:"owner"`
	Preferred string      `json:"preferred,omitempty"` // node id, a placement hint
	TTL       Millis      `json:"ttl_ms"`
	Protocol  int         `json:"protocol"`
	// Local is the id of the claimant's data directory when its coordination is
	// local; only such a tenure may be taken over at boot without waiting.
	Local string `json:"local,omitempty"`
	// Over is the evidence for taking a tenure nobody released.
	Over *Over `json:"over,omitempty"`
	// Saga names the handoff whose reservation the claim uses; such a claim
	// counts in no pass (P2).
	Saga string `json:"saga,omitempty"`
	// Waited is the evidence for claiming what was reserved for another.
	Waited *Waited    `json:"waited,omitempty"`
	Node   *NodeFacts `json:"node,omitempty"` // on presence only
	Kept
}

// Over says which unreleased tenure a claim took over, and why it might.
type Over struct {
	Epoch   uint64      `json:"epoch"`
	Owner   Incarnation `json:"owner"`
	LastSeq uint64      `json:"last_seq"` // the family's last event, the claim's check
	// Unseen is how long the claimant's log clock had stood past LastSeq.
	Unseen Millis `json:"unseen_for_ms,omitempty"`
	// Local: the claimant holds the exclusive lock of the data directory that
	// the tenure names, so its holder is dead.
	Local bool `json:"local,omitempty"`
}

// NodeFacts is what views keep of a node. It is always the whole: what a claim
// or a report does not say is not so any more.
type NodeFacts struct {
	Roles     []string          `json:"roles,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Draining  bool              `json:"draining,omitempty"`  // it hands its seats over and claims none (P6)
	Cordoned  bool              `json:"cordoned,omitempty"`  // it claims none, by an operator's hand
	Withdrawn bool              `json:"withdrawn,omitempty"` // it gave every seat back, being unserviceable (P8)
	// SeatsHeld is how many seats it holds (P11); nil: it does not say.
	SeatsHeld *int `json:"seats_held,omitempty"`
	// CompanyRevision is what it has applied, mailboxes and all; 0: it does not say.
	CompanyRevision uint64 `json:"company_revision,omitempty"`
}

// LeaseRenewed extends a tenure. It carries nothing that views keep.
type LeaseRenewed struct {
	Lease Lease       `json:"-"`
	Epoch uint64      `json:"epoch"`
	Owner Incarnation `json:"owner"`
	Local string      `json:"local,omitempty"` // as the claim has it
	Kept
}

// NodeReported: what a node says of itself changed (P8, P11, P13). It stands
// with the edges of the node's presence, and proves as much as a renewal.
type NodeReported struct {
	Lease Lease       `json:"-"`
	Epoch uint64      `json:"epoch"`
	Owner Incarnation `json:"owner"`
	Local string      `json:"local,omitempty"` // as the claim has it
	Node  NodeFacts   `json:"node"`
	Kept
}

// LeaseReleased ends a tenure by its owner's hand.
type LeaseReleased struct {
	Lease  Lease       `json:"-"`
	Epoch  uint64      `json:"epoch"`
	Owner  Incarnation `json:"owner"`
	Reason Reason      `json:"reason"`
	// Successor is whom the seat is handed to: until the release has stood
	// behind the log for ReservedFor, nobody else may claim (design §5).
	Successor   Incarnation `json:"successor,omitempty"`
	ReservedFor Millis      `json:"reserved_for_ms,omitempty"`
	Saga        string      `json:"saga,omitempty"`
	Kept
}

// LeaseFenced ends a tenure's renewals by an operator's hand. A successor still
// waits out the proven time, unless the holder releases first (design §3).
type LeaseFenced struct {
	Lease  Lease       `json:"-"`
	Epoch  uint64      `json:"epoch"`
	Owner  Incarnation `json:"owner"`
	Reason string      `json:"reason"`
	By     string      `json:"by"`
	Local  string      `json:"local,omitempty"` // as the claim has it
	Kept
}

// Reason says why a tenure or an attachment ended (H4, H5).
type Reason string

// Reasons of voluntary (H4) and fenced (H5) releases, and of giving back a
// lease in this incarnation's name that it does not hold.
const (
	ReasonDrain         Reason = "drain"
	ReasonRebalance     Reason = "rebalance"
	ReasonRoleGone      Reason = "role_gone"
	ReasonMoved         Reason = "placement_moved"
	ReasonOperator      Reason = "operator"
	ReasonRenewRefused  Reason = "renew_refused"
	ReasonTTLGrace      Reason = "ttl_grace"
	ReasonAcquireFailed Reason = "acquire_failed"
	ReasonNotHeld       Reason = "not_held"
	ReasonOlder         Reason = "older_protocol" // V1
	ReasonRetirement    Reason = "retirement"     // the claim of a mailbox's retirement, R6
)

func (LeaseClaimed) event()  {}
func (LeaseRenewed) event()  {}
func (NodeReported) event()  {}
func (LeaseReleased) event() {}
func (LeaseFenced) event()   {}

func (e LeaseClaimed) validate() error {
	var over error
	if o := e.Over; o != nil {
		over = errors.Join(tenure(o.Epoch, o.Owner), positive("over.last_seq", o.LastSeq))
	}
	return errors.Join(tenure(e.Epoch, e.Owner), positive("ttl_ms", uint64(max(e.TTL, 0))), over, e.Waited.validate())
}

func (e LeaseRenewed) validate() error { return tenure(e.Epoch, e.Owner) }

func (e NodeReported) validate() error {
	var errs []error
	if e.Lease.Kind != KindNode {
		errs = append(errs, fmt.Errorf("only a node reports on itself, not %s", e.Lease))
	}
	if n := e.Node.SeatsHeld; n != nil && *n < 0 {
		errs = append(errs, fmt.Errorf("node.seats_held is %d, below zero", *n))
	}
	return errors.Join(tenure(e.Epoch, e.Owner), errors.Join(errs...))
}

func (e LeaseReleased) validate() error {
	return errors.Join(tenure(e.Epoch, e.Owner), present("reason", string(e.Reason)), reservation(e.Successor, e.ReservedFor))
}

func (e LeaseFenced) validate() error {
	return errors.Join(tenure(e.Epoch, e.Owner), present("reason", e.Reason), present("by", e.By))
}
