package company

import (
	"fmt"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/events"
)

// TokenRule says in words what a handle or a node id may be.
const TokenRule = "1 to 63 of a-z, 0-9, '_' and '-', starting with a letter or a digit"

// LabelRule says in words what a label's key or value may be.
const LabelRule = "1 to 63 letters, digits, '.', '_', '/' and '-'"

// ValidLabel says whether s can be a label's key or value. A node's labels and
// a placement's follow the one rule, so whatever is selected can be carried.
func ValidLabel(s string) bool {
	return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune("._/-", r)
	})
}

func readPlacement(n strictyaml.Node) Placement {
	var p Placement
	fields, ok := n.Fields("node", "labels")
	if !ok {
		return p
	}
	node, hasNode := fields.Get("node")
	labels, hasLabels := fields.Get("labels")
	switch {
	case hasNode && hasLabels:
		n.Refuse("names a node and labels", "keep one: a node id pins the seat, labels select the nodes that carry them all")
	case !hasNode && !hasLabels:
		n.Refuse("names neither a node nor labels", "write placement: {node: node-0} or {labels: {zone: a}}, or remove placement")
	}
	if hasNode {
		if id, ok := node.Text(); ok {
			if events.ValidHandle(id) != nil {
				node.Refuse(strictyaml.Quote(id)+" is not a node id: a node id is "+TokenRule, "write the node.id of a node file")
			}
			p.Node = id
		}
	}
	if hasLabels {
		p.Labels = ReadLabels(labels, MaxLabels)
	}
	return p
}

// ReadLabels reads a map of labels, at least one and at most limit.
func ReadLabels(n strictyaml.Node, limit int) map[string]string {
	keys, values, ok := n.Entries(limit)
	if !ok {
		return nil
	}
	if len(keys) == 0 {
		n.Refuse("holds no label", "write {zone: a}, or remove it")
		return nil
	}
	labels := make(map[string]string, len(keys))
	for i, key := range keys {
		if !ValidLabel(key) {
			values[i].Refuse(strictyaml.Quote(key)+" is not a label's key: a key is "+LabelRule, "write one such as zone")
		}
		value, ok := values[i].Text()
		if ok && !ValidLabel(value) {
			values[i].Refuse(strictyaml.Quote(value)+" is not a label's value: a value is "+LabelRule, "write one such as eu-west")
		}
		labels[key] = value
	}
	return labels
}

func readRunner(n strictyaml.Node) Runner {
	var r Runner
	fields, ok := n.Fields("exec", "timeout", "echo")
	if !ok {
		return r
	}
	exec, hasExec := fields.Get("exec")
	echo, hasEcho := fields.Get("echo")
	timeout, hasTimeout := fields.Get("timeout")
	switch {
	case hasExec && hasEcho:
		n.Refuse("names two runners, exec and echo", "keep one of them")
	case !hasExec && !hasEcho:
		n.Refuse("names no runner", "write {exec: [program, argument]} or {echo: {}}")
	case hasEcho && hasTimeout:
		timeout.Refuse("an echo has no timeout", "remove it")
	}
	if hasEcho {
		_, r.Echo = echo.Fields() // no keys: an echo has nothing to set
	}
	if hasExec {
		r.Exec = Exec{Program: readProgram(exec), Timeout: DefaultTimeout}
		if hasTimeout {
			r.Exec.Timeout = readTimeout(timeout)
		}
	}
	return r
}

func readProgram(n strictyaml.Node) []string {
	list, ok := n.List(MaxArgs)
	if !ok {
		return nil
	}
	if len(list) == 0 {
		n.Refuse("names no program", "write [program, argument]")
	}
	var program []string
	for i, one := range list {
		arg, ok := one.Text()
		switch {
		case !ok:
		case i == 0 && strings.TrimSpace(arg) == "":
			one.Refuse("the program is empty", "write its path, or its name on the node's PATH")
		case len(arg) > MaxArg:
			one.Refuse(fmt.Sprintf("is %d bytes, and at most %d are allowed", len(arg), MaxArg), "put it into a file")
		case strings.ContainsRune(arg, 0):
			one.Refuse("holds a zero byte, which no program can be given", "remove it")
		}
		program = append(program, arg)
	}
	return program
}

func readTimeout(n strictyaml.Node) time.Duration {
	d, ok := n.Duration()
	if ok && (d <= 0 || d > MaxTimeout) {
		n.Refuse(fmt.Sprintf("%s is no timeout: it is above zero and at most %s", strictyaml.ShortDuration(d), strictyaml.ShortDuration(MaxTimeout)),
			"write "+strictyaml.ShortDuration(DefaultTimeout)+", or what the longest turn needs")
	}
	return d
}
