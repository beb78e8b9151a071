package aggregates_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// registry is the simplest lease there could be, told the same story: what
// anybody believes who reads every event and knows the rules in words.
type registry struct {
	holder  events.Incarnation // "" when nobody
	epoch   uint64
	fenced  bool
	touched uint64 // sequence of the lease's last event
	dir     string // the holder's data directory, if local

	released events.Incarnation // who released it last
	promised events.Incarnation // whom it is reserved for
	wait     time.Duration
	saga     string
	refused  events.Incarnation // who would not have it
}

// mayClaim says whether a claim is right, in the words of the spec.
func (r registry) mayClaim(c aggregates.ClaimLease) bool {
	provenLapsed := c.Known && c.Unseen >= events.LapsesAfter(c.TTL)
	provenDead := c.DeadLocal != "" && r.dir == c.DeadLocal && r.holder != c.Owner
	if c.Saga != "" && (r.holder != "" || r.promised != c.Owner || r.saga != c.Saga) {
		return false
	}
	if r.holder == "" {
		return r.promised == "" || r.promised == c.Owner || c.Known && c.Unseen >= r.wait
	}
	return provenLapsed || provenDead
}

func anyLeaseCommand(epochs uint64) *rapid.Generator[aggregates.LeaseCommand] {
	return rapid.Custom(func(t *rapid.T) aggregates.LeaseCommand {
		owner := rapid.SampledFrom([]events.Incarnation{alpha, alpha2, beta}).Draw(t, "owner")
		epoch := rapid.Uint64Range(max(epochs, 2)-2, epochs+1).Draw(t, "epoch")
		dir := rapid.SampledFrom([]string{"", "d-1", "d-2"}).Draw(t, "dir")
		saga := rapid.SampledFrom([]string{"", "dev.1", "dev.2"}).Draw(t, "saga")
		switch rapid.IntRange(0, 9).Draw(t, "command") {
		case 0:
			return fence(epoch)
		case 6:
			return decline(epoch, owner)
		case 7:
			return handOver(epoch, owner, rapid.SampledFrom([]events.Incarnation{alpha, alpha2, beta}).Draw(t, "successor"), saga)
		case 8: // only a node's presence has reports; a state knows nothing of its lease's kind
			return aggregates.ReportNode{Lease: events.NodeLease("dev"), Owner: owner, Epoch: epoch}
		case 1, 2:
			return renew(epoch, owner)
		case 3:
			return release(epoch, owner)
		default:
			return aggregates.ClaimLease{
				Lease: dev, Owner: owner, TTL: ttl, Protocol: 4, Local: dir, DeadLocal: dir, Saga: saga, Known: rapid.Bool().Draw(t, "known"),
				Unseen: rapid.SampledFrom([]time.Duration{0, reservation - 1, reservation, ttl, lapsed - 1, lapsed, time.Hour}).Draw(t, "unseen"),
			}
		}
	})
}

// TestLeaseProperties drives one lease through any commands and holds it
// against the registry: nothing is decided that cannot be applied or written,
// epochs only grow (L2), at most one holds, nothing but a claim makes a holder,
// no act of an ended tenure passes (L8), the newest event tells all, and a
// command that is repeated changes nothing.
func TestLeaseProperties(t *testing.T) {
	subjects, err := events.NewSubjects("crewlet")
	if err != nil {
		t.Fatal(err)
	}
	meta := events.Meta{ID: "e", Time: time.Unix(1, 0)}
	rapid.Check(t, func(t *rapid.T) {
		var s aggregates.Lease
		var r registry
		seq := uint64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			cmd := anyLeaseCommand(r.epoch).Draw(t, "cmd")
			before := s
			decided, err := aggregates.DecideLease(s, cmd)
			if s != before {
				t.Fatalf("deciding changed the state")
			}
			want := r.allows(cmd)
			if (err == nil && len(decided) == 1) != want {
				t.Fatalf("%+v on %+v decided %v (%v), the registry allows it: %t", cmd, r, decided, err, want)
			}
			if len(decided) == 0 {
				continue
			}
			if _, err := events.Encode(subjects, meta, decided[0]); err != nil {
				t.Fatalf("decided what cannot be written: %v", err)
			}
			seq += uint64(rapid.IntRange(1, 5).Draw(t, "others")) // other leases' events stand between
			s = aggregates.EvolveLease(s, seq, decided[0])
			r.apply(seq, decided[0])
			if s.Epoch < before.Epoch {
				t.Fatalf("epoch went from %d to %d", before.Epoch, s.Epoch)
			}
			if c, ok := decided[0].(events.LeaseClaimed); ok != (s.Epoch > before.Epoch) || (ok && c.Epoch != before.Epoch+1) {
				t.Fatalf("epoch went from %d to %d by %T", before.Epoch, s.Epoch, decided[0])
			}
			if (s.Status != aggregates.LeaseFree) != (r.holder != "") || s.Owner != r.holder || (s.Status == aggregates.LeaseFenced) != r.fenced {
				t.Fatalf("the lease is %+v, the registry %+v", s, r)
			}
			if alone := aggregates.EvolveLease(aggregates.Lease{}, seq, decided[0]); alone != s {
				t.Fatalf("the newest event gives %+v, all give %+v", alone, s)
			}
			repeated(t, s, cmd)
		}
	})
}

// allows says whether cmd makes something happen.
func (r registry) allows(cmd aggregates.LeaseCommand) bool {
	switch c := cmd.(type) {
	case aggregates.ClaimLease:
		return r.mayClaim(c)
	case aggregates.RenewLease:
		return r.holder == c.Owner && r.epoch == c.Epoch && !r.fenced
	case aggregates.ReportNode:
		return r.holder == c.Owner && r.epoch == c.Epoch && !r.fenced
	case aggregates.ReleaseLease:
		return r.holder == c.Owner && r.epoch == c.Epoch
	case aggregates.FenceLease:
		return r.holder != "" && r.epoch == c.Epoch && !r.fenced
	case aggregates.DeclineLease:
		return r.holder == "" && r.epoch == c.Epoch && r.promised == c.By
	}
	return false
}

func (r *registry) apply(seq uint64, e events.Event) {
	last := r.touched
	r.touched = seq
	switch e := e.(type) {
	case events.LeaseClaimed:
		if o := e.Over; (o != nil) != (r.holder != "") || (o != nil && (o.Epoch != r.epoch || o.Owner != r.holder || o.LastSeq != last)) {
			panic("a claim carries evidence exactly when it takes a tenure over, and about that one")
		}
		passedOver := r.promised != "" && r.promised != e.Owner
		if w := e.Waited; (w != nil) != passedOver || (w != nil && (w.Successor != r.promised || w.LastSeq != last || w.Unseen.Duration() < r.wait)) {
			panic("a claim carries evidence exactly when it passes a reservation over, and about that one")
		}
		*r = registry{holder: e.Owner, epoch: e.Epoch, touched: seq, dir: e.Local}
	case events.LeaseReleased:
		*r = registry{epoch: r.epoch, touched: seq, released: e.Owner, promised: e.Successor, wait: e.ReservedFor.Duration(), saga: e.Saga}
	case events.LeaseDeclined:
		if e.Owner != r.released || e.By != r.promised {
			panic("a decline names the reservation that it ends")
		}
		*r = registry{epoch: r.epoch, touched: seq, released: r.released, refused: e.By}
	case events.LeaseFenced:
		r.fenced = true
	}
}

// repeated decides cmd on the state that it led to: it must change nothing but
// when a renewal was last seen. A claim is repeated with what a reader can
// measure of its own claim: nothing yet.
func repeated(t *rapid.T, s aggregates.Lease, cmd aggregates.LeaseCommand) {
	if c, ok := cmd.(aggregates.ClaimLease); ok {
		c.Unseen, c.Known = 0, true
		cmd = c
	}
	decided, err := aggregates.DecideLease(s, cmd)
	next := s
	for _, e := range decided {
		next = aggregates.EvolveLease(next, s.Last, e)
	}
	if !reflect.DeepEqual(next, s) {
		t.Fatalf("%+v again gave %+v (%v) on %+v", cmd, decided, err, s)
	}
}
