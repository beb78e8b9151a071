package seat

import (
	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// follow keeps the leases that were given back, as their own events have them:
// whoever claims one next knows what the append must find, and reads nothing
// first. It forgets them as they are claimed.
func (r *runner) follow(rec events.Recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := rec.Event.(type) {
	case events.LeaseReleased:
		r.give(e.Lease, rec)
	case events.LeaseDeclined:
		r.give(e.Lease, rec)
	case events.LeaseClaimed:
		delete(r.free, seatOf(e.Lease))
	}
}

func (r *runner) give(l events.Lease, rec events.Recorded) {
	if handle := seatOf(l); handle != "" {
		r.free[handle] = aggregates.EvolveLease(aggregates.Lease{}, rec.Seq, rec.Event)
	}
}

// freed is the seat's lease as the log was last seen to have it, if that was
// free; nil when it is not known. never says that the view has no tenure of the
// seat. A hint for a claim, which its append checks.
func (r *runner) freed(handle string, never bool) *aggregates.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, known := r.free[handle]; known {
		return &l
	}
	if never {
		return &aggregates.Lease{}
	}
	return nil
}
