package aggregates

import (
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// LeaseStatus says what a lease's last event left it as.
type LeaseStatus int

// What a lease can be. Lapsed is none of them: that is a verdict of the log
// clock over LeaseHeld or LeaseFenced, not a fact of the log.
const (
	LeaseFree   LeaseStatus = iota // never claimed, or released: claimable at once
	LeaseHeld                      // claimed or renewed last
	LeaseFenced                    // fenced by an operator: not renewable, not free yet
)

// Lease is one lease as the newest event of its family has it. It never mixes
// that event with projected state (design §3), and needs no older one.
type Lease struct {
	Last   uint64 // sequence of the family's newest event; 0: none
	Epoch  uint64 // of the newest tenure; 0: none yet
	Owner  events.Incarnation
	Status LeaseStatus
	Former events.Incarnation // who held the tenure that a release ended
	Local  string             // data directory of a holder under local coordination

	// Successor has the released lease reserved until the release has stood
	// behind the log for ReservedFor; Saga names the handoff that did it.
	Successor   events.Incarnation
	ReservedFor time.Duration
	Saga        string
	Declined    events.Incarnation // who ended such a reservation, last
}

// EvolveLease applies the event at seq. It is total.
func EvolveLease(s Lease, seq uint64, e events.Event) Lease {
	switch e := e.(type) {
	case events.LeaseClaimed:
		return Lease{Last: seq, Epoch: e.Epoch, Owner: e.Owner, Status: LeaseHeld, Local: e.Local}
	case events.LeaseRenewed:
		return Lease{Last: seq, Epoch: e.Epoch, Owner: e.Owner, Status: LeaseHeld, Local: e.Local}
	case events.NodeReported:
		// What the node says is for views: a lease keeps of it what it keeps of
		// a renewal, so that the family's newest event goes on telling all.
		return Lease{Last: seq, Epoch: e.Epoch, Owner: e.Owner, Status: LeaseHeld, Local: e.Local}
	case events.LeaseFenced:
		return Lease{Last: seq, Epoch: e.Epoch, Owner: e.Owner, Status: LeaseFenced, Local: e.Local}
	case events.LeaseReleased:
		return Lease{
			Last: seq, Epoch: e.Epoch, Status: LeaseFree, Former: e.Owner,
			Successor: e.Successor, ReservedFor: e.ReservedFor.Duration(), Saga: e.Saga,
		}
	case events.LeaseDeclined:
		return Lease{Last: seq, Epoch: e.Epoch, Status: LeaseFree, Former: e.Owner, Declined: e.By}
	default:
		panic(fmt.Sprintf("aggregates: a lease cannot evolve by %T", e))
	}
}

// LeaseCommand is what can be asked of a lease.
type LeaseCommand interface{ leaseCommand() }

// ClaimLease asks for a new tenure.
type ClaimLease struct {
	Lease     events.Lease
	Owner     events.Incarnation
	Preferred string
	TTL       time.Duration // the fleet's, in force for every lease (L7)
	Protocol  int
	Local     string // this process's data directory under local coordination, else ""
	Node      *events.NodeFacts

	// Unseen is how long the log clock has stood past the state's Last. Known
	// is false while no sample covers it: unknown, hence not lapsed.
	Unseen time.Duration
	Known  bool
	// DeadLocal names the data directory whose exclusive lock the claimant
	// took at this boot: a tenure that names it has no living holder.
	DeadLocal string
	// Saga names the handoff whose reservation for Owner the claim uses, or
	// nothing. Such a claim counts in no pass (P2), so it stands or falls with
	// the reservation.
	Saga string
}

// RenewLease asks to extend the tenure (L3, L8).
type RenewLease struct {
	Lease events.Lease
	Owner events.Incarnation
	Epoch uint64
}

// ReportNode says anew what a node's presence says of the node, the whole of
// it (P8, P11, P13). It stands on the tenure, and extends it, as a renewal does.
type ReportNode struct {
	Lease events.Lease
	Owner events.Incarnation
	Epoch uint64
	Node  events.NodeFacts
}

// ReleaseLease ends the tenure by its owner's hand.
type ReleaseLease struct {
	Lease  events.Lease
	Owner  events.Incarnation
	Epoch  uint64
	Reason events.Reason

	// Successor, if any, may claim alone for ReservedFor, and name Saga.
	Successor   events.Incarnation
	ReservedFor time.Duration
	Saga        string
}

// DeclineLease ends a reservation by the hand of the one it is for.
type DeclineLease struct {
	Lease  events.Lease
	By     events.Incarnation
	Epoch  uint64 // of the released tenure
	Reason events.DeclineReason
}

// FenceLease ends the tenure's renewals by an operator's hand.
type FenceLease struct {
	Lease  events.Lease
	Epoch  uint64
	Reason string
	By     string
}

func (ClaimLease) leaseCommand()   {}
func (RenewLease) leaseCommand()   {}
func (ReportNode) leaseCommand()   {}
func (ReleaseLease) leaseCommand() {}
func (FenceLease) leaseCommand()   {}
func (DeclineLease) leaseCommand() {}

// HeldError refuses a claim: the lease has a tenure that may still be good.
type HeldError struct {
	Lease  events.Lease
	Owner  events.Incarnation
	Epoch  uint64
	Last   uint64 // the event whose age decides
	Fenced bool
}

func (e *HeldError) Error() string {
	how := "held"
	if e.Fenced {
		how = "fenced, but not yet lapsed, from"
	}
	return fmt.Sprintf("%s is %s by %s at epoch %d", e.Lease, how, e.Owner, e.Epoch)
}

// EndedError refuses an act on a tenure that is over (L8): it moved, was
// released or fenced. It says what stands now.
type EndedError struct {
	Lease events.Lease
	Epoch uint64 // of the tenure that the command named
	Now   Lease
}

func (e *EndedError) Error() string {
	now := "nobody holds it"
	if e.Now.Status != LeaseFree {
		now = fmt.Sprintf("%s has epoch %d", e.Now.Owner, e.Now.Epoch)
	}
	return fmt.Sprintf("the tenure of %s at epoch %d is over: %s", e.Lease, e.Epoch, now)
}

// FencedTwiceError refuses a second fence of one tenure: it would push out the
// moment at which a successor may claim.
type FencedTwiceError struct {
	Lease events.Lease
	Epoch uint64
}

func (e *FencedTwiceError) Error() string {
	return fmt.Sprintf("the tenure of %s at epoch %d is fenced already; a successor may claim once it has lapsed", e.Lease, e.Epoch)
}

// DecideLease says what cmd makes happen to s. No event means it has happened
// already; a typed refusal (*HeldError, *EndedError, *FencedTwiceError,
// *ReservedError, *NotReservedError) means it may not.
func DecideLease(s Lease, cmd LeaseCommand) ([]events.Event, error) {
	switch cmd := cmd.(type) {
	case ClaimLease:
		return decideClaim(s, cmd)
	case RenewLease:
		if !s.renewable(cmd.Owner, cmd.Epoch) {
			return nil, &EndedError{cmd.Lease, cmd.Epoch, s}
		}
		return []events.Event{events.LeaseRenewed{Lease: cmd.Lease, Epoch: s.Epoch, Owner: s.Owner, Local: s.Local}}, nil
	case ReportNode:
		if !s.renewable(cmd.Owner, cmd.Epoch) {
			return nil, &EndedError{cmd.Lease, cmd.Epoch, s}
		}
		return []events.Event{events.NodeReported{Lease: cmd.Lease, Epoch: s.Epoch, Owner: s.Owner, Local: s.Local, Node: cmd.Node}}, nil
	case ReleaseLease:
		if s.Status == LeaseFree && s.Former == cmd.Owner && s.Epoch == cmd.Epoch {
			return nil, nil
		}
		if s.Status == LeaseFree || s.Owner != cmd.Owner || s.Epoch != cmd.Epoch {
			return nil, &EndedError{cmd.Lease, cmd.Epoch, s}
		}
		return []events.Event{events.LeaseReleased{
			Lease: cmd.Lease, Epoch: s.Epoch, Owner: s.Owner, Reason: cmd.Reason,
			Successor: cmd.Successor, ReservedFor: events.MillisOf(cmd.ReservedFor), Saga: cmd.Saga,
		}}, nil
	case DeclineLease:
		return decideDecline(s, cmd)
	case FenceLease:
		if s.Status == LeaseFree || s.Epoch != cmd.Epoch {
			return nil, &EndedError{cmd.Lease, cmd.Epoch, s}
		}
		if s.Status == LeaseFenced {
			return nil, &FencedTwiceError{cmd.Lease, cmd.Epoch}
		}
		return []events.Event{events.LeaseFenced{Lease: cmd.Lease, Epoch: s.Epoch, Owner: s.Owner, Reason: cmd.Reason, By: cmd.By, Local: s.Local}}, nil
	default:
		panic(fmt.Sprintf("aggregates: no lease command %T", cmd))
	}
}

// renewable says whether owner may extend the tenure of that epoch (L8).
func (s Lease) renewable(owner events.Incarnation, epoch uint64) bool {
	return s.Status == LeaseHeld && s.Owner == owner && s.Epoch == epoch
}

// decideClaim mints the next epoch, also for the same owner (L3): over a free
// lease, over a lapsed one with the evidence for it (L6), or at boot over a
// dead predecessor's under local coordination (design §3).
func decideClaim(s Lease, cmd ClaimLease) ([]events.Event, error) {
	claim := events.LeaseClaimed{
		Lease: cmd.Lease, Epoch: s.Epoch + 1, Owner: cmd.Owner, Preferred: cmd.Preferred,
		TTL: events.MillisOf(cmd.TTL), Protocol: cmd.Protocol, Local: cmd.Local, Node: cmd.Node,
	}
	if cmd.Saga != "" && !s.reservedTo(cmd.Owner, cmd.Saga) {
		return nil, &NotReservedError{cmd.Lease, cmd.Owner, s}
	}
	if s.Status == LeaseFree {
		return claimFree(s, cmd, claim)
	}
	over := &events.Over{Epoch: s.Epoch, Owner: s.Owner, LastSeq: s.Last}
	switch {
	case cmd.DeadLocal != "" && s.Local == cmd.DeadLocal && s.Owner != cmd.Owner:
		over.Local = true
	case cmd.Known && cmd.Unseen >= events.LapsesAfter(cmd.TTL):
		over.Unseen = events.MillisOf(cmd.Unseen)
	default:
		return nil, &HeldError{cmd.Lease, s.Owner, s.Epoch, s.Last, s.Status == LeaseFenced}
	}
	claim.Over = over
	return []events.Event{claim}, nil
}
