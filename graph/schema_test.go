package graph_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

func load(t *testing.T, path string) *ast.Schema {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

func parse(t *testing.T, text string) *ast.Schema {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: text})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// own are the types that the schema itself defines.
func own(s *ast.Schema) []*ast.Definition {
	var defs []*ast.Definition
	for _, d := range s.Types {
		if !d.BuiltIn {
			defs = append(defs, d)
		}
	}
	slices.SortFunc(defs, func(a, b *ast.Definition) int { return strings.Compare(a.Name, b.Name) })
	return defs
}

// broken lists what a client of the old schema would miss in the new one.
// Types, fields, enum values and optional arguments may be added.
func broken(old, now *ast.Schema) []string {
	var lost []string
	say := func(format string, args ...any) { lost = append(lost, fmt.Sprintf(format, args...)) }
	for _, was := range own(old) {
		is := now.Types[was.Name]
		if is == nil || is.Kind != was.Kind {
			say("%s is gone, or is something else", was.Name)
			continue
		}
		for _, v := range was.EnumValues {
			if is.EnumValues.ForName(v.Name) == nil {
				say("%s.%s is gone", was.Name, v.Name)
			}
		}
		for _, member := range was.Types {
			if !slices.Contains(is.Types, member) {
				say("%s is no %s any more", member, was.Name)
			}
		}
		for _, f := range was.Fields {
			g := is.Fields.ForName(f.Name)
			if g == nil || g.Type.String() != f.Type.String() {
				say("%s.%s is gone, or has another type", was.Name, f.Name)
				continue
			}
			for _, arg := range f.Arguments {
				if a := g.Arguments.ForName(arg.Name); a == nil || a.Type.String() != arg.Type.String() || fmt.Sprint(a.DefaultValue) != fmt.Sprint(arg.DefaultValue) {
					say("%s.%s(%s:) is gone, or has another type or default", was.Name, f.Name, arg.Name)
				}
			}
			for _, arg := range g.Arguments {
				if arg.Type.NonNull && arg.DefaultValue == nil && f.Arguments.ForName(arg.Name) == nil {
					say("%s.%s(%s:) has become necessary", was.Name, f.Name, arg.Name)
				}
			}
		}
		if was.Kind != ast.InputObject {
			continue
		}
		for _, g := range is.Fields {
			if g.Type.NonNull && g.DefaultValue == nil && was.Fields.ForName(g.Name) == nil {
				say("%s.%s has become necessary", was.Name, g.Name)
			}
		}
	}
	return lost
}

// TestSchemaOnlyGrows holds the schema against the one that was released: what
// clients use of it stays. After an addition, copy schema.graphql over it.
func TestSchemaOnlyGrows(t *testing.T) {
	for _, lost := range broken(load(t, "../testdata/schema/released.graphql"), load(t, "../schema.graphql")) {
		t.Error(lost)
	}
}

// TestSchemaCheckCanFail proves that the check sees each kind of break, and
// takes additions for none.
func TestSchemaCheckCanFail(t *testing.T) {
	const before = `
		type Query { a(x: Int = 1): Int  b: U  c(i: I): E }
		type T { t: Int } type V { v: Int } union U = T | V
		enum E { ONE TWO } input I { i: Int }`
	for name, tc := range map[string]struct{ from, to, want string }{
		"addition":           {"b: U ", "b: U  d(y: Int): Int ", ""},
		"field":              {"b: U ", "", "Query.b is gone, or has another type"},
		"field's type":       {"b: U ", "b: T ", "Query.b is gone, or has another type"},
		"type":               {"type V { v: Int } union U = T | V", "union U = T", "V is gone, or is something else"},
		"member":             {"= T | V", "= T", "V is no U any more"},
		"enum value":         {"ONE TWO", "ONE", "E.TWO is gone"},
		"argument":           {"(x: Int = 1)", "", "Query.a(x:) is gone, or has another type or default"},
		"default":            {"x: Int = 1", "x: Int = 2", "Query.a(x:) is gone, or has another type or default"},
		"necessary argument": {"c(i: I)", "c(i: I, n: Int!)", "Query.c(n:) has become necessary"},
		"necessary input":    {"i: Int }", "i: Int n: Int! }", "I.n has become necessary"},
	} {
		t.Run(name, func(t *testing.T) {
			got := broken(parse(t, before), parse(t, strings.Replace(before, tc.from, tc.to, 1)))
			if tc.want == "" && len(got) > 0 || tc.want != "" && !slices.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestSchemaIsDescribed: a reader of the schema alone knows what everything is.
func TestSchemaIsDescribed(t *testing.T) {
	for _, d := range own(load(t, "../schema.graphql")) {
		described(t, d.Name, d.Description)
		for _, v := range d.EnumValues {
			described(t, d.Name+"."+v.Name, v.Description)
		}
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			described(t, d.Name+"."+f.Name, f.Description)
			for _, a := range f.Arguments {
				described(t, d.Name+"."+f.Name+"("+a.Name+":)", a.Description)
			}
		}
	}
}

func described(t *testing.T, name, text string) {
	t.Helper()
	if strings.TrimSpace(text) == "" {
		t.Errorf("%s has no description", name)
	}
}
