package measure

import (
	"fmt"
	"regexp"
	"strings"
)

// row is a row of a table in docs that quotes a figure: what it is, its name, and
// cells that are filled in.
var row = regexp.MustCompile("^\\| ([^|]*) \\| `([A-Za-z0-9/-]+)` \\|.*$")

// Fill puts the figures of reports into the tables of a document: every row whose
// second cell is a figure's name in backquotes gets its value, its extremes and
// its goal from the first report that has it. A name that no report has is an
// error, so that no document quotes what was not measured.
func Fill(doc string, reports ...Report) (string, error) {
	lines := strings.Split(doc, "\n")
	for i, line := range lines {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		f, ok := find(m[2], reports)
		if !ok {
			return "", fmt.Errorf("line %d: no report has the figure %s", i+1, m[2])
		}
		extremes := "–"
		if f.Low != 0 || f.High != 0 {
			extremes = Number(f.Low) + " – " + Number(f.High)
		}
		lines[i] = fmt.Sprintf("| %s | `%s` | %s %s | %s | %s |", m[1], m[2], Number(f.Value), f.Unit, extremes, f.verdict())
	}
	return strings.Join(lines, "\n"), nil
}

func find(name string, reports []Report) (Figure, bool) {
	for _, r := range reports {
		if f, ok := r.Find(name); ok {
			return f, true
		}
	}
	return Figure{}, false
}

// verdict is the goal and whether it is reached.
func (f Figure) verdict() string {
	if f.Goal == 0 {
		return "–"
	}
	sign, met := "≥", "reached"
	if f.AtMost {
		sign = "≤"
	}
	if !f.Met() {
		met = "**missed**"
	}
	return fmt.Sprintf("%s %s, %s", sign, Number(f.Goal), met)
}
