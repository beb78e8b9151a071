package graph_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seat-tenure/tenure/graph"
)

// golden compares text with a file of testdata, or writes it when asked to
// (make golden).
func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("TENURE_GOLDEN") == "rewrite" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func indented(t *testing.T, raw string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(raw), "", "  "); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// TestQueries holds whole answers to whole queries: every field that is served,
// every state a seat and a node can be in, tenures with each end, pages.
func TestQueries(t *testing.T) {
	files, err := filepath.Glob("testdata/queries/*.graphql")
	if err != nil || len(files) == 0 {
		t.Fatal("no queries", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".graphql"), func(t *testing.T) {
			query, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := ask(t, acme(t), string(query), nil)
			golden(t, strings.TrimSuffix(file, ".graphql")+".json", indented(t, got.Raw))
		})
	}
}

// TestQueryFleet holds the whole answer of /query/fleet: nodes with seats,
// roles, labels, protocol, presence expiry and since (O1). Seat ian is removed
// and its mailbox is being retired: it stands with the duty's node (O2).
func TestQueryFleet(t *testing.T) {
	got := get(graph.New(acme(t).deps(t)), "/query/fleet")
	golden(t, "testdata/query_fleet.json", indented(t, got.Body.String()))
}
