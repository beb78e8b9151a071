package tenure_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

const (
	maxLines     = 500 // of a file
	maxFuncLines = 70  // of a function: a screen
)

// eachFile runs a rule over the hand-written Go files of a tree.
func eachFile(whole tree, rule func(goFile) []string) []string {
	var violations []string
	for _, pkg := range whole.packages {
		for _, file := range pkg.files {
			if !file.generated() {
				violations = append(violations, rule(file)...)
			}
		}
	}
	return violations
}

// checkFolders: every folder has a row in the table.
func checkFolders(whole tree) []string {
	var violations []string
	for _, pkg := range whole.packages {
		_, known := folders[pkg.folder()]
		if pkg.path != "" && !known && !isTestHelper(pkg.path) {
			violations = append(violations, fmt.Sprintf(
				"%s: folder %s is not in the table of arch_test.go; give it a row and say why it may import what it does", pkg.path, pkg.folder()))
		}
	}
	return violations
}

// checkOurImports: the arrow between our folders. Tests may look further, for
// there an adapter asserts the interface of its consumer.
func checkOurImports(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		var violations []string
		for path, spec := range file.imports() {
			imported, ours := strings.CutPrefix(path, module+"/")
			if !ours {
				continue
			}
			target := goPackage{path: imported}.folder()
			switch rule := folders[file.folder()]; {
			case isTestHelper(imported) && !file.test:
				violations = append(violations, fmt.Sprintf("%s: imports %s: test helpers are for tests", file.at(spec), imported))
			case file.test || target == file.folder():
			case slices.Contains(nobodyImports, target):
				violations = append(violations, fmt.Sprintf("%s: imports %s, which nobody may import: it stands at the end of the arrow", file.at(spec), imported))
			case !slices.Contains(rule.may, target) && !slices.Contains(rule.may, everything):
				violations = append(violations, fmt.Sprintf("%s: %s may not import %s: %s", file.at(spec), file.folder(), target, rule.why))
			}
		}
		return violations
	})
}

// checkThirdParty: each foreign module has its folders.
func checkThirdParty(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		var violations []string
		for path, spec := range file.imports() {
			host, _, _ := strings.Cut(path, "/")
			if !strings.Contains(host, ".") || path == module || strings.HasPrefix(path, module+"/") {
				continue
			}
			row := slices.IndexFunc(thirdParty, func(rule thirdPartyRule) bool { return strings.HasPrefix(path, rule.prefix) })
			if row < 0 {
				violations = append(violations, fmt.Sprintf(
					"%s: %s is not in the third-party table of arch_test.go; do without it, or add a row that says why and where", file.at(spec), path))
				continue
			}
			rule := thirdParty[row]
			allowed := slices.Contains(rule.in, file.folder()) ||
				file.test && (slices.Contains(rule.tests, everything) || slices.Contains(rule.tests, file.folder()))
			if !allowed {
				violations = append(violations, fmt.Sprintf("%s: %s may not import %s: %s", file.at(spec), file.folder(), path, rule.why))
			}
		}
		return violations
	})
}

// impure are standard packages that reach outside the arguments. Each stands
// for all below it ("os" for "os/exec").
var impure = []string{"context", "os", "net", "log", "math/rand", "crypto/rand", "syscall", "runtime", "testing"}

// checkPureImports: what a pure package computes depends on its arguments only.
func checkPureImports(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		if file.test || !slices.Contains(pure, file.folder()) {
			return nil
		}
		var violations []string
		for path, spec := range file.imports() {
			for _, banned := range impure {
				if path == banned || strings.HasPrefix(path, banned+"/") {
					violations = append(violations, fmt.Sprintf(
						"%s: %s is pure and may not import %s: every reader must compute the same from the same events; take the value as an argument",
						file.at(spec), file.folder(), path))
				}
			}
		}
		return violations
	})
}

// inShell says whether a file may ask the clock and start goroutines.
func inShell(file goFile) bool {
	return file.test || slices.Contains(shell, file.folder())
}

// checkGoStatements: goroutines only where somebody waits for them.
func checkGoStatements(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		if inShell(file) {
			return nil
		}
		var violations []string
		ast.Inspect(file.ast, func(node ast.Node) bool {
			if statement, is := node.(*ast.GoStmt); is {
				violations = append(violations, fmt.Sprintf(
					"%s: go statement in %s: goroutines belong to the shell, which owns them and waits for them", file.at(statement), file.folder()))
			}
			return true
		})
		return violations
	})
}

// checkClock: time comes into the core as a value.
func checkClock(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		if inShell(file) {
			return nil
		}
		var violations []string
		for _, use := range file.uses("time", "Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker") {
			violations = append(violations, fmt.Sprintf(
				"%s: time.%s in %s: no clock decides anything outside the shell; take the time or the elapsed duration as an argument",
				file.at(use), use.Sel.Name, file.folder()))
		}
		return violations
	})
}

// checkSleep: nobody waits by guessing how long something takes. Inside a
// synctest bubble a sleep moves fake time and guesses nothing.
func checkSleep(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		bubbles := bubblesOf(file)
		var violations []string
		for _, use := range file.uses("time", "Sleep") {
			if slices.ContainsFunc(bubbles, func(bubble ast.Node) bool { return encloses(bubble, use.Pos()) }) {
				continue
			}
			violations = append(violations, fmt.Sprintf(
				"%s: time.Sleep: too short on a slow machine and too long on every other; wait on an event, or move fake time inside synctest.Test", file.at(use)))
		}
		return violations
	})
}

// bubblesOf finds the calls that run their arguments under fake time.
func bubblesOf(file goFile) []ast.Node {
	runners := append(file.uses("testing/synctest", "Test"), file.uses("pgregory.net/rapid", "SyncTest")...)
	var bubbles []ast.Node
	ast.Inspect(file.ast, func(node ast.Node) bool {
		if call, is := node.(*ast.CallExpr); is && file.test {
			if selector, is := call.Fun.(*ast.SelectorExpr); is && slices.Contains(runners, selector) {
				bubbles = append(bubbles, call)
			}
		}
		return true
	})
	return bubbles
}

func encloses(node ast.Node, pos token.Pos) bool { return node.Pos() <= pos && pos < node.End() }

// checkBackground: every wait can be ended by its caller.
func checkBackground(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		// A program has no caller to cut off.
		if file.test || file.folder() == "cmd" || file.folder() == "bench" && file.ast.Name.Name == "main" {
			return nil
		}
		var violations []string
		for _, use := range file.uses("context", "Background", "TODO") {
			violations = append(violations, fmt.Sprintf(
				"%s: context.%s cuts the caller off from what it started; pass the context down, and for a teardown that must finish use context.WithoutCancel with a timeout",
				file.at(use), use.Sel.Name))
		}
		return violations
	})
}

// checkFileSize: one idea a file.
func checkFileSize(whole tree) []string {
	var violations []string
	for _, text := range whole.texts {
		if text.lines > maxLines && !text.generated {
			violations = append(violations, fmt.Sprintf("%s: %d lines, at most %d: split it by idea before it grows into a second program", text.path, text.lines, maxLines))
		}
	}
	return violations
}

// checkFuncSize: a function is read at once or not at all. Tests may be long
// tables and stories.
func checkFuncSize(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		var violations []string
		for _, decl := range file.ast.Decls {
			function, is := decl.(*ast.FuncDecl)
			if !is || file.test {
				continue
			}
			first, last := file.fset.Position(function.Pos()).Line, file.fset.Position(function.End()).Line
			if lines := last - first + 1; lines > maxFuncLines {
				violations = append(violations, fmt.Sprintf(
					"%s: %s has %d lines, at most %d: keep the control flow here and move the leaves out", file.at(function), function.Name.Name, lines, maxFuncLines))
			}
		}
		return violations
	})
}

// checkPackageDocs: a package says what it guarantees before it is used.
func checkPackageDocs(whole tree) []string {
	var violations []string
	for _, pkg := range whole.packages {
		sources, documented := 0, false
		for _, file := range pkg.files {
			if strings.HasSuffix(file.path, "_test.go") {
				continue
			}
			sources++
			name := file.ast.Name.Name
			doc := file.ast.Doc.Text()
			documented = documented || strings.HasPrefix(doc, "Package "+name+" ") || name == "main" && doc != ""
		}
		if sources > 0 && !documented {
			violations = append(violations, fmt.Sprintf("%s: no package doc: say what it guarantees, what it does not, and its concurrency rules", pkg.path))
		}
	}
	return violations
}

// drawers are names that say nothing about what is inside.
var drawers = []string{"util", "utils", "common", "helper", "helpers", "type", "types", "misc", "shared", "base", "lib"}

// checkNames: a package is named for what it gives.
func checkNames(whole tree) []string {
	var violations []string
	for _, pkg := range whole.packages {
		for element := range strings.SplitSeq(pkg.path, "/") {
			if slices.Contains(drawers, element) {
				violations = append(violations, fmt.Sprintf("%s: a package called %s collects whatever has no home; put each thing beside its only user", pkg.path, element))
			}
		}
	}
	return violations
}

// checkTestPackages: tests see what users see. A command cannot be imported, so
// its tests stand inside it; export_test.go is the door for the rest.
func checkTestPackages(whole tree) []string {
	return eachFile(whole, func(file goFile) []string {
		name := file.ast.Name.Name
		inside := strings.HasSuffix(file.path, "_test.go") && !strings.HasSuffix(name, "_test")
		if !inside || name == "main" || strings.HasSuffix(file.path, "/export_test.go") {
			return nil
		}
		return []string{fmt.Sprintf("%s: package %s: test through the exported face (package %s_test), so that the inside stays free to change", file.path, name, name)}
	})
}
