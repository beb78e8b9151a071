package metrics_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/metrics"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

const ttl = 15 * time.Second

// plain is the state of a node in a bubble, of which only the host is real.
func plain(h metrics.Host) metrics.State {
	return metrics.State{
		Host: h, Copies: copies{}, LogClock: head(7), Connected: func() bool { return true },
		NotReady: func() []string { return nil },
	}
}

type copies map[events.Stream]projections.Copy

func (c copies) Copy(st events.Stream) projections.Copy { return c[st] }

type head uint64

func (h head) Head() uint64 { return uint64(h) }

// lingering is an inbox that takes that long to go down.
func lingering(d time.Duration) func(*seattest.Node) []seat.Stage {
	return func(*seattest.Node) []seat.Stage {
		return []seat.Stage{{
			Name: "inbox",
			Up:   func(context.Context, *commands.Mailboxes) error { return nil },
			Down: func(context.Context, string, seat.Mode) error {
				<-time.After(d)
				return nil
			},
		}}
	}
}

// TestSeatsByGroup proves that a node's passes say what it runs of each placement
// group and what its share is, that claims made by the pass are in it, and that
// a seat that is handed to a second node leaves the first's numbers; the second
// has measured for how long nobody served it.
func TestSeatsByGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Roster(events.RosterSeat{Handle: "dev"}, events.RosterSeat{Handle: "ops"},
			events.RosterSeat{Handle: "gpu", Labels: map[string]string{"disk": "fast"}},
			events.RosterSeat{Handle: "lost", Node: "nowhere"})
		ma, mb := metrics.New("test"), metrics.New("test")
		a := f.Start(seattest.Config{ID: "a", Labels: map[string]string{"disk": "fast"}, Observe: ma.Seats(), Stages: lingering(2 * time.Second)})
		ma.Read(plain(a.Host))
		f.Until(func() bool { return len(a.Host.Held()) == 3 })
		f.Advance(time.Second)
		p := scrape(t, ma)
		p.want(map[string]float64{
			"tenure_seats_held group=anywhere": 2, "tenure_seats_wanted group=anywhere": 2,
			"tenure_seats_held group=disk=fast": 1, "tenure_seats_wanted group=disk=fast": 1,
			"tenure_seats_held group=node nowhere": -1, // not this node's
			"tenure_group_seats group=anywhere":    2,
			"tenure_seats_unplaceable":             1,
			"tenure_node_seats":                    3,
			"tenure_claim_seconds outcome=done":    3, "tenure_claim_seconds outcome=refused": 0,
			"tenure_establish_seconds outcome=done": 3,
			"tenure_log_clock_head":                 7,
		})
		if p.value("tenure_sweep_seconds", "outcome=done") < 1 {
			t.Error("no pass was counted")
		}
		b := f.Start(seattest.Config{ID: "b", Observe: mb.Seats()})
		mb.Read(plain(b.Host))
		f.Until(func() bool { return len(a.Host.Held()) == 2 && len(b.Host.Held()) == 1 })
		f.Advance(10 * time.Second) // a pass of each
		scrape(t, ma).want(map[string]float64{
			"tenure_seats_held group=anywhere": 1, "tenure_seats_wanted group=anywhere": 1, "tenure_node_seats": 2,
			"tenure_handoff_dark_seconds": 0, // it gave one, it took none
		})
		p = scrape(t, mb)
		p.want(map[string]float64{
			"tenure_seats_held group=anywhere": 1, "tenure_node_seats": 1, "tenure_handoff_dark_seconds": 1,
		})
		if dark := p.sum("tenure_handoff_dark_seconds"); dark < 1.4 || dark > 2.6 { // the clock is read twice a second
			t.Errorf("it was dark for %v s, want 2", dark)
		}
	})
}

// slowLeases answers each write after a while.
type slowLeases struct {
	seat.Leases
	by time.Duration
}

func (l slowLeases) Claim(ctx context.Context, lease events.Lease, c commands.Claim, unseen commands.Unseen) (commands.Tenure, error) {
	<-time.After(l.by)
	return l.Leases.Claim(ctx, lease, c, unseen)
}

func (l slowLeases) Renew(ctx context.Context, ts []commands.Tenure) []commands.Renewed {
	<-time.After(l.by)
	return l.Leases.Renew(ctx, ts)
}

// TestLatencies proves that claims and rounds of renewals are measured from
// asking to the answer, and that a round nobody answered is counted apart.
func TestLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		m := metrics.New("test")
		n := f.Start(seattest.Config{ID: "a", Observe: m.Seats(), Leases: func(l seat.Leases) seat.Leases {
			return slowLeases{l, 200 * time.Millisecond}
		}})
		f.Until(func() bool { return len(n.Host.Held()) == 1 })
		f.Advance(20 * time.Second)
		p := scrape(t, m)
		if n, sum := p.value("tenure_claim_seconds", "outcome=done"), p.sum("tenure_claim_seconds", "outcome=done"); n != 1 || sum < .2 || sum > .3 {
			t.Errorf("%v claims took %v s, want one of 0.2", n, sum)
		}
		rounds := p.value("tenure_renew_seconds", "outcome=done")
		if mean := p.sum("tenure_renew_seconds", "outcome=done") / rounds; rounds < 3 || mean < .2 || mean > .3 {
			t.Errorf("%v rounds took %v s each, want some of 0.2", rounds, mean)
		}
		p.want(map[string]float64{"tenure_renew_seconds outcome=unknown": 0, "tenure_renew_seconds outcome=refused": 0})
		n.Conn.Faults.CutOff(true)
		f.Advance(ttl)
		if p := scrape(t, m); p.value("tenure_renew_seconds", "outcome=unknown") < 1 || p.value("tenure_renew_seconds", "outcome=refused") != 0 {
			t.Error("rounds that were not answered are not counted as that")
		}
	})
}

// TestRefusals proves that each turn that may not start, or not go on, is counted
// under its reason, at the gate where it happened (A1, F2, F4).
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		m := metrics.New("test")
		n := f.Start(seattest.Config{ID: "a", Observe: m.Seats()})
		f.Until(func() bool { return len(n.Host.Held()) == 1 })
		epoch, err := n.Host.MayStart("dev")
		if err != nil || n.Host.Fence("dev", epoch) != nil {
			t.Fatal("a turn may not start on a healthy seat", err)
		}
		scrape(t, m).want(map[string]float64{
			"tenure_admission_refusals_total reason=not_held": 0, "tenure_admission_refusals_total reason=stale": 0,
			"tenure_fence_trips_total reason=not_held": 0, "tenure_fence_trips_total reason=stopped": 0,
		})
		_, _ = n.Host.MayStart("ops")
		_ = n.Host.Fence("dev", epoch+1)
		_ = n.Host.Fence("ops", 1)
		n.Host.StopTurn("dev")
		_ = n.Host.Fence("dev", epoch)
		n.Conn.Faults.CutOff(true)
		f.Advance(ttl/3 + ttl/3)
		_, _ = n.Host.MayStart("dev")
		scrape(t, m).want(map[string]float64{
			"tenure_admission_refusals_total reason=not_held": 1, "tenure_admission_refusals_total reason=stale": 1,
			"tenure_fence_trips_total reason=not_held": 2, "tenure_fence_trips_total reason=stopped": 1,
		})
	})
}

// TestUndeadAge proves that a seat whose teardown cannot be proven is counted,
// with the age of the oldest, until it is proven (H6, O3).
func TestUndeadAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev", "ops")
		m := metrics.New("test")
		var stuck atomic.Bool
		stuck.Store(true)
		n := f.Start(seattest.Config{ID: "a", Observe: m.Seats(), Stages: func(*seattest.Node) []seat.Stage {
			return []seat.Stage{{
				Name: "inbox",
				Up:   func(context.Context, *commands.Mailboxes) error { return nil },
				Down: func(context.Context, string, seat.Mode) error {
					if stuck.Load() {
						return errors.New("a program of it does not end")
					}
					return nil
				},
			}}
		}})
		m.Read(plain(n.Host))
		f.Until(func() bool { return len(n.Host.Held()) == 2 })
		scrape(t, m).want(map[string]float64{"tenure_seats_unproven": 0, "tenure_seats_unproven_oldest_seconds": 0})
		if err := n.Host.GiveBack(t.Context(), "dev"); err != nil {
			t.Fatal(err)
		}
		f.Advance(30 * time.Second)
		if err := n.Host.GiveBack(t.Context(), "ops"); err != nil {
			t.Fatal(err)
		}
		f.Advance(30 * time.Second)
		p := scrape(t, m)
		p.want(map[string]float64{"tenure_seats_unproven": 2, "tenure_node_seats": 0})
		if age := p.value("tenure_seats_unproven_oldest_seconds"); age < 59 || age > 61 {
			t.Errorf("the oldest is %v s old, want 60", age)
		}
		stuck.Store(false)
		f.Until(func() bool { return len(n.Host.Unproven()) == 0 })
		scrape(t, m).want(map[string]float64{"tenure_seats_unproven": 0, "tenure_seats_unproven_oldest_seconds": 0})
	})
}
