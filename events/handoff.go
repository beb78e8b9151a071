package events

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// HandoffStep says how far a handoff is (design §5).
type HandoffStep string

// The steps of a handoff. Each but StepClaimed and StepEstablished is an event
// of the saga's own; those two are facts of the seat that the saga waits for.
const (
	StepRequested   HandoffStep = "requested"
	StepWarmed      HandoffStep = "warmed"
	StepQuiesced    HandoffStep = "quiesced"
	StepFlushed     HandoffStep = "flushed"
	StepReleased    HandoffStep = "released"
	StepClaimed     HandoffStep = "claimed"
	StepEstablished HandoffStep = "established"
	StepCompleted   HandoffStep = "completed" // ended: the target serves
	StepDeclined    HandoffStep = "declined"  // ended: the target would not
	StepAbandoned   HandoffStep = "abandoned" // ended: any other way
)

// HandoffReason says why a seat moves.
type HandoffReason string

// Why a seat moves.
const (
	HandoffDrain     HandoffReason = "drain"
	HandoffRebalance HandoffReason = "rebalance"
	HandoffMove      HandoffReason = "move"
)

// Released is the reason that the release of the handoff's lease states (H4).
func (r HandoffReason) Released() Reason {
	switch r {
	case HandoffDrain:
		return ReasonDrain
	case HandoffRebalance:
		return ReasonRebalance
	default:
		return ReasonMoved
	}
}

// Patience bounds the steps of one handoff: how long its newest event may stand
// behind the log before anybody may abandon it. It is fixed at the request, so
// that every node, of whatever build, judges by the same.
type Patience struct {
	Warm      Millis `json:"warm_ms"`      // requested → warmed
	Quiesce   Millis `json:"quiesce_ms"`   // warmed → quiesced: the turn in flight ends
	Flush     Millis `json:"flush_ms"`     // quiesced → flushed: the teardown
	Release   Millis `json:"release_ms"`   // flushed → released
	Claim     Millis `json:"claim_ms"`     // released → claimed: how long the seat is reserved
	Establish Millis `json:"establish_ms"` // claimed → completed
}

// HandoffBody is what every event of a handoff carries: the newest one alone
// tells the whole saga.
type HandoffBody struct {
	Handle   string        `json:"-"`
	Number   uint64        `json:"number"` // the seat's handoffs, counted
	From     Incarnation   `json:"from"`
	To       Incarnation   `json:"to"`
	Epoch    uint64        `json:"epoch"` // of from's tenure
	Reason   HandoffReason `json:"reason"`
	By       string        `json:"by"` // who asked
	Patience Patience      `json:"patience"`
	// Quiesced is the position of the quiesce, from which the seat is dark.
	Quiesced uint64 `json:"quiesced_seq,omitempty"`
	Kept
}

// ID names one handoff: the seat's handle and the handoff's number.
func (b HandoffBody) ID() string { return HandoffID(b.Handle, b.Number) }

// HandoffID names the seat's handoff of that number. No handle contains a dot.
func HandoffID(handle string, number uint64) string {
	return handle + "." + strconv.FormatUint(number, 10)
}

// HandoffEvent is what the events of a handoff have in common.
type HandoffEvent interface {
	Event
	Handoff() (HandoffStep, HandoffBody)
}

// HandoffRequested: from is to hand the seat to to, which is to warm up.
type HandoffRequested struct{ HandoffBody }

// HandoffWarmed: the target has what carries no identity. From here on the
// source may hold the seat's mailbox and wait for the turn in flight.
type HandoffWarmed struct{ HandoffBody }

// HandoffQuiesced: nothing of the seat runs at the source any more. From here on
// the source takes the seat down: an abandoned handoff can no more be undone.
type HandoffQuiesced struct{ HandoffBody }

// HandoffFlushed: the source's stages are down and the seat's memory is out.
type HandoffFlushed struct{ HandoffBody }

// HandoffReleased stands in one atomic batch with the release of the lease.
type HandoffReleased struct {
	HandoffBody
	ReservedFor Millis `json:"reserved_for_ms"`
}

// HandoffCompleted: the target serves the seat.
type HandoffCompleted struct {
	HandoffBody
	ClaimedEpoch uint64 `json:"claimed_epoch"`
	// DarkFor is how long nobody served the seat: from the quiesce to the
	// establishing, as the log clock of the target has it.
	DarkFor Millis `json:"dark_for_ms"`
}

// HandoffDeclined: the target will not take the seat. When the lease is released
// already, it stands in one atomic batch with the end of the reservation.
type HandoffDeclined struct {
	HandoffBody
	Step  HandoffStep   `json:"step"` // that the handoff had reached
	Cause DeclineReason `json:"cause"`
}

// HandoffAbandoned: the handoff is over and did not get where it should.
type HandoffAbandoned struct {
	HandoffBody
	Step   HandoffStep  `json:"step"` // that the handoff had reached
	Cause  AbandonCause `json:"cause"`
	Ender  string       `json:"abandoned_by"`
	Unseen Millis       `json:"unseen_for_ms,omitempty"` // evidence of a deadline
}

// DeclineReason says why a node will not take a seat that is offered to it.
type DeclineReason string

// Why a target declines.
const (
	DeclineDraining DeclineReason = "draining"
	DeclineReplaced DeclineReason = "replaced" // placement would not put the seat there any more
	DeclineBehind   DeclineReason = "behind"   // P10
	DeclineGated    DeclineReason = "gated"    // V1
)

// AbandonCause says why a handoff was given up.
type AbandonCause string

// Why a handoff is abandoned.
const (
	AbandonDeadline AbandonCause = "deadline" // a step took longer than its patience
	AbandonFailed   AbandonCause = "failed"   // a node could not do its step
	AbandonGone     AbandonCause = "gone"     // from or to is dead, as its presence says
	AbandonLost     AbandonCause = "lost"     // the seat's lease went another way
	AbandonOperator AbandonCause = "operator"
)

func (HandoffRequested) event() {}
func (HandoffWarmed) event()    {}
func (HandoffQuiesced) event()  {}
func (HandoffFlushed) event()   {}
func (HandoffReleased) event()  {}
func (HandoffCompleted) event() {}
func (HandoffDeclined) event()  {}
func (HandoffAbandoned) event() {}

// Handoff says which step the event is, and of which handoff.
func (e HandoffRequested) Handoff() (HandoffStep, HandoffBody) { return StepRequested, e.HandoffBody }

// Handoff says which step the event is, and of which handoff.
func (e HandoffWarmed) Handoff() (HandoffStep, HandoffBody) { return StepWarmed, e.HandoffBody }

// Handoff says which step the event is, and of which handoff.
func (e HandoffQuiesced) Handoff() (HandoffStep, HandoffBody) { return StepQuiesced, e.HandoffBody }

// Handoff says which step the event is, and of which handoff.
func (e HandoffFlushed) Handoff() (HandoffStep, HandoffBody) { return StepFlushed, e.HandoffBody }

// Handoff says which step the event is, and of which handoff.
func (e HandoffReleased) Handoff() (HandoffStep, HandoffBody) { return StepReleased, e.HandoffBody }

// Handoff says which step the event is, and of which handoff.
func (e HandoffCompleted) Handoff() (HandoffStep, HandoffBody) { return StepCompleted, e.HandoffBody }

// Handoff says which step the event is, and of which handoff.
func (e HandoffDeclined) Handoff() (HandoffStep, HandoffBody) { return StepDeclined, e.HandoffBody }

// Handoff says which step the event is, and of which handoff.
func (e HandoffAbandoned) Handoff() (HandoffStep, HandoffBody) { return StepAbandoned, e.HandoffBody }

func (b *HandoffBody) place(t target) { b.Handle = t.handle }

func (b HandoffBody) validate() error {
	var same error
	if b.From == b.To {
		same = fmt.Errorf("from and to are both %s", b.From)
	}
	return errors.Join(positive("number", b.Number), tenure(b.Epoch, b.From), b.To.Valid(), same,
		present("reason", string(b.Reason)), present("by", b.By), b.Patience.validate())
}

func (p Patience) validate() error {
	var errs []error
	for field, ms := range map[string]Millis{
		"warm_ms": p.Warm, "quiesce_ms": p.Quiesce, "flush_ms": p.Flush,
		"release_ms": p.Release, "claim_ms": p.Claim, "establish_ms": p.Establish,
	} {
		errs = append(errs, positive("patience."+field, uint64(max(ms, 0))))
	}
	return errors.Join(errs...)
}

func (e HandoffReleased) validate() error {
	return errors.Join(e.HandoffBody.validate(), positive("reserved_for_ms", uint64(max(e.ReservedFor, 0))))
}

func (e HandoffCompleted) validate() error {
	return errors.Join(e.HandoffBody.validate(), positive("claimed_epoch", e.ClaimedEpoch))
}

func (e HandoffDeclined) validate() error {
	return errors.Join(e.HandoffBody.validate(), present("step", string(e.Step)), present("cause", string(e.Cause)))
}

func (e HandoffAbandoned) validate() error {
	return errors.Join(e.HandoffBody.validate(), present("step", string(e.Step)),
		present("cause", string(e.Cause)), present("abandoned_by", e.Ender))
}

// LeaseDeclined ends the reservation that a release made, by the hand of the
// one it was made for: anybody may claim from here on.
type LeaseDeclined struct {
	Lease  Lease         `json:"-"`
	Epoch  uint64        `json:"epoch"` // of the released tenure
	Owner  Incarnation   `json:"owner"` // who released it
	By     Incarnation   `json:"by"`    // the successor that will not be
	Reason DeclineReason `json:"reason"`
	Saga   string        `json:"saga,omitempty"`
	Kept
}

func (LeaseDeclined) event() {}

func (e LeaseDeclined) validate() error {
	var kind error
	if e.Lease.Kind != KindSeat {
		kind = fmt.Errorf("only a seat's lease can be reserved, and so declined, not that of %s", e.Lease)
	}
	return errors.Join(kind, tenure(e.Epoch, e.Owner), e.By.Valid(), present("reason", string(e.Reason)))
}

// Waited is the evidence for a claim over somebody else's reservation.
type Waited struct {
	Successor Incarnation `json:"successor"` // for whom the lease was reserved
	LastSeq   uint64      `json:"last_seq"`  // the release, the claim's check
	// Unseen is how long the claimant's log clock had stood past LastSeq.
	Unseen Millis `json:"unseen_for_ms"`
}

func (w *Waited) validate() error {
	if w == nil {
		return nil
	}
	return errors.Join(w.Successor.Valid(), positive("waited.last_seq", w.LastSeq))
}

// reservation says what is wrong with a release's reservation: it has somebody
// it is for and an end, or it is none.
func reservation(successor Incarnation, reservedFor Millis) error {
	if successor == "" && reservedFor == 0 {
		return nil
	}
	return errors.Join(successor.Valid(), positive("reserved_for_ms", uint64(max(reservedFor, 0))))
}

// At is how long the handoff's newest event may be unseen while it is at step;
// 0 when it has ended.
func (p Patience) At(step HandoffStep) time.Duration {
	switch step {
	case StepRequested:
		return p.Warm.Duration()
	case StepWarmed:
		return p.Quiesce.Duration()
	case StepQuiesced:
		return p.Flush.Duration()
	case StepFlushed:
		return p.Release.Duration()
	case StepReleased, StepClaimed, StepEstablished:
		// One for all: the claim and the establishing are no events of the saga.
		// So it cannot end while the seat is still reserved.
		return (p.Claim + p.Establish).Duration()
	default:
		return 0
	}
}

// Total is how long a handoff may take from its request to its claim.
func (p Patience) Total() time.Duration {
	return (p.Warm + p.Quiesce + p.Flush + p.Release + p.Claim).Duration()
}
