package company

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/events"
)

// maxRoles is no policy: a document of MaxDocument bytes cannot hold more.
const maxRoles = MaxDocument / len("{handle:a}")

// Parse reads a company document, YAML or JSON; name is what problems call it.
// The error is always Problems and then the Company is zero: nothing of a
// document with a problem is used.
func Parse(name string, doc []byte) (Company, error) {
	root, report, ok := strictyaml.Parse(name, doc, MaxDocument)
	if !ok {
		return Company{}, report.Err()
	}
	c := readCompany(root)
	if err := report.Err(); err != nil {
		return Company{}, err
	}
	return c, nil
}

func readCompany(root strictyaml.Node) Company {
	var c Company
	fields, ok := root.Fields("company", "roles")
	if !ok {
		return c
	}
	if n, ok := fields.Require("company", "write company: {name: …}"); ok {
		c.Name = readName(n)
	}
	if n, ok := fields.Require("roles", "write roles: and one '- handle: …' a role, or roles: []"); ok {
		c.Roles = readRoles(n)
	}
	return c
}

func readName(n strictyaml.Node) string {
	fields, ok := n.Fields("name")
	if !ok {
		return ""
	}
	n, ok = fields.Require("name", "write name: and the company's name")
	if !ok {
		return ""
	}
	name, ok := n.Text()
	switch {
	case !ok:
	case strings.TrimSpace(name) == "":
		n.Refuse("is empty", "write the company's name; every agent id is made from it")
	default:
		line(n, name, MaxName)
	}
	return name
}

// line refuses text that is no single short line without blanks around it.
func line(n strictyaml.Node, text string, limit int) {
	switch {
	case len(text) > limit:
		n.Refuse(fmt.Sprintf("is %d bytes, and at most %d are allowed", len(text), limit), "shorten it")
	case strings.ContainsFunc(text, unicode.IsControl):
		n.Refuse(strictyaml.Quote(text)+" holds a line break or another control character", "write it on one line")
	case strings.TrimSpace(text) != text:
		n.Refuse(strictyaml.Quote(text)+" begins or ends with a blank", "write "+strictyaml.Quote(strings.TrimSpace(text)))
	}
}

func readRoles(n strictyaml.Node) []Role {
	list, ok := n.List(maxRoles)
	if !ok {
		return nil
	}
	roles := make([]Role, 0, len(list))
	lines := map[string]int{}
	for _, one := range list {
		roles = append(roles, readRole(one, lines))
	}
	return roles
}

// readRole reads one role; lines holds where each handle stood first.
func readRole(n strictyaml.Node, lines map[string]int) Role {
	role := Role{Kind: Agent}
	fields, ok := n.Fields("handle", "title", "kind", "placement", "runner")
	if !ok {
		return role
	}
	if h, ok := fields.Require("handle", "write handle: and a name such as team-lead"); ok {
		role.Handle = readHandle(h, lines)
	}
	if t, ok := fields.Get("title"); ok {
		if role.Title, ok = t.Text(); ok {
			line(t, role.Title, MaxTitle)
		}
	}
	kindKnown := true
	if k, ok := fields.Get("kind"); ok {
		role.Kind, kindKnown = readKind(k)
	}
	placement, placed := fields.Get("placement")
	runner, hasRunner := fields.Get("runner")
	if kindKnown && role.Kind == Human {
		if placed {
			placement.Refuse("a human holds no seat, so there is nothing to place", "remove placement")
		}
		if hasRunner {
			runner.Refuse("a human has no runner", "remove runner, or write kind: agent")
		}
		return role
	}
	if placed {
		role.Placement = readPlacement(placement)
	}
	switch {
	case hasRunner:
		role.Runner = readRunner(runner)
	case kindKnown:
		n.Refuse("an agent's seat has no runner", "write runner: {exec: [program, argument]} or runner: {echo: {}}")
	}
	return role
}

func readHandle(n strictyaml.Node, lines map[string]int) string {
	handle, ok := n.Text()
	if !ok {
		return ""
	}
	if events.ValidHandle(handle) != nil {
		fix := "write one such as team-lead"
		if slug := slugOf(handle); slug != "" {
			fix = "write " + slug
		}
		n.Refuse(strictyaml.Quote(handle)+" is not a handle: a handle is "+TokenRule, fix)
		return ""
	}
	if first, twice := lines[handle]; twice {
		n.Refuse(fmt.Sprintf("%s stands twice, at line %d and line %d", handle, first, n.Line()), "give each role its own handle")
		return ""
	}
	lines[handle] = n.Line()
	return handle
}

// slugOf makes a handle out of what was meant as one; "" when nothing is left.
func slugOf(s string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '-', r == ' ', r == '.', r == '/':
			return '-'
		}
		return -1
	}, s)
	slug = strings.Trim(slug, "-_")
	if events.ValidHandle(slug) != nil {
		return ""
	}
	return slug
}

func readKind(n strictyaml.Node) (Kind, bool) {
	text, ok := n.Text()
	if !ok {
		return Agent, false
	}
	if k := Kind(text); k == Agent || k == Human {
		return k, true
	}
	n.Refuse(strictyaml.Quote(text)+" is no kind of role", "write agent or human")
	return Agent, false
}
