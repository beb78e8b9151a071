package tenure_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const conformancePage = "docs/conformance.md"

var (
	// L1–L10, Case1–Case38, or a lone N1.
	idRange = regexp.MustCompile(`\b([A-Z][a-z]*)(\d+)(?:–([A-Z][a-z]*)(\d+))?`)
	// `aggregates: TestLapsedLeaseCannotBeRenewed`, a subtest after a slash.
	testReference = regexp.MustCompile("`([a-z][a-z0-9_/]*|\\.): ((?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*)(?:/[^`]*)?`")
	// What a test's name may claim to prove.
	claimedID = regexp.MustCompile(`(?:Case|Schedule)\d+`)
)

// conformance is what the page says.
type conformance struct {
	ids  []string            // the complete list, in order
	rows map[string][]string // id → tests, each as "folder: TestName"
	bad  []string            // what is wrong with the page itself
}

// parseConformance reads the list (lines that are one code span, before the
// first heading of a table) and the rows of every table.
func parseConformance(text string) conformance {
	page := conformance{rows: map[string][]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cells := strings.Split(line, "|")
		switch {
		case strings.HasPrefix(line, "`") && strings.HasSuffix(line, "`") && len(page.rows) == 0:
			page.addIDs(line)
		case strings.HasPrefix(line, "| id ") || strings.HasPrefix(line, "|---") || !strings.HasPrefix(line, "|"):
		case len(cells) != 5:
			page.bad = append(page.bad, fmt.Sprintf("row %q has not the three cells id, rule, tests", line))
		default:
			page.addRow(strings.TrimSpace(cells[1]), cells[3])
		}
	}
	return page
}

func (page *conformance) addIDs(line string) {
	for _, match := range idRange.FindAllStringSubmatch(line, -1) {
		first, _ := strconv.Atoi(match[2])
		last := first
		if match[3] != "" {
			last, _ = strconv.Atoi(match[4])
		}
		if match[3] != "" && match[3] != match[1] || last < first {
			page.bad = append(page.bad, fmt.Sprintf("%s is no range of ids", match[0]))
		}
		for number := first; number <= last; number++ {
			page.ids = append(page.ids, match[1]+strconv.Itoa(number))
		}
	}
}

func (page *conformance) addRow(id, tests string) {
	if _, twice := page.rows[id]; twice {
		page.bad = append(page.bad, id+" has two rows")
	}
	page.rows[id] = []string{}
	for _, match := range testReference.FindAllStringSubmatch(tests, -1) {
		page.rows[id] = append(page.rows[id], match[1]+": "+match[2])
	}
	if spans := strings.Count(tests, ": Test"); spans > len(page.rows[id]) {
		page.bad = append(page.bad, fmt.Sprintf("%s: %q holds a test that is not written as `folder: TestName`", id, strings.TrimSpace(tests)))
	}
	if len(page.rows[id]) == 0 && !strings.Contains(tests, "not built") {
		page.bad = append(page.bad, id+" names no test and does not say \"not built\"")
	}
}

// disagreements compares the page with the tests that exist, named like its
// references.
func (page conformance) disagreements(existing []string) []string {
	found := slices.Clone(page.bad)
	if len(page.ids) == 0 {
		found = append(found, "the page has no list of ids")
	}
	for _, id := range page.ids {
		if _, has := page.rows[id]; !has {
			found = append(found, id+" is in the list and has no row")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(page.rows)) {
		if !slices.Contains(page.ids, id) {
			found = append(found, id+" has a row and is not in the list")
		}
		for _, test := range page.rows[id] {
			if !slices.Contains(existing, test) {
				found = append(found, fmt.Sprintf("%s names `%s`, which does not exist", id, test))
			}
		}
	}
	for _, test := range existing {
		for _, id := range claimedID.FindAllString(test, -1) {
			if !slices.Contains(page.rows[id], test) {
				found = append(found, fmt.Sprintf("`%s` claims %s by its name and is not in that row", test, id))
			}
		}
	}
	return found
}

// testsOf lists the tests of a tree as "folder: TestName".
func testsOf(whole tree) []string {
	var tests []string
	eachFile(whole, func(file goFile) []string {
		if !strings.HasSuffix(file.path, "_test.go") {
			return nil
		}
		for _, decl := range file.ast.Decls {
			function, is := decl.(*ast.FuncDecl)
			if !is || function.Recv != nil {
				continue
			}
			name := function.Name.Name
			for _, kind := range []string{"Test", "Fuzz", "Benchmark", "Example"} {
				if strings.HasPrefix(name, kind) && name != "TestMain" {
					tests = append(tests, path.Dir(file.path)+": "+name)
				}
			}
		}
		return nil
	})
	return tests
}

// TestConformancePageAndTestsAgree proves that the page names every id once,
// only tests that exist, and every test that says it proves a case.
func TestConformancePageAndTestsAgree(t *testing.T) {
	text, err := os.ReadFile(conformancePage)
	if err != nil {
		t.Fatal(err)
	}
	for _, disagreement := range parseConformance(string(text)).disagreements(testsOf(loadTree(t))) {
		t.Errorf("%s: %s", conformancePage, disagreement)
	}
}

// TestConformanceCheckCanFail feeds pages and tests that disagree: each
// disagreement must be found, and a sound page must pass.
func TestConformanceCheckCanFail(t *testing.T) {
	const sound = "`L1–L2 N1`\n`Case1`\n\n| id | rule | tests |\n|---|---|---|\n" +
		"| L1 | a | `seat: TestA`, `cmd/node: TestC/sub`; the rest not built |\n| L2 | b | not built |\n| N1 | c | not built |\n" +
		"| Case1 | d | `seat: TestCase1Lost` |\n"
	existing := []string{"seat: TestA", "cmd/node: TestC", "seat: TestCase1Lost"}
	if found := parseConformance(sound).disagreements(existing); len(found) > 0 {
		t.Errorf("a sound page: got %q, want nothing", found)
	}
	for want, edit := range map[string]struct{ from, to string }{
		"L2 is in the list and has no row":     {"| L2 | b | not built |\n", ""},
		"N2 has a row and is not in the list":  {"| N1 |", "| N2 |"},
		"names `seat: TestB`, which does not":  {"seat: TestA", "seat: TestB"},
		"names `turn: TestA`, which does not":  {"seat: TestA", "turn: TestA"},
		"claims Case1 by its name":             {"`seat: TestCase1Lost`", "not built"},
		"L1 has two rows":                      {"| L2 |", "| L1 |"},
		"L2 names no test and does not say":    {"| b | not built", "| b | soon"},
		"is not written as `folder: TestName`": {"`seat: TestA`", "seat: TestA"},
		"has not the three cells":              {"| L2 | b |", "| L2 | b | c |"},
		"no range of ids":                      {"L1–L2", "L1–M2"},
		"the page has no list of ids":          {"`L1–L2 N1`\n`Case1`", ""},
	} {
		found := parseConformance(strings.Replace(sound, edit.from, edit.to, 1)).disagreements(existing)
		if !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("%q → %q: got %q, want %q among them", edit.from, edit.to, found, want)
		}
	}
}
