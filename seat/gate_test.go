package seat_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

const older = seat.Protocol - 1

// TestOlderNodeBlocksClaims proves that a node claims no seat while one at a lower
// protocol lives, takes none that is handed to it either, that the older node goes
// on, and that everything moves once it is gone: the wait is named, its end is not
// waited for longer than the lease (V1).
func TestOlderNodeBlocksClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(6)
		f.Seats(all[:4]...)
		a := f.Start(seattest.Config{ID: "a", Protocol: older})
		holds(f, []*seattest.Node{a}, 4)
		b := f.Start(seattest.Config{ID: "b"})
		f.Until(func() bool { return b.Host.Ready() == nil })
		f.Seats(all...)
		f.Advance(3 * ttl)
		if n := len(b.Host.Held()); n != 0 {
			t.Fatalf("the newer node holds %d seats beside an older one", n)
		}
		if got := causes(f); got[events.DeclineGated] == 0 || len(got) != 1 {
			t.Errorf("declined for %v, want only %q", got, events.DeclineGated)
		}
		if !strings.Contains(b.Log.Shape(), "seat_claims_blocked_by_older_protocol") {
			t.Errorf("nothing names the wait:\n%s", b.Log)
		}
		a.Kill()
		if took := holds(f, []*seattest.Node{b}, 6); took > lapses+10*time.Second {
			t.Errorf("the newer node had all seats %v after the older one was killed", took)
		}
	})
}

// TestOlderSeatLeaseCounts proves that a seat lease at a lower protocol holds
// claims back although its node has no presence, as a draining one; that a duty's
// does not; and that only the log says when such a lease is over (V1).
func TestOlderSeatLeaseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev", "ops")
		gone := commands.New(seattest.NewLog(f.Conn), f.Subjects, f.Boot("gone"))
		claim := commands.Claim{TTL: ttl, Protocol: older}
		never := func(uint64) (time.Duration, bool) { return 0, false }
		dev, err := gone.Claim(t.Context(), events.SeatLease("dev"), claim, never)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gone.Claim(t.Context(), events.Lease{Kind: events.KindWorker, ID: "maintenance"}, claim, never); err != nil {
			t.Fatal(err)
		}
		b := f.Start(seattest.Config{ID: "b"})
		for range 6 { // renewals stand on no edge that the view has
			f.Advance(ttl / 2)
			if r := gone.Renew(t.Context(), []commands.Tenure{dev}); r[0].Err != nil {
				t.Fatal(r[0].Err)
			} else {
				dev = r[0].Tenure
			}
			if n := len(b.Host.Held()); n != 0 {
				t.Fatalf("the newer node holds %d seats beside an older lease", n)
			}
		}
		if took := holds(f, []*seattest.Node{b}, 2); took < ttl || took > lapses+10*time.Second {
			t.Errorf("the newer node had both seats %v after the last renewal", took)
		}
	})
}

// comesUp starts an older node's presence right before the first claim of a seat.
type comesUp struct {
	seat.Leases
	once  sync.Once
	start func()
}

func (c *comesUp) Claim(ctx context.Context, l events.Lease, claim commands.Claim, unseen commands.Unseen) (commands.Tenure, error) {
	if l.Kind == events.KindSeat {
		c.once.Do(c.start)
	}
	return c.Leases.Claim(ctx, l, claim, unseen)
}

// TestOlderNodeComesUpDuringAClaim proves that the gate is judged again at the
// claim's own position: an older node that the pass did not see yet, but that came
// up before the claim, costs it the seat before anything is attached (V1).
func TestOlderNodeComesUpDuringAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		old := commands.New(seattest.NewLog(f.Conn), f.Subjects, f.Boot("a"))
		hook := &hooks{}
		b := f.Start(seattest.Config{ID: "b", Stages: hook.stages("tools"), Leases: func(l seat.Leases) seat.Leases {
			return &comesUp{Leases: l, start: func() {
				_, err := old.Claim(t.Context(), events.NodeLease("a"), commands.Claim{TTL: ttl, Protocol: older, Node: &events.NodeFacts{}},
					func(uint64) (time.Duration, bool) { return 0, false })
				if err != nil {
					t.Error(err)
				}
			}}
		}})
		f.Until(func() bool { return len(f.Reasons("dev")) == 1 })
		f.Advance(ttl / 2)
		if got := f.Reasons("dev"); !slices.Equal(got, []events.Reason{events.ReasonOlder}) || len(hook.calls()) != 0 {
			t.Errorf("released for %v with hooks called, want once for %q and none", got, events.ReasonOlder)
		}
		holds(f, []*seattest.Node{b}, 1) // the older node never renewed
	})
}
