package measure

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Text renders figures as a table for people.
func Text(figures []Figure) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, f := range figures {
		spread := ""
		if f.Low != 0 || f.High != 0 {
			spread = Number(f.Low) + " to " + Number(f.High)
		}
		fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\n", f.Name, Number(f.Value), f.Unit, spread, f.goal())
	}
	_ = w.Flush() // into memory
	return b.String()
}

func (f Figure) goal() string {
	switch {
	case f.Goal == 0:
		return ""
	case f.Met():
		return "reaches " + Number(f.Goal)
	default:
		return "falls short of " + Number(f.Goal)
	}
}

// Number renders a value as tables and texts have it.
func Number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
