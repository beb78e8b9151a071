package tenure_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tree is what the rules look at. Paths are relative to the root of the module
// and use slashes.
type tree struct {
	packages []goPackage
	texts    []textFile
}

type goPackage struct {
	path  string // "broker/natstest"; "" is the root
	files []goFile
}

type goFile struct {
	path string
	test bool // _test.go, or any file of a package that only tests import
	fset *token.FileSet
	ast  *ast.File
}

// textFile is a source file of any language, for the rules about size.
type textFile struct {
	path      string
	lines     int
	generated bool
}

// loadTree reads the packages that go list finds and the source files around
// them.
func loadTree(t *testing.T) tree {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var whole tree
	for _, listed := range goList(t) {
		rel, err := filepath.Rel(root, listed.Dir)
		if err != nil {
			t.Fatal(err)
		}
		pkg := goPackage{path: strings.TrimPrefix(filepath.ToSlash(rel), ".")}
		for _, name := range listed.names() {
			source, err := os.ReadFile(filepath.Join(listed.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			file, err := parseFile(strings.TrimPrefix(pkg.path+"/"+name, "/"), string(source))
			if err != nil {
				t.Fatal(err)
			}
			pkg.files = append(pkg.files, file)
		}
		whole.packages = append(whole.packages, pkg)
	}
	whole.texts = walkTexts(t, root)
	return whole
}

func parseFile(path, source string) (goFile, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return goFile{}, err
	}
	test := strings.HasSuffix(path, "_test.go") || isTestHelper(filepath.ToSlash(filepath.Dir(path)))
	return goFile{path: path, test: test, fset: fset, ast: parsed}, nil
}

// isTestHelper tells packages named for what they give a test (natstest).
func isTestHelper(path string) bool {
	return strings.HasSuffix(path, "test") && path != "test"
}

type listedPackage struct {
	Dir string
	// IgnoredGoFiles are those of other build tags; the rules hold for them too.
	GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
}

func (p listedPackage) names() []string {
	return slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles)
}

// goList asks the go command, not the folder tree, so that what it judges is
// what is built. -e: a package that does not compile is the compiler's to report.
func goList(t *testing.T) []listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e",
		"-json=Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var listed []listedPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var pkg listedPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return listed
		} else if err != nil {
			t.Fatalf("go list printed what is not JSON: %v", err)
		}
		listed = append(listed, pkg)
	}
}

var (
	sourceExt       = []string{".go", ".ts", ".tsx", ".sh"}
	generatedMarker = regexp.MustCompile(`(?m)^(//|/\*|#) .*(Code generated .* DO NOT EDIT|@generated)`)
)

func walkTexts(t *testing.T, root string) []textFile {
	t.Helper()
	var texts []textFile
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a running test's or build's own file, gone again
		case err != nil:
			return err
		case entry.IsDir() && path != root && skipDir(root, path, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains(sourceExt, filepath.Ext(path)):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		texts = append(texts, newTextFile(filepath.ToSlash(rel), string(source)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func skipDir(root, path, name string) bool {
	atRoot := filepath.Dir(path) == root
	return strings.HasPrefix(name, ".") || name == "node_modules" || name == "dist" ||
		atRoot && (name == "data" || name == "bin")
}

func newTextFile(path, source string) textFile {
	head := source
	if len(head) > 1024 {
		head = head[:1024]
	}
	return textFile{path: path, lines: strings.Count(source, "\n"), generated: generatedMarker.MatchString(head)}
}

// folder is the row of the table a package belongs to: its first path element.
func (p goPackage) folder() string {
	first, _, _ := strings.Cut(p.path, "/")
	return first
}

func (f goFile) folder() string { return goPackage{path: f.path}.folder() }

func (f goFile) generated() bool { return ast.IsGenerated(f.ast) }

// at is where a node stands, for messages.
func (f goFile) at(node ast.Node) string { return f.fset.Position(node.Pos()).String() }

// imports are the import paths of a file with the specs they come from.
func (f goFile) imports() map[string]*ast.ImportSpec {
	found := map[string]*ast.ImportSpec{}
	for _, spec := range f.ast.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			found[path] = spec
		}
	}
	return found
}

// calledAs is the name a file knows an imported package by, "" when it does not
// import it. An import renamed to escape a rule is still seen.
func (f goFile) calledAs(path string) string {
	spec, imported := f.imports()[path]
	switch {
	case !imported:
		return ""
	case spec.Name != nil:
		return spec.Name.Name
	default:
		return path[strings.LastIndex(path, "/")+1:]
	}
}

// uses finds every mention of path.name, called or passed on as a value.
func (f goFile) uses(path string, names ...string) []*ast.SelectorExpr {
	local := f.calledAs(path)
	if local == "" {
		return nil
	}
	var found []*ast.SelectorExpr
	ast.Inspect(f.ast, func(node ast.Node) bool {
		if selector, is := node.(*ast.SelectorExpr); is && slices.Contains(names, selector.Sel.Name) {
			if ident, is := selector.X.(*ast.Ident); is && ident.Name == local {
				found = append(found, selector)
			}
		}
		return true
	})
	return found
}
