package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// tape turns fuzzed bytes into a view; past its end it reads zeros.
type tape struct{ b []byte }

func (t *tape) n(below int) int {
	if len(t.b) == 0 {
		return 0
	}
	x := t.b[0]
	t.b = t.b[1:]
	return int(x) % below
}

func (t *tape) labels() map[string]string {
	if t.n(3) == 0 {
		return nil
	}
	l := map[string]string{}
	for range t.n(3) {
		l[[]string{"", "k", "gpu", "a=b, c"}[t.n(4)]] = []string{"", "v", `"v"`, "x, y"}[t.n(4)]
	}
	return l
}

func (t *tape) node() placement.Node {
	return placement.Node{
		ID: t.id(), Labels: t.labels(), Seats: t.n(4) > 0, Draining: t.n(5) == 4, Withdrawn: t.n(5) == 4,
		SeatsHeld: t.n(9) - 2,
	}
}

func (t *tape) id() string   { return []string{"a", "b", "c", "d", ""}[t.n(5)] }
func (t *tape) seat() string { return fmt.Sprint("s", t.n(12)) }

// view repeats handles and node ids and leaves out what it likes.
func (t *tape) view() placement.View {
	v := placement.View{
		Self: t.id(), CompanyKnown: t.n(8) > 0, RosterKnown: t.n(8) > 0, Draining: t.n(8) == 7, Withdrawn: t.n(8) == 7, Behind: t.n(8) == 7,
		Preferred: map[string]string{}, Owner: map[string]string{}, Limits: placement.Limits{Claim: t.n(7) - 1, Release: t.n(5) - 1},
	}
	for range t.n(6) {
		v.Nodes = append(v.Nodes, t.node())
	}
	for range t.n(4) {
		v.Earlier = append(v.Earlier, t.node())
	}
	for range t.n(14) {
		v.Seats = append(v.Seats, placement.Seat{Handle: t.seat(), Node: []string{"", "", "a", "zz"}[t.n(4)], Labels: t.labels()})
	}
	for range t.n(8) {
		v.Held = append(v.Held, t.seat())
		v.Preferred[t.seat()] = t.id()
		v.Owner[t.seat()] = t.id()
	}
	for range t.n(4) {
		v.Stuck = append(v.Stuck, t.seat())
	}
	return v
}

// Whatever a view says, however broken, a plan keeps its promises.
func FuzzSweep(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x01\x01\x00\x00\x00\x05\x03\x03\x00\x00\x01\x00\x00\x03\x01\x01\x00\x01\x00\x00\x04\x01\x00\x0d"))
	f.Add(slices.Repeat([]byte{1, 3, 2, 7, 5}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := (&tape{b}).view()
		p := placement.Sweep(v)
		company := handles(v.Seats)
		rooms := 0
		for _, g := range p.Groups {
			rooms += g.Room
			if g.Room > g.Share || g.Room < 0 || g.Size < g.Held || g.Share*len(g.Eligible) < g.Size && len(g.Eligible) > 0 {
				t.Fatalf("impossible group %+v", g)
			}
		}
		switch won := take(p); {
		case (len(p.Claim) == 0) != (p.WhyNone != ""):
			t.Fatalf("claims %q and why none %q", p.Claim, p.WhyNone)
		case p.Capacity != rooms:
			t.Fatalf("capacity %d, rooms %d", p.Capacity, rooms)
		case len(won) > max(v.Limits.Claim, 0) || len(p.Release) > max(v.Limits.Release, 0):
			t.Fatalf("past the limits: %q, %q", won, p.Release)
		case len(p.Claim) > 0 && (p.Full || v.Draining || v.Withdrawn || v.Behind):
			t.Fatalf("claims %q though it may not", p.Claim)
		}
		for _, h := range p.Claim {
			if has(v.Held, h) || has(v.Stuck, h) || !has(company, h) || has(p.Unplaceable, h) {
				t.Fatalf("may not try %s: %+v", h, p)
			}
		}
		back := slices.Concat(p.Release, p.Moved, p.Decommissioned)
		if len(unique(back)) != len(back) {
			t.Fatalf("gives something back twice: %q", back)
		}
		for _, h := range back {
			if !has(v.Held, h) || has(v.Stuck, h) {
				t.Fatalf("gives back %s, which it does not run", h)
			}
		}
		for _, h := range append(company, "nobody") {
			if x := placement.Explain(v, h); x.Verdict == "" || x.Why == "" || len(x.Rules) == 0 {
				t.Fatalf("no explanation of %s: %+v", h, x)
			} else if x.Verdict == placement.SeatUnplaceable && !has(p.Unplaceable, h) {
				t.Fatalf("%s is explained as unplaceable, and planned as not", h)
			}
		}
	})
}
