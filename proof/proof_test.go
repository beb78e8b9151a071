package proof_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	run  = flag.Bool("proof.run", false, "run what has to catch each fault; without, only whether the faults still fit the source")
	only = flag.String("proof.only", "", "name of the one fault to look at")
)

// patience bounds one run.
const patience = 10 * time.Minute

// fault is source that is wrong on purpose, and what has to notice.
type fault struct {
	why    string
	pkg    string   // whose tests catch it; several with commas
	tests  string   // which of them, a pattern
	flags  []string // of that run
	blocks []block
}

// block replaces text that stands in its file exactly once.
type block struct{ file, old, new string }

func parse(text string) (f fault, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		word, rest, _ := strings.Cut(lines[i], " ")
		switch word {
		case "#":
			f.why += rest + " "
		case "caught":
			words := strings.Fields(rest)
			if len(words) < 2 {
				return f, fmt.Errorf("line %d: caught PACKAGE TESTS FLAG…", i+1)
			}
			f.pkg, f.tests, f.flags = words[0], words[1], words[2:]
		case "file":
			b := block{file: rest}
			into := &b.old
			for i++; i < len(lines) && lines[i] != ">>>>>>>"; i++ {
				switch lines[i] {
				case "<<<<<<<":
				case "=======":
					into = &b.new
				default:
					*into += lines[i] + "\n"
				}
			}
			b.old, b.new = strings.TrimSuffix(b.old, "\n"), strings.TrimSuffix(b.new, "\n")
			f.blocks = append(f.blocks, b)
		default:
			return f, fmt.Errorf("line %d: no word %q", i+1, word)
		}
	}
	if f.why == "" || f.pkg == "" || len(f.blocks) == 0 {
		return f, fmt.Errorf("a fault says why, who catches it, and what it changes")
	}
	return f, nil
}

// overlay writes the wrong files into dir and returns the file that puts them in
// the place of the right ones.
func (f fault) overlay(root, dir string) (string, error) {
	files := map[string]string{}
	for _, b := range f.blocks {
		if files[b.file] == "" {
			text, err := os.ReadFile(filepath.Join(root, b.file))
			if err != nil {
				return "", err
			}
			files[b.file] = string(text)
		}
		if n := strings.Count(files[b.file], b.old); n != 1 {
			return "", fmt.Errorf("%s has this %d times, it has to stand there once; fit the fault to the source:\n%s", b.file, n, b.old)
		}
		files[b.file] = strings.Replace(files[b.file], b.old, b.new, 1)
	}
	replace := map[string]string{}
	for name, text := range files {
		wrong := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(wrong, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = wrong
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, data, 0o600)
}

// because finds in a run's output what it failed for.
var because = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: .*|^panic: .*`)

// caught runs the tests over the wrong source. A run that did not fail by a test
// of its own, but did not build or found no test, has caught nothing.
func (f fault) caught(ctx context.Context, root, overlay string) (string, error) {
	args := append([]string{"test", "-count=1", "-overlay", overlay, "-run", f.tests}, strings.Split(f.pkg, ",")...)
	args = append(args, f.flags...)
	if f.pkg == "./sim" {
		args = append(args, "-sim.minimise=false")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	switch {
	case err == nil:
		return "", fmt.Errorf("nobody noticed: go %s\n%s", strings.Join(args, " "), out)
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return "", fmt.Errorf("it does not build:\n%s", out)
	case !strings.Contains(out, "--- FAIL: ") && !strings.Contains(out, "panic: "):
		return "", fmt.Errorf("no test failed, %w:\n%s", err, out)
	}
	all := because.FindAllString(out, -1)
	for _, line := range all {
		if !strings.Contains(line, "sim_test.go") || strings.Contains(line, "seed ") {
			return strings.TrimSpace(line), nil
		}
	}
	return "", nil
}

// TestFaults proves that the proof can fail: each fault of this folder, put into
// the source, is noticed. Without -proof.run it only proves that the faults are
// still about the source as it is.
func TestFaults(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.fault")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d faults (%v), there are 15 at least", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".fault")
		if *only != "" && *only != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parse(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			overlay, err := f.overlay(root, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if !*run {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			how, err := f.caught(ctx, root, overlay)
			if err != nil {
				t.Fatalf("%s%v", f.why, err)
			}
			t.Logf("%scaught by %s %s in %v: %s", f.why, f.pkg, f.tests, time.Since(began).Round(time.Second), how)
		})
	}
}
