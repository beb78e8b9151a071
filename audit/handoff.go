package audit

import (
	"reflect"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// handoff is what the auditor knows of a seat's newest handoff.
type handoff struct {
	state sagas.Handoff
	// doubted: an event of it could not be read. Until the next request nobody
	// can say how far it is.
	doubted bool
}

// owed is the event that must stand right behind a step of a handoff, since the
// two are one atomic batch (design §5).
type owed struct {
	event events.Event
	at    place
}

func (a *Auditor) handoff(handle string) *handoff {
	h := a.handoffs[handle]
	if h == nil {
		h = &handoff{}
		a.handoffs[handle] = h
	}
	return h
}

// handedOver judges a step of a handoff by the law that decided it: told the
// same, the decider must say the same.
func (a *Auditor) handedOver(rec events.Recorded, e events.HandoffEvent) {
	step, body := e.Handoff()
	h := a.handoff(body.Handle)
	if step == events.StepRequested && h.doubted {
		h.state, h.doubted = sagas.EvolveHandoff(sagas.Handoff{}, rec.Seq, e), false
		return
	}
	if h.doubted {
		return
	}
	name := events.SeatLease(body.Handle)
	decided, err := sagas.DecideHandoff(h.state, a.askedFor(h.state, rec, e))
	switch {
	case err != nil:
		a.violation(name, RuleHandoff, "%s is said to be %s: %v", body.ID(), step, err)
	case len(decided) == 0:
		a.violation(name, RuleHandoff, "%s is said to be %s, and was so already", body.ID(), step)
	case !reflect.DeepEqual(events.Known(decided[0]), events.Known(e)):
		a.violation(name, RuleHandoff, "%s is said to be %s with %+v, but goes on with %+v", body.ID(), step, events.Known(e), events.Known(decided[0]))
	default:
		a.restsOnTenure(name, e)
	}
	if len(decided) == 2 {
		a.owed = &owed{events.Known(decided[1]), a.at}
	}
	h.state = sagas.EvolveHandoff(h.state, rec.Seq, e)
}

// askedFor is the command that e is the answer to. A lease in it is the one that
// the step needs: whether the seat's was so is judged by the lease's own events,
// since a step is not written under the lease's check. Only that a handoff is
// lost never becomes untrue again, so there the lease is the seat's.
func (a *Auditor) askedFor(s sagas.Handoff, rec events.Recorded, e events.HandoffEvent) sagas.HandoffCommand {
	_, b := e.Handoff()
	held := aggregates.Lease{Status: aggregates.LeaseHeld, Owner: s.From, Epoch: s.Epoch}
	switch e := e.(type) {
	case events.HandoffRequested:
		held.Owner, held.Epoch = b.From, b.Epoch
		return sagas.RequestHandoff{Handle: b.Handle, From: b.From, To: b.To, Reason: b.Reason, By: b.By, Patience: b.Patience, Lease: held}
	case events.HandoffWarmed:
		return sagas.MarkWarmed{Saga: b.ID(), By: rec.Meta.Source}
	case events.HandoffQuiesced:
		return sagas.MarkQuiesced{Saga: b.ID(), By: rec.Meta.Source}
	case events.HandoffFlushed:
		return sagas.MarkFlushed{Saga: b.ID(), By: rec.Meta.Source}
	case events.HandoffReleased:
		return sagas.ReleaseForHandoff{Saga: b.ID(), By: rec.Meta.Source, Lease: held}
	case events.HandoffDeclined:
		free := aggregates.Lease{Epoch: s.Epoch, Former: s.From, Successor: s.To, Saga: s.ID()}
		return sagas.DeclineHandoff{Saga: b.ID(), By: rec.Meta.Source, Cause: e.Cause, Lease: free}
	case events.HandoffCompleted:
		held.Owner, held.Epoch = s.To, s.Epoch+1
		return sagas.CompleteHandoff{Saga: b.ID(), By: rec.Meta.Source, Lease: held, DarkFor: e.DarkFor.Duration()}
	case events.HandoffAbandoned:
		l := a.lease(events.SeatLease(b.Handle))
		now := l.state
		if l.doubted { // whether it is lost cannot be judged: it may be
			now = aggregates.Lease{Epoch: s.Epoch + 2}
		}
		return sagas.AbandonHandoff{Saga: b.ID(), Cause: e.Cause, By: e.Ender, Unseen: e.Unseen.Duration(), Known: true, Lease: now}
	default:
		panic("audit: no command leads to " + events.Name(e))
	}
}

// restsOnTenure judges that the tenures which the handoff is about were there.
// They may be over when the step is written, so only that they began counts.
func (a *Auditor) restsOnTenure(name events.Lease, e events.HandoffEvent) {
	step, b := e.Handoff()
	epoch, owner := b.Epoch, b.From
	switch step {
	case events.StepRequested:
	case events.StepCompleted:
		epoch, owner = b.Epoch+1, b.To
	default:
		return
	}
	if l := a.lease(name); !l.holes && !l.claimedAt(epoch, owner) {
		a.violation(name, RuleHandoff, "%s is %s, but %s did not claim the seat at epoch %d", b.ID(), step, owner, epoch)
	}
}

// settle ends the wait for what a handoff's step owes. It judges that FLEET's
// next message is that event: anything else, or anything between, and the step
// and the lease's end were no one batch.
func (a *Auditor) settle(rec events.Recorded) {
	owed := a.owed
	a.owed = nil
	saga, name := sagaOf(rec.Event)
	beside := owed != nil && rec.Seq == owed.at.seq+1
	switch {
	case beside && reflect.DeepEqual(events.Known(rec.Event), owed.event):
	case beside && saga != "":
		a.violation(name, RuleHandoff, "the lease's end for handoff %q says %+v, but the step beside it calls for %+v", saga, events.Known(rec.Event), owed.event)
	default:
		a.alone(owed)
		if saga != "" && a.unread != rec.Seq-1 && a.legalEnd(rec.Event) {
			a.violation(name, RuleHandoff, "the lease was given up for handoff %q, whose step does not stand right before", saga)
		}
	}
}

// alone reports a step whose other half is not there.
func (a *Auditor) alone(o *owed) {
	if o == nil {
		return
	}
	saga, name := sagaOf(o.event)
	now := a.at
	a.at = o.at
	a.violation(name, RuleHandoff, "handoff %q gave the lease up, but the lease's own event does not stand right behind", saga)
	a.at = now
}

// legalEnd says whether the lease's own rules let e be. What they find is said
// once.
func (a *Auditor) legalEnd(e events.Event) bool {
	switch e := e.(type) {
	case events.LeaseReleased:
		l := a.lease(e.Lease)
		return !l.doubted && l.inForce(e.Epoch, e.Owner)
	case events.LeaseDeclined:
		l := a.lease(e.Lease)
		return !l.doubted && l.reservedFor(e)
	default:
		return false
	}
}

// sagaOf is the handoff that a lease's event says it is part of; a claim only
// uses what the handoff left.
func sagaOf(e events.Event) (saga string, about events.Lease) {
	switch e := e.(type) {
	case events.LeaseReleased:
		return e.Saga, e.Lease
	case events.LeaseDeclined:
		return e.Saga, e.Lease
	default:
		return "", nobody
	}
}
