package seat_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// gates are one inbox that keeps its holds.
type gates struct {
	mu    sync.Mutex
	holds sagas.Holds
	taken int
}

func (g *gates) Quiesce(_ context.Context, _, hold string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds, g.taken = g.holds.Take(hold), g.taken+1
	return nil
}

func (g *gates) Lift(_ string, fn func(sagas.Holds) sagas.Holds) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = fn(g.holds)
}

// anew lets node a hold "dev" under its second tenure, and returns it.
func anew(t *testing.T, g *gates) (f *seattest.Fleet, a *seattest.Node) {
	t.Helper()
	f = seattest.New(t, ttl)
	f.Seats("dev")
	a = f.Start(seattest.Config{ID: "a", Gates: g})
	holds(f, []*seattest.Node{a}, 1)
	if err := a.Host.GiveBack(t.Context(), "dev"); err != nil {
		t.Fatal(err)
	}
	f.Until(func() bool { epoch, err := a.Host.MayStart("dev"); return err == nil && epoch == 2 })
	return f, a
}

// asked are the edges of a handoff of a's first tenure that a is to quiesce for.
func asked(f *seattest.Fleet, a *seattest.Node, at uint64) []events.Recorded {
	body := events.HandoffBody{
		Handle: "dev", Number: 1, From: a.Self, To: f.Boot("b"), Epoch: 1,
		Reason: events.HandoffMove, Patience: sagas.DefaultPatience(ttl, time.Minute),
	}
	return []events.Recorded{
		{Stream: events.StreamFleet, Seq: at, Event: events.HandoffRequested{HandoffBody: body}},
		{Stream: events.StreamFleet, Seq: at + 1, Event: events.HandoffWarmed{HandoffBody: body}},
	}
}

// TestQuiesceIsForItsTenure proves that a quiesce that comes when the seat is
// here again under a later tenure holds nothing: the hold would never be lifted,
// and the seat be deaf (sagas: what names an epoch is for that tenure alone).
func TestQuiesceIsForItsTenure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gates{}
		f, a := anew(t, g)
		for _, r := range asked(f, a, 1<<40) {
			a.Host.Edge(r)
		}
		f.Advance(5 * time.Second)
		if !g.holds.Free() || g.taken > 0 {
			t.Errorf("the later tenure's inbox is held by %q", g.holds)
		}
	})
}

// TestEdgesReadAgain proves that what a live host is given once more drives
// nothing, as when the read model is damaged and made anew (design §5: a rebuild
// drives nothing by itself).
func TestEdgesReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gates{}
		f, a := anew(t, g)
		body := asked(f, a, 1)
		for i := range body { // as if of the tenure that stands
			switch e := body[i].Event.(type) {
			case events.HandoffRequested:
				e.Epoch = 2
				body[i].Event = e
			case events.HandoffWarmed:
				e.Epoch = 2
				body[i].Event = e
			}
			a.Host.Edge(body[i])
		}
		f.Advance(5 * time.Second)
		if g.taken > 0 {
			t.Error("an event that was read before made the host quiesce the seat")
		}
	})
}

// lateAnswer answers requests long after they were stored.
type lateAnswer struct{ seat.Handoffs }

func (l lateAnswer) Handoff(ctx context.Context, handle string, command func(sagas.Handoff, aggregates.Lease) sagas.HandoffCommand) (sagas.Handoff, error) {
	s, err := l.Handoffs.Handoff(ctx, handle, command)
	if _, is := command(sagas.Handoff{}, aggregates.Lease{}).(sagas.RequestHandoff); is {
		<-time.After(5 * time.Second)
	}
	return s, err
}

// TestRequestAnsweredLate proves that a handoff whose request is answered when it
// is over already, as after a lost answer, leaves nothing open: the seat can be
// drained once it is here again.
func TestRequestAnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := f.Start(seattest.Config{ID: "a", Handoffs: func(h seat.Handoffs) seat.Handoffs { return lateAnswer{h} }})
		holds(f, []*seattest.Node{a}, 1)
		b := f.Start(seattest.Config{ID: "b"})
		f.Until(func() bool { return b.Host.Ready() == nil })
		f.Advance(10 * time.Second)
		if err := a.Host.Drain(t.Context(), "ops@acme.example", nil); err != nil {
			t.Fatal(err)
		}
		f.Advance(10 * time.Second)
		if count, _ := handoffs(f); count[events.NameHandoffCompleted] != 1 {
			t.Fatalf("the seat was to be handed over: %v", count)
		}
		if err := a.Host.Cordon(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		b.Kill()
		holds(f, []*seattest.Node{a}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		left := map[string]string{}
		if err := a.Host.Drain(ctx, "ops@acme.example", func(l map[string]string) { left = l }); err != nil {
			t.Errorf("the drain did not end: %v, left %v", err, left)
		}
	})
}

// lateClaim answers claims of seats long after they were stored.
type lateClaim struct{ seat.Leases }

func (l lateClaim) Claim(ctx context.Context, lease events.Lease, c commands.Claim, unseen commands.Unseen) (commands.Tenure, error) {
	t, err := l.Leases.Claim(ctx, lease, c, unseen)
	if lease.Kind == events.KindSeat {
		<-time.After(5 * time.Second)
	}
	return t, err
}

// TestCordonDuringAClaim proves that a seat won while the node was being
// cordoned, or drained by an operator, is given back: neither leaves a seat that
// nobody moves any more on a node that was reported empty (P6).
func TestCordonDuringAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := f.Start(seattest.Config{ID: "a", Leases: func(l seat.Leases) seat.Leases { return lateClaim{l} }})
		f.Until(func() bool { return a.Host.Ready() == nil })
		f.Seats("dev")
		f.Until(func() bool { return len(f.Tenures("dev")) == 1 })
		if len(a.Host.Held()) > 0 {
			t.Fatal("the claim was answered already: this test proves nothing")
		}
		if err := a.Host.Drain(t.Context(), "ops@acme.example", nil); err != nil {
			t.Fatal(err)
		}
		f.Advance(time.Minute)
		if held := a.Host.Held(); len(held) > 0 {
			t.Errorf("the drained node has %v", held)
		}
	})
}
