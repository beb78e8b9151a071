package sagas

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Node is who asks what to do.
type Node struct {
	Self events.Incarnation
	// Unfit says why this node would take no seat now; "" when it would.
	Unfit events.DeclineReason
	// TargetGone says that the target took leave, or is dead, by its presence.
	TargetGone bool
}

// Effect is something that a node is to do. Each may be asked for again, and
// late: its command tells whether it still counts. What names an Epoch is for
// that tenure of the source, and is not to be run under any other.
type Effect interface{ effect() }

// Warm: bring what carries no identity (memory so far, binaries, checks), then
// MarkWarmed. Drop it again after Keep, by the node's own clock.
type Warm struct {
	Saga string
	Keep time.Duration
}

// Quiesce: put Hold on the seat's mailbox, wait for the turn in flight, then
// MarkQuiesced. Take nothing down.
type Quiesce struct {
	Saga  string
	Epoch uint64
	Hold  string
}

// Flush: take the seat's stages down and flush its memory, then MarkFlushed. A
// teardown that cannot be proven keeps the lease (H6).
type Flush struct {
	Saga  string
	Epoch uint64
}

// Release: ReleaseForHandoff, in one atomic batch.
type Release struct {
	Saga  string
	Epoch uint64
}

// Claim: claim the seat, naming Saga, and establish it: hydrate what came since
// the warming, start the children.
type Claim struct{ Saga string }

// Complete: CompleteHandoff.
type Complete struct {
	Saga     string
	Quiesced uint64 // from where the log clock measures the darkness
}

// Decline: DeclineHandoff.
type Decline struct {
	Saga  string
	Cause events.DeclineReason
}

// Unhold: lift what the seat's handoffs up to the one numbered Through hold, and
// nothing else (Holds.LiftHandoffs). If that was all, the seat goes on where it is.
type Unhold struct {
	Handle  string
	Through uint64
}

// GiveUp: finish the teardown, by the undead path if need be (H6), and release
// plainly. The seat is not to go on here under this tenure.
type GiveUp struct {
	Saga   string
	Epoch  uint64
	Reason events.Reason
}

// Abandon: AbandonHandoff for Cause, once the saga's newest event, at Last, has
// been unseen for After.
type Abandon struct {
	Saga  string
	Cause events.AbandonCause
	Last  uint64
	After time.Duration
}

func (Warm) effect()     {}
func (Quiesce) effect()  {}
func (Flush) effect()    {}
func (Release) effect()  {}
func (Claim) effect()    {}
func (Complete) effect() {}
func (Decline) effect()  {}
func (Unhold) effect()   {}
func (GiveUp) effect()   {}
func (Abandon) effect()  {}

// bystanderPatience is how many deadlines others leave to source and target
// before they abandon a handoff in their place: both may be dead.
const bystanderPatience = 2

// Next says what n is to do now, given the folded present. A runner calls it
// when it has caught up with the log, on every event, and when an After is over.
func Next(s Handoff, n Node) []Effect {
	switch {
	case s.Number == 0:
		return nil
	case !s.Open():
		return s.leftovers(n.Self)
	case s.lost(s.seat):
		return []Effect{s.abandonLost(n.Self)}
	case n.TargetGone && n.Self == s.From && !reached(s.own, events.StepReleased):
		return []Effect{Abandon{Saga: s.ID(), Cause: events.AbandonGone, Last: s.Last}}
	}
	return append(append(s.before(n.Self), s.work(n)...), s.age(n.Self))
}

// before is what an earlier handoff of the same tenure may have left: this one
// may have been requested before its hold was lifted.
func (s Handoff) before(self events.Incarnation) []Effect {
	if self != s.From || s.Number == 1 {
		return nil
	}
	return []Effect{Unhold{s.Handle, s.Number - 1}}
}

// work is the step that n is to take, if any.
func (s Handoff) work(n Node) []Effect {
	id, step := s.ID(), s.Step()
	switch {
	case n.Self == s.To && n.Unfit != "" && !reached(step, events.StepClaimed):
		return []Effect{Decline{id, n.Unfit}}
	case n.Self == s.To && step == events.StepRequested:
		return []Effect{Warm{id, s.Patience.Total()}}
	case n.Self == s.From && step == events.StepWarmed:
		return []Effect{Quiesce{id, s.Epoch, HoldOf(s.Number)}}
	case n.Self == s.From && step == events.StepQuiesced:
		return []Effect{Flush{id, s.Epoch}}
	case n.Self == s.From && step == events.StepFlushed:
		return []Effect{Release{id, s.Epoch}}
	case n.Self == s.To && step == events.StepReleased:
		return []Effect{Claim{id}}
	case n.Self == s.To && step == events.StepEstablished:
		return []Effect{Complete{id, s.Quiesced}}
	}
	return nil
}

func (s Handoff) age(self events.Incarnation) Abandon {
	after := Deadline(s)
	if self != s.From && self != s.To {
		after *= bystanderPatience
	}
	return Abandon{s.ID(), events.AbandonDeadline, s.Last, after}
}

// abandonLost is at once for whom the loss concerns, its new holder included.
func (s Handoff) abandonLost(self events.Incarnation) Abandon {
	a := Abandon{Saga: s.ID(), Cause: events.AbandonLost, Last: s.Last}
	if self != s.From && self != s.To && self != s.seat.Owner {
		a.After = Deadline(s)
	}
	return a
}

// leftovers are what a handoff that ended early leaves to its source. No event
// says that the hold is lifted, so it is asked for as long as the tenure lasts.
func (s Handoff) leftovers(self events.Incarnation) []Effect {
	switch {
	case self != s.From || s.sourceOver():
		return nil
	case s.TornDown():
		return []Effect{GiveUp{s.ID(), s.Epoch, s.Reason.Released()}}
	default:
		return []Effect{Unhold{s.Handle, s.Number}}
	}
}
