package graph_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// TestTooComplex: what would take too much is refused before any of it is done.
func TestTooComplex(t *testing.T) {
	deep := "{ seat(handle: \"ada\") { " + strings.Repeat("holder { seats { edges { node { ", 5) + "handle" + strings.Repeat(" } } } }", 5) + " } }"
	for name, query := range map[string]string{
		"500 times 500":     `{ seats(first: 500) { edges { node { tenures(first: 500) { edges { node { handle } } } } } } }`,
		"hidden in aliases": "{ " + repeated("a%d: seats(first: 500) { edges { node { handle title state owner } } } ", 40) + "}",
		"nodes' seats":      `{ fleet { nodes { seats(first: 500) { edges { node { tenures(first: 10) { totalCount } } } } } } }`,
		"replies":           "{ " + repeated(`c%d: completion(handle: "ada", eventId: "e") { reply } `, 101) + "}",
		"writes":            "mutation { " + repeated(`m%d: sendMessage(handle: "ada", type: "note", data: 1) { id } `, 21) + "}",
		"log reads":         "{ " + repeated("a%d: seats(first: 500) { edges { node { expiresAt } } } ", 17) + "}",
		"tokens":            "{ " + repeated("a%d: asOf { copy } ", 1000) + "}",
		"depth":             deep,
		// Each fragment stands for two of the next: 2 to the power of 60 fields.
		"fragments": "{ asOf { ...f0 } } " + repeated("fragment f%[1]d on AsOf { ...f%[2]d ...f%[2]d } ", 60) + "fragment f60 on AsOf { copy }",
	} {
		t.Run(name, func(t *testing.T) {
			w := acme(t)
			got := ask(t, w, query, nil)
			if got.code() != "TOO_COMPLEX" || got.Status != http.StatusBadRequest {
				t.Errorf("got %d %.300s", got.Status, got.Raw)
			}
			if w.views != 0 || len(w.sent) != 0 {
				t.Error("something was done all the same")
			}
		})
	}
}

// repeated writes the format n times, with the number and the next one.
func repeated(format string, n int) string {
	var b strings.Builder
	for i := range n {
		s := fmt.Sprintf(format, i, i+1)
		if at := strings.Index(s, "%!(EXTRA"); at >= 0 {
			s = s[:at]
		}
		b.WriteString(s)
	}
	return b.String()
}

// TestUsualQueriesAreNotTooComplex: the limits leave room for what people and
// the console ask.
func TestUsualQueriesAreNotTooComplex(t *testing.T) {
	for _, query := range []string{
		`{ seats(first: 500) { edges { cursor node { handle agentId title state owner epoch since expiresAt preferred holder { id state } } } pageInfo { hasNextPage endCursor } } }`,
		`{ fleet { seatCount heldCount unplaceable nodes { id state roles labels { key value } seats(first: 100) { edges { node { handle state owner epoch since } } } } } }`,
		`{ tenures(first: 500) { edges { node { handle epoch owner nodeId claimedAt claimedPosition endedAt endedPosition end reason } } } }`,
		`{ seats(first: 50) { edges { node { handle tenures { edges { node { epoch owner end } } } } } } }`,
	} {
		if got := ask(t, newWorld(), query, nil); got.code() != "" {
			t.Errorf("%s: %s", query, got.Raw)
		}
	}
}

// TestTooManyNodes: a list without pages is bounded too.
func TestTooManyNodes(t *testing.T) {
	w := newWorld()
	for i := range 1001 {
		id := fmt.Sprintf("node-%d", i)
		w.add(t, events.StreamFleet, claim(events.NodeLease(id), 1, events.Incarnation(id+":00000000"), nil))
	}
	got := ask(t, w, "{ fleet { nodes { id } } }", nil)
	if got.code() != "TOO_COMPLEX" || !strings.Contains(got.Raw, "1001 nodes") {
		t.Errorf("got %s", got.Raw)
	}
	if got := ask(t, w, `{ node(id: "node-1000") { id } }`, nil); got.code() != "" {
		t.Errorf("got %s", got.Raw)
	}
}

// TestBodies: a body that is no request is refused with a status that says why.
func TestBodies(t *testing.T) {
	h := graph.New(newWorld().deps(t))
	send := func(method, mediaType, body string) answer {
		r := httptest.NewRequest(method, "/graphql", strings.NewReader(body))
		r.Header.Set("Content-Type", mediaType)
		return post(h, r)
	}
	for name, tc := range map[string]struct {
		method, mediaType, body string
		status                  int
	}{
		"other method": {"GET", "application/json", "", http.StatusMethodNotAllowed},
		"form":         {"POST", "application/x-www-form-urlencoded", `{"query":"{asOf{copy}}"}`, http.StatusUnsupportedMediaType},
		"no type":      {"POST", "", `{"query":"{asOf{copy}}"}`, http.StatusUnsupportedMediaType},
		"no JSON":      {"POST", "application/json", `{"query":`, http.StatusBadRequest},
		"a list":       {"POST", "application/json", `[{"query":"{asOf{copy}}"}]`, http.StatusBadRequest},
		"two objects":  {"POST", "application/json", `{"query":"{asOf{copy}}"}{}`, http.StatusBadRequest},
		"too large":    {"POST", "application/json", `{"query":"` + strings.Repeat(" ", 6<<20) + `"}`, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if got := send(tc.method, tc.mediaType, tc.body); got.Status != tc.status || got.code() != "BAD_REQUEST" {
				t.Errorf("got %d %.200s", got.Status, got.Raw)
			}
		})
	}
	if got := send("POST", "application/json; charset=utf-8", `{"query":"{asOf{copy}}"}`); got.Status != http.StatusOK {
		t.Errorf("got %d %s", got.Status, got.Raw)
	}
}

// TestMediaType: callers who know GraphQL's own media type get it.
func TestMediaType(t *testing.T) {
	h := graph.New(newWorld().deps(t))
	for accept, want := range map[string]string{
		"": "application/json; charset=utf-8", "application/graphql-response+json, */*": "application/graphql-response+json; charset=utf-8",
	} {
		r := httptest.NewRequest(http.MethodPost, "/graphql", bytes.NewReader([]byte(`{"query":"{asOf{copy}}"}`)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("Accept %q: got %q", accept, got)
		}
	}
}
