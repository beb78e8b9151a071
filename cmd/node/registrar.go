package main

import (
	"context"
	"errors"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/sagas"
)

// registrar registers the mailboxes of the company's seats (U1). Every node has
// one: a mailbox is a fact about the company, not about who runs the seat.
type registrar struct {
	n    *node
	want chan struct{} // one slot: look again

	waits map[string]retiring // seats that are back while their mailbox is deleted; run's alone
}

// retiring is a mark that this node waits for (R8).
type retiring struct {
	last  uint64        // the retirement's newest event
	since clock.Instant // when that was first seen here
}

func newRegistrar(n *node) *registrar {
	r := &registrar{n: n, want: make(chan struct{}, 1), waits: map[string]retiring{}}
	r.look()
	return r
}

// look asks for another walk; it never blocks.
func (r *registrar) look() {
	select {
	case r.want <- struct{}{}:
	default:
	}
}

// registerAgain is the pause after a walk that could not register everything.
const registerAgain = time.Second

// run walks the company at the start and at each revision, until ctx ends. Only
// seats that the view does not show as registered cost the broker anything.
func (r *registrar) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.n.views.Ready():
	}
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.want:
		case <-again:
		}
		again = nil
		w := r.begin()
		if !r.walk(ctx, w) {
			again = time.After(registerAgain)
			continue
		}
		if r.seen(ctx, w) {
			r.n.host.Applied(ctx, w.revision) // the apply is complete (P5)
		}
	}
}

// walkOf is what one walk goes by.
type walkOf struct {
	seats    []events.RosterSeat
	revision uint64
	position uint64 // of FLEET, in the view, when it began
}

func (r *registrar) begin() walkOf {
	position := r.n.views.Copy(events.StreamFleet).Position
	c, revision := r.n.roster.inForce()
	return walkOf{c.Roster(), revision, position}
}

// outdated says whether the view has a newer revision than the walk goes by. What
// it shows then is not the walk's to change: a renamed company's agents are others
// (G1), and a node that cannot read its newest revision must not undo it (R5).
func (r *registrar) outdated(w walkOf) bool {
	seen, err := r.n.revisionSeen()
	return err == nil && seen > w.revision
}

// registerBatch bounds how many mailboxes are registered at once.
const registerBatch = 1000

// walk registers what is missing and says whether nothing is left.
func (r *registrar) walk(ctx context.Context, w walkOf) bool {
	whole := true
	var missing []commands.Registration
	register := func() {
		r.refresh(ctx, missing)
		for i, err := range r.n.cursors.RegisterAll(ctx, missing) {
			whole = r.registeredBy(ctx, missing[i], err) && whole
		}
		missing = missing[:0]
	}
	for _, s := range w.seats {
		m, known := r.mailbox(s.Handle)
		if known && m.Usable() && (m.AgentID == s.AgentID || r.outdated(w)) {
			delete(r.waits, s.Handle)
			continue
		}
		if known && m.Retiring {
			whole = r.waitFor(ctx, s, m) && whole
			continue
		}
		missing = append(missing, commands.Registration{Handle: s.Handle, AgentID: s.AgentID, Known: recordOf(m)})
		if len(missing) == registerBatch {
			register()
		}
	}
	if len(missing) > 0 {
		register()
	}
	return whole
}

// fewMissing need no hints but the view's.
const fewMissing = 16

// refresh reads anew what there is of these mailboxes, in a few requests for all:
// another node that boots at the same time registers them, too. That it cannot be
// read leaves the older hints.
func (r *registrar) refresh(ctx context.Context, missing []commands.Registration) {
	if len(missing) <= fewMissing {
		return
	}
	subjects := r.n.store.Subjects()
	cursors, err := r.n.store.Stream(events.StreamCursor).Subjects(ctx, subjects.Cursors())
	if err != nil {
		return
	}
	records := map[string]aggregates.Mailbox{}
	msgs, err := r.n.store.Stream(events.StreamFleet).LastPerSubject(ctx, subjects.MailboxRecords())
	if err != nil {
		return
	}
	for _, msg := range msgs {
		if e, err := events.Decode(subjects, msg); err == nil {
			records[msg.Subject] = aggregates.EvolveMailbox(aggregates.Mailbox{}, e.Seq, e.Event)
		}
	}
	for i := range missing {
		m := &missing[i]
		// Under another agent it may be a newer revision's, which the view has not yet:
		// with the older hint it is left as it is.
		now := records[subjects.MailboxRecord(m.Handle)]
		if others := now.State == aggregates.MailboxRegistered && now.AgentID != m.AgentID; now.Last > m.Known.Last && !others {
			m.Known = now
		}
		m.HasCursors = true
		for _, box := range events.Mailboxes {
			m.HasCursors = m.HasCursors && cursors[subjects.Cursor(m.Handle, box)] > 0
		}
	}
}

// recordOf is the mailbox's record as the view has it.
func recordOf(m projections.Mailbox) aggregates.Mailbox {
	switch {
	case m.Position == 0:
		return aggregates.Mailbox{}
	case m.Retired:
		return aggregates.Mailbox{Last: m.Position, State: aggregates.MailboxRetired, AgentID: m.AgentID}
	default:
		return aggregates.Mailbox{Last: m.Position, State: aggregates.MailboxRegistered, AgentID: m.AgentID}
	}
}

// registeredBy says whether a registration stands, and why not. Mail for the
// seat is kept all the same; the next walk registers it.
func (r *registrar) registeredBy(ctx context.Context, what commands.Registration, err error) bool {
	if err != nil && ctx.Err() == nil {
		r.n.log.Warn("seat_mailbox_unregistered", "seat", what.Handle, "err", err)
	}
	return err == nil
}

// waitFor waits for the mark of a seat that is back, and takes the retirement
// over when it has not moved for twice its budget (R8).
func (r *registrar) waitFor(ctx context.Context, s events.RosterSeat, m projections.Mailbox) bool {
	if m.Retirement == nil {
		return false // the batch's other half is in the view with the next event
	}
	now, w := clock.System(), r.waits[s.Handle]
	if w.last != m.Retirement.Last {
		w = retiring{last: m.Retirement.Last, since: now}
		r.waits[s.Handle] = w
	}
	unseen, patient := clock.TakerElapsed(w.since, now), r.n.cfg.Mailbox.timings().Patience()
	if unseen < patient {
		return false
	}
	saga, err := r.n.cursors.TakeOverRetirement(ctx, r.n.mail, s.Handle, s.AgentID, unseen, patient)
	var moved *sagas.RetiringError
	var over *sagas.NotMarkedError
	switch {
	case errors.As(err, &moved), errors.As(err, &over): // it goes on, or has ended: the next walk looks again
	case err != nil && ctx.Err() == nil:
		r.n.log.Warn("seat_mailbox_unregistered", "seat", s.Handle, "err", err)
	case err == nil:
		r.n.log.Warn("seat_mailbox_retirement_taken_over", "seat", s.Handle, "saga", saga.ID(), "owner", saga.Owner)
	}
	return false // the view shows it with the next event
}

// seen waits until the view shows every registration, so that the pass it wakes
// finds them. It reports false when another walk is due first, or ctx ended.
func (r *registrar) seen(ctx context.Context, w walkOf) bool {
	for _, s := range w.seats {
		for {
			changed := r.n.views.Changed()
			m, known := r.mailbox(s.Handle)
			usable := known && m.Usable()
			if usable && (m.AgentID == s.AgentID || r.outdated(w)) {
				break
			}
			// Marked meanwhile: it is waited for. Or somebody who went by an older
			// revision was quicker: it is registered over that.
			if known && m.Retiring || usable && m.Position > w.position {
				r.look()
				return false
			}
			select {
			case <-ctx.Done():
				return false
			case <-r.want: // another revision: what is waited for here may never be
				r.look()
				return false
			case <-changed:
			}
		}
	}
	return true
}

// mailbox reads the view; known is false when it serves nothing now.
func (r *registrar) mailbox(handle string) (m projections.Mailbox, known bool) {
	err := r.n.view(func(v projections.Reader) (err error) {
		m, _, err = v.Mailbox(handle)
		return err
	})
	return m, err == nil
}
