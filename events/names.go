package events

import "fmt"

// Wire names. They are constants, never derived from Go types: renaming a type
// must not orphan stored events. A retired name is never reused.
const (
	NameSeatClaimed         = "seat-claimed"
	NameSeatRenewed         = "seat-renewed"
	NameSeatReleased        = "seat-released"
	NameSeatFenced          = "seat-fenced"
	NameNodeClaimed         = "node-claimed"
	NameNodeRenewed         = "node-renewed"
	NameNodeReported        = "node-reported"
	NameNodeReleased        = "node-released"
	NameNodeFenced          = "node-fenced"
	NameWorkerClaimed       = "worker-claimed"
	NameWorkerRenewed       = "worker-renewed"
	NameWorkerReleased      = "worker-released"
	NameWorkerFenced        = "worker-fenced"
	NameSeatEstablished     = "seat-established"
	NameSeatPaused          = "seat-paused"
	NameSeatResumed         = "seat-resumed"
	NameSeatUnproven        = "seat-unproven"
	NameSeatProven          = "seat-proven"
	NameTriggerSkipped      = "turn-trigger-skipped"
	NameMailboxRegistered   = "mailbox-registered"
	NameMailboxRetiring     = "mailbox-retiring"
	NameMailboxRetired      = "mailbox-retired"
	NameCursorRetired       = "cursor-retired"
	NameMailboxAbsent       = "mailbox-absent"
	NameMailboxReturned     = "mailbox-returned"
	NameRetirementTicked    = "retirement-ticked"
	NameRetirementMarked    = "retirement-marked"
	NameRetirementResumed   = "retirement-resumed"
	NameRetirementUnmarked  = "retirement-unmarked"
	NameRetirementTakenOver = "retirement-taken-over"
	NameRetirementRunsEnded = "retirement-runs-ended"
	NameRetirementPurged    = "retirement-purged"
	NameRetirementCompleted = "retirement-completed"
	NameStreamMarked        = "stream-marked"
	NameCompanyApplied      = "company-applied"
	NameCursorCreated       = "cursor-created"
	NameCursorOpened        = "cursor-opened"
	NameCursorAttempted     = "cursor-attempted"
	NameCursorSettled       = "cursor-settled"
	NameCursorHeld          = "cursor-held"
	NameCursorFreed         = "cursor-freed"
	NameTurnCompleted       = "turn-completed"
	NameMailParked          = "mail-parked"
	NameMailReplayed        = "mail-replayed"
	NameMailReturned        = "mail-returned"
	NameMailDropped         = "mail-dropped"
	NameSeatDeclined        = "seat-declined"
	NameHandoffRequested    = "handoff-requested"
	NameHandoffWarmed       = "handoff-warmed"
	NameHandoffQuiesced     = "handoff-quiesced"
	NameHandoffFlushed      = "handoff-flushed"
	NameHandoffReleased     = "handoff-released"
	NameHandoffCompleted    = "handoff-completed"
	NameHandoffDeclined     = "handoff-declined"
	NameHandoffAbandoned    = "handoff-abandoned"
)

// leaseNames gives the four names of each kind of lease.
var leaseNames = map[LeaseKind][4]string{
	KindSeat:   {NameSeatClaimed, NameSeatRenewed, NameSeatReleased, NameSeatFenced},
	KindNode:   {NameNodeClaimed, NameNodeRenewed, NameNodeReleased, NameNodeFenced},
	KindWorker: {NameWorkerClaimed, NameWorkerRenewed, NameWorkerReleased, NameWorkerFenced},
}

// handoffNames gives the name of each step that is an event of a handoff.
var handoffNames = map[HandoffStep]string{
	StepRequested: NameHandoffRequested,
	StepWarmed:    NameHandoffWarmed,
	StepQuiesced:  NameHandoffQuiesced,
	StepFlushed:   NameHandoffFlushed,
	StepReleased:  NameHandoffReleased,
	StepCompleted: NameHandoffCompleted,
	StepDeclined:  NameHandoffDeclined,
	StepAbandoned: NameHandoffAbandoned,
}

// Name returns the event's wire name.
func Name(e Event) string {
	switch e := e.(type) {
	case LeaseClaimed:
		return leaseNames[e.Lease.Kind][0]
	case LeaseRenewed:
		return leaseNames[e.Lease.Kind][1]
	case LeaseReleased:
		return leaseNames[e.Lease.Kind][2]
	case LeaseFenced:
		return leaseNames[e.Lease.Kind][3]
	case NodeReported:
		return NameNodeReported
	case SeatEstablished:
		return NameSeatEstablished
	case SeatPaused:
		return NameSeatPaused
	case SeatResumed:
		return NameSeatResumed
	case SeatUnproven:
		return NameSeatUnproven
	case SeatProven:
		return NameSeatProven
	case TriggerSkipped:
		return NameTriggerSkipped
	case MailboxRegistered:
		return NameMailboxRegistered
	case MailboxRetiring:
		return NameMailboxRetiring
	case MailboxRetired:
		return NameMailboxRetired
	case CursorRetired:
		return NameCursorRetired
	case StreamMarked:
		return NameStreamMarked
	case CompanyApplied:
		return NameCompanyApplied
	case CursorCreated:
		return NameCursorCreated
	case CursorOpened:
		return NameCursorOpened
	case CursorAttempted:
		return NameCursorAttempted
	case CursorSettled:
		return NameCursorSettled
	case CursorHeld:
		return NameCursorHeld
	case CursorFreed:
		return NameCursorFreed
	case TurnCompleted:
		return NameTurnCompleted
	case MailParked:
		return NameMailParked
	case MailReplayed:
		return NameMailReplayed
	case MailReturned:
		return NameMailReturned
	case MailDropped:
		return NameMailDropped
	case LeaseDeclined:
		return NameSeatDeclined
	case HandoffEvent:
		step, _ := e.Handoff()
		return handoffNames[step]
	case RetirementEvent:
		return retirementName(e)
	default:
		panic(fmt.Sprintf("events: no wire name for %T", e))
	}
}

// retirementName is Name for the events of a retirement.
func retirementName(e RetirementEvent) string {
	switch e.(type) {
	case MailboxAbsent:
		return NameMailboxAbsent
	case MailboxReturned:
		return NameMailboxReturned
	case RetirementTicked:
		return NameRetirementTicked
	case RetirementMarked:
		return NameRetirementMarked
	case RetirementResumed:
		return NameRetirementResumed
	case RetirementUnmarked:
		return NameRetirementUnmarked
	case RetirementTakenOver:
		return NameRetirementTakenOver
	case RetirementRunsEnded:
		return NameRetirementRunsEnded
	case RetirementPurged:
		return NameRetirementPurged
	case RetirementCompleted:
		return NameRetirementCompleted
	default:
		panic(fmt.Sprintf("events: no wire name for %T", e))
	}
}
