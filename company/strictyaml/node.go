package strictyaml

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Node is a place in a document. Every reading method reports what it cannot
// take and then answers false.
type Node struct {
	v      *value
	path   string
	report *Report
}

// Line is the node's line, 1-based.
func (n Node) Line() int { return n.v.line }

// Column is the node's column, 1-based.
func (n Node) Column() int { return n.v.column }

// Refuse reports what is wrong with the node, and what to write instead.
func (n Node) Refuse(message, fix string) {
	n.report.Add(Problem{Path: n.path, Line: n.v.line, Column: n.v.column, Message: message, Fix: fix})
}

func (n Node) wrongType(want, fix string) {
	if n.v.kind == kindRefused {
		return
	}
	n.Refuse(fmt.Sprintf("is %s, not %s", n.v.kind, want), fix)
}

// Text reads text. A number or true or false is refused: what somebody wrote
// unquoted as 010 or no is seldom what arrives.
func (n Node) Text() (string, bool) {
	switch n.v.kind {
	case kindText:
		return n.v.text, true
	case kindInteger, kindBool, kindOther:
		n.wrongType("text", "write it in quotes: "+Quote(n.v.text))
	case kindNull:
		n.wrongType("text", "write the text, or remove the key")
	case kindMap:
		n.wrongType("text", n.v.unquotedFix())
	default:
		n.wrongType("text", "write one text")
	}
	return "", false
}

// unquotedFix is for host:port, which the parser takes for a map of one inside
// of brackets.
func (v *value) unquotedFix() string {
	if len(v.entries) == 1 && v.entries[0].value.text != "" {
		return "write it in quotes: " + Quote(v.entries[0].key+":"+v.entries[0].value.text)
	}
	return "write one text"
}

// Int reads a plain decimal integer.
func (n Node) Int() (int, bool) {
	if n.v.kind != kindInteger {
		n.wrongType("a whole number", "write digits alone")
		return 0, false
	}
	i, err := strconv.Atoi(n.v.text)
	if err != nil || strconv.Itoa(i) != n.v.text {
		n.Refuse(n.v.text+" is not a plain whole number", "write it in plain decimal, such as 45")
		return 0, false
	}
	return i, true
}

// Bool reads true or false.
func (n Node) Bool() (bool, bool) {
	if n.v.kind != kindBool {
		n.wrongType("true or false", "write true or false")
		return false, false
	}
	return strings.EqualFold(n.v.text, "true"), true
}

// Duration reads text such as 10m or 1m30s.
func (n Node) Duration() (time.Duration, bool) {
	const fix = "write a number and a unit, such as 500ms, 30s or 10m"
	if n.v.kind != kindText {
		n.wrongType("a duration", fix)
		return 0, false
	}
	d, err := time.ParseDuration(n.v.text)
	if err != nil {
		n.Refuse(Quote(n.v.text)+" is not a duration", fix)
		return 0, false
	}
	return d, true
}

// List reads a list of at most limit values.
func (n Node) List(limit int) ([]Node, bool) {
	if n.v.kind != kindList {
		n.wrongType("a list", "write [a, b], or one '- a' a line")
		return nil, false
	}
	if len(n.v.list) > limit {
		n.Refuse(fmt.Sprintf("has %d values, and at most %d are read", len(n.v.list), limit), "shorten the list")
		return nil, false
	}
	out := make([]Node, len(n.v.list))
	for i, v := range n.v.list {
		out[i] = Node{v: v, path: fmt.Sprintf("%s[%d]", n.path, i), report: n.report}
	}
	return out, true
}

// Texts reads a list of texts.
func (n Node) Texts(limit int) ([]string, bool) {
	list, ok := n.List(limit)
	out := make([]string, 0, len(list))
	for _, one := range list {
		s, good := one.Text()
		ok = ok && good
		out = append(out, s)
	}
	return out, ok
}

// ShortDuration writes d as people do: 10m, not 10m0s.
func ShortDuration(d time.Duration) string {
	s := d.String()
	if d != 0 && strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// child is the value of one key of a map.
func (n Node) child(e entry) Node {
	path := clip(e.key, 80)
	if quoted := strconv.Quote(path); strings.ContainsAny(path, " .[") || len(quoted) != len(path)+2 {
		path = quoted
	}
	if n.path != "" {
		path = n.path + "." + path
	}
	return Node{v: e.value, path: path, report: n.report}
}
