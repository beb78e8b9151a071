package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/bench/measure"
)

const docs = "../../docs"

// TestDocsQuoteTheFigures proves that the committed figures can be read, that each
// says what it was measured on, and that docs/benchmarks.md and the pictures have
// these figures and no others: whoever measures anew runs this program after it.
func TestDocsQuoteTheFigures(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(docs)); err != nil {
		t.Fatal(err)
	}
	if err := run(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"benchmarks.md", "bench/claims.svg", "bench/renewals.svg"} {
		committed, made := read(t, filepath.Join(docs, name)), read(t, filepath.Join(dir, name))
		if committed != made {
			t.Errorf("docs/%s does not have the figures of docs/bench: run `go run ./bench/chart`", name)
		}
	}
	if !strings.Contains(read(t, filepath.Join(docs, "benchmarks.md")), "`leases/") {
		t.Error("docs/benchmarks.md quotes no figure of a lease")
	}
}

// TestFiguresAreWhole proves that a report names its machine's kind and not the
// machine, and gives each figure once, with a value and a unit.
func TestFiguresAreWhole(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(docs, "bench", "*.json"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("reports: %v, %v", paths, err)
	}
	foreign := regexp.MustCompile(`/(home|root|work|tmp|Users)\b`)
	for _, path := range paths {
		report, err := measure.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if report.Taken == "" || report.Machine.Cores == 0 || report.Machine.Go == "" || report.Machine.Modules["github.com/nats-io/nats-server/v2"] == "" {
			t.Errorf("%s does not say when and on what it was measured: %s, %+v", path, report.Taken, report.Machine)
		}
		if found := foreign.FindString(read(t, path)); found != "" {
			t.Errorf("%s has a path of the machine's: %s", path, found)
		}
		names := map[string]bool{}
		for _, f := range report.Figures {
			if names[f.Name] || f.Name == "" || f.Unit == "" {
				t.Errorf("%s: figure %q, in %q, again: %v", path, f.Name, f.Unit, names[f.Name])
			}
			names[f.Name] = true
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
