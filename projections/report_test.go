package projections_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// P8, P11, P13: what a node says of itself is what its newest claim or report
// has, the whole of it; a report of a presence that is over changes nothing.
func TestNodeFacts(t *testing.T) {
	presence := func(epoch uint64, owner events.Incarnation, facts events.NodeFacts) events.LeaseClaimed {
		return events.LeaseClaimed{Lease: events.NodeLease("node-a"), Epoch: epoch, Owner: owner, TTL: 45000, Node: &facts}
	}
	report := func(epoch uint64, owner events.Incarnation, facts events.NodeFacts) events.NodeReported {
		return events.NodeReported{Lease: events.NodeLease("node-a"), Epoch: epoch, Owner: owner, Node: facts}
	}
	leave := events.LeaseReleased{Lease: events.NodeLease("node-a"), Epoch: 1, Owner: nodeA, Reason: events.ReasonDrain}
	booted := events.NodeFacts{Roles: []string{"seats"}, Labels: map[string]string{"zone": "a"}}
	draining := events.NodeFacts{Roles: []string{"seats"}, Draining: true, SeatsHeld: new(7)}
	all := events.NodeFacts{Draining: true, Cordoned: true, Withdrawn: true, SeatsHeld: new(0)}
	for name, c := range map[string]struct {
		given []events.Event
		want  events.NodeFacts
	}{
		"as claimed":                     {[]events.Event{presence(1, nodeA, booted)}, booted},
		"a claim that says it all":       {[]events.Event{presence(1, nodeA, all)}, all},
		"as reported, the whole":         {[]events.Event{presence(1, nodeA, booted), report(1, nodeA, draining)}, draining},
		"reported again":                 {[]events.Event{presence(1, nodeA, all), report(1, nodeA, draining), report(1, nodeA, booted)}, booted},
		"last words":                     {[]events.Event{presence(1, nodeA, booted), report(1, nodeA, draining), leave}, draining},
		"a report after leave":           {[]events.Event{presence(1, nodeA, booted), leave, report(1, nodeA, draining)}, booted},
		"the next presence, from afresh": {[]events.Event{presence(1, nodeA, all), leave, presence(2, nodeA, booted)}, booted},
		"a late report of the one before": {[]events.Event{presence(1, nodeA, all), presence(2, nodeA, booted),
			report(1, nodeA, draining)}, booted},
	} {
		n, found, err := given(t, fleet(c.given...)...).Node("node-a")
		if err != nil || !found || !reflect.DeepEqual(n.Facts(), c.want) {
			t.Errorf("%s: got %+v, found %v, err %v; want %+v", name, n.Facts(), found, err, c.want)
		}
	}
	if _, found, _ := given(t, fleet(report(1, nodeA, all))...).Node("node-a"); found {
		t.Error("a report made a node of nothing")
	}
}

// P3: whom the newest claim preferred is known after the release, whatever came
// before, and a claim that prefers nobody says so.
func TestPreferredSurvivesTheRelease(t *testing.T) {
	first, second, none := claim("dev", 1, nodeA), claim("dev", 2, nodeB), claim("dev", 3, nodeA)
	first.Preferred, second.Preferred = "node-a", "node-b"
	log := []events.Event{first, release("dev", 1, nodeA), second, fence("dev", 2, nodeB), none}
	for i, want := range []string{"node-a", "node-a", "node-b", "node-b", ""} {
		if s, _, _ := given(t, fleet(log[:i+1]...)...).Seat("dev"); s.Preferred != want {
			t.Errorf("after %T: prefers %q, want %q", log[i], s.Preferred, want)
		}
	}
}

// H3: a pause is an operator's: it rests on no tenure, stays when the seat moves
// and ends when it is resumed. Said twice it is the one that it was.
func TestPaused(t *testing.T) {
	pause := events.SeatPaused{Handle: "dev", By: "ops", Reason: "review"}
	other := events.SeatPaused{Handle: "dev", By: "night ops", Reason: "now", StopTurn: true}
	resume := events.SeatResumed{Handle: "dev", By: "ops", Reason: "reviewed"}
	paused := func(position int, stop bool) *projections.Paused {
		return &projections.Paused{By: "ops", Reason: "review", StopTurn: stop, Position: uint64(position), Since: start.Add(time.Duration(position) * time.Second)}
	}
	for name, c := range map[string]struct {
		given []events.Event
		want  *projections.Paused
	}{
		"nobody holds it":       {[]events.Event{company(1, "dev"), pause}, paused(2, false)},
		"the company is late":   {[]events.Event{pause, company(1, "dev")}, paused(1, false)},
		"moved":                 {[]events.Event{claim("dev", 1, nodeA), pause, release("dev", 1, nodeA), claim("dev", 2, nodeB), established("dev", 2, nodeB)}, paused(2, false)},
		"lapsed":                {[]events.Event{claim("dev", 1, nodeA), pause, claim("dev", 2, nodeB)}, paused(2, false)},
		"twice":                 {[]events.Event{pause, pause}, paused(1, false)},
		"and its turn stopped":  {[]events.Event{pause, other}, paused(1, true)},
		"resumed":               {[]events.Event{pause, other, resume}, nil},
		"resumed twice":         {[]events.Event{pause, resume, resume}, nil},
		"resumed, paused again": {[]events.Event{other, resume, pause}, paused(3, false)},
	} {
		s, found, err := given(t, fleet(c.given...)...).Seat("dev")
		if err != nil || !found || !reflect.DeepEqual(s.Paused, c.want) {
			t.Errorf("%s: got %+v, found %v, err %v; want %+v", name, s.Paused, found, err, c.want)
		}
	}
}

// H6, O3: a teardown that cannot be proven shows, since when its holder said it
// first, until it is proven or the tenure ends.
func TestUnproven(t *testing.T) {
	said := start.Add(-time.Minute)
	stuck := events.SeatUnproven{Handle: "dev", Epoch: 1, Owner: nodeA, Since: said}
	silent := events.SeatUnproven{Handle: "dev", Epoch: 1, Owner: nodeA}
	proven := events.SeatProven{Handle: "dev", Epoch: 1, Owner: nodeA}
	held := []events.Event{company(1, "dev"), claim("dev", 1, nodeA), established("dev", 1, nodeA)}
	for name, c := range map[string]struct {
		then  []events.Event
		since time.Time // zero: it is not unproven
		state projections.SeatState
	}{
		"unproven":                   {[]events.Event{stuck}, said, "UNPROVEN"},
		"since its report":           {[]events.Event{silent}, start.Add(4 * time.Second), "UNPROVEN"},
		"said twice":                 {[]events.Event{stuck, silent}, said, "UNPROVEN"},
		"proven":                     {[]events.Event{stuck, proven}, time.Time{}, "HELD"},
		"released":                   {[]events.Event{stuck, release("dev", 1, nodeA)}, time.Time{}, "UNOWNED"},
		"fenced, then proven":        {[]events.Event{stuck, fence("dev", 1, nodeA), proven}, time.Time{}, "UNOWNED"},
		"lapsed":                     {[]events.Event{stuck, claim("dev", 2, nodeB)}, time.Time{}, "ESTABLISHING"},
		"of a tenure that is over":   {[]events.Event{claim("dev", 2, nodeB), stuck}, time.Time{}, "ESTABLISHING"},
		"another tenure's is proven": {[]events.Event{stuck, events.SeatProven{Handle: "dev", Epoch: 2, Owner: nodeB}}, said, "UNPROVEN"},
		"removed from the company":   {[]events.Event{stuck, company(2, "pm")}, said, "REMOVED"},
	} {
		v := given(t, fleet(append(held[:len(held):len(held)], c.then...)...)...)
		s, _, err := v.Seat("dev")
		if err != nil || s.State() != c.state || (s.Unproven != nil) != !c.since.IsZero() || (s.Unproven != nil && !s.Unproven.Since.Equal(c.since)) {
			t.Errorf("%s: got %s, %+v, err %v; want %s since %v", name, s.State(), s.Unproven, err, c.state, c.since)
		}
		page := must(v.Seats(projections.SeatFilter{State: projections.SeatUnproven}, "", 9))
		if (len(page.Items) == 1) != (c.state == "UNPROVEN") {
			t.Errorf("%s: listed as unproven: %+v", name, page.Items)
		}
	}
}
