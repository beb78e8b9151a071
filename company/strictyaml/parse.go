package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// Parse reads the one document in doc and returns its root. When it is no
// readable document, or longer than maxBytes, ok is false and the report says
// why. The source names the document in every problem.
func Parse(source string, doc []byte, maxBytes int) (root Node, report *Report, ok bool) {
	report = NewReport(source)
	// The scanner and the parser are somebody else's, and a document comes from
	// outside: a panic in them is a fault of the document, not of this process.
	defer func() {
		if r := recover(); r != nil {
			report.Add(Problem{Message: fmt.Sprintf("is YAML that the parser cannot take (%v)", r), Fix: "write it more plainly"})
			root, ok = Node{}, false
		}
	}()
	doc = bytes.TrimPrefix(doc, []byte("\ufeff"))
	if len(doc) > maxBytes {
		report.Add(Problem{Message: fmt.Sprintf("is %d bytes, and at most %d are read", len(doc), maxBytes), Fix: "make it shorter"})
		return Node{}, report, false
	}
	if line, column, bad := invalidUTF8(doc); bad {
		report.Add(Problem{Line: line, Column: column, Message: "is not UTF-8 text", Fix: "save the file as UTF-8"})
		return Node{}, report, false
	}
	body := parse(report, string(doc))
	if body == nil {
		return Node{}, report, false
	}
	b := builder{report: report, anchors: map[string]*value{}}
	v := b.build(body, 1)
	return Node{v: v, report: report}, report, v.kind != kindRefused
}

// parse returns the body of the one document, or nil after it has reported.
func parse(report *Report, doc string) ast.Node {
	tokens, ok := scan(report, doc)
	if !ok {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // Fields reports duplicates, with both lines
	if err != nil {
		report.Add(syntaxProblem(err))
		return nil
	}
	var body ast.Node
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if _, directive := d.Body.(*ast.DirectiveNode); directive {
			continue
		}
		if body != nil {
			line, column := position(d.Body)
			report.Add(Problem{Line: line, Column: column, Message: "a second document begins here", Fix: "keep one document in the file"})
			return nil
		}
		body = d.Body
	}
	if body == nil {
		report.Add(Problem{Message: "is empty", Fix: "write the document"})
	}
	return body
}

// scan is lexer.Tokenize with limits: the scanner takes a document whole, a
// token costs a hundred times its text, and the parser recurses once a level.
func scan(report *Report, doc string) (token.Tokens, bool) {
	if n := signs(doc); n > maxSigns {
		report.Add(Problem{Message: fmt.Sprintf("has %d signs that YAML knows, and at most %d are read", n, maxSigns), Fix: "make it shorter"})
		return nil, false
	}
	var s scanner.Scanner
	var tokens token.Tokens
	s.Init(doc)
	for {
		more, err := s.Scan()
		if errors.Is(err, io.EOF) {
			break
		}
		tokens.Add(more...)
		if err != nil {
			p := Problem{Message: "is no valid YAML", Fix: "correct the YAML"}
			if len(more) > 0 {
				last := more[len(more)-1]
				p = problemAt(last, "is no valid YAML: "+last.Error, p.Fix)
			}
			report.Add(p)
			return nil, false
		}
	}
	if tk := tooDeep(tokens); tk != nil {
		report.Add(problemAt(tk, fmt.Sprintf("nested deeper than %d levels", maxDepth), "write it flatter"))
		return nil, false
	}
	return tokens, true
}

// signs counts what can begin a token. The tokens of a document are at most
// twice as many and one.
func signs(doc string) int {
	n := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '[', ']', '{', '}', ',', ':', '#', '&', '*', '!', '?', '|', '>', '%', '"', '\'':
			n++
		case '-':
			if i+1 == len(doc) || doc[i+1] <= ' ' { // a list's dash; inside a word it is a letter
				n++
			}
		}
	}
	return n
}

// tooDeep returns the token that nests too deep, before the parser recurses
// into it. Nesting by indentation is left to the builder: a document has no room
// for much of it.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, inLine, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position != nil && tk.Position.Line != line {
			line, inLine = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			inLine++
		default: // nothing else nests
		}
		if flow > maxDepth || inLine > maxDepth {
			return tk
		}
	}
	return nil
}

func syntaxProblem(err error) Problem {
	const fix = "correct the YAML"
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		return problemAt(syntax.Token, "is no valid YAML: "+syntax.Message, fix)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return Problem{Message: "is no valid YAML: " + first, Fix: fix}
}

func problemAt(tk *token.Token, message, fix string) Problem {
	p := Problem{Message: message, Fix: fix}
	if tk != nil && tk.Position != nil {
		p.Line, p.Column = tk.Position.Line, tk.Position.Column
	}
	return p
}

func invalidUTF8(doc []byte) (line, column int, bad bool) {
	if utf8.Valid(doc) {
		return 0, 0, false
	}
	line, column = 1, 1
	for len(doc) > 0 {
		r, size := utf8.DecodeRune(doc)
		if r == utf8.RuneError && size <= 1 {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		doc = doc[size:]
	}
	return line, column, true
}
