package sagas_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

const (
	ttl  = 45 * time.Second
	turn = 10 * time.Minute
)

var (
	dev      = events.SeatLease("dev")
	patience = sagas.DefaultPatience(ttl, turn)
)

// host is the least of a node that a handoff needs: what it holds in memory is
// gone with the process.
type host struct {
	name  string
	boots int
	self  events.Incarnation
	dead  bool
	unfit events.DeclineReason

	epoch   uint64 // of the tenure it acts under; 0: none
	up      bool   // stages up
	torn    bool   // taken down, under this tenure
	holds   sagas.Holds
	turning bool // a turn is in flight
	stuck   bool // its teardowns cannot be proven
	blip    bool // its renewals get no answer
}

// serves says whether the node could start a turn of the seat.
func (h *host) serves() bool { return !h.dead && h.epoch > 0 && h.up && h.holds.Free() }

// world is one seat, its log and its nodes. Nothing in it but the log decides.
type world struct {
	now    time.Duration
	seq    uint64
	stamps map[uint64]time.Duration // when each position was written
	saga   sagas.Handoff
	lease  aggregates.Lease // folded from the family's newest event
	hosts  []*host
	log    []events.Event
	broken string // the first invariant that did not hold
}

func newWorld(names ...string) *world {
	w := &world{stamps: map[uint64]time.Duration{}}
	for _, name := range names {
		h := &host{name: name}
		h.boot()
		w.hosts = append(w.hosts, h)
	}
	return w
}

func (h *host) boot() {
	h.boots++
	*h = host{name: h.name, boots: h.boots, self: events.Incarnation(fmt.Sprintf("%s:%08x", h.name, h.boots))}
}

func (w *world) host(name string) *host {
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.name == name })
	return w.hosts[i]
}

// write is an append on its way, with the positions it was decided at.
type write struct {
	by                  *host
	boots               int
	events              []events.Event
	sagaLast, leaseLast uint64
	done                func() // what the writer does on the acknowledgement
}

func isLease(e events.Event) bool {
	switch e.(type) {
	case events.LeaseClaimed, events.LeaseRenewed, events.LeaseReleased, events.LeaseFenced, events.LeaseDeclined:
		return true
	}
	return false
}

// land is the broker's answer to a write: all of it or nothing.
func (w *world) land(wr write) bool {
	for _, e := range wr.events {
		_, ofSaga := e.(events.HandoffEvent)
		if ofSaga && wr.sagaLast != w.saga.Last || isLease(e) && wr.leaseLast != w.lease.Last {
			return false
		}
		if r, ok := e.(events.SeatEstablished); ok && (w.lease.Epoch != r.Epoch || w.lease.Owner != r.Owner) {
			return false
		}
	}
	for _, e := range wr.events {
		w.seq++
		w.stamps[w.seq] = w.now
		w.log = append(w.log, e)
		if isLease(e) {
			before := w.lease.Epoch
			w.lease = aggregates.EvolveLease(aggregates.Lease{}, w.seq, e) // the newest event alone
			w.check(w.lease.Epoch == before || w.lease.Epoch == before+1, "epoch %d follows %d", w.lease.Epoch, before)
		}
		w.saga = sagas.EvolveHandoff(w.saga, w.seq, e)
	}
	if wr.done != nil && !wr.by.dead && wr.by.boots == wr.boots {
		wr.done()
	}
	return true
}

func (w *world) check(ok bool, format string, args ...any) {
	if !ok && w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func (w *world) unseen(seq uint64) time.Duration { return w.now - w.stamps[seq] }

func (w *world) handoff(h *host, cmd sagas.HandoffCommand, done func()) (write, error) {
	decided, err := sagas.DecideHandoff(w.saga, cmd)
	return write{h, h.boots, decided, w.saga.Last, w.lease.Last, done}, err
}

func (w *world) tenure(h *host, cmd aggregates.LeaseCommand, done func()) (write, error) {
	decided, err := aggregates.DecideLease(w.lease, cmd)
	return write{h, h.boots, decided, w.saga.Last, w.lease.Last, done}, err
}

func (w *world) request(from, to *host, why events.HandoffReason) (write, error) {
	return w.handoff(from, sagas.RequestHandoff{
		Handle: "dev", From: from.self, To: to.self, Reason: why, By: "ops", Patience: patience, Lease: w.lease,
	}, nil)
}

// claim is an ordinary one when saga is "".
func (w *world) claim(h *host, saga string) (write, error) {
	cmd := aggregates.ClaimLease{Lease: dev, Owner: h.self, TTL: ttl, Protocol: 4, Saga: saga}
	cmd.Unseen, cmd.Known = w.unseen(w.lease.Last), true
	next := w.lease.Epoch + 1
	return w.tenure(h, cmd, func() { h.epoch, h.up, h.torn, h.holds = next, false, false, "" })
}

// establish brings the claimed seat up.
func (w *world) establish(h *host) write {
	h.up = true
	return write{h, h.boots, []events.Event{events.SeatEstablished{Handle: "dev", Epoch: h.epoch, Owner: h.self}}, w.saga.Last, w.lease.Last, nil}
}

// renew is a heartbeat of a holder that gets an answer: it admits again.
func (w *world) renew(h *host) (write, error) {
	return w.tenure(h, aggregates.RenewLease{Lease: dev, Owner: h.self, Epoch: h.epoch}, func() {
		h.blip, h.holds = false, h.holds.Lift(sagas.HoldAdmission)
	})
}

// release is a plain one, of a seat that is down.
func (w *world) release(h *host, why events.Reason) (write, error) {
	return w.tenure(h, aggregates.ReleaseLease{Lease: dev, Owner: h.self, Epoch: h.epoch, Reason: why}, h.letGo)
}

// letGo forgets a tenure, and with the attachment the seat's holds (H3).
func (h *host) letGo() { h.epoch, h.up, h.torn, h.turning, h.holds = 0, false, false, false, "" }

// expire ends tenures that their holders' own clocks say are over: no later
// than any other node may claim.
func (w *world) expire() {
	for _, h := range w.hosts {
		if h.epoch > 0 && (h.epoch != w.lease.Epoch || w.unseen(w.lease.Last) >= ttl) {
			h.letGo()
		}
	}
}

// errNothing: the effect has nothing to write yet.
var errNothing = errors.New("nothing to write yet")

// run carries an effect out as far as the node's memory goes and returns the
// write that is left to do.
func (w *world) run(h *host, e sagas.Effect) (write, error) {
	switch e := e.(type) {
	case sagas.Warm:
		return w.handoff(h, sagas.MarkWarmed{Saga: e.Saga, By: h.self}, nil)
	case sagas.Quiesce:
		if h.epoch != e.Epoch {
			return write{}, errNothing
		}
		h.holds = h.holds.Take(e.Hold)
		if h.turning {
			return write{}, errNothing
		}
		return w.handoff(h, sagas.MarkQuiesced{Saga: e.Saga, By: h.self}, nil)
	case sagas.Flush:
		if h.epoch != e.Epoch || !h.takeDown() {
			return write{}, errNothing
		}
		return w.handoff(h, sagas.MarkFlushed{Saga: e.Saga, By: h.self}, nil)
	case sagas.Release:
		return w.handoff(h, sagas.ReleaseForHandoff{Saga: e.Saga, By: h.self, Lease: w.lease}, h.letGo)
	case sagas.Claim:
		return w.claim(h, e.Saga)
	case sagas.Complete:
		return w.handoff(h, sagas.CompleteHandoff{Saga: e.Saga, By: h.self, Lease: w.lease, DarkFor: w.unseen(e.Quiesced)}, nil)
	case sagas.Decline:
		return w.handoff(h, sagas.DeclineHandoff{Saga: e.Saga, By: h.self, Cause: e.Cause, Lease: w.lease}, nil)
	case sagas.Unhold:
		held := !h.holds.Free()
		h.holds = h.holds.LiftHandoffs(e.Through)
		w.check(!h.torn || !held || !h.holds.Free(), "%s goes on with the seat after its teardown began", h.name)
		return write{}, errNothing
	case sagas.GiveUp:
		if h.epoch != e.Epoch || !h.takeDown() {
			return write{}, errNothing
		}
		return w.release(h, e.Reason)
	case sagas.Abandon:
		if w.unseen(e.Last) < e.After {
			return write{}, errNothing
		}
		return w.handoff(h, sagas.AbandonHandoff{
			Saga: e.Saga, Cause: e.Cause, By: h.name, Unseen: w.unseen(e.Last), Known: true, Lease: w.lease,
		}, nil)
	}
	panic(fmt.Sprintf("no effect %T", e))
}

// takeDown says whether the stages are proven down.
func (h *host) takeDown() bool {
	if !h.stuck {
		h.up, h.torn = false, true
	}
	return h.torn
}

// invariants that hold whatever happens.
func (w *world) invariants() {
	serving := 0
	for _, h := range w.hosts {
		if h.serves() {
			serving++
			w.check(h.epoch == w.lease.Epoch && h.self == w.lease.Owner, "%s serves under epoch %d, the lease is %+v", h.name, h.epoch, w.lease)
		}
	}
	w.check(serving <= 1, "%d nodes serve the seat", serving)
}

func (w *world) next(h *host) []sagas.Effect {
	if h.dead {
		return nil
	}
	return sagas.Next(w.saga, sagas.Node{Self: h.self, Unfit: h.unfit})
}
