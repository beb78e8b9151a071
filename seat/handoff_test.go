package seat_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// handoffs counts the events of handoffs by wire name, and returns how long each
// completed one left its seat dark.
func handoffs(f *seattest.Fleet) (count map[string]int, dark []time.Duration) {
	count = map[string]int{}
	for _, r := range f.History(events.StreamFleet) {
		if e, ok := r.Event.(events.HandoffEvent); ok {
			count[events.Name(e)]++
		}
		if e, ok := r.Event.(events.HandoffCompleted); ok {
			dark = append(dark, e.DarkFor.Duration())
		}
	}
	return count, dark
}

// TestDrainHandsOver proves that a node told to stop hands each seat, by a saga
// of its own, to a node that has room for it, and that the target claims it on
// the release itself: no seat waits for a sweep (design §5, H4, P6).
func TestDrainHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(9)
		f.Seats(all...)
		a := f.Start(seattest.Config{ID: "a"})
		b := f.Start(seattest.Config{ID: "b"})
		c := f.Start(seattest.Config{ID: "c"})
		nodes := []*seattest.Node{a, b, c}
		f.Until(func() bool {
			onlyOne(t, all, nodes...)
			return len(a.Host.Held()) == 3 && len(b.Host.Held()) == 3 && len(c.Host.Held()) == 3
		})
		before, _ := handoffs(f)
		start := time.Now()
		a.Stop()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("the drain took %v", took)
		}
		if took := f.Until(func() bool { return len(b.Host.Held())+len(c.Host.Held()) == 9 }); took > time.Second {
			t.Errorf("the peers had all seats %v after the drain", took)
		}
		f.Advance(time.Second)
		after, dark := handoffs(f)
		if n := after[events.NameHandoffCompleted] - before[events.NameHandoffCompleted]; n != 3 {
			t.Errorf("%d handoffs completed, want 3: %v, before %v\n%s", n, after, before, a.Log)
		}
		for _, d := range dark {
			if d > time.Second {
				t.Errorf("a seat was dark for %v", d)
			}
		}
		f.Advance(time.Minute)
		onlyOne(t, all, b, c)
	})
}

// mute never reports what changes about its node: the others see it too late.
type mute struct{ seat.Leases }

var errMute = errors.New("mute")

func (mute) Report(context.Context, commands.Tenure, events.NodeFacts) (commands.Tenure, error) {
	return commands.Tenure{}, errMute
}

// TestDrainDeclined proves that a node told to stop loses no time over a target
// that declines, as when a whole fleet is told to stop at once: it gives its
// seats back plainly then, long before a heartbeat (H4, design §5).
func TestDrainDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats(handles(4)...)
		a := f.Start(seattest.Config{ID: "a"})
		b := f.Start(seattest.Config{ID: "b", Leases: func(l seat.Leases) seat.Leases { return mute{l} }})
		holds(f, []*seattest.Node{a, b}, 2, 2)
		f.Advance(time.Minute)
		before, _ := handoffs(f)
		if err := b.Host.Cordon(t.Context(), true); !errors.Is(err, errMute) {
			t.Fatal(err)
		}
		start := time.Now()
		a.Stop()
		if took := time.Since(start); took > time.Second {
			t.Errorf("the drain took %v", took)
		}
		after, _ := handoffs(f)
		if n := after[events.NameHandoffDeclined] - before[events.NameHandoffDeclined]; n != 2 {
			t.Errorf("%d handoffs were declined, want 2: %v", n, after)
		}
	})
}

// TestDrainTargetLeft proves the same of a target that takes leave before it has
// seen what it is asked: nobody declines, and nobody waits for a deadline.
func TestDrainTargetLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats(handles(4)...)
		a := f.Start(seattest.Config{ID: "a"})
		b := f.Start(seattest.Config{ID: "b", Leases: func(l seat.Leases) seat.Leases { return mute{l} }})
		holds(f, []*seattest.Node{a, b}, 2, 2)
		f.Advance(time.Minute)
		b.FreezeView(true)
		stopped := make(chan time.Time)
		go func() {
			a.Stop()
			stopped <- time.Now()
		}()
		f.Advance(time.Second)
		if len(a.Host.Held()) != 2 {
			t.Fatal("the source did not wait for its target: this test proves nothing")
		}
		b.Stop()
		left := time.Now()
		if waited := (<-stopped).Sub(left); waited > time.Second {
			t.Errorf("the source waited for %v after its target had left", waited)
		}
		if count, _ := handoffs(f); count[events.NameHandoffAbandoned] != 2 {
			t.Errorf("2 handoffs were to be abandoned: %v", count)
		}
		b.FreezeView(false)
	})
}

// TestRebalanceHandsOver proves that a node that joins is given its share by
// handoffs, each seat moved once (P4, design §5).
func TestRebalanceHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(6)
		f.Seats(all...)
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 6)
		claims := claimsOf(f, all)
		b := f.Start(seattest.Config{ID: "b"})
		holds(f, []*seattest.Node{a, b}, 3, 3)
		f.Advance(2 * time.Minute)
		if moved := claimsOf(f, all) - claims; moved != 3 {
			t.Errorf("%d claims for three seats that move", moved)
		}
		if count, _ := handoffs(f); count[events.NameHandoffCompleted] != 3 || count[events.NameHandoffAbandoned] != 0 {
			t.Errorf("handoffs: %v", count)
		}
	})
}

// deaf never claims what a handoff reserved for it.
type deaf struct{ seat.Leases }

func (d deaf) Claim(ctx context.Context, l events.Lease, c commands.Claim, unseen commands.Unseen) (commands.Tenure, error) {
	if c.Saga != "" {
		return commands.Tenure{}, events.ErrUnavailable
	}
	return d.Leases.Claim(ctx, l, c, unseen)
}

// TestHandoffTargetDies proves that a handoff whose target was killed in the
// middle ends, and that its seat is held again: by the source, if nothing was
// taken down, else by whoever claims it after the reservation (design §5).
func TestHandoffTargetDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(4)
		f.Seats(all...)
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 4)
		b := f.Start(seattest.Config{ID: "b", Leases: func(l seat.Leases) seat.Leases { return deaf{l} }})
		f.Until(func() bool { count, _ := handoffs(f); return count[events.NameHandoffReleased] > 0 })
		b.Kill()
		f.Until(func() bool { return len(a.Host.Held()) == 4 })
		f.Advance(5 * time.Minute)
		count, _ := handoffs(f)
		if open := count[events.NameHandoffRequested] - count[events.NameHandoffAbandoned] - count[events.NameHandoffDeclined] - count[events.NameHandoffCompleted]; open != 0 {
			t.Errorf("%d handoffs are still open: %v", open, count)
		}
	})
}

// TestHandoffOfAStuckSeat proves that a source whose teardown cannot be proven
// keeps the lease through the handoff's end, and gives it back plainly once the
// teardown succeeds: never a resume (H6, design §5).
func TestHandoffOfAStuckSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev", "ops")
		hook := &hooks{}
		a := f.Start(seattest.Config{ID: "a", Stages: hook.stages("tools")})
		holds(f, []*seattest.Node{a}, 2)
		hook.on("down tools", func(context.Context, string) error { return errors.New("alive") })
		b := f.Start(seattest.Config{ID: "b"})
		f.Until(func() bool { return len(a.Host.Unproven()) == 1 })
		f.Advance(3 * time.Minute)
		if n := len(b.Host.Held()); n != 0 {
			t.Fatalf("the peer holds %d seats although the teardown is not proven", n)
		}
		hook.on("down tools", nil)
		holds(f, []*seattest.Node{a, b}, 1, 1)
		if len(a.Host.Unproven()) != 0 {
			t.Error("the seat still counts as unproven")
		}
	})
}

// TestCordonTakesNothing proves that a cordoned node keeps what it has, takes
// nothing, declines what is offered, counts in no share, and takes its share
// again once it is uncordoned (P6, P13).
func TestCordonTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(4)
		f.Seats(all...)
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 4)
		b := f.Start(seattest.Config{ID: "b"})
		f.Until(func() bool { return b.Host.Ready() == nil })
		if err := b.Host.Cordon(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		f.Advance(2 * time.Minute)
		if na, nb := len(a.Host.Held()), len(b.Host.Held()); na != 4 || nb != 0 {
			t.Errorf("a holds %d and the cordoned b %d, want 4 and 0", na, nb)
		}
		if err := b.Host.Cordon(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		holds(f, []*seattest.Node{a, b}, 2, 2)
		if err := b.Host.Drain(t.Context(), "ops@acme.example", nil); err != nil {
			t.Fatal(err)
		}
		f.Advance(2 * time.Minute)
		if na, nb := len(a.Host.Held()), len(b.Host.Held()); na != 4 || nb != 0 {
			t.Errorf("after the drain a holds %d and b %d, want 4 and 0", na, nb)
		}
		asked := 0
		for _, r := range f.History(events.StreamFleet) {
			if e, is := r.Event.(events.HandoffRequested); is && e.Reason == events.HandoffDrain && e.By == "ops@acme.example" {
				asked++
			}
		}
		if asked != 2 {
			t.Errorf("%d handoffs name who asked for the drain, want 2", asked)
		}
		if err := b.Host.Ready(); err != nil {
			t.Errorf("a drained node stays up: %v", err)
		}
	})
}
