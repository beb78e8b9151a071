package seat

import (
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// How the runner of handoffs reads the log: what it knows of a seat's handoff is a
// fold of these events, and nothing else.

// fold is one seat's handoff. Guarded by runner.mu.
type fold struct {
	state   sagas.Handoff
	seen    uint64 // position of the newest event applied
	running bool
	again   bool // something happened since the run began
	timer   *time.Timer
	dark    bool // it has one of the places of dark seats
	waits   bool // for such a place
}

// Edge takes in one event of FLEET, in order. It does not block. Handoffs are
// folded from their first event on; a start that does not read from there gives
// the newest event of each first, and of its seat's lease. Once live, what is
// given again changes nothing: a read model that is made anew reads the whole log,
// and the steps of handoffs that are long over are nobody's to take.
func (h *Host) Edge(r events.Recorded) {
	if !h.runner.reads(r.Seq) {
		return
	}
	h.runner.follow(r)
	switch e := r.Event.(type) {
	case events.HandoffDeclined:
		h.declined(e)
	case events.LeaseClaimed:
		if e.Lease.Kind == events.KindNode {
			if e.Over != nil {
				h.runner.nodeEnded(e.Over.Owner)
			}
			h.runner.nodeBegan(e.Owner)
		}
	case events.LeaseReleased:
		if e.Lease.Kind == events.KindNode {
			h.runner.nodeEnded(e.Owner)
		}
	}
	if handle, handoff := seatIn(r.Event); handle != "" {
		h.fold(r, handle, handoff)
	}
}

// seatIn is the seat whose handoff the event may take on, "" for none; handoff
// says that it is a handoff's own, which a fold can begin with.
func seatIn(e events.Event) (handle string, handoff bool) {
	switch e := e.(type) {
	case events.HandoffEvent:
		_, body := e.Handoff()
		return body.Handle, true
	case events.LeaseClaimed:
		return seatOf(e.Lease), false
	case events.LeaseReleased:
		return seatOf(e.Lease), false
	case events.LeaseFenced:
		return seatOf(e.Lease), false
	case events.LeaseDeclined:
		return seatOf(e.Lease), false
	case events.SeatEstablished:
		return e.Handle, false
	default:
		return "", false
	}
}

// fold applies the event to the seat's handoff and lets it be looked at.
func (h *Host) fold(r events.Recorded, handle string, handoff bool) {
	h.runner.mu.Lock()
	defer h.runner.mu.Unlock()
	f := h.runner.folds[handle]
	if f == nil {
		if !handoff {
			return
		}
		f = &fold{}
		h.runner.folds[handle] = f
	}
	if r.Seq <= f.seen || handoff && r.Seq <= f.state.Last {
		return // a repeat, or seeded by the one who asked for it
	}
	f.seen = r.Seq
	open := f.state.Open()
	f.state = sagas.EvolveHandoff(f.state, r.Seq, r.Event)
	if open && !f.state.Open() {
		h.look() // declined: whoever empties this node must do without
		h.runner.lit(f)
	}
	h.runner.kick(handle, f)
}

// reads takes in that the log was read up to seq, and says whether that event is
// to be folded.
func (r *runner) reads(seq uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live && seq <= r.read {
		return false
	}
	r.read = max(r.read, seq)
	return true
}

// nodeEnded takes in that an incarnation's presence is over, and looks again at
// the handoffs that wait for it.
func (r *runner) nodeEnded(owner events.Incarnation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[owner.NodeID()] = owner
	for handle, f := range r.folds {
		if f.state.To == owner && f.state.Open() {
			r.kick(handle, f)
		}
	}
}

// nodeBegan takes in that an incarnation has its presence. It may have had it
// before: one that lost it, or could not prove it, claims it again.
func (r *runner) nodeBegan(owner events.Incarnation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended[owner.NodeID()] == owner {
		delete(r.ended, owner.NodeID())
	}
}

// seed begins the fold of a handoff that this node has just asked for, whose
// event is still on its way: until it comes round the seat must not look idle.
// After that it is the fold that knows: when the answer was lost and asked for
// again, the handoff may be over, and one begun then would stay open for ever.
func (r *runner) seed(s sagas.Handoff) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Last <= r.read {
		return
	}
	if f := r.folds[s.Handle]; f == nil || f.state.Last < s.Last {
		if f == nil {
			f = &fold{}
			r.folds[s.Handle] = f
		}
		f.state = s
		r.kick(s.Handle, f)
	}
}

// Live says that Edge has been given the log up to the head that the start saw.
// It may be said at every batch; only the first time lets what is open run, since
// everything after it is an edge of its own.
func (h *Host) Live() {
	h.runner.mu.Lock()
	defer h.runner.mu.Unlock()
	if h.runner.live {
		return
	}
	h.runner.live = true
	for handle, f := range h.runner.folds {
		h.runner.kick(handle, f)
	}
}

func seatOf(l events.Lease) string {
	if l.Kind != events.KindSeat {
		return ""
	}
	return l.ID
}
