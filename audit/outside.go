package audit

import (
	"github.com/seat-tenure/tenure/events"
)

// claimOf is the tenure that a record outside FLEET says it rests on: what its
// payload says, and in its envelope the position of the claim (fleet-seq).
type claimOf struct {
	handle string
	epoch  uint64
	owner  events.Incarnation
	meta   events.Meta
}

// rests judges that tenure: it existed, in just that place, and was the
// writer's. It returns the tenure when it could be found.
func (a *Auditor) rests(rule Rule, c claimOf) (tenure, bool) {
	name := events.SeatLease(c.handle)
	l := a.lease(name)
	t, found := l.find(c.meta.FleetSeq)
	switch {
	case c.meta.FleetSeq == 0:
		a.violation(name, rule, "names epoch %d of %s but not its place in FLEET", c.epoch, c.owner)
	case c.meta.FleetSeq > a.lastFleet:
		// FLEET was read first; what was claimed since is not in the history.
		a.note(name, NoteUnseen, "names the tenure claimed at FLEET sequence %d, past the end of this history at %d", c.meta.FleetSeq, a.lastFleet)
	case !found && l.holes:
		a.note(name, NoteUnseen, "names the tenure claimed at FLEET sequence %d; the lease has events that cannot be read", c.meta.FleetSeq)
	case !found:
		a.violation(name, rule, "names the tenure claimed at FLEET sequence %d, where the seat was not claimed", c.meta.FleetSeq)
	case t.epoch != c.epoch || t.owner != c.owner:
		a.violation(name, rule, "names epoch %d of %s, but FLEET sequence %d claimed epoch %d for %s", c.epoch, c.owner, c.meta.FleetSeq, t.epoch, t.owner)
	case c.meta.Source != c.owner:
		a.violation(name, rule, "was written by %q on the tenure of %s", c.meta.Source, c.owner)
	case c.meta.Epoch != c.epoch:
		a.violation(name, rule, "its envelope names epoch %d, its payload %d", c.meta.Epoch, c.epoch)
	}
	return t, found
}

func (a *Auditor) completed(rec events.Recorded, e events.TurnCompleted) {
	t, found := a.rests(RuleCompletion, claimOf{e.Handle, e.Epoch, e.Owner, rec.Meta})
	if found && t.ended != 0 && rec.At.UnixNano() > t.ended {
		// A turn may end after its tenure did (design §4), and stamps of two
		// streams are two wall clocks: nothing follows from it.
		a.note(events.SeatLease(e.Handle), NoteLate, "the completion of event %q is stamped after epoch %d of %s had ended", e.EventID, e.Epoch, e.Owner)
	}
}

func (a *Auditor) parked(rec events.Recorded, e events.MailParked) {
	a.rests(RuleDead, claimOf{e.Handle, e.Epoch, e.Owner, rec.Meta})
}

// cursor judges a record of a mailbox's cursor. An export has only the newest
// of each, a history read while it happened has all.
func (a *Auditor) cursor(rec events.Recorded, e events.CursorEvent) {
	handle, box, now := e.Cursor()
	key, name := mailbox{handle, box}, events.SeatLease(handle)
	_, retired := e.(events.CursorRetired)
	if before, seen := a.cursors[key]; seen {
		switch {
		case now.Epoch < before.Epoch:
			a.violation(name, RuleCursor, "the cursor of the %s went back from epoch %d to %d", box, before.Epoch, now.Epoch)
		case retired && now.Mail.MarkerID != before.Mail.MarkerID: // of another MAIL, or of one that was restored
		case now.Mail.CreatedAt == before.Mail.CreatedAt && now.Read < before.Read:
			a.violation(name, RuleCursor, "the cursor of the %s went back from mail %d to %d", box, before.Read, now.Read)
		}
	}
	a.cursors[key] = events.CursorSnapshot{Epoch: now.Epoch, Read: now.Read, Mail: now.Mail}
	if _, created := e.(events.CursorCreated); created && now.Epoch == 0 {
		return // registered by whoever saw it first, on no tenure
	}
	meta := rec.Meta
	if retired {
		meta.Source = now.Owner // whoever finishes a deletion does so on the mark's tenure (R8)
	}
	a.rests(RuleCursor, claimOf{handle, now.Epoch, now.Owner, meta})
}
