package sagas

import (
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// HandoffCommand is what can be asked of a handoff. A Lease in a command is the
// seat's, folded from the newest event of its family, read from the leader.
type HandoffCommand interface{ handoffCommand() }

// RequestHandoff asks to begin one.
type RequestHandoff struct {
	Handle   string
	From, To events.Incarnation
	Reason   events.HandoffReason
	By       string
	Patience events.Patience
	Lease    aggregates.Lease
}

// MarkWarmed: the target has what carries no identity.
type MarkWarmed struct {
	Saga string
	By   events.Incarnation
}

// MarkQuiesced: the source holds the mailbox, and the turn in flight has ended.
// Nothing may have been taken down yet.
type MarkQuiesced struct {
	Saga string
	By   events.Incarnation
}

// MarkFlushed: the source's stages are down, proven, and its memory is flushed.
type MarkFlushed struct {
	Saga string
	By   events.Incarnation
}

// ReleaseForHandoff gives the lease to the target.
type ReleaseForHandoff struct {
	Saga  string
	By    events.Incarnation
	Lease aggregates.Lease
}

// DeclineHandoff: the target will not take the seat.
type DeclineHandoff struct {
	Saga  string
	By    events.Incarnation
	Cause events.DeclineReason
	Lease aggregates.Lease
}

// CompleteHandoff: the target serves the seat.
type CompleteHandoff struct {
	Saga  string
	By    events.Incarnation
	Lease aggregates.Lease
	// DarkFor is how long the log clock had stood past the quiesce, at the
	// state's Quiesced, when the seat was established.
	DarkFor time.Duration
}

// AbandonHandoff gives a handoff up.
type AbandonHandoff struct {
	Saga  string
	Cause events.AbandonCause
	By    string
	// Unseen is how long the log clock has stood past the state's Last. Known
	// is false while no sample covers it: then no deadline has passed.
	Unseen time.Duration
	Known  bool
	Lease  aggregates.Lease
}

func (RequestHandoff) handoffCommand()    {}
func (MarkWarmed) handoffCommand()        {}
func (MarkQuiesced) handoffCommand()      {}
func (MarkFlushed) handoffCommand()       {}
func (ReleaseForHandoff) handoffCommand() {}
func (DeclineHandoff) handoffCommand()    {}
func (CompleteHandoff) handoffCommand()   {}
func (AbandonHandoff) handoffCommand()    {}

// DecideHandoff says what cmd makes happen. No event means that it has happened
// already; any error is a typed refusal: one of this package's, or one of
// aggregates over the lease.
//
// The first event is always the saga's, to be written under the literal check
// of the saga's subject at s.Last. A second one is the lease's, to be written
// IN THE SAME ATOMIC BATCH under the family check at the command's Lease.Last.
func DecideHandoff(s Handoff, cmd HandoffCommand) ([]events.Event, error) {
	switch cmd := cmd.(type) {
	case RequestHandoff:
		return decideRequest(s, cmd)
	case MarkWarmed:
		return s.mark(cmd.Saga, cmd.By, s.To, events.HandoffWarmed{HandoffBody: s.HandoffBody})
	case MarkQuiesced:
		return s.mark(cmd.Saga, cmd.By, s.From, events.HandoffQuiesced{HandoffBody: s.HandoffBody})
	case MarkFlushed:
		body := s.HandoffBody
		body.Quiesced = s.Last
		return s.mark(cmd.Saga, cmd.By, s.From, events.HandoffFlushed{HandoffBody: body})
	case ReleaseForHandoff:
		return decideRelease(s, cmd)
	case DeclineHandoff:
		return decideDecline(s, cmd)
	case CompleteHandoff:
		return decideComplete(s, cmd)
	case AbandonHandoff:
		return decideAbandon(s, cmd)
	default:
		panic(fmt.Sprintf("sagas: no handoff command %T", cmd))
	}
}

func decideRequest(s Handoff, cmd RequestHandoff) ([]events.Event, error) {
	if s.Open() {
		return nil, &OpenError{s.ID(), s.own, s.To}
	}
	if cmd.Lease.Status == aggregates.LeaseFree || cmd.Lease.Owner != cmd.From {
		return nil, &NotHolderError{cmd.Handle, cmd.From, cmd.Lease}
	}
	if s.Number > 0 && s.TornDown() && s.Epoch == cmd.Lease.Epoch {
		return nil, &TornDownError{s.ID(), s.From}
	}
	if cmd.From == cmd.To {
		return nil, &NotYoursError{events.HandoffID(cmd.Handle, s.Number+1), cmd.To, "another process"}
	}
	return []events.Event{events.HandoffRequested{HandoffBody: events.HandoffBody{
		Handle: cmd.Handle, Number: s.Number + 1, From: cmd.From, To: cmd.To, Epoch: cmd.Lease.Epoch,
		Reason: cmd.Reason, By: cmd.By, Patience: cmd.Patience,
	}}}, nil
}

// mark decides a step that depends on nothing but the one before.
func (s Handoff) mark(saga string, by, whose events.Incarnation, next events.HandoffEvent) ([]events.Event, error) {
	step, _ := next.Handoff()
	done, err := s.admit(saga, by, whose, step)
	if done || err != nil {
		return nil, err
	}
	return []events.Event{next}, nil
}

// admit says whether by may take the handoff to step, or has.
func (s Handoff) admit(saga string, by, whose events.Incarnation, step events.HandoffStep) (done bool, err error) {
	if s.Number == 0 || s.ID() != saga {
		return false, s.notOpen(saga)
	}
	if by != whose {
		return false, &NotYoursError{saga, by, whose}
	}
	if s.own == step || s.Open() && reached(s.own, step) {
		return true, nil
	}
	if !s.Open() {
		return false, s.notOpen(saga)
	}
	if before := stepBefore(step); s.own != before {
		return false, &OutOfStepError{saga, s.own, before}
	}
	return false, nil
}

// stepBefore is the saga's own step that another of its own follows.
func stepBefore(step events.HandoffStep) events.HandoffStep {
	switch step {
	case events.StepWarmed:
		return events.StepRequested
	case events.StepQuiesced:
		return events.StepWarmed
	case events.StepFlushed:
		return events.StepQuiesced
	case events.StepReleased:
		return events.StepFlushed
	case events.StepCompleted:
		return events.StepReleased
	default:
		panic(fmt.Sprintf("sagas: no step before %q", step))
	}
}

func (s Handoff) notOpen(saga string) error {
	if s.Number == 0 {
		return &NotOpenError{Saga: saga}
	}
	return &NotOpenError{saga, s.ID(), s.own}
}

func decideRelease(s Handoff, cmd ReleaseForHandoff) ([]events.Event, error) {
	done, err := s.admit(cmd.Saga, cmd.By, s.From, events.StepReleased)
	if done || err != nil {
		return nil, err
	}
	lease := events.SeatLease(s.Handle)
	released, err := aggregates.DecideLease(cmd.Lease, aggregates.ReleaseLease{
		Lease: lease, Owner: s.From, Epoch: s.Epoch, Reason: s.Reason.Released(),
		Successor: s.To, ReservedFor: s.Patience.Claim.Duration(), Saga: s.ID(),
	})
	if err != nil {
		return nil, err
	}
	if len(released) == 0 { // plainly, without the saga: there is nothing left to hand over
		return nil, &aggregates.EndedError{Lease: lease, Epoch: s.Epoch, Now: cmd.Lease}
	}
	return append([]events.Event{events.HandoffReleased{HandoffBody: s.HandoffBody, ReservedFor: s.Patience.Claim}}, released...), nil
}

// decideDecline ends the handoff by its target's hand, and with it the
// reservation if there is one already.
func decideDecline(s Handoff, cmd DeclineHandoff) ([]events.Event, error) {
	switch {
	case s.Number == 0 || s.ID() != cmd.Saga:
		return nil, s.notOpen(cmd.Saga)
	case cmd.By != s.To:
		return nil, &NotYoursError{cmd.Saga, cmd.By, s.To}
	case s.own == events.StepDeclined:
		return nil, nil
	case !s.Open():
		return nil, s.notOpen(cmd.Saga)
	}
	declined := []events.Event{events.HandoffDeclined{HandoffBody: s.HandoffBody, Step: s.own, Cause: cmd.Cause}}
	if s.own != events.StepReleased {
		return declined, nil
	}
	lease := events.SeatLease(s.Handle)
	ended, err := aggregates.DecideLease(cmd.Lease, aggregates.DeclineLease{Lease: lease, By: s.To, Epoch: s.Epoch, Reason: cmd.Cause})
	if err != nil {
		return nil, err
	}
	return append(declined, ended...), nil
}

func decideComplete(s Handoff, cmd CompleteHandoff) ([]events.Event, error) {
	done, err := s.admit(cmd.Saga, cmd.By, s.To, events.StepCompleted)
	if done || err != nil {
		return nil, err
	}
	if !s.claimedByTarget(cmd.Lease) {
		return nil, &aggregates.EndedError{Lease: events.SeatLease(s.Handle), Epoch: s.Epoch + 1, Now: cmd.Lease}
	}
	return []events.Event{events.HandoffCompleted{
		HandoffBody: s.HandoffBody, ClaimedEpoch: cmd.Lease.Epoch, DarkFor: events.MillisOf(cmd.DarkFor),
	}}, nil
}

// decideAbandon ends the handoff. Before the release anybody may, for any cause,
// since the source can always go on or give up. After it the seat is reserved,
// so only what is proven counts: the deadline, or the loss.
func decideAbandon(s Handoff, cmd AbandonHandoff) ([]events.Event, error) {
	switch {
	case s.Number == 0 || s.ID() != cmd.Saga:
		return nil, s.notOpen(cmd.Saga)
	case s.own == events.StepAbandoned:
		return nil, nil
	case !s.Open():
		return nil, s.notOpen(cmd.Saga)
	}
	abandoned := events.HandoffAbandoned{HandoffBody: s.HandoffBody, Step: s.own, Cause: cmd.Cause, Ender: cmd.By}
	switch cmd.Cause {
	case events.AbandonDeadline:
		if !cmd.Known || cmd.Unseen < Deadline(s) {
			return nil, &TooEarlyError{cmd.Saga, s.Last, Deadline(s)}
		}
		abandoned.Unseen = events.MillisOf(cmd.Unseen)
	case events.AbandonLost:
		if !s.lost(cmd.Lease) {
			return nil, &NotLostError{cmd.Saga}
		}
	default:
		if s.own == events.StepReleased {
			return nil, &TooLateError{cmd.Saga, s.To}
		}
	}
	return []events.Event{abandoned}, nil
}
