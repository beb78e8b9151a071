package graph_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

const applied = ` { revision unchanged before added removed moved changed renamed problems { path line column message fix } }`

// TestApplyCompany: the document goes on as it is, on behalf of whoever called
// and for the reason given; what came of it is the answer, problems included.
func TestApplyCompany(t *testing.T) {
	w := acme(t)
	w.apply = graph.Applied{Revision: 3, Before: 2, Changes: company.Changes{Added: []string{"new"}, Removed: []string{"old"}, Moved: []string{"qa"}, Changed: []string{"dev"}, Renamed: true}}
	got := ask(t, w, `mutation { a: applyCompany(document: "company: {}\n", expectedRevision: 2, reason: "r")`+applied+` }`, nil)
	want := `{"a":{"revision":3,"unchanged":false,"before":2,"added":["new"],"removed":["old"],"moved":["qa"],"changed":["dev"],"renamed":true,"problems":[]}}`
	if string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("got %s, want %s", got.Raw, want)
	}
	two := uint64(2)
	if diff := cmp.Diff([]applyAsked{{graph.Act{Actor: "anonymous@192.0.2.1", Reason: "r"}, "company: {}\n", &two, false}}, w.applied, cmp.AllowUnexported(applyAsked{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w = acme(t)
	w.apply = graph.Applied{Problems: company.Problems{{Source: "x", Path: "roles[0].handle", Line: 2, Column: 5, Message: "m", Fix: "f"}, {Message: "too large"}}}
	got = ask(t, w, `mutation { a: applyCompany(document: "", dryRun: true, reason: "r")`+applied+` }`, nil)
	want = `{"a":{"revision":null,"unchanged":false,"before":null,"added":[],"removed":[],"moved":[],"changed":[],"renamed":false,"problems":[{"path":"roles[0].handle","line":2,"column":5,"message":"m","fix":"f"},{"path":"","line":null,"column":null,"message":"too large","fix":null}]}}`
	if string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("got %s, want %s", got.Raw, want)
	}
	if len(w.applied) != 1 || !w.applied[0].dry || w.applied[0].expected != nil {
		t.Errorf("asked for %+v", w.applied)
	}
}

// TestApplyCompanyOutcomes: a stale revision is a refusal that names the one in
// force; what nobody knows is never an answer; and what cannot go into the log is
// refused before anybody is asked.
func TestApplyCompanyOutcomes(t *testing.T) {
	const call = `mutation { a: applyCompany(document: "", reason: "r") { revision } }`
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"stale":       {fmt.Errorf("apply: %w", &aggregates.StaleRevisionError{Expected: 1, Current: 4}), "REFUSED stale_revision 4"},
		"unavailable": {events.ErrUnavailable, "UNAVAILABLE <nil> <nil>"},
		"unknown":     {events.ErrUnknown, "UNAVAILABLE <nil> <nil> unknown"},
		"a fault":     {errors.New("secret"), "INTERNAL <nil> <nil>"},
	} {
		w := acme(t)
		w.applyErr = tt.err
		a := ask(t, w, call, nil)
		got := a.code()
		if len(a.Errors) > 0 {
			got += fmt.Sprintf(" %v %v", a.Errors[0].Extensions["refusal"], a.Errors[0].Extensions["revision"])
			if outcome, is := a.Errors[0].Extensions["outcome"]; is {
				got += fmt.Sprint(" ", outcome)
			}
		}
		if got != tt.want || strings.Contains(a.Raw, "secret") {
			t.Errorf("%s: got %s, want %s\n%s", name, got, tt.want, a.Raw)
		}
	}
	for args, argument := range map[string]string{
		`document: "", reason: ""`:                        "reason",
		`document: "", expectedRevision: -1, reason: "r"`: "expectedRevision",
	} {
		w := acme(t)
		a := ask(t, w, `mutation { a: applyCompany(`+args+`) { revision } }`, nil)
		if a.code() != "BAD_REQUEST" || a.Errors[0].Extensions["argument"] != argument || len(w.applied) > 0 {
			t.Errorf("%s: got %s", args, a.Raw)
		}
	}
}

// TestCompanyRevisions: revisions are listed newest first in pages, each with its
// author; one is found by its number, and one that is not there is null.
func TestCompanyRevisions(t *testing.T) {
	w := newWorld()
	w.add(t, events.StreamFleet, companyWith(1), companyWith(2, events.RosterSeat{Handle: "dev", AgentID: "a"}), companyWith(3))
	const fields = `{ revision name seatCount position document }`
	got := ask(t, w, `{ now: company `+fields+` second: company(revision: 2) `+fields+` none: company(revision: 9) { revision } }`, nil)
	want := `{"now":{"revision":3,"name":"Acme","seatCount":0,"position":"3","document":"# the document at 3\n"},` +
		`"second":{"revision":2,"name":"Acme","seatCount":1,"position":"2","document":"# the document at 2\n"},"none":null}`
	if string(got.Data) != want {
		t.Errorf("got %s\nwant %s", got.Raw, want)
	}
	var page struct {
		R struct {
			Edges []struct {
				Cursor string
				Node   struct{ Revision int }
			}
			PageInfo struct{ HasNextPage bool }
		}
	}
	const list = `query($after: String) { r: companyRevisions(first: 2, after: $after) { edges { cursor node { revision } } pageInfo { hasNextPage } } }`
	read := func(a answer) {
		t.Helper()
		if err := json.Unmarshal(a.Data, &page); err != nil || len(a.Errors) > 0 {
			t.Fatal(a.Raw)
		}
	}
	read(ask(t, w, list, nil))
	if len(page.R.Edges) != 2 || page.R.Edges[0].Node.Revision != 3 || !page.R.PageInfo.HasNextPage {
		t.Fatalf("first page: %+v", page)
	}
	read(ask(t, w, list, vars{"after": page.R.Edges[1].Cursor}))
	if len(page.R.Edges) != 1 || page.R.Edges[0].Node.Revision != 1 || page.R.PageInfo.HasNextPage {
		t.Errorf("second page: %+v", page)
	}
	if a := ask(t, newWorld(), `{ company { revision } }`, nil); string(a.Data) != `{"company":null}` {
		t.Errorf("before the first: %s", a.Raw)
	}
}
