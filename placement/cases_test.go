package placement_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// rounds is n, or full for the full counts of a field case.
func rounds(n, full int) int {
	if os.Getenv("TENURE_CASES") == "full" {
		return full
	}
	return n
}

// Case 11: 7 seats on 3 nodes, labels mixed so that shares do not divide evenly,
// 200 sweeps after each change with a tenth of what is read a sweep late. After
// convergence nothing moves, and no seat moves twice for one membership change.
func TestCase11SeatsDoNotSwing(t *testing.T) {
	companies := [][]placement.Seat{
		numbered("any", 7), // no third of 7: whoever reads late sees room that is not there
		slices.Concat(numbered("any", 4), labelled("gpu", 2, "gpu", "yes"), []placement.Seat{{Handle: "pinned", Node: "b"}}),
		slices.Concat(numbered("any", 3), labelled("gpu", 3, "gpu", "yes"), labelled("z", 1, "zone", "z1")),
	}
	for seed := range uint64(rounds(12, 300)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFleet(t, seed, 0.1, companies[seed%3])
			f.join(node("a", "gpu", "yes"))
			f.settle(200, 1)
			f.join(node("b", "zone", "z1"))
			f.settle(200, 1)
			f.join(node("c", "gpu", "yes"))
			f.settle(200, 1)
			f.leave("a")
			f.settle(200, 1)
			f.join(node("a", "gpu", "yes"))
			f.settle(200, 1)
			f.nodes["c"].Labels = nil
			f.settle(200, 1)
			f.nodes["b"].Withdrawn = true
			f.settle(200, 1)
			f.nodes["b"].Withdrawn = false
			f.settle(200, 1)
			f.nodes["c"].Draining = true
			f.settle(200, 1)
			f.leave("c")
			f.settle(200, 1)
		})
	}
}

// Case 11, the schedule that needs View.Earlier: a sees the join and gives back,
// b reads late, has room by its old share, and would take what is meant for c.
// With half of all reads late and no wait it comes up in one join of ten.
func TestCase11ALateReaderDoesNotTakeWhatAJoinFreed(t *testing.T) {
	for seed := range uint64(rounds(100, 2000)) {
		f := newFleet(t, seed, 0.5, numbered("any", 7))
		f.join(node("a"))
		f.settle(0, 1)
		f.join(node("b"))
		f.settle(0, 1)
		f.join(node("c"))
		f.settle(0, 1)
	}
}

// Case 12: C can run P but is full of unpinned seats and holds an unproven one.
// When B dies C takes P within a sweep and the unpinned seats give way; when C
// loses the label P is reported by name and nobody runs it.
func TestCase12ANodeFullOfOtherSeatsTakesTheOneOnlyItCanRun(t *testing.T) {
	p := placement.Seat{Handle: "p", Labels: map[string]string{"gpu": "yes"}}
	f := newFleet(t, 12, 0, slices.Concat(numbered("any", 9), []placement.Seat{p}))
	for _, id := range []string{"a", "d", "e", "f"} {
		f.join(node(id))
	}
	f.join(node("b", "gpu", "yes"))
	f.join(node("c", "gpu", "yes"))
	f.hold("a", "any-0", "any-1")
	f.hold("b", "any-2", "p")
	f.hold("c", "any-3", "any-4")
	f.hold("d", "any-5", "any-6")
	f.hold("e", "any-7")
	f.hold("f", "any-8")
	c := f.nodes["c"]
	c.stuck = []string{"role-gone"}

	f.leave("b")
	f.round()
	if f.owner["p"] != "c" {
		t.Fatalf("after one sweep p is on %q, want c", f.owner["p"])
	}
	f.settle(20, 1)
	if len(c.held) != 2 || !has(c.held, "p") {
		t.Errorf("c runs %q, want p and one unpinned seat: two and one are its shares, and the stuck seat costs one", c.held)
	}

	c.Labels = map[string]string{}
	f.round()
	if got := f.owner["p"]; got != "" {
		t.Errorf("p is on %q, want nobody: no node has the label", got)
	}
	same(t, "unplaceable", placement.Sweep(f.view("a", f.live())).Unplaceable, []string{"p"})
	f.settle(20, 1)
	if x := placement.Explain(f.view("a", f.live()), "p"); x.Verdict != placement.SeatUnplaceable {
		t.Errorf("explained as %+v", x)
	}
}
