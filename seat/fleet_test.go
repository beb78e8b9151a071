package seat_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestFleetConverges proves that three nodes that join one after the other end
// with fair shares of ten seats, each seat with one holder at every moment, and
// that nothing moves any more afterwards (P1, P2, P4, P9).
func TestFleetConverges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(10)
		f.Seats(all...)
		a := f.Start(seattest.Config{ID: "a"})
		if took := holds(f, []*seattest.Node{a}, 10); took > 12*time.Second {
			t.Errorf("one node alone took %v for ten seats at 4 a pass", took)
		}
		b := f.Start(seattest.Config{ID: "b"})
		c := f.Start(seattest.Config{ID: "c"})
		nodes := []*seattest.Node{a, b, c}
		f.Until(func() bool {
			onlyOne(t, all, nodes...)
			held := len(a.Host.Held()) + len(b.Host.Held()) + len(c.Host.Held())
			return held == 10 && len(a.Host.Held()) <= 4 && len(b.Host.Held()) <= 4 && len(c.Host.Held()) <= 4
		})
		claims := claimsOf(f, all)
		f.Advance(5 * time.Minute)
		if now := claimsOf(f, all); now != claims {
			t.Errorf("%d claims after convergence", now-claims)
		}
		for _, n := range nodes {
			if stale := n.Log.Count("seat_admission_stale"); stale > 0 {
				t.Errorf("%s was stale %d times", n.ID, stale)
			}
			if err := n.Host.Ready(); err != nil {
				t.Errorf("%s is not ready: %v", n.ID, err)
			}
		}
	})
}

func claimsOf(f *seattest.Fleet, all []string) int {
	n := 0
	for _, handle := range all {
		n += len(f.Tenures(handle))
	}
	return n
}

// TestDrainReleasesAll proves that a node told to stop gives every seat back for
// that reason, and its presence too, so that a peer holds them all within two
// passes and not after a TTL (H4, P6).
func TestDrainReleasesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(4)
		f.Seats(all...)
		hook := &hooks{}
		a := f.Start(seattest.Config{ID: "a", Stages: hook.stages("mail")})
		holds(f, []*seattest.Node{a}, 4)
		b := f.Start(seattest.Config{ID: "b"})
		holds(f, []*seattest.Node{a, b}, 2, 2)
		hook.calls()
		a.Stop()
		if got := hook.calls(); len(got) != 2 || !slices.Contains(got, "down mail "+a.Log.All("seat_detached")[2].Attrs["seat"]+" voluntary") {
			t.Errorf("the drain told the stages %q", got)
		}
		if got := a.Log.Count("seat_detached", "reason=drain"); got != 2 {
			t.Errorf("%d seats were detached for the drain, want 2", got)
		}
		if took := holds(f, []*seattest.Node{b}, 4); took > 11*time.Second {
			t.Errorf("the peer had them after %v", took)
		}
		presence, err := f.Op.Lease(t.Context(), events.NodeLease("a"))
		if err != nil || presence.Owner != "" {
			t.Errorf("the presence after the drain is %+v, %v", presence, err)
		}
	})
}

// TestDrainDuringAClaim proves that a lease won while the drain began is handed
// back before anything attaches (P6).
func TestDrainDuringAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		hook := &hooks{}
		a := f.Start(seattest.Config{ID: "a", Stages: hook.stages("mail")})
		f.Until(func() bool { return a.Host.Ready() == nil })
		a.Conn.Faults.Delay(time.Second) // of each request
		f.Seats("dev")
		f.Advance(500 * time.Millisecond)
		a.Stop()
		if got := f.Reasons("dev"); !slices.Equal(got, []events.Reason{events.ReasonDrain}) {
			t.Errorf("the lease was given back for %v, want the drain", got)
		}
		if up := hook.calls(); len(up) > 0 && a.Log.Count("seat_attached") > 0 {
			t.Errorf("something attached: %q", up)
		}
	})
}

// TestRemovedAndMovedSeats proves that a seat that leaves the company, or that
// its placement takes elsewhere, is given back in the pass that the apply asks
// for, each for its reason (R1, P5).
func TestRemovedAndMovedSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev", "ops", "qa")
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 3)
		f.Advance(7 * time.Second)
		f.Roster(events.RosterSeat{Handle: "dev"}, events.RosterSeat{Handle: "qa", Node: "b"})
		if took := holds(f, []*seattest.Node{a}, 1); took > 5*time.Second {
			t.Errorf("given back after %v", took)
		}
		f.Advance(time.Second)
		for handle, want := range map[string]events.Reason{"ops": events.ReasonRoleGone, "qa": events.ReasonMoved} {
			if got := f.Reasons(handle); !slices.Equal(got, []events.Reason{want}) {
				t.Errorf("%s was given back for %v, want %s", handle, got, want)
			}
		}
		if a.Log.Count("seat_released_role_gone", "seat=ops") != 1 {
			t.Error("the removed role is not named in the log")
		}
		if a.Log.Count("seats_unplaceable") != 1 {
			t.Error("the seat that only an absent node may run is not named in the log")
		}
	})
}

// TestDeadNodesSeatsMove proves that the seats of a node that was killed are
// claimed once its bought time is over, not before and not much later, and under
// the next epoch over its evidence (L3, L6).
func TestDeadNodesSeatsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(4)
		f.Seats(all...)
		a, b := f.Start(seattest.Config{ID: "a"}), f.Start(seattest.Config{ID: "b"})
		nodes := []*seattest.Node{a, b}
		holds(f, nodes, 2, 2)
		f.Advance(time.Minute)
		lost := a.Host.Held()
		a.Kill()
		killed := time.Now()
		holds(f, nodes[1:], 4)
		took := time.Since(killed)
		if took < ttl-heartbeat || took > lapses+2*time.Second {
			t.Errorf("the seats moved after %v, want between %v and %v", took, ttl-heartbeat, lapses+2*time.Second)
		}
		for _, handle := range lost {
			claims := f.Tenures(handle)
			last := claims[len(claims)-1]
			if last.Over == nil || last.Over.Owner != a.Self || last.Over.Unseen.Duration() < lapses {
				t.Errorf("%s was taken over on %+v", handle, last.Over)
			}
		}
	})
}

// TestSchedule1BrokerClockSteps proves that nothing about a lease depends on a
// stream's time: the broker's clock steps an hour on and back, no healthy holder
// loses a seat and a dead one's are free no earlier and no later (L6).
func TestSchedule1BrokerClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(4)
		f.Seats(all...)
		skew := &seattest.Skew{}
		a := f.Start(seattest.Config{ID: "a", Store: skew.Wrap})
		b := f.Start(seattest.Config{ID: "b", Store: skew.Wrap})
		nodes := []*seattest.Node{a, b}
		holds(f, nodes, 2, 2)
		claims := claimsOf(f, all)
		for _, step := range []time.Duration{time.Hour, 0, -time.Hour} {
			skew.Set(step)
			f.Advance(2 * ttl)
			if now := claimsOf(f, all); now != claims {
				t.Fatalf("with the broker's clock at %v %d seats were claimed anew", step, now-claims)
			}
		}
		skew.Set(time.Hour)
		a.Kill()
		killed := time.Now()
		holds(f, nodes[1:], 4)
		if took := time.Since(killed); took < ttl-heartbeat || took > lapses+2*time.Second {
			t.Errorf("the dead node's seats moved after %v", took)
		}
	})
}

// TestSchedule4DroppedSeatsAreGivenBack proves that leases in this incarnation's
// name that it does not hold do not stay dark: ten of them are given back in the
// next pass and claimed anew.
func TestSchedule4DroppedSeatsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(10)
		f.Seats(all...)
		self := f.Boot("a")
		dropped := commands.New(seattest.NewLog(f.Conn), f.Subjects, self)
		for _, handle := range all {
			never := func(uint64) (time.Duration, bool) { return 0, false }
			if _, err := dropped.Claim(t.Context(), events.SeatLease(handle), commands.Claim{TTL: ttl, Protocol: seat.Protocol, Preferred: "a"}, never); err != nil {
				t.Fatal(err)
			}
		}
		a := f.Start(seattest.Config{ID: "a", Reuse: self})
		if took := holds(f, []*seattest.Node{a}, 10); took > ttl/2 {
			t.Errorf("the seats were dark for %v", took)
		}
		if got := a.Log.Count("seat_given_back"); got != 10 {
			t.Errorf("%d were given back, want 10", got)
		}
		for _, handle := range all {
			if got := f.Tenures(handle); len(got) != 2 {
				t.Errorf("%s has %d tenures, want 2", handle, len(got))
			}
		}
	})
}

// TestSchedule11OneNodeIDTwice, Case 13: proves that a second process under one
// node id claims nothing, is not ready and says so every pass, and takes over
// when the first one's presence is released, or lapses (L1).
func TestSchedule11OneNodeIDTwice(t *testing.T) {
	for name, end := range map[string]func(*seattest.Node){"released": (*seattest.Node).Stop, "lapsed": (*seattest.Node).Kill} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				f.Seats("dev", "ops")
				first := f.Start(seattest.Config{ID: "node-0"})
				holds(f, []*seattest.Node{first}, 2)
				second := f.Start(seattest.Config{ID: "node-0"})
				f.Advance(time.Minute)
				if n := len(second.Host.Held()); n != 0 || second.Host.Ready() == nil {
					t.Errorf("the second process holds %d seats, ready: %v", n, second.Host.Ready())
				}
				if n := second.Log.Count("node_id_in_use", "owner="+string(first.Self)); n < 12 {
					t.Errorf("the clash was logged %d times in a minute of passes", n)
				}
				end(first)
				if took := holds(f, []*seattest.Node{second}, 2); took > lapses+7*time.Second {
					t.Errorf("it took over after %v", took)
				}
				if err := second.Host.Ready(); err != nil {
					t.Errorf("it is not ready: %v", err)
				}
				onlyOne(t, []string{"dev", "ops"}, second)
			})
		})
	}
}

// TestCase13RestartUnderTheSameIDs proves that nodes killed and restarted at
// once inherit nothing, neither presence nor tenure, and have the same seats
// again under new epochs: each claims first what it preferred.
func TestCase13RestartUnderTheSameIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(8)
		f.Seats(all...)
		a, b := f.Start(seattest.Config{ID: "a"}), f.Start(seattest.Config{ID: "b"})
		holds(f, []*seattest.Node{a, b}, 4, 4)
		f.Advance(time.Minute)
		was := [][]string{a.Host.Held(), b.Host.Held()}
		a.Kill()
		b.Kill()
		again := []*seattest.Node{f.Start(seattest.Config{ID: "a"}), f.Start(seattest.Config{ID: "b"})}
		f.Advance(ttl - heartbeat - time.Second)
		onlyOne(t, all, again...)
		if len(again[0].Host.Held())+len(again[1].Host.Held()) > 0 {
			t.Fatal("a restarted node holds seats within its predecessor's time")
		}
		holds(f, again, 4, 4)
		f.Advance(time.Minute)
		for i, n := range again {
			if got := n.Host.Held(); !slices.Equal(got, was[i]) {
				t.Errorf("%s holds %v, want what it preferred: %v", n.ID, got, was[i])
			}
			for _, handle := range was[i] {
				if owner, epoch := standing(t, f, handle); owner != n.Self || epoch < 2 {
					t.Errorf("%s is held by %s at epoch %d", handle, owner, epoch)
				}
			}
		}
	})
}

// TestSchedule19LocalTakesNoClientsLease proves that under local coordination a
// dead predecessor's seats are taken over at boot, and that a live client's,
// claimed without that directory's lock, are not.
func TestSchedule19LocalTakesNoClientsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Roster(events.RosterSeat{Handle: "dev", Node: "a"}, events.RosterSeat{Handle: "ops", Node: "client"})
		client := f.Start(seattest.Config{ID: "client"})
		dead := f.Start(seattest.Config{ID: "a", Local: "d-1"})
		holds(f, []*seattest.Node{client, dead}, 1, 1)
		dead.Kill()
		f.Roster(events.RosterSeat{Handle: "dev", Node: "a"}, events.RosterSeat{Handle: "ops"})
		again := f.Start(seattest.Config{ID: "a", Local: "d-1"})
		if took := holds(f, []*seattest.Node{again}, 1); took > 2*time.Second {
			t.Errorf("the predecessor's seat was dark for %v", took)
		}
		f.Advance(2 * ttl)
		if owner, epoch := standing(t, f, "ops"); owner != client.Self || epoch != 1 {
			t.Errorf("the client's seat is held by %s at epoch %d", owner, epoch)
		}
	})
}

// TestCase10OtherDurationsAndClocks proves that a node whose own clocks run ten
// minutes ahead, or whose file had a shorter TTL, takes nothing from a healthy
// holder: a lease is judged by the fleet's TTL and by time that passed (L7).
func TestCase10OtherDurationsAndClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(4)
		f.Seats(all...)
		a := f.Start(seattest.Config{ID: "a"})
		holds(f, []*seattest.Node{a}, 4)
		b := f.Start(seattest.Config{ID: "b"})
		b.Clock.Ahead(10 * time.Minute)
		holds(f, []*seattest.Node{a, b}, 2, 2)
		for range 5 {
			b.Clock.Ahead(10 * time.Minute) // a step, as if suspended
			f.Advance(time.Second)
		}
		f.Advance(2 * ttl)
		for _, handle := range a.Host.Held() {
			if owner, _ := standing(t, f, handle); owner != a.Self {
				t.Errorf("%s moved from a healthy holder to %s", handle, owner)
			}
		}
	})
}
