package sagas

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// RetirementView is what a runner knows when it asks what to do next.
type RetirementView struct {
	Listed bool // the current revision has the seat
	// Back: a revision that came and went since the newest judgement had it, so what
	// was observed before that counts for nothing (R4).
	Back bool
	// Owner and Epoch are the runner's tenure of the seat's lease; Epoch 0: none.
	Owner events.Incarnation
	Epoch uint64
	// Unseen is how long the runner has seen the retirement stand at its Last.
	Unseen time.Duration
	Stale  time.Duration // from when on a mark that does not move is resumed (R8)
	Now    bool          // an operator waives what is left of the grace
}

// RetirementEffect is what the runner is to do next with one mailbox. Each may
// be asked for again, and late: its command tells whether it still counts.
type RetirementEffect string

// Effects. Those from EffectMark on need the tenure.
const (
	EffectNone     RetirementEffect = ""         // nothing, until the next tick
	EffectObserve  RetirementEffect = "observe"  // ObserveAbsent
	EffectReturn   RetirementEffect = "return"   // ObserveReturned
	EffectClaim    RetirementEffect = "claim"    // the seat's lease, or HoldRetirement
	EffectMark     RetirementEffect = "mark"     // read the subjects' ends, then MarkRetirement
	EffectResume   RetirementEffect = "resume"   // the same, then ResumeRetirement
	EffectEndRuns  RetirementEffect = "end runs" // end the seat's runs, then EndRuns
	EffectPurge    RetirementEffect = "purge"    // move the cursors to the marks, purge up to them, then MarkPurged
	EffectComplete RetirementEffect = "complete" // CompleteRetirement
	EffectLeave    RetirementEffect = "leave"    // release the lease: the retirement is over, or another's
)

// NextRetirement says what to do now, given the folded present. Before the claim
// a runner asks it once a tick; under the tenure it asks until EffectLeave.
func NextRetirement(s Retirement, v RetirementView) RetirementEffect {
	if v.Epoch > 0 {
		return s.underTenure(v)
	}
	switch {
	case v.Listed && s.Step == events.RetireAbsent:
		return EffectReturn
	case v.Listed:
		return EffectNone // a mark is for whoever adds the seat back to wait for
	case s.Marked() && v.Unseen >= v.Stale:
		return EffectClaim
	case s.Marked():
		return EffectNone
	case s.Due() && !v.Back, v.Now && s.Step == events.RetireAbsent:
		return EffectClaim
	default:
		return EffectObserve
	}
}

func (s Retirement) underTenure(v RetirementView) RetirementEffect {
	mine := s.Owner == v.Owner && s.Epoch == v.Epoch
	switch {
	case s.Marked() && !mine && v.Unseen >= v.Stale && !v.Listed:
		return EffectResume
	case s.Marked() && !mine:
		return EffectLeave
	case s.Step == events.RetireAbsent && !v.Listed && (s.Due() || v.Now):
		return EffectMark
	case s.Step == events.RetireMarked:
		return EffectEndRuns
	case s.Step == events.RetireRunsEnded:
		return EffectPurge
	case s.Step == events.RetirePurged:
		return EffectComplete
	default:
		return EffectLeave
	}
}
