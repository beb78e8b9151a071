package audit

import (
	"slices"
	"strings"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// lease is what the auditor knows of one lease.
type lease struct {
	state   aggregates.Lease
	highest uint64        // epoch ever claimed
	ttl     events.Millis // of the claim in force
	claims  int
	tenures []tenure // of a seat, as claimed; records of other streams name them
	// doubted: an event of the family could not be read. Until the next claim
	// nobody can say which tenure is in force.
	doubted bool
	// holes: there was such an event, so tenures may have gone unseen.
	holes bool
}

// tenure is one epoch of a seat.
type tenure struct {
	epoch   uint64
	claimed uint64 // sequence of the claim
	owner   events.Incarnation
	ended   int64 // broker's stamp of the end in Unix nanoseconds; 0: in force
}

func (a *Auditor) lease(name events.Lease) *lease {
	l := a.leases[name]
	if l == nil {
		l = &lease{}
		a.leases[name] = l
	}
	return l
}

// doubt notes that the state of the lease or of the handoff under m's subject,
// if it is one, is not known from here on.
func (a *Auditor) doubt(m events.Message) {
	if m.Stream == events.StreamFleet {
		a.owed, a.unread = nil, m.Seq
	}
	fleet := a.subjects.Prefix() + ".fleet."
	if handle, ours := strings.CutPrefix(m.Subject, fleet+"saga.handoff."); ours {
		a.handoff(handle).doubted = true
	}
	rest, ours := strings.CutPrefix(m.Subject, fleet+"lease.")
	if tok := strings.Split(rest, "."); ours && len(tok) == 3 {
		l := a.lease(events.Lease{Kind: events.LeaseKind(tok[0]), ID: tok[1]})
		l.doubted, l.holes = true, true
	}
}

// written judges the envelope of an act that is its holder's alone.
func (a *Auditor) written(rec events.Recorded, name events.Lease, rule Rule, epoch uint64, owner events.Incarnation) {
	if rec.Meta.Source != owner || rec.Meta.Epoch != epoch {
		a.violation(name, rule, "the envelope names epoch %d and %q as the writer, the event epoch %d of %s", rec.Meta.Epoch, rec.Meta.Source, epoch, owner)
	}
}

func (a *Auditor) claimed(rec events.Recorded, e events.LeaseClaimed) {
	l := a.lease(e.Lease)
	a.written(rec, e.Lease, RuleClaim, e.Epoch, e.Owner)
	switch {
	case e.Epoch <= l.highest:
		a.violation(e.Lease, RuleEpoch, "claimed at epoch %d, although epoch %d was claimed before", e.Epoch, l.highest)
	case e.Epoch > l.highest+1 && !l.doubted:
		a.note(e.Lease, NoteEpochGap, "claimed at epoch %d after epoch %d", e.Epoch, l.highest)
	}
	if !l.doubted {
		a.entitled(l, e)
	}
	if l.state.Status != aggregates.LeaseFree {
		l.end(rec)
	}
	l.state = aggregates.EvolveLease(l.state, rec.Seq, e)
	l.highest = max(l.highest, e.Epoch)
	l.ttl, l.doubted = e.TTL, false
	l.claims++
	if e.Lease.Kind == events.KindSeat {
		l.tenures = append(l.tenures, tenure{epoch: e.Epoch, claimed: rec.Seq, owner: e.Owner})
	}
}

// entitled judges the right to a claim: the lease was free, or the claim proves
// that the tenure it takes over had lapsed or its holder was dead (design §3).
func (a *Auditor) entitled(l *lease, e events.LeaseClaimed) {
	s := l.state
	if s.Status == aggregates.LeaseFree {
		if e.Over != nil {
			a.violation(e.Lease, RuleClaim, "epoch %d says that it took over epoch %d, but nobody held the lease", e.Epoch, e.Over.Epoch)
		}
		a.reserved(l, e)
		return
	}
	if e.Waited != nil || e.Saga != "" {
		a.violation(e.Lease, RuleReserved, "epoch %d was claimed as if the lease had been reserved, but %s held it", e.Epoch, s.Owner)
	}
	over := e.Over
	switch {
	case over == nil:
		a.violation(e.Lease, RuleClaim, "epoch %d was claimed without evidence over epoch %d of %s, which nobody released", e.Epoch, s.Epoch, s.Owner)
		return
	case over.Epoch != s.Epoch || over.Owner != s.Owner:
		a.violation(e.Lease, RuleClaim, "epoch %d has evidence over epoch %d of %s, but took over epoch %d of %s", e.Epoch, over.Epoch, over.Owner, s.Epoch, s.Owner)
	}
	a.lastSeen(l, e)
	switch {
	case over.Local && (s.Local == "" || s.Local != e.Local):
		a.violation(e.Lease, RuleClaim, "epoch %d was taken over as local in data directory %q, but the tenure names %q", e.Epoch, e.Local, s.Local)
	case over.Local && e.Owner == s.Owner:
		a.violation(e.Lease, RuleClaim, "epoch %d says that its own incarnation %s is dead", e.Epoch, e.Owner)
	case over.Local:
	case over.Unseen < events.MillisOf(events.LapsesAfter(l.ttl.Duration())):
		a.violation(e.Lease, RuleClaim, "epoch %d took over a tenure unseen for %v, which lapses after %v",
			e.Epoch, over.Unseen.Duration(), events.LapsesAfter(l.ttl.Duration()))
	}
}

// lastSeen judges which event the evidence is about: the family's last. It may
// name a later one than the log still has only if that can have been a renewal
// that was pruned, and one purge prunes the renewals of all leases up to a
// position: none that is left stands below.
func (a *Auditor) lastSeen(l *lease, e events.LeaseClaimed) {
	named, last := e.Over.LastSeq, l.state.Last
	pruned := named > last && named < a.at.seq && (a.firstRenewal == 0 || named < a.firstRenewal)
	switch {
	case named == last:
	case pruned:
		a.note(e.Lease, NoteEvidence, "epoch %d rests on the renewal at sequence %d, which is pruned", e.Epoch, named)
	default:
		a.violation(e.Lease, RuleClaim, "epoch %d has evidence about sequence %d, but the lease's last event stands at %d", e.Epoch, named, last)
	}
}

// extended judges what proves that a tenure goes on: a renewal, or what a node
// reports on itself.
func (a *Auditor) extended(rec events.Recorded, name events.Lease, epoch uint64, owner events.Incarnation, what string) {
	l := a.lease(name)
	a.written(rec, name, RuleEnded, epoch, owner)
	if l.doubted {
		return
	}
	switch {
	case !l.inForce(epoch, owner):
		a.ended(l, name, epoch, owner, what)
	case l.state.Status == aggregates.LeaseFenced:
		a.violation(name, RuleEnded, "epoch %d of %s %s after it had been fenced", epoch, owner, what)
	default:
		l.state = aggregates.EvolveLease(l.state, rec.Seq, rec.Event)
	}
	l.state.Last = rec.Seq
}

func (a *Auditor) released(rec events.Recorded, e events.LeaseReleased) {
	l := a.lease(e.Lease)
	a.written(rec, e.Lease, RuleEnded, e.Epoch, e.Owner)
	if l.doubted {
		return
	}
	if l.inForce(e.Epoch, e.Owner) {
		l.end(rec)
		l.state = aggregates.EvolveLease(l.state, rec.Seq, e)
	} else {
		a.ended(l, e.Lease, e.Epoch, e.Owner, "was released")
	}
	l.state.Last = rec.Seq
}

func (a *Auditor) fenced(rec events.Recorded, e events.LeaseFenced) {
	l := a.lease(e.Lease)
	if l.doubted {
		return
	}
	switch {
	case !l.inForce(e.Epoch, e.Owner):
		a.ended(l, e.Lease, e.Epoch, e.Owner, "was fenced")
	case l.state.Status == aggregates.LeaseFenced:
		a.violation(e.Lease, RuleFence, "epoch %d of %s was fenced a second time", e.Epoch, e.Owner)
	}
	if l.inForce(e.Epoch, e.Owner) {
		l.state = aggregates.EvolveLease(l.state, rec.Seq, e)
	}
	l.state.Last = rec.Seq
}

// hosted judges a holder's report in FLEET. A fence ends renewals, not the
// tenure, so a report may follow it.
func (a *Auditor) hosted(name events.Lease, epoch uint64, owner events.Incarnation, what string) {
	if l := a.lease(name); !l.doubted && !l.inForce(epoch, owner) {
		a.ended(l, name, epoch, owner, what)
	}
}

// ended reports an act on a tenure that is not the one in force.
func (a *Auditor) ended(l *lease, name events.Lease, epoch uint64, owner events.Incarnation, what string) {
	if l.state.Status != aggregates.LeaseFree {
		a.violation(name, RuleEnded, "epoch %d of %s %s, but epoch %d of %s was in force", epoch, owner, what, l.state.Epoch, l.state.Owner)
		return
	}
	a.violation(name, RuleEnded, "epoch %d of %s %s, but nobody held the lease", epoch, owner, what)
}

func (l *lease) inForce(epoch uint64, owner events.Incarnation) bool {
	return l.state.Status != aggregates.LeaseFree && l.state.Epoch == epoch && l.state.Owner == owner
}

// claimedAt says whether owner ever claimed the lease at that epoch.
func (l *lease) claimedAt(epoch uint64, owner events.Incarnation) bool {
	for _, t := range slices.Backward(l.tenures) {
		if t.epoch == epoch && t.owner == owner {
			return true
		}
	}
	return false
}

// end stamps the end of the newest tenure.
func (l *lease) end(rec events.Recorded) {
	if n := len(l.tenures); n > 0 {
		l.tenures[n-1].ended = rec.At.UnixNano()
	}
}

// find returns the tenure that was claimed at that sequence.
func (l *lease) find(claimed uint64) (tenure, bool) {
	i, ok := slices.BinarySearchFunc(l.tenures, claimed, func(t tenure, claimed uint64) int {
		switch {
		case t.claimed < claimed:
			return -1
		case t.claimed > claimed:
			return 1
		}
		return 0
	})
	if !ok {
		return tenure{}, false
	}
	return l.tenures[i], true
}
