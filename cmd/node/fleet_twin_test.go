package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestCase28LeaselessMoment: three nodes that claim four seats a pass are cut from
// the broker for three TTLs, so that no lease is left, and come back in the same
// second. All seats are owned within as many sweeps as their claims need, and one
// TTL; no node believes the fleet full, and no seat has two holders (case 28, P11).
// In virtual time, on the in-memory twin.
func TestCase28LeaselessMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl, sweep = 45 * time.Second, 5 * time.Second
		seats := times(48, 500)
		f := seattest.New(t, ttl)
		var all []string
		for i := range seats {
			all = append(all, seatName(i))
		}
		nodes := []*seattest.Node{f.Start(seattest.Config{ID: "a"}), f.Start(seattest.Config{ID: "b"}), f.Start(seattest.Config{ID: "c"})}
		f.Seats(all...)
		held := func() (n int) {
			for _, h := range nodes {
				n += len(h.Host.Held())
			}
			return n
		}
		f.Until(func() bool { return held() == seats })
		for _, h := range nodes {
			h.Conn.Faults.CutOff(true)
		}
		f.Advance(3 * ttl)
		if n := held(); n != 0 {
			t.Fatalf("cut off for three TTLs the nodes still hold %d seats", n)
		}
		for _, h := range nodes {
			h.Conn.Faults.CutOff(false)
		}
		took := f.Until(func() bool { return held() == seats })
		t.Logf("%d seats were owned again after %v", seats, took)
		if limit := time.Duration((seats+11)/12)*sweep + ttl; took > limit {
			t.Errorf("%d seats were owned again after %v, want at most %v", seats, took, limit)
		}
		for _, handle := range all {
			if holders := seattest.Holders(handle, nodes...); len(holders) != 1 {
				t.Errorf("%s is held by %v", handle, holders)
			}
			if claims := f.Tenures(handle); len(claims) != 2 { // fails itself when an epoch does not rise by one
				t.Errorf("%s was claimed %d times, want once before the cut and once after", handle, len(claims))
			}
		}
	})
}
