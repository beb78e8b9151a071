package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a document.
type Problem struct {
	Source  string // the file, or the variable or flag that set the value
	Path    string // where in the document: roles[2].handle; "" is the document
	Line    int    // 1-based; 0 where the source has no lines
	Column  int    // 1-based, in characters
	Message string // what is wrong
	Fix     string // what to write instead
}

// String is one line: source:line:column: path: message; fix.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	b.WriteString(": " + p.Message)
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return strings.TrimPrefix(b.String(), ": ")
}

// Problems is everything that is wrong with a document, in the document's
// order. As an error it is one line a problem.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Report collects the problems of one document.
type Report struct {
	source   string
	problems Problems
	dropped  int
}

// NewReport returns an empty report on the named source.
func NewReport(source string) *Report { return &Report{source: source} }

// Add records p. An empty p.Source becomes the report's own.
func (r *Report) Add(p Problem) {
	if len(r.problems) == maxProblems {
		r.dropped++
		return
	}
	if p.Source == "" {
		p.Source = r.source
	}
	p.Message, p.Fix = clip(p.Message, maxText), clip(p.Fix, maxText)
	r.problems = append(r.problems, p)
}

// Problems returns what was added, by line and column; nil when there is none.
// The order of problems without a line among themselves is the order of Add,
// and they come first.
func (r *Report) Problems() Problems {
	if len(r.problems) == 0 {
		return nil
	}
	out := slices.Clone(r.problems)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if r.dropped > 0 {
		out = append(out, Problem{
			Source:  r.source,
			Message: fmt.Sprintf("%d more problems are not shown", r.dropped),
			Fix:     "correct these first",
		})
	}
	return out
}

// Err returns Problems as an error, and nil when there is none.
func (r *Report) Err() error {
	if p := r.Problems(); p != nil {
		return p
	}
	return nil
}

// Quote shows a value inside a message: quoted, and cut when it is long.
func Quote(s string) string { return strconv.Quote(clip(s, 80)) }

// clip cuts s to at most limit bytes, at a character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}
