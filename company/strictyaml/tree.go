package strictyaml

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

type kind int

const (
	kindNull kind = iota
	kindText
	kindInteger
	kindBool
	kindOther // a float, an infinity, not-a-number: nothing we read is one
	kindList
	kindMap
	kindRefused // reported already: whoever reads it says no more
)

func (k kind) String() string {
	return [...]string{"empty", "text", "a number", "true or false", "a number", "a list", "a map", "refused"}[k]
}

// value is a document without its spelling. An alias is a second pointer to its
// target: what aliases repeat is never copied, only counted (size).
type value struct {
	kind    kind
	text    string // a scalar as it is meant; for numbers and booleans as written
	line    int
	column  int
	list    []*value
	entries []entry
	size    int // values below and with this one, aliases expanded
}

type entry struct {
	key    string
	line   int
	column int
	value  *value
}

// builder turns the parser's nodes into values.
type builder struct {
	report  *Report
	anchors map[string]*value
}

func (b *builder) refuse(n ast.Node, message, fix string) *value {
	line, column := position(n)
	b.report.Add(Problem{Line: line, Column: column, Message: message, Fix: fix})
	return &value{kind: kindRefused, line: line, column: column, size: 1}
}

func (b *builder) build(n ast.Node, depth int) *value {
	if depth > maxDepth {
		return b.refuse(n, fmt.Sprintf("nested deeper than %d levels", maxDepth), "write it flatter")
	}
	v := b.convert(n, depth)
	if v.size > maxExpanded {
		return b.refuse(n, fmt.Sprintf("its aliases expand to more than %d values", maxExpanded), "use fewer aliases, or none")
	}
	return v
}

func (b *builder) convert(n ast.Node, depth int) *value {
	switch n := n.(type) {
	case *ast.MappingNode:
		return b.mapping(n, n.Values, depth)
	case *ast.MappingValueNode:
		return b.mapping(n, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		v := b.leaf(n, kindList, "")
		for _, one := range n.Values {
			child := b.build(one, depth+1)
			v.list = append(v.list, child)
			v.size += child.size
		}
		return v
	case *ast.AnchorNode:
		v := b.build(n.Value, depth+1)
		b.anchors[n.Name.String()] = v
		return v
	case *ast.AliasNode:
		name := n.Value.String()
		target, ok := b.anchors[name]
		if !ok {
			return b.refuse(n, "alias *"+clip(name, 80)+" has no anchor before it", "define &"+clip(name, 80)+" first, or write the value out")
		}
		return target
	case *ast.TagNode:
		return b.refuse(n, "tags are not read", "remove it; write text in quotes")
	}
	return b.scalar(n)
}

func (b *builder) mapping(n ast.Node, pairs []*ast.MappingValueNode, depth int) *value {
	v := b.leaf(n, kindMap, "")
	for _, pair := range pairs {
		line, column := position(pair.Key)
		key, ok := pair.Key.(ast.ScalarNode)
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge || !ok {
			return b.refuse(pair.Key, "only plain keys are read here", "write the keys out")
		}
		child := b.build(pair.Value, depth+1)
		v.entries = append(v.entries, entry{keyText(key), line, column, child})
		v.size += child.size
	}
	if len(v.entries) > 0 {
		if first := v.entries[0]; v.line == 0 || first.line < v.line || first.line == v.line && first.column < v.column {
			v.line, v.column = first.line, first.column // a block map's own token is its first colon
		}
	}
	return v
}

func keyText(key ast.ScalarNode) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	if tk := key.GetToken(); tk != nil {
		return tk.Value
	}
	return ""
}

func (b *builder) scalar(n ast.Node) *value {
	switch n := n.(type) {
	case nil:
		return &value{kind: kindNull, size: 1}
	case *ast.StringNode:
		return b.leaf(n, kindText, n.Value)
	case *ast.LiteralNode:
		return b.leaf(n, kindText, n.Value.Value)
	case *ast.IntegerNode:
		return b.leaf(n, kindInteger, raw(n))
	case *ast.BoolNode:
		return b.leaf(n, kindBool, raw(n))
	case *ast.NullNode:
		return b.leaf(n, kindNull, raw(n))
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return b.leaf(n, kindOther, raw(n))
	}
	return b.refuse(n, "this kind of YAML is not read", "write text, a number, true or false, a list or a map")
}

func (b *builder) leaf(n ast.Node, k kind, text string) *value {
	line, column := position(n)
	return &value{kind: k, text: text, line: line, column: column, size: 1}
}

func raw(n ast.Node) string {
	if tk := n.GetToken(); tk != nil {
		return strings.TrimSpace(tk.Value)
	}
	return ""
}

func position(n ast.Node) (line, column int) {
	if n == nil {
		return 0, 0
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line, tk.Position.Column
	}
	return 0, 0
}
