package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asTenure makes the test binary behave as the program: real processes that can
// be killed and stopped, without building a second binary.
const asTenure = "TENURE_TEST_AS_PROGRAM"

// process is one running node.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	logs *logLines
	done chan struct{} // closed when it has ended
}

// logLines keeps a process's log, and lets a test wait for a line.
type logLines struct {
	mu   sync.Mutex
	all  []string
	news chan struct{} // closed and replaced at each line
}

func newLogLines() *logLines { return &logLines{news: make(chan struct{})} }

func (l *logLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	close(l.news)
	l.news = make(chan struct{})
}

// from returns the lines from index i on, and a channel for the next one.
func (l *logLines) from(i int) ([]string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[i:], l.news
}

// count says how many lines match.
func (l *logLines) count(pattern string) int {
	re, n := regexp.MustCompile(pattern), 0
	all, _ := l.from(0)
	for _, line := range all {
		if re.MatchString(line) {
			n++
		}
	}
	return n
}

var apiLine = regexp.MustCompile(`msg=node_started .*api=(\S+)`)

// startNode runs the program with args and waits until it serves.
func startNode(t *testing.T, args ...string) *process {
	t.Helper()
	p := launch(t, args...)
	m := p.await(30*time.Second, apiLine.String())
	p.url = apiLine.FindStringSubmatch(m)[1]
	return p
}

// launch runs the program with args and does not wait.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	return launchIn(t, "", nil, args...)
}

// launchIn is launch in a directory, with variables of its own.
func launchIn(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	return launchProgram(t, os.Args[0], dir, env, args...)
}

// launchProgram is launchIn of another build.
func launchProgram(t *testing.T, program, dir string, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), asTenure+"=1", "GORACE=atexit_sleep_ms=0", "TMPDIR="+t.TempDir()), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, logs: newLogLines(), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		s := bufio.NewScanner(stderr)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			p.logs.add(s.Text())
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGKILL)
		<-p.done
		if t.Failed() {
			all, _ := p.logs.from(0)
			t.Logf("log of %v:\n%s", args, strings.Join(all, "\n"))
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process without warning and waits until it is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// stop asks it to stop and waits until it has.
func (p *process) stop() int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(60 * time.Second):
		p.t.Fatal("the node did not stop within 60 s of SIGTERM")
	}
	return p.cmd.ProcessState.ExitCode()
}

// await waits until a line matches and returns it.
func (p *process) await(limit time.Duration, pattern string) string {
	p.t.Helper()
	return p.awaitFrom(0, limit, pattern)
}

// mark returns where the log stands, for awaitFrom.
func (p *process) mark() int {
	all, _ := p.logs.from(0)
	return len(all)
}

func (p *process) awaitFrom(mark int, limit time.Duration, pattern string) string {
	p.t.Helper()
	re, over := regexp.MustCompile(pattern), time.After(limit)
	for {
		fresh, news := p.logs.from(mark)
		for _, line := range fresh {
			if re.MatchString(line) {
				return line
			}
		}
		mark += len(fresh)
		select {
		case <-news:
		case <-p.done:
			if fresh, _ := p.logs.from(mark); len(fresh) == 0 {
				p.t.Fatalf("the node ended (%v) before it logged %q", p.cmd.ProcessState, pattern)
			}
		case <-over:
			p.t.Fatalf("no line %q within %v", pattern, limit)
		}
	}
}

// tenure runs a client command of the program against the node, in this process.
func (p *process) tenure(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, append([]string{"--addr", p.url}, args...), strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// must is tenure with exit code 0, its output decoded into v unless that is nil.
func (p *process) must(v any, args ...string) string {
	p.t.Helper()
	out, errs, code := p.tenure(args...)
	if code != 0 {
		p.t.Fatalf("tenure %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(out), v); err != nil {
			p.t.Fatalf("tenure %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return out
}

// awaitHeld waits until the node's log shows n attached seats since mark.
func (p *process) awaitHeld(mark, n int, limit time.Duration) {
	p.t.Helper()
	seats, over := map[string]bool{}, time.After(limit)
	re := regexp.MustCompile(`msg=seat_attached .*seat=(\S+)`)
	for {
		fresh, news := p.logs.from(mark)
		for _, line := range fresh {
			if m := re.FindStringSubmatch(line); m != nil {
				seats[m[1]] = true
			}
		}
		if len(seats) >= n {
			return
		}
		mark += len(fresh)
		select {
		case <-news:
		case <-over:
			p.t.Fatalf("%d of %d seats attached within %v: %v", len(seats), n, limit, seats)
		}
	}
}

// programCode is what TestMain runs when the binary is to be the program.
func programCode() (code int, is bool) {
	if os.Getenv(asTenure) == "" {
		return 0, false
	}
	return mainCode(), true
}

func slogDiscard() *slog.Logger { return slog.New(slog.DiscardHandler) }
