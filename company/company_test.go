package company_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/uuid"

	"github.com/seat-tenure/tenure/company"
)

// TestProblems proves, message by message, that a bad document is answered with
// every problem, its line and column and what to write, and that nothing of it
// is returned; and that a good one is read as it stands.
func TestProblems(t *testing.T) {
	datadriven.RunTest(t, "testdata/problems.txt", func(t *testing.T, d *datadriven.TestData) string {
		c, err := company.Parse("company.yaml", []byte(d.Input))
		if err != nil {
			if !reflect.ValueOf(c).IsZero() {
				t.Errorf("%s: got a company beside problems: %+v", d.Pos, c)
			}
			return err.Error() + "\n"
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n", c.Name)
		for _, r := range c.Roles {
			fmt.Fprintf(&b, "%+v\n", r)
		}
		return b.String()
	})
}

func mustParse(t *testing.T, doc string) company.Company {
	t.Helper()
	c, err := company.Parse("company.yaml", []byte(doc))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return c
}

// TestParseGivesProblems proves that the error is the typed one, with a
// position on each problem that has a place.
func TestParseGivesProblems(t *testing.T) {
	_, err := company.Parse("acme.yaml", []byte("company: {name: Acme}\nroles:\n  - handle: BAD\n    runner: {echo: {}}\n"))
	var problems company.Problems
	if !errors.As(err, &problems) || len(problems) != 1 {
		t.Fatalf("got %T %v, want one problem", err, err)
	}
	p := problems[0]
	if p.Source != "acme.yaml" || p.Path != "roles[0].handle" || p.Line != 3 || p.Column != 13 || p.Fix != "write bad" {
		t.Errorf("got %+v, want acme.yaml:3:13 roles[0].handle, fix: write bad", p)
	}
}

// TestDefaults proves what a role that says little is taken as.
func TestDefaults(t *testing.T) {
	c := mustParse(t, "company: {name: Acme}\nroles: [{handle: a, runner: {exec: [x]}}]")
	got := c.Roles[0]
	if got.Kind != company.Agent || got.Runner.Exec.Timeout != 10*time.Minute || got.Runner.Echo || !got.Placement.Equal(company.Placement{}) {
		t.Errorf("got %+v, want an agent anywhere with a timeout of 10m", got)
	}
}

// TestAgentIDG1 proves that an agent id depends on company name and handle
// alone, and never changes from one build to the next (spec G1).
func TestAgentIDG1(t *testing.T) {
	got := company.AgentID("Acme", "lead")
	if want := "a7276ea5-e921-5530-a817-3e60a2348d2f"; got != want {
		t.Errorf("got %s, want %s: the namespace is part of the wire format", got, want)
	}
	if id, err := uuid.Parse(got); err != nil || id.Version() != 5 {
		t.Errorf("got %s (%v), want a version 5 UUID", got, err)
	}
	seen := map[string]string{}
	for _, pair := range [][2]string{{"Acme", "lead"}, {"Acme", "ops"}, {"Acme2", "lead"}, {"Acmel", "ead"}} {
		id := company.AgentID(pair[0], pair[1])
		if other, twice := seen[id]; twice {
			t.Errorf("%v and %s share the id %s", pair, other, id)
		}
		seen[id] = fmt.Sprint(pair)
	}
}

const staff = `
company: {name: Acme}
roles:
  - {handle: lead, title: Lead, runner: {echo: {}}}
  - {handle: writer, placement: {node: node-1}, runner: {echo: {}}}
  - {handle: reviewer, placement: {labels: {zone: a}}, runner: {exec: [./review, -v]}}
  - {handle: boss, kind: human}
`

// TestRosterG1 proves that the roster holds the seats alone, with the ids and
// placements that routing and placement read.
func TestRosterG1(t *testing.T) {
	c := mustParse(t, staff)
	var got []string
	for _, s := range c.Roster() {
		if s.AgentID != company.AgentID("Acme", s.Handle) {
			t.Errorf("%s: got agent id %s, want the company's own", s.Handle, s.AgentID)
		}
		got = append(got, fmt.Sprint(s.Handle, s.Node, s.Labels))
	}
	if want := []string{"leadmap[]", "writernode-1map[]", "reviewermap[zone:a]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLookUp proves that a role is found by handle and a slip of the pen gets
// the handles it may have meant, the nearest first.
func TestLookUp(t *testing.T) {
	c := mustParse(t, staff)
	if r, ok := c.Role("boss"); !ok || r.Kind != company.Human {
		t.Errorf("Role(boss): got %+v %v, want the human", r, ok)
	}
	if r, ok := c.Role("nobody"); ok {
		t.Errorf("Role(nobody): got %+v, want none", r)
	}
	for _, test := range []struct {
		word string
		n    int
		want []string
	}{
		{"writr", 3, []string{"writer"}},
		{"leed", 1, []string{"lead"}},
		{"riter", 5, []string{"writer", "reviewer"}},
		{"rev", 3, []string{"reviewer"}},
		{"zzzzzzzz", 3, nil},
		{"lead", 0, nil},
		{strings.Repeat("lead", 1000), 3, nil},
	} {
		if got := c.Nearest(test.word, test.n); !slices.Equal(got, test.want) {
			t.Errorf("Nearest(%.20q, %d): got %q, want %q", test.word, test.n, got, test.want)
		}
	}
}

// TestDiff proves what each change of a document does to the seats.
func TestDiff(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after string
		want          company.Changes
		sweeps        bool
	}{
		{name: "nothing", before: staff, after: staff},
		{name: "the first company", before: "", after: staff,
			want: company.Changes{Added: []string{"lead", "reviewer", "writer"}}, sweeps: true},
		{name: "added and removed", before: staff, after: strings.ReplaceAll(staff, "handle: lead", "handle: chief"),
			want: company.Changes{Added: []string{"chief"}, Removed: []string{"lead"}}, sweeps: true},
		{name: "pinned elsewhere", before: staff, after: strings.ReplaceAll(staff, "node-1", "node-2"),
			want: company.Changes{Moved: []string{"writer"}}, sweeps: true},
		{name: "other labels", before: staff, after: strings.ReplaceAll(staff, "zone: a", "zone: b"),
			want: company.Changes{Moved: []string{"reviewer"}}, sweeps: true},
		{name: "title", before: staff, after: strings.ReplaceAll(staff, "title: Lead", "title: Chief"),
			want: company.Changes{Changed: []string{"lead"}}},
		{name: "arguments", before: staff, after: strings.ReplaceAll(staff, "-v]", "-q]"),
			want: company.Changes{Changed: []string{"reviewer"}}},
		{name: "timeout", before: staff, after: strings.ReplaceAll(staff, "-v]", "-v], timeout: 1m"),
			want: company.Changes{Changed: []string{"reviewer"}}},
		{name: "agent turns human (R1)", before: staff, after: strings.ReplaceAll(staff, "handle: lead, title: Lead, runner: {echo: {}}", "handle: lead, kind: human"),
			want: company.Changes{Removed: []string{"lead"}}, sweeps: true},
		{name: "human turns agent", before: staff, after: strings.ReplaceAll(staff, "kind: human", "runner: {echo: {}}"),
			want: company.Changes{Added: []string{"boss"}}, sweeps: true},
		{name: "company renamed (G1)", before: staff, after: strings.ReplaceAll(staff, "name: Acme", "name: Acme Two"),
			want: company.Changes{Renamed: true}},
		{name: "reordered", before: "company: {name: A}\nroles: [{handle: a, runner: {echo: {}}}, {handle: b, runner: {echo: {}}}]",
			after: "company: {name: A}\nroles: [{handle: b, runner: {echo: {}}}, {handle: a, runner: {echo: {}}}]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before company.Company
			if test.before != "" {
				before = mustParse(t, test.before)
			}
			got := company.Diff(before, mustParse(t, test.after))
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if got.Sweeps() != test.sweeps {
				t.Errorf("Sweeps: got %v, want %v", got.Sweeps(), test.sweeps)
			}
			if empty := reflect.ValueOf(test.want).IsZero(); got.Empty() != empty {
				t.Errorf("Empty: got %v, want %v", got.Empty(), empty)
			}
		})
	}
}
