package audit

import (
	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// reserved judges a claim of a free lease against the reservation that its
// release may have made: the successor claims at once, anybody else proves that
// the reservation's time was up (design §5). A saga in the claim is a right that
// the reservation gave (P2), so it is held to it.
func (a *Auditor) reserved(l *lease, e events.LeaseClaimed) {
	s, w := l.state, e.Waited
	switch {
	case e.Saga != "" && (s.Successor != e.Owner || s.Saga != e.Saga):
		a.violation(e.Lease, RuleReserved, "epoch %d was claimed by %s for handoff %q, which did not reserve the lease for it", e.Epoch, e.Owner, e.Saga)
	case s.Successor == "" || s.Successor == e.Owner:
		if w != nil {
			a.violation(e.Lease, RuleReserved, "epoch %d says that it waited for %s, for whom nothing was reserved", e.Epoch, w.Successor)
		}
	case w == nil:
		a.violation(e.Lease, RuleReserved, "epoch %d was claimed by %s without evidence, although handoff %q had reserved it for %s", e.Epoch, e.Owner, s.Saga, s.Successor)
	case w.Successor != s.Successor || w.LastSeq != s.Last:
		a.violation(e.Lease, RuleReserved, "epoch %d has evidence about a release for %s at sequence %d, but it was for %s at %d", e.Epoch, w.Successor, w.LastSeq, s.Successor, s.Last)
	case w.Unseen.Duration() < s.ReservedFor:
		a.violation(e.Lease, RuleReserved, "epoch %d was claimed after %v, although handoff %q had reserved it for %s for %v", e.Epoch, w.Unseen.Duration(), s.Saga, s.Successor, s.ReservedFor)
	}
}

// declined judges the end of a reservation by the one it is for.
func (a *Auditor) declined(rec events.Recorded, e events.LeaseDeclined) {
	l := a.lease(e.Lease)
	if l.doubted {
		return
	}
	if !l.reservedFor(e) {
		a.violation(e.Lease, RuleReserved, "%s declined the lease after epoch %d of %s, which was not reserved for it", e.By, e.Epoch, e.Owner)
	} else {
		l.state = aggregates.EvolveLease(l.state, rec.Seq, e)
	}
	l.state.Last = rec.Seq
}

// reservedFor says whether the lease is reserved for the one who declines it.
func (l *lease) reservedFor(e events.LeaseDeclined) bool {
	s := l.state
	return s.Status == aggregates.LeaseFree && s.Successor != "" && s.Successor == e.By && s.Epoch == e.Epoch && s.Former == e.Owner && s.Saga == e.Saga
}
