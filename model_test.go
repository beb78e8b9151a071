package tenure_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const modelPage = "docs/model/README.md"

var (
	// /* variant: NAME: kind: what it does wrong */
	declaredVariant = regexp.MustCompile(`/\* variant: ([A-Z_]+): (assertion|cycle): .+ \*/`)
	// | model | `NAME` | kind | …
	listedVariant = regexp.MustCompile("^\\| ([a-z]+) \\| `([A-Z_]+)` \\| (assertion|cycle) \\| ")
)

// Every unsafe variant that the page says spin refutes is declared in that
// model, with that kind of counterexample, and changes something there; and the
// page has every variant that there is. Needs no spin: `make model` runs them.
func TestModelVariants(t *testing.T) {
	page, err := os.ReadFile(modelPage)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(page)) {
		if m := listedVariant.FindStringSubmatch(line); m != nil {
			listed = append(listed, strings.Join(m[1:], " "))
		}
	}
	models, err := filepath.Glob("docs/model/*.pml")
	if err != nil || len(models) == 0 {
		t.Fatalf("no models: %v", err)
	}
	var declared []string
	for _, path := range models {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".pml")
		for _, m := range declaredVariant.FindAllStringSubmatch(string(source), -1) {
			declared = append(declared, name+" "+m[1]+" "+m[2])
			used := regexp.MustCompile(`(?m)^#(?:ifn?def ` + m[1] + `$|(?:el)?if .*defined\(` + m[1] + `\))`)
			if !used.Match(source) {
				t.Errorf("%s: variant %s is declared and nothing depends on it", path, m[1])
			}
		}
	}
	slices.Sort(listed)
	slices.Sort(declared)
	if !slices.Equal(listed, declared) {
		t.Errorf("%s lists\n%s\nand the models declare\n%s", modelPage, strings.Join(listed, "\n"), strings.Join(declared, "\n"))
	}
}
