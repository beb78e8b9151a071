package sagas

import (
	"slices"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// Handoff is the newest handoff of a seat. What DecideHandoff needs of it the
// saga's newest event alone tells; Next also needs the seat's other edges.
type Handoff struct {
	Last               uint64 // position of the saga's newest event: the check of the next one
	events.HandoffBody        // Number 0: the seat was never handed off

	own     events.HandoffStep // the newest event's
	endedAt events.HandoffStep // the step that a declined or abandoned handoff had reached

	// seat is the seat's lease as its edges have it. Its Last is no check for
	// anything, since renewals are no edges: it stays 0.
	seat        aggregates.Lease
	established uint64 // newest epoch that was established
}

// EvolveHandoff applies the event at seq: one of the seat's handoffs, or of its
// lease, or its holder's report that the seat is established. It is total: what
// else the seat's subjects carry, now or later, changes no handoff.
func EvolveHandoff(s Handoff, seq uint64, e events.Event) Handoff {
	switch e := e.(type) {
	case events.HandoffEvent:
		return s.step(seq, e)
	case events.LeaseClaimed, events.LeaseRenewed, events.LeaseReleased, events.LeaseFenced, events.LeaseDeclined:
		s.seat = aggregates.EvolveLease(s.seat, 0, e)
	case events.SeatEstablished:
		s.established = e.Epoch
	default: // a report that no handoff waits for
	}
	return s
}

func (s Handoff) step(seq uint64, e events.HandoffEvent) Handoff {
	s.Last = seq
	s.own, s.HandoffBody = e.Handoff()
	s.endedAt = ""
	switch e := e.(type) {
	case events.HandoffRequested:
		// The request was decided over this tenure; a fold that starts here has
		// seen no claim of it.
		if s.seat.Epoch < e.Epoch {
			s.seat = aggregates.Lease{Epoch: e.Epoch, Owner: e.From, Status: aggregates.LeaseHeld}
		}
	case events.HandoffReleased:
		// One batch with the lease's release, which stands next to it.
		if s.seat.Epoch <= e.Epoch {
			s.seat = aggregates.Lease{
				Epoch: e.Epoch, Status: aggregates.LeaseFree, Former: e.From,
				Successor: e.To, ReservedFor: e.ReservedFor.Duration(), Saga: e.ID(),
			}
		}
	case events.HandoffDeclined:
		s.endedAt = e.Step
	case events.HandoffAbandoned:
		s.endedAt = e.Step
	}
	return s
}

// steps in the order in which a handoff that succeeds takes them.
var steps = []events.HandoffStep{
	events.StepRequested, events.StepWarmed, events.StepQuiesced, events.StepFlushed,
	events.StepReleased, events.StepClaimed, events.StepEstablished, events.StepCompleted,
}

// reached says whether a handoff at step is at, or past, the other one.
func reached(step, other events.HandoffStep) bool {
	return slices.Index(steps, step) >= slices.Index(steps, other)
}

// Step says how far the handoff is; "" when there never was one. That the
// target claimed and established the seat are facts of the seat.
func (s Handoff) Step() events.HandoffStep {
	switch {
	case s.own != events.StepReleased || !s.claimedByTarget(s.seat):
		return s.own
	case s.established == s.seat.Epoch:
		return events.StepEstablished
	default:
		return events.StepClaimed
	}
}

// Open says whether the handoff goes on.
func (s Handoff) Open() bool {
	return s.Number > 0 && s.own != events.StepCompleted && s.own != events.StepDeclined && s.own != events.StepAbandoned
}

// TornDown says whether the source may have taken anything of the seat down: if
// so, its tenure can only end.
func (s Handoff) TornDown() bool {
	step := s.own
	if s.endedAt != "" {
		step = s.endedAt
	}
	return reached(step, events.StepQuiesced)
}

// Deadline is how long the saga's newest event, at Last, may be unseen before
// the handoff may be abandoned; 0 when none is open.
func Deadline(s Handoff) time.Duration { return s.Patience.At(s.own) }

// claimedByTarget says whether a lease has the tenure that the handoff is for:
// the one right after the source's.
func (s Handoff) claimedByTarget(l aggregates.Lease) bool {
	return l.Status != aggregates.LeaseFree && l.Owner == s.To && l.Epoch == s.Epoch+1
}

// lost says whether the seat went another way than the handoff's: before the
// release the source's tenure is over, after it the reservation is, and not by
// the target's claim. It never becomes false again, since epochs only rise.
func (s Handoff) lost(l aggregates.Lease) bool {
	switch {
	case l.Epoch < s.Epoch: // less than the saga knows itself
		return false
	case s.own != events.StepReleased:
		return l.Epoch > s.Epoch || l.Status == aggregates.LeaseFree
	case l.Epoch == s.Epoch: // released; a declined reservation ended the saga with it
		return l.Status == aggregates.LeaseFree && l.Saga != s.ID()
	default:
		return !s.claimedByTarget(l)
	}
}

// sourceOver says whether the tenure that was to be handed over has ended.
func (s Handoff) sourceOver() bool {
	return s.own == events.StepReleased || s.own == events.StepCompleted || s.endedAt == events.StepReleased ||
		s.seat.Epoch > s.Epoch || (s.seat.Epoch == s.Epoch && s.seat.Status == aggregates.LeaseFree)
}
