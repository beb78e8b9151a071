package sim

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Logged takes in the next event of a stream, and when it landed. Streams are
// independent of each other; within one, the order is the log's.
func (j *Judge) Logged(r events.Recorded, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, renewal := r.Event.(events.LeaseRenewed); r.Stream == events.StreamFleet && !renewal {
		j.tally.Edges++
	}
	switch e := r.Event.(type) {
	case events.LeaseClaimed:
		j.claimed(e, at)
	case events.LeaseRenewed:
		if t := j.tenureOf(e.Lease, e.Epoch); t != nil {
			t.extended = append(t.extended, at)
		}
	case events.LeaseReleased:
		if t := j.tenureOf(e.Lease, e.Epoch); t != nil {
			t.released = at
		}
	case events.TurnCompleted:
		l := letter{e.Handle, e.EventID}
		if _, twice := j.done[l]; twice {
			j.fault("the completion of %s on %s was recorded twice", e.EventID, e.Handle)
		}
		j.done[l] = at
	case events.MailParked:
		if e.Reason == "" {
			j.fault("%s on %s was parked without a reason", e.EventID, e.Handle)
		}
		j.parked[letter{e.Handle, e.EventID}] = e.Reason
	case events.CursorEvent:
		j.cursor(e, at)
	}
}

func (j *Judge) claimed(e events.LeaseClaimed, at time.Time) {
	if e.Lease.Kind != events.KindSeat {
		return
	}
	all := j.seats[e.Lease.ID]
	if len(all) > 0 {
		if before := all[len(all)-1]; e.Epoch <= before.epoch {
			j.fault("at %s %s claimed %s under epoch %d, after epoch %d", clockOf(at), e.Owner, e.Lease.ID, e.Epoch, before.epoch)
		}
	}
	j.tally.Tenures++
	j.seats[e.Lease.ID] = append(all, &tenure{epoch: e.Epoch, owner: e.Owner, claimed: at})
}

func (j *Judge) tenureOf(l events.Lease, epoch uint64) *tenure {
	if l.Kind != events.KindSeat {
		return nil
	}
	for _, t := range j.seats[l.ID] {
		if t.epoch == epoch {
			return t
		}
	}
	return nil
}

// cursor takes in a snapshot. It finds attempts by what has changed, so it need
// not see every snapshot: CURSOR keeps the newest of each mailbox only.
func (j *Judge) cursor(e events.CursorEvent, landed time.Time) {
	handle, box, now := e.Cursor()
	if box != events.Inbox {
		return
	}
	before := j.cursors[handle]
	j.cursors[handle] = now
	if now.Epoch < before.Epoch {
		j.fault("the cursor of %s went back from epoch %d to %d", handle, before.Epoch, now.Epoch)
	}
	for _, o := range now.Open {
		was := openAt(before.Open, o.Seq)
		if o.Attempts <= was.Attempts {
			continue
		}
		at := attempt{handle, o.Seq, now.Epoch, now.Owner}
		r := j.records[at]
		if r == nil {
			r = &record{again: was.Running}
			j.records[at] = r
		}
		r.times, r.last = r.times+o.Attempts-was.Attempts, landed
	}
}

func openAt(open []events.OpenMail, seq uint64) events.OpenMail {
	for _, o := range open {
		if o.Seq == seq {
			return o
		}
	}
	return events.OpenMail{}
}
