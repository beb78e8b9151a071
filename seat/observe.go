package seat

import (
	"context"
	"errors"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/placement"
)

// Observer is told what a host does, for whoever counts it. Nothing it does
// changes what the host does. Its methods must not block, are called from any
// goroutine, and never while the host's mutex is held.
type Observer interface {
	// Swept: a pass is over.
	Swept(s Swept)
	// Took: a step is over, one way or the other.
	Took(s Step, how Outcome, took time.Duration)
	// Received: a handoff to this process is complete. Nobody served the seat for
	// that long.
	Received(dark time.Duration)
	// Denied: a turn may not start, or not go on.
	Denied(g Gate, why Denial)
}

// Swept is what there is to say of a pass.
type Swept struct {
	End  SweepEnd
	Took time.Duration
	// Groups are those that the node has seats of, or room for, counted when the
	// pass was over, and Unplaceable the company's seats without a node; only for
	// SweepDone.
	Groups      []placement.Group
	Unplaceable int
}

// SweepEnd says how far a pass came.
type SweepEnd string

// Ends of a pass.
const (
	SweepDone     SweepEnd = "done"
	SweepIdle     SweepEnd = "idle"     // no presence of its own, or it runs no seats
	SweepWithheld SweepEnd = "withheld" // its views do not serve (P10)
	SweepFailed   SweepEnd = "failed"   // it could not look at the fleet
)

// Step is one of the things whose duration counts.
type Step string

// Steps of a tenure.
const (
	StepClaim     Step = "claim"     // of a seat: the write and its answer
	StepEstablish Step = "establish" // from before the claim was sent until the seat is up
	StepRenew     Step = "renew"     // one round for all that the node holds
)

// Outcome of a step. Unknown is neither of the others (L8).
type Outcome string

// Outcomes. A round of renewals is unknown if one of its answers is missing,
// else refused if one was refused.
const (
	OutcomeDone    Outcome = "done"
	OutcomeRefused Outcome = "refused"
	OutcomeUnknown Outcome = "unknown"
)

// Gate is what a turn passes.
type Gate string

// Gates.
const (
	GateAdmission Gate = "admission" // MayStart (A1)
	GateFence     Gate = "fence"     // Fence (F2)
)

// Denial says why a gate was shut.
type Denial string

// Denials, by the errors of MayStart and Fence.
const (
	DeniedNotHeld Denial = "not_held"
	DeniedStale   Denial = "stale"   // admission only (A1)
	DeniedStopped Denial = "stopped" // fence only: by a person (F4)
)

func (h *Host) observeSweep(pass Pass, took time.Duration) {
	if h.deps.Observe == nil {
		return
	}
	h.deps.Observe.Swept(Swept{End: pass.end, Took: took, Groups: pass.groups, Unplaceable: len(pass.Unplaceable)})
}

// groupsAfter is what the node has of each group after a pass: counted anew when
// the pass changed it.
func (h *Host) groupsAfter(s Sight, pass Pass, plan placement.Plan) []placement.Group {
	switch {
	case h.deps.Observe == nil:
		return nil
	case pass.Claimed+pass.Released > 0 || len(plan.Moved)+len(plan.Decommissioned) > 0:
		plan = placement.Sweep(h.view(s, nil))
	}
	var own []placement.Group
	for _, g := range plan.Groups {
		if g.Room > 0 || g.Held > 0 {
			own = append(own, g)
		}
	}
	return own
}

func (h *Host) observeStep(s Step, how Outcome, since time.Time) {
	if h.deps.Observe != nil {
		h.deps.Observe.Took(s, how, time.Since(since))
	}
}

// outcomeOf tells an answer that is missing from a refusal.
func outcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeDone
	}
	for _, missing := range []error{
		events.ErrUnknown, events.ErrUnavailable, events.ErrBusy, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, missing) {
			return OutcomeUnknown
		}
	}
	return OutcomeRefused
}

// outcomeOfAll is the outcome of a round.
func outcomeOfAll(round []commands.Renewed) Outcome {
	how := OutcomeDone
	for _, r := range round {
		switch {
		case r.Err == nil:
		case r.Refused() && how == OutcomeDone:
			how = OutcomeRefused
		case !r.Refused():
			return OutcomeUnknown
		}
	}
	return how
}

func (h *Host) observeDenial(g Gate, err error) {
	if err == nil || h.deps.Observe == nil {
		return
	}
	why := DeniedNotHeld
	var stale *StaleError
	var stopped *StoppedError
	switch {
	case errors.As(err, &stale):
		why = DeniedStale
	case errors.As(err, &stopped):
		why = DeniedStopped
	}
	h.deps.Observe.Denied(g, why)
}
