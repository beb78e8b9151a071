package graph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// Nodes of a fleet that operators are at work on; all live.
const (
	nodeE = events.Incarnation("node-e:0000000e") // cordoned
	nodeF = events.Incarnation("node-f:0000000f") // takes leave
	nodeG = events.Incarnation("node-g:00000010") // withdrawn
)

func handoff(handle string, number uint64, from, to events.Incarnation, epoch uint64) events.HandoffBody {
	p := events.Patience{Warm: 60_000, Quiesce: 75_000, Flush: 90_000, Release: 45_000, Claim: 5_000, Establish: 60_000}
	return events.HandoffBody{Handle: handle, Number: number, From: from, To: to, Epoch: epoch, Reason: events.HandoffMove, By: "ops", Patience: p}
}

// moving is a fleet that operators are at work on: nodes cordoned, draining and
// withdrawn; seats paused, on their way, arrived, declined, and stranded.
func moving(t testing.TB) *world {
	t.Helper()
	w := newWorld()
	for _, n := range []events.Incarnation{nodeE, nodeF, nodeG} {
		w.lives[n] = graph.Live
	}
	arrived, stays, goes := handoff("ada", 1, nodeE, nodeA, 1), handoff("bob", 1, nodeE, nodeF, 1), handoff("cat", 1, nodeE, nodeA, 1)
	w.add(t, events.StreamFleet,
		companyWith(1, events.RosterSeat{Handle: "ada"}, events.RosterSeat{Handle: "bob"}, events.RosterSeat{Handle: "cat"},
			events.RosterSeat{Handle: "dan"}, events.RosterSeat{Handle: "eve", Node: "node-e"}, events.RosterSeat{Handle: "fay"}),
		claim(events.NodeLease("node-a"), 1, nodeA, &events.NodeFacts{}),
		claim(events.NodeLease("node-e"), 1, nodeE, &events.NodeFacts{Cordoned: true}),
		claim(events.NodeLease("node-f"), 1, nodeF, &events.NodeFacts{Draining: true, Cordoned: true}),
		claim(events.NodeLease("node-g"), 1, nodeG, &events.NodeFacts{Withdrawn: true}),
		claimSeat("ada", 1, nodeE), // 6
		events.HandoffRequested{HandoffBody: arrived},
		events.HandoffWarmed{HandoffBody: arrived},
		events.HandoffQuiesced{HandoffBody: arrived}, // 9
		events.HandoffFlushed{HandoffBody: arrived},
		events.HandoffReleased{HandoffBody: arrived, ReservedFor: 5000},
		events.LeaseReleased{Lease: events.SeatLease("ada"), Epoch: 1, Owner: nodeE, Reason: events.ReasonMoved, Successor: nodeA, ReservedFor: 5000},
		claimSeat("ada", 2, nodeA), // 13
		events.SeatEstablished{Handle: "ada", Epoch: 2, Owner: nodeA},
		events.HandoffCompleted{HandoffBody: arrived, ClaimedEpoch: 2, DarkFor: 83},
		claimSeat("bob", 1, nodeE), // 16
		events.SeatEstablished{Handle: "bob", Epoch: 1, Owner: nodeE},
		events.HandoffRequested{HandoffBody: stays},
		events.HandoffDeclined{HandoffBody: stays, Step: events.StepRequested, Cause: events.DeclineDraining},
		events.SeatPaused{Handle: "bob", By: "ops", Reason: "too chatty", StopTurn: true}, // 20
		claimSeat("cat", 1, nodeE),
		events.SeatEstablished{Handle: "cat", Epoch: 1, Owner: nodeE},
		events.HandoffRequested{HandoffBody: goes},
		events.HandoffWarmed{HandoffBody: goes},
		events.HandoffQuiesced{HandoffBody: goes}, // 25
		claimSeat("dan", 1, nodeE),
		events.SeatEstablished{Handle: "dan", Epoch: 1, Owner: nodeE},
		events.SeatUnproven{Handle: "dan", Epoch: 1, Owner: nodeE, Since: start.Add(50 * time.Minute)},
	)
	return w
}

// TestOperatorsSee holds whole answers on a fleet that operators are at work on:
// node states, pauses, stranded seats, sagas with each end and their pages, who
// held a seat at an instant, and why a seat is where it is (O3, H3, P6, P8, P13).
func TestOperatorsSee(t *testing.T) {
	files, err := filepath.Glob("testdata/operations/*.graphql")
	if err != nil || len(files) == 0 {
		t.Fatal("no queries", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".graphql"), func(t *testing.T) {
			query, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := ask(t, moving(t), string(query), nil)
			golden(t, strings.TrimSuffix(file, ".graphql")+".json", indented(t, got.Raw))
		})
	}
}

// TestUnprovenSecondsAreTheHosts: of a seat that this node holds, its own host
// counts, not the log, which may not say it yet, or not any more (O3).
func TestUnprovenSecondsAreTheHosts(t *testing.T) {
	const query = `{ seat(handle: "ada") { unprovenSeconds } }`
	w := moving(t)
	if got := ask(t, w, query, nil); string(got.Data) != `{"seat":{"unprovenSeconds":null}}` {
		t.Errorf("a seat that is well: got %s", got.Raw)
	}
	w.unproven = map[string]time.Duration{"ada": 90*time.Second + 700*time.Millisecond}
	if got := ask(t, w, query, nil); string(got.Data) != `{"seat":{"unprovenSeconds":90}}` {
		t.Errorf("a stranded seat: got %s", got.Raw)
	}
}
