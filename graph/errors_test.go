package graph_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
)

// TestBadRequests: what can never be answered is BAD_REQUEST, and names the
// argument where it is about one.
func TestBadRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		query    string
		vars     vars
		argument string
		contains string
	}{
		"no GraphQL":        {query: "{ seats", contains: "Expected"},
		"no operation":      {query: "", contains: "no operation"},
		"unknown field":     {query: "{ moon }", contains: "moon"},
		"unknown operation": {query: "query A { asOf { copy } } query B { asOf { copy } }", contains: "not found"},
		"missing variable":  {query: "query($h: ID!) { seat(handle: $h) { handle } }", contains: "must be defined"},
		"wrong type":        {query: `{ seats(first: "2") { totalCount } }`, contains: "Int"},
		"huge number":       {query: `{ seats(first: 99999999999999999999) { totalCount } }`, contains: "32-bit"},
		"first too small":   {query: "{ seats(first: 0) { totalCount } }", argument: "first"},
		"first too large":   {query: "{ tenures(first: 501) { totalCount } }", argument: "first"},
		"nested first":      {query: `{ seat(handle: "ada") { tenures(first: -1) { totalCount } } }`, argument: "first"},
		"node's first":      {query: `{ node(id: "node-a") { seats(first: 501) { totalCount } } }`, argument: "first"},
		"cursor":            {query: `{ seats(after: "?") { totalCount } }`, argument: "after"},
		"other's cursor":    {query: `{ seats(after: "dGVudXJlOjk") { totalCount } }`, argument: "after"},
		"cursor of nothing": {query: `{ tenures(after: "dGVudXJlOjA") { totalCount } }`, argument: "after"},
		"cursor's key":      {query: `{ seats(after: "c2VhdDouLi8") { totalCount } }`, argument: "after"},
		"long cursor":       {query: `{ seats(after: "` + strings.Repeat("c2Vh", 100) + `") { totalCount } }`, argument: "after"},
		"handle":            {query: `{ seat(handle: "A/../b") { handle } }`, argument: "handle"},
		"node id":           {query: `{ node(id: "") { id } }`, argument: "id"},
		"filter":            {query: `{ seats(filter: {node: "a b"}) { totalCount } }`, argument: "filter.node"},
		"prefix":            {query: `{ seats(filter: {handlePrefix: "*"}) { totalCount } }`, argument: "filter.handlePrefix"},
		"tenures' handle":   {query: `{ tenures(handle: "?") { totalCount } }`, argument: "handle"},
		"tenures' node":     {query: `{ tenures(node: "?") { totalCount } }`, argument: "node"},
		"completion's seat": {query: `{ completion(handle: "?", eventId: "e") { at } }`, argument: "handle"},
		"completion's id":   {query: `{ completion(handle: "ada", eventId: "") { at } }`, argument: "eventId"},
		"enum in small": {query: "query($s: SeatState) { seats(filter: {state: $s}) { totalCount } }", vars: vars{"s": "held"},
			contains: "SeatState"},
		"unknown input field": {query: "query($f: SeatFilter) { seats(filter: $f) { totalCount } }", vars: vars{"f": vars{"moon": 1}},
			contains: "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t, acme(t), tc.query, tc.vars)
			if got.code() != "BAD_REQUEST" || !strings.Contains(got.Raw, tc.contains) {
				t.Fatalf("got %s, want BAD_REQUEST and %q", got.Raw, tc.contains)
			}
			if arg, _ := got.Errors[0].Extensions["argument"].(string); arg != tc.argument {
				t.Errorf("argument %q, want %q", arg, tc.argument)
			}
		})
	}
}

// TestNotServedIsUnavailable: a copy that may not be read answers UNAVAILABLE
// for whatever rests on it, never null and never empty (M5), and asOf still
// says who answers and what the copy is worth.
func TestNotServedIsUnavailable(t *testing.T) {
	w := acme(t)
	w.copies[events.StreamFleet] = projections.Copy{Stream: events.StreamFleet, State: projections.CopyOutOfService, Position: 7, Why: "a test"}
	for _, query := range []string{
		"{ fleet { seatCount } }", `{ node(id: "node-a") { id } }`, `{ seat(handle: "nobody") { handle } }`,
		"{ seats { totalCount } }", "{ tenures { totalCount } }",
	} {
		got := ask(t, w, query, nil)
		if got.code() != "UNAVAILABLE" || got.Status != http.StatusOK {
			t.Errorf("%s: got %d %s", query, got.Status, got.Raw)
		}
	}
	got := ask(t, w, "{ asOf { answeredBy position asOf lag copy } }", nil)
	if want := `{"asOf":{"answeredBy":"node-a","position":"7","asOf":null,"lag":null,"copy":"OUT_OF_SERVICE"}}`; string(got.Data) != want {
		t.Errorf("got %s, want %s", got.Raw, want)
	}
	// WORK is a copy of its own: completions are still served.
	if got := ask(t, w, `{ completion(handle: "ada", eventId: "mail-1") { outcome } }`, nil); got.code() != "" {
		t.Errorf("got %s", got.Raw)
	}
	w.copies[events.StreamWork] = projections.Copy{Stream: events.StreamWork, State: projections.CopyRebuilding}
	if got := ask(t, w, `{ completion(handle: "ada", eventId: "mail-1") { outcome } }`, nil); got.code() != "UNAVAILABLE" {
		t.Errorf("got %s", got.Raw)
	}
	if got := get(graph.New(w.deps(t)), "/query/fleet"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("/query/fleet: %d %s", got.Code, got.Body)
	}
}

// TestClosedStoreIsUnavailable: also when there is no snapshot at all.
func TestClosedStoreIsUnavailable(t *testing.T) {
	w := acme(t)
	w.closed = &projections.NotServedError{Stream: events.StreamFleet, State: projections.CopyRebuilding, Why: "a test"}
	got := ask(t, w, "{ asOf { answeredBy } seats { totalCount } }", nil)
	if got.code() != "UNAVAILABLE" || len(got.Errors) != 1 {
		t.Errorf("got %s", got.Raw)
	}
	if got := ask(t, w, "{ asOf { answeredBy } }", nil); string(got.Data) != `{"asOf":{"answeredBy":"node-a"}}` {
		t.Errorf("got %s", got.Raw)
	}
}

// TestLogThatDoesNotAnswer: what only the log knows is an error in its place,
// and the rest is answered.
func TestLogThatDoesNotAnswer(t *testing.T) {
	w := acme(t)
	w.expires = func(events.Lease, uint64) (time.Time, error) {
		return time.Time{}, fmt.Errorf("read the lease: %w", events.ErrUnavailable)
	}
	got := ask(t, w, `{ seat(handle: "ada") { handle expiresAt } }`, nil)
	if got.code() != "UNAVAILABLE" || string(got.Data) != `{"seat":{"handle":"ada","expiresAt":null}}` {
		t.Errorf("got %s", got.Raw)
	}
	if got := get(graph.New(w.deps(t)), "/query/fleet"); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"presence_expires_at":null`) {
		t.Errorf("/query/fleet: %d %s", got.Code, got.Body)
	}
}

// TestInternalErrorsAreHidden: what this code does not know is logged, and the
// caller learns no more than that; a panic is no different.
func TestInternalErrorsAreHidden(t *testing.T) {
	for name, expires := range map[string]func(events.Lease, uint64) (time.Time, error){
		"api_internal_error": func(events.Lease, uint64) (time.Time, error) { return time.Time{}, errors.New("secret") },
		"api_panicked":       func(events.Lease, uint64) (time.Time, error) { panic("secret") },
	} {
		t.Run(name, func(t *testing.T) {
			w := acme(t)
			w.expires = expires
			got := ask(t, w, `{ seat(handle: "ada") { handle expiresAt } }`, nil)
			if got.code() != "INTERNAL" || strings.Contains(got.Raw, "secret") || !w.logged.has(name) {
				t.Errorf("got %s, logged %q", got.Raw, w.logged.names)
			}
			if got := get(graph.New(w.deps(t)), "/query/fleet"); got.Code != http.StatusInternalServerError || strings.Contains(got.Body.String(), "secret") {
				t.Errorf("/query/fleet: %d %s", got.Code, got.Body)
			}
		})
	}
}

// TestOneQueryOneSnapshot: the fields of a query cannot contradict each other,
// for the read model is asked for one snapshot. A mutation takes none: it may
// wait for minutes, and a snapshot must not live that long.
func TestOneQueryOneSnapshot(t *testing.T) {
	w := acme(t)
	ask(t, w, "{ asOf { copy } fleet { nodes { seats { edges { node { tenures { totalCount } } } } } } seats { totalCount } tenures { totalCount } }", nil)
	if w.views != 1 {
		t.Errorf("%d snapshots", w.views)
	}
	ask(t, w, `mutation { sendMessage(handle: "ada", type: "note", data: 1) { id } }`, nil)
	if w.views != 1 {
		t.Errorf("%d snapshots after a mutation", w.views)
	}
}

// TestReaderIsForOne: resolvers run beside each other, and the reader under them
// is used by one at a time.
func TestReaderIsForOne(t *testing.T) {
	w := newWorld()
	for i := range 100 {
		w.add(t, events.StreamFleet, claimSeat(fmt.Sprintf("seat-%d", i), 1, nodeA))
	}
	got := ask(t, w, "{ seats(first: 100) { edges { node { tenures { totalCount } } } } asOf { copy } tenures { totalCount } }", nil)
	if got.code() != "" || w.overlaps.Load() != 0 {
		t.Errorf("%d overlaps, %.200s", w.overlaps.Load(), got.Raw)
	}
}

// TestExpiryInLongLists: in a list of 50 the log is asked for each seat, in one
// of 51 for none.
func TestExpiryInLongLists(t *testing.T) {
	for _, n := range []int{50, 51} {
		w := newWorld()
		for i := range n {
			w.add(t, events.StreamFleet, claimSeat(fmt.Sprintf("seat-%d", i), 1, nodeA))
		}
		got := ask(t, w, "{ seats(first: 51) { edges { node { expiresAt } } } }", nil)
		want := map[int]int{50: 0, 51: 51}[n]
		if nulls := strings.Count(string(got.Data), "null"); nulls != want || got.code() != "" {
			t.Errorf("%d seats: %d nulls, want %d: %s", n, nulls, want, got.Raw)
		}
	}
}
