package commands_test

import (
	"testing"
	"testing/synctest"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestActing proves that what is written on an operator's behalf names the
// operator and the reason, a release and a node's report alike, and nothing else
// does (design §2).
func TestActing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := boot(t, f, "a")
		acting := commands.Acting(t.Context(), "carol", "maintenance")
		node, err := a.Claim(t.Context(), events.NodeLease("a"), a.ask(), a.clock.UnseenFor)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Report(acting, node, events.NodeFacts{Cordoned: true}); err != nil {
			t.Fatal(err)
		}
		if err := a.Release(acting, a.claim("dev"), events.ReasonOperator); err != nil {
			t.Fatal(err)
		}
		a.claim("dev")
		want := 2
		for _, r := range f.History(events.StreamFleet) {
			_, reported := r.Event.(events.NodeReported)
			_, released := r.Event.(events.LeaseReleased)
			said := r.Meta.Actor + ": " + r.Meta.Reason
			switch {
			case (reported || released) && said == "carol: maintenance":
				want--
			case reported || released || r.Meta.Actor != "":
				t.Errorf("%T: got %q", r.Event, said)
			}
		}
		if want != 0 {
			t.Errorf("%d acts were not seen", want)
		}
	})
}
