package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a page may take, starts of nodes included.
const docsLimit = 90 * time.Second

// The pages that tell readers what to type.
var docsPages = []string{
	"../../README.md", "../../docs/tutorial.md", "../../docs/howto/*.md", "../../docs/reference/http.md",
}

// docsBlock is a fenced block of a page: sh is run, text is shown. A text block
// right below a sh block is what that one prints.
type docsBlock struct {
	line     int // of its first line
	language string
	text     string
	output   string // "" when the page does not say
}

var (
	docsNode = regexp.MustCompile(`^(?:make run|(?:bin/)?tenure (?:dev|run)(?: .*)?)$`)
	docsMake = regexp.MustCompile(`^make( [a-z-]+)?(?: +#.*)?$`)
	spaces   = regexp.MustCompile(`[ \t]+`)
)

// docsBlocks reads a page's fenced blocks.
func docsBlocks(page string) (blocks []docsBlock, bad []string) {
	var open *docsBlock
	below := false // nothing but blank lines since a sh block
	for i, line := range strings.Split(page, "\n") {
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &docsBlock{line: i + 2, language: strings.TrimPrefix(line, "```")}
		case fence && open.language == "text" && below:
			blocks[len(blocks)-1].output, open, below = open.text, nil, false
		case fence:
			blocks, below = append(blocks, *open), open.language == "sh"
			switch open.language {
			case "sh", "text", "json", "yaml", "":
			default:
				bad = append(bad, fmt.Sprintf("line %d: a block is sh, which is run, or text, json or yaml, not %q", open.line-1, open.language))
			}
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.TrimSpace(line) != "":
			below = false
		}
	}
	if open != nil {
		bad = append(bad, fmt.Sprintf("line %d: the block has no end", open.line-1))
	}
	return blocks, bad
}

// prints says whether got is what a page shows, where … stands for anything, on a
// line of its own also for any number of lines. Widths of columns do not count.
func prints(shown, got string) bool {
	var re strings.Builder
	for line := range strings.Lines(shown) {
		line = strings.TrimSpace(line)
		if line == "…" {
			re.WriteString(`(?:.*\n)*`)
			continue
		}
		line = regexp.QuoteMeta(spaces.ReplaceAllString(line, " "))
		re.WriteString(strings.ReplaceAll(line, "…", `.*`) + ` ?\n`)
	}
	got = spaces.ReplaceAllString(strings.TrimSpace(got), " ") + "\n"
	return regexp.MustCompile(`^` + re.String() + `$`).MatchString(got)
}

// docsRun is one page being followed: a fresh checkout with the program in bin/,
// and the node that was started last.
type docsRun struct {
	t    *testing.T
	dir  string
	node *process
}

// newDocsRun makes the checkout. The program is this binary behind a script, so
// that pages run what is under test, under the race detector, too.
func newDocsRun(t *testing.T) *docsRun {
	t.Helper()
	r := &docsRun{t: t, dir: t.TempDir()}
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexport %s=1 GORACE=atexit_sleep_ms=0\nexec %s \"$@\"\n", asTenure, shellQuote(self))
	if err := os.Mkdir(filepath.Join(r.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "bin", "tenure"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(r.dir, "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	return r
}

// follow runs a block. A line that starts a node starts it beside what follows;
// a line that is make names a target that there is; bash gets the rest.
func (r *docsRun) follow(b docsBlock) {
	r.t.Helper()
	targets := makeTargets(r.t)
	var script, printed strings.Builder
	for _, line := range strings.SplitAfter(b.text, "\n") {
		command := strings.TrimSpace(line)
		bare, _, _ := strings.Cut(command, " #")
		switch bare = strings.TrimSpace(bare); {
		case docsNode.MatchString(bare):
			printed.WriteString(r.bash(b.line, script.String()))
			script.Reset()
			if bare == "make run" {
				bare = targets["run"]
			}
			r.start(strings.Fields(bare)[1:])
		case docsMake.MatchString(command):
			target := strings.TrimSpace(docsMake.FindStringSubmatch(command)[1])
			if _, is := targets[target]; !is && target != "" {
				r.t.Errorf("line %d: the Makefile has no target %q", b.line, target)
			}
		default:
			script.WriteString(line)
		}
	}
	printed.WriteString(r.bash(b.line, script.String()))
	if b.output != "" && !prints(b.output, printed.String()) {
		r.t.Errorf("line %d: the page shows\n%s\nand this came:\n%s", b.line, b.output, printed.String())
	}
}

// bash runs commands as a reader's shell would and returns what they print.
func (r *docsRun) bash(line int, script string) string {
	r.t.Helper()
	if strings.TrimSpace(script) == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), docsLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), r.env()...)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("line %d: %v\n%s\nprinted:\n%s", line, err, script, out.String())
	}
	return out.String()
}

func (r *docsRun) env() []string {
	env := []string{
		"PATH=" + filepath.Join(r.dir, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + r.dir, "XDG_STATE_HOME=" + filepath.Join(r.dir, "state"),
	}
	if r.node != nil {
		env = append(env, "TENURE_ADDR="+r.node.url)
	}
	return env
}

// docsBanner is how the program tells its reader where it runs.
var docsBanner = regexp.MustCompile(`^  (?:API|node-1) +(http://\S+)/graphql`)

// start starts a node as the page says, but for the port, which pages that are
// followed at the same time cannot share, and waits as a reader does: for the
// banner. A node that was told to end is waited for by the new one.
func (r *docsRun) start(args []string) {
	r.t.Helper()
	if args[0] != "dev" {
		r.t.Fatalf("a page can start dev only, which says when it runs; not %q", args)
	}
	r.node = r.launch(append(args, "--listen", "127.0.0.1:0"))
	r.node.url = docsBanner.FindStringSubmatch(r.node.await(docsLimit, docsBanner.String()))[1]
	r.node.await(docsLimit, `^Ctrl-C gives the seats back|^back is said here`)
	again := time.NewTicker(readyAgain)
	defer again.Stop()
	for !answersReady(r.t.Context(), r.node.url) { // nobody types that fast
		select {
		case <-again.C:
		case <-r.node.done:
			r.t.Fatalf("the node ended: %v", r.node.cmd.ProcessState)
		}
	}
}

// launch is launchIn for a page's program, with what it prints among its log.
func (r *docsRun) launch(args []string) *process {
	r.t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(r.dir, "bin", "tenure"), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, append(os.Environ(), r.env()...), writer, writer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = writer.Close()
	if err != nil {
		r.t.Fatal(err, reader.Close())
	}
	p := &process{t: r.t, cmd: cmd, logs: newLogLines(), done: make(chan struct{})}
	go func() { // ends with the program, which the cleanup below kills
		defer close(p.done)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			p.logs.add(lines.Text())
		}
		_ = cmd.Wait()
		_ = reader.Close()
	}()
	r.t.Cleanup(func() {
		p.kill()
		if all, _ := p.logs.from(0); r.t.Failed() {
			r.t.Logf("log of %v:\n%s", args, strings.Join(all, "\n"))
		}
	})
	return p
}

// makeTargets are the Makefile's, each with the line of it that runs the program.
func makeTargets(t *testing.T) map[string]string {
	t.Helper()
	targets, target := map[string]string{}, ""
	for _, line := range strings.Split(read(t, "../../Makefile"), "\n") {
		if name, _, is := strings.Cut(line, ":"); is && regexp.MustCompile(`^[a-z-]+$`).MatchString(name) {
			target = name
			targets[target] = ""
		} else if command := strings.TrimPrefix(line, "\t"); strings.HasPrefix(command, "bin/tenure ") {
			targets[target] = command
		}
	}
	return targets
}

// TestDocsAreTrue follows every page from top to bottom in a checkout of its
// own, and holds what its commands print against what the page shows.
func TestDocsAreTrue(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node for each page")
	}
	followed := 0
	for _, pattern := range docsPages {
		pages, err := filepath.Glob(pattern)
		if err != nil || len(pages) == 0 {
			t.Errorf("no page %s (%v)", pattern, err)
		}
		for _, page := range pages {
			blocks, bad := docsBlocks(read(t, page))
			for _, b := range bad {
				t.Errorf("%s: %s", page, b)
			}
			t.Run(filepath.Base(page), func(t *testing.T) {
				t.Parallel()
				r := newDocsRun(t)
				for _, b := range blocks {
					if b.language == "sh" {
						r.follow(b)
					}
				}
			})
			followed += len(blocks)
		}
	}
	if followed == 0 {
		t.Error("no page has a block")
	}
}

// TestDocsCheckCanFail proves that a page is read as it is meant, and that what
// it shows is told from what it does not.
func TestDocsCheckCanFail(t *testing.T) {
	page := "a\n```sh\nls\n```\n\n```text\nx  y\n…\nz … w\n```\n```text\nlone\n```\n```bash\nls\n```\n```sh\n"
	blocks, bad := docsBlocks(page)
	if len(blocks) != 3 || blocks[0].output != "x  y\n…\nz … w\n" || blocks[1].output != "" || len(bad) != 2 {
		t.Errorf("read: %+v, %q", blocks, bad)
	}
	for got, want := range map[string]bool{
		"x y\nz 1 w\n": true, "x   y\n1\n2\nz 1 2 w": true, "x y": false, "x y\nz w": false, "0\nx y\nz 1 w": false,
	} {
		if prints(blocks[0].output, got) != want {
			t.Errorf("prints(%q): got %v, want %v", got, !want, want)
		}
	}
	if targets := makeTargets(t); !docsNode.MatchString(targets["run"]) || targets["test"] != "" {
		t.Errorf("make run runs %q, make test %q", targets["run"], targets["test"])
	}
}
