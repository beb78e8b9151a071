package placement_test

import (
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// A pass stops at its limit of successes, whatever it loses on the way.
func TestP2LostClaimsDoNotCount(t *testing.T) {
	c := placement.Sweep(viewOf(numbered("s", 20), node("a"))).Claims()
	seen := make(map[string]bool)
	won := 0
	for h, ok := c.Next(); ok; h, ok = c.Next() {
		if seen[h] {
			t.Fatalf("%s is tried twice", h)
		}
		seen[h] = true
		if len(seen)%2 == 0 {
			won++
		} else {
			c.Lost(h)
		}
	}
	if won != 4 || len(seen) != 8 {
		t.Errorf("won %d of %d tried, want 4 of 8", won, len(seen))
	}
}

// P3: room is checked again at each claim, per group; a lost one makes room for
// the next of its group, also when several are under way at once.
func TestP3EachClaimChecksItsGroupsRoom(t *testing.T) {
	seats := slices.Concat(labelled("gpu", 3, "gpu", "yes"), numbered("any", 2))
	c := placement.Sweep(viewOf(seats, node("a", "gpu", "yes"), node("b", "gpu", "yes"), node("d", "gpu", "yes"), node("c"))).Claims()
	next := func() string { h, _ := c.Next(); return h }
	gpu, other := next(), next()
	if gpu[:3] != "gpu" || other[:3] != "any" {
		t.Fatalf("tries %s and %s, want one of each group: the share of both is 1", gpu, other)
	}
	if h := next(); h != "" {
		t.Fatalf("tries %s beyond the room of its group", h)
	}
	c.Lost(gpu)
	c.Lost(gpu) // said twice, counted once
	c.Lost("never tried")
	if again := next(); again == gpu || again == "" || again[:3] != "gpu" {
		t.Fatalf("after a loss tries %q, want another gpu seat", again)
	}
	if h := next(); h != "" {
		t.Fatalf("tries %s: a loss said twice made room twice", h)
	}
}

// Nothing planned, nothing handed out; a limit of none or less claims nothing.
func TestClaimsOfNothing(t *testing.T) {
	if h, ok := (placement.Plan{}).Claims().Next(); ok {
		t.Errorf("an empty plan tries %s", h)
	}
	v := viewOf(numbered("s", 2), node("a"))
	v.Limits = placement.Limits{Claim: -1, Release: -1}
	if h, ok := placement.Sweep(v).Claims().Next(); ok {
		t.Errorf("without a limit to claim tries %s", h)
	}
}
