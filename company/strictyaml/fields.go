package strictyaml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Fields is a map whose keys its reader knows.
type Fields struct {
	node  Node
	known map[string]Node
}

// Fields reads a map with these keys and no others. A key that is not known or
// stands twice is reported, and the others are read all the same; ok is false
// only when the node is no map.
func (n Node) Fields(keys ...string) (f Fields, ok bool) {
	f = Fields{node: n, known: map[string]Node{}}
	if n.v.kind != kindMap {
		fix := "write {}"
		if len(keys) > 0 {
			fix = "write a map with the keys " + strings.Join(keys, ", ")
		}
		n.wrongType("a map", fix)
		return f, false
	}
	for _, e := range n.unique() {
		if !slices.Contains(keys, e.key) {
			n.refuseKey(e, "is not a known key", unknownFix(e.key, keys))
			continue
		}
		f.known[e.key] = n.child(e)
	}
	return f, true
}

// Get returns the value of key; ok is false when it is not there.
func (f Fields) Get(key string) (n Node, ok bool) {
	n, ok = f.known[key]
	return n, ok
}

// Require is Get for a key that must be there.
func (f Fields) Require(key, fix string) (Node, bool) {
	n, ok := f.known[key]
	if !ok {
		f.node.Refuse("has no "+key, fix)
	}
	return n, ok
}

// Entries reads a map with at most limit keys of the reader's own, in the
// document's order.
func (n Node) Entries(limit int) (keys []string, values []Node, ok bool) {
	if n.v.kind != kindMap {
		n.wrongType("a map", "write {key: value}")
		return nil, nil, false
	}
	if len(n.v.entries) > limit {
		n.Refuse(fmt.Sprintf("has %d keys, and at most %d are read", len(n.v.entries), limit), "remove some")
		return nil, nil, false
	}
	for _, e := range n.unique() {
		keys = append(keys, e.key)
		values = append(values, n.child(e))
	}
	return keys, values, true
}

// unique reports keys that stand twice and returns the first of each.
func (n Node) unique() []entry {
	first := make(map[string]int, len(n.v.entries))
	var out []entry
	for _, e := range n.v.entries {
		if line, twice := first[e.key]; twice {
			n.refuseKey(e, fmt.Sprintf("stands twice, at line %d and line %d", line, e.line), "keep one of them")
			continue
		}
		first[e.key] = e.line
		out = append(out, e)
	}
	return out
}

func (n Node) refuseKey(e entry, message, fix string) {
	n.report.Add(Problem{Path: n.child(e).path, Line: e.line, Column: e.column, Message: message, Fix: fix})
}

func unknownFix(key string, known []string) string {
	if near := Nearest(key, known, 1); len(near) == 1 {
		return "write " + near[0]
	}
	if len(known) == 0 {
		return "remove it; there is nothing to set here"
	}
	return "remove it; the keys here are " + strings.Join(known, ", ")
}

const (
	maxNear   = 128 // bytes of the words that Nearest compares
	minPrefix = 3   // letters that may stand for a word they begin
)

// Nearest returns up to n of the candidates that word may be a slip of, the
// nearest by edit distance first. A candidate with more than half of its
// letters wrong is none.
func Nearest(word string, candidates []string, n int) []string {
	if len(word) > maxNear {
		return nil
	}
	type near struct {
		word     string
		distance int
	}
	var found []near
	for _, c := range candidates {
		if len(c) > maxNear {
			continue
		}
		d := levenshtein.ComputeDistance(word, c)
		if len(word) >= minPrefix && strings.HasPrefix(c, word) {
			d = 1 // cut short, not misspelt
		}
		if d <= max(len(word), len(c))/2 {
			found = append(found, near{c, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.word, b.word)
	})
	var out []string
	for _, f := range found[:min(max(n, 0), len(found))] {
		out = append(out, f.word)
	}
	return out
}
