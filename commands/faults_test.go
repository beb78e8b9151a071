package commands_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestCase3ClaimWhoseAnswerWasLost proves that a claim whose answer is lost is
// recognised by its own command id and adopted, however often it is lost, and
// that it stands in the log once.
func TestCase3ClaimWhoseAnswerWasLost(t *testing.T) {
	for _, lost := range []int{1, 2, 7} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				a := boot(t, f, "a")
				a.conn.Faults.DropAnswer(events.StreamFleet, tenureOf(f, "dev"), lost)
				if got := a.claim("dev"); got.Epoch != 1 || got.Claimed != a.standing("dev").Last {
					t.Errorf("adopted %+v, the log has %+v", got, a.standing("dev"))
				}
				if n := len(f.Tenures("dev")); n != 1 {
					t.Errorf("the log has %d claims, want 1", n)
				}
			})
		})
	}
}

// TestCase3LateAnswerChangesNothing proves that a claim that reaches the broker
// 5 s late, after the node has claimed anew and even given up that tenure,
// neither takes nor disturbs anything.
func TestCase3LateAnswerChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		a.conn.Faults.LandLate(events.StreamFleet, tenureOf(f, "dev"), 1, 5*time.Second)
		if err := a.Release(t.Context(), a.claim("dev"), events.ReasonDrain); err != nil {
			t.Fatal(err)
		}
		second := b.claim("dev")
		f.Advance(6 * time.Second)
		a.conn.Faults.Settle()
		if l := a.standing("dev"); l.Owner != b.Self() || l.Epoch != 2 || l.Last != second.Last {
			t.Errorf("after the late arrival the log has %+v, want b's tenure untouched", l)
		}
		f.Tenures("dev")
	})
}

// TestSchedule2ClaimLandsAfterARead proves that a claim whose outcome stays
// unknown is called neither won nor lost, and that when it lands seconds after a
// read had found nothing it is this incarnation's to give back, exactly it.
func TestSchedule2ClaimLandsAfterARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		a.conn.Faults.LandLate(events.StreamFleet, tenureOf(f, "dev"), 1, 5*time.Second)
		a.conn.Faults.DropWrite(events.StreamFleet, tenureOf(f, "dev"), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.try(ctx, "dev"); kind(err) != "unknown" {
			t.Fatalf("got %v, want unknown", err)
		}
		if l := a.standing("dev"); l.Last != 0 {
			t.Fatalf("the read already finds %+v", l)
		}
		late := a.conn.Faults
		a.reconnect()
		late.Settle()
		l := a.standing("dev")
		if l.Owner != a.Self() {
			t.Fatalf("the late claim is not in the log: %+v", l)
		}
		if _, err := a.try(t.Context(), "dev"); kind(err) != "held" {
			t.Errorf("claiming over oneself: got %v, want held", err)
		}
		mine := commands.Tenure{Lease: events.SeatLease("dev"), Owner: l.Owner, Epoch: l.Epoch}
		if err := a.Release(t.Context(), mine, events.ReasonNotHeld); err != nil {
			t.Fatal(err)
		}
		if got := b.claim("dev"); got.Epoch != 2 {
			t.Errorf("b's epoch is %d, want 2, and at once", got.Epoch)
		}
	})
}

// TestSchedule2ReleaseLandsAfterARead proves that a release that lands after the
// seat was taken over by others ends nothing of theirs.
func TestSchedule2ReleaseLandsAfterARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		held := a.claim("dev")
		a.conn.Faults.LandLate(events.StreamFleet, tenureOf(f, "dev"), 1, 10*time.Second)
		a.conn.Faults.DropWrite(events.StreamFleet, tenureOf(f, "dev"), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Release(ctx, held, events.ReasonDrain); kind(err) != "unknown" {
			t.Fatalf("got %v, want unknown", err)
		}
		b.lapse()
		b.claim("dev")
		a.conn.Faults.Settle()
		if l := a.standing("dev"); l.Owner != b.Self() || l.Epoch != 2 {
			t.Errorf("after the late release the log has %+v, want b's epoch 2", l)
		}
	})
}

// TestCase4RenewAfterTakeover proves that of a former holder's renewal and a
// taker's claim, in flight together at 200 random offsets, exactly one stands,
// and that no renewal ever follows the claim that ended its tenure.
func TestCase4RenewAfterTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		random := rand.New(rand.NewPCG(4, 200))
		var renewals, takeovers int
		for i := range 200 {
			handle := fmt.Sprintf("s%d", i)
			held := a.claim(handle)
			a.lapse() // A was stopped past its TTL
			a.conn.Faults.Delay(time.Duration(random.IntN(20)) * time.Millisecond)
			b.conn.Faults.Delay(time.Duration(random.IntN(20)) * time.Millisecond)
			offset := time.Duration(random.IntN(20)) * time.Millisecond
			var both sync.WaitGroup
			var renewed commands.Renewed
			var taken error
			both.Go(func() {
				f.Advance(offset)
				renewed = a.Renew(t.Context(), []commands.Tenure{held})[0]
			})
			both.Go(func() { _, taken = b.try(t.Context(), handle) })
			both.Wait()
			a.conn.Faults.Delay(0)
			b.conn.Faults.Delay(0)
			switch {
			case renewed.Err == nil && kind(taken) == "held":
				renewals++
			case renewed.Refused() && taken == nil:
				takeovers++
				if r := a.Renew(t.Context(), []commands.Tenure{held})[0]; !r.Refused() {
					t.Fatalf("round %d: renewed again after the takeover: %v", i, r.Err)
				}
			default:
				t.Fatalf("round %d: renewal %v, claim %v: not exactly one stands", i, renewed.Err, taken)
			}
		}
		if renewals == 0 || takeovers == 0 {
			t.Errorf("%d renewals and %d claims won: the race was never open", renewals, takeovers)
		}
		noRenewalAfterTheEnd(t, f)
	})
}

// noRenewalAfterTheEnd replays the log: renewals belong to the newest tenure.
func noRenewalAfterTheEnd(t *testing.T, f *seattest.Fleet) {
	t.Helper()
	newest := map[events.Lease]uint64{}
	for _, r := range f.History(events.StreamFleet) {
		switch e := r.Event.(type) {
		case events.LeaseClaimed:
			newest[e.Lease] = e.Epoch
		case events.LeaseRenewed:
			if e.Epoch != newest[e.Lease] {
				t.Fatalf("at %d epoch %d of %s is renewed, epoch %d was claimed", r.Seq, e.Epoch, e.Lease, newest[e.Lease])
			}
		}
	}
}

// TestCase14GiveBackOfAClaimThatDied proves, a hundred times, that a claim that
// was cut short by an error, a timeout or a cancel at a random moment ends as
// this incarnation's or as nobody's, that its give-back lets B claim at once,
// and that a give-back decided before another's claim removes nothing.
func TestCase14GiveBackOfAClaimThatDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		random := rand.New(rand.NewPCG(14, 100))
		for i := range 100 {
			handle := fmt.Sprintf("s%d", i)
			a.conn.Faults.Delay(time.Duration(random.IntN(10)) * time.Millisecond)
			switch i % 3 {
			case 0:
				a.conn.Faults.DropAnswer(events.StreamFleet, tenureOf(f, handle), 1000)
			case 1:
				a.conn.Faults.DropWrite(events.StreamFleet, tenureOf(f, handle), 1000)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(10))*time.Millisecond)
			held, err := a.try(ctx, handle)
			cancel()
			late := a.conn.Faults
			a.reconnect()
			late.Settle()
			l := a.standing(handle)
			switch {
			case err == nil && l.Owner == a.Self():
			case kind(err) == "unknown", kind(err) == "unavailable":
				held = commands.Tenure{Lease: events.SeatLease(handle), Owner: a.Self(), Epoch: max(l.Epoch, 1)}
			default:
				t.Fatalf("round %d: the claim says %v, the log has %+v", i, err, l)
			}
			if i%2 == 0 { // decided on what was read, sent after B's claim
				if l.Owner == a.Self() {
					a.lapse()
				}
				b.claim(handle)
			}
			if err := a.Release(t.Context(), held, events.ReasonNotHeld); err != nil && kind(err) != "ended" {
				t.Fatalf("round %d: give back: %v", i, err)
			}
			if i%2 == 0 {
				if l := a.standing(handle); l.Owner != b.Self() {
					t.Fatalf("round %d: the give-back removed B's tenure: %+v", i, l)
				}
				continue
			}
			if _, err := b.try(t.Context(), handle); err != nil {
				t.Fatalf("round %d: B cannot claim at once: %v", i, err)
			}
		}
	})
}
