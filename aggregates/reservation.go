package aggregates

import (
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// ReservedError refuses a claim: the lease is free, but for Successor alone
// until its release, at Last, has been unseen for For.
type ReservedError struct {
	Lease     events.Lease
	Successor events.Incarnation
	Last      uint64
	For       time.Duration
}

func (e *ReservedError) Error() string {
	return fmt.Sprintf("%s is being handed to %s; others may claim it once its release, at sequence %d, is %v old", e.Lease, e.Successor, e.Last, e.For)
}

// NotReservedError refuses what only the one a lease is reserved for may do.
type NotReservedError struct {
	Lease events.Lease
	By    events.Incarnation
	Now   Lease
}

func (e *NotReservedError) Error() string {
	now := "it is free for all"
	switch {
	case e.Now.Status != LeaseFree:
		now = fmt.Sprintf("%s has epoch %d", e.Now.Owner, e.Now.Epoch)
	case e.Now.Successor != "":
		now = fmt.Sprintf("handoff %q reserves it for %s", e.Now.Saga, e.Now.Successor)
	}
	return fmt.Sprintf("%s is not reserved for %s: %s", e.Lease, e.By, now)
}

// reservedTo says whether that handoff reserves the lease for owner. It goes on
// after the time is up, until somebody claims.
func (s Lease) reservedTo(owner events.Incarnation, saga string) bool {
	return s.Status == LeaseFree && s.Successor != "" && s.Successor == owner && s.Saga == saga
}

// claimFree claims a released lease: at once, unless it is reserved for another.
// The claim over a reservation carries the evidence that its time was up, so
// that an audit need not take anybody's word.
func claimFree(s Lease, cmd ClaimLease, claim events.LeaseClaimed) ([]events.Event, error) {
	switch {
	case s.Successor == "" || s.Successor == cmd.Owner:
		claim.Saga = cmd.Saga
	case cmd.Known && cmd.Unseen >= s.ReservedFor:
		claim.Waited = &events.Waited{Successor: s.Successor, LastSeq: s.Last, Unseen: events.MillisOf(cmd.Unseen)}
	default:
		return nil, &ReservedError{cmd.Lease, s.Successor, s.Last, s.ReservedFor}
	}
	return []events.Event{claim}, nil
}

func decideDecline(s Lease, cmd DeclineLease) ([]events.Event, error) {
	if s.Status != LeaseFree || s.Epoch != cmd.Epoch || cmd.By == "" {
		return nil, &NotReservedError{cmd.Lease, cmd.By, s}
	}
	switch cmd.By {
	case s.Declined:
		return nil, nil
	case s.Successor:
		return []events.Event{events.LeaseDeclined{
			Lease: cmd.Lease, Epoch: s.Epoch, Owner: s.Former, By: cmd.By, Reason: cmd.Reason, Saga: s.Saga,
		}}, nil
	default:
		return nil, &NotReservedError{cmd.Lease, cmd.By, s}
	}
}
