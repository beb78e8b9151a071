package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of a supervisor.
const (
	maxChildren  = 16
	keptLines    = 8                // of a process's log, for the error that says why it ended
	maxLogLine   = 64 << 10         // a longer line is passed on in pieces
	drainFor     = time.Second      // how long output is read once its process has ended
	killedWithin = 10 * time.Second // after SIGKILL; longer means stuck in the kernel
)

// supervisor runs processes of this same program: it passes their logs on line
// by line, each under its process's name, and restarts none of them.
//
// They end with it, however it ends: each carries a parent-death signal. That
// fires when the thread that forked ends, so the goroutine that made the
// supervisor is bound to its thread until close, and is the one to call start.
// Each has a process group of its own: a terminal's Ctrl-C reaches the
// supervisor alone, which then asks each process once.
type supervisor struct {
	out      *prefixedLines
	ended    chan *child // gets each process that has ended; never blocks
	children []*child
	reading  sync.WaitGroup
}

// child is one process.
type child struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its output was read

	line func(string) // called with each line, from one goroutine
	end  func()       // called when it has ended, before done is closed
	// quiet is closed by line: asked to stop, the process has finished its work and
	// waits for its stdin to close, since others may still need what it serves.
	quiet chan struct{}
	hold  io.Closer // its stdin

	last []string // the newest lines; for reading once done is closed
}

func newSupervisor(out io.Writer) *supervisor {
	runtime.LockOSThread()
	return &supervisor{out: &prefixedLines{w: out, colour: os.Getenv("NO_COLOR") == "" && isTerminal(out)}, ended: make(chan *child, maxChildren)}
}

// start runs this program with args as c, whose name and functions are set.
func (s *supervisor) start(c *child, env []string, args ...string) error {
	if len(s.children) == maxChildren {
		return fmt.Errorf("start %s: %d processes run already", c.name, maxChildren)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	defer w.Close() // the process has its own by then
	c.done, c.quiet = make(chan struct{}), make(chan struct{})
	// Bound to no context: a process that is to end is asked first, see stop.
	c.cmd = &exec.Cmd{
		Path: program, Args: append([]string{program}, args...), Env: env, Stdout: w, Stderr: w,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if c.hold, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		_ = r.Close()
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	number := len(s.children)
	s.children = append(s.children, c)
	s.reading.Go(func() { s.watch(c, number, r) })
	return nil
}

// watch reads a process's output until it has ended.
func (s *supervisor) watch(c *child, number int, r *os.File) {
	var read sync.WaitGroup
	read.Go(func() {
		lines := bufio.NewReaderSize(r, maxLogLine)
		for {
			raw, _, err := lines.ReadLine()
			if err != nil {
				return
			}
			text := string(raw)
			c.last = append(c.last[max(0, len(c.last)-keptLines+1):], text)
			s.out.write(number, c.name, text)
			c.line(text)
		}
	})
	_ = c.cmd.Wait() // how it ended is in ProcessState
	// What it left behind may hold the pipe open: what was said is there by now.
	_ = r.SetReadDeadline(time.Now().Add(drainFor))
	read.Wait()
	_ = r.Close()
	c.end()
	close(c.done)
	s.ended <- c
}

// close waits until everything has ended, and lets go of the thread.
func (s *supervisor) close() {
	s.reading.Wait()
	runtime.UnlockOSThread()
}

// stop asks all to end and waits until they have: none before all are quiet. Of
// the signals, the first is why; at the second all are asked again, which is to
// hurry them, and at the third, or when limit is over unless it is 0, they are
// killed. It reports whether all ended by themselves.
func (s *supervisor) stop(signals <-chan os.Signal, limit time.Duration) bool {
	var over <-chan time.Time
	if limit > 0 {
		over = time.After(limit)
	}
	s.ask()
	signalled := 0
	await := func(c *child, quiet <-chan struct{}) bool {
		for {
			select {
			case <-c.done:
				return true
			case <-quiet:
				return true
			case <-over:
				return false
			case <-signals:
				if signalled++; signalled == 2 {
					s.ask()
				} else if signalled > 2 {
					return false
				}
			}
		}
	}
	for _, c := range s.children {
		if !await(c, c.quiet) {
			kill(s.children)
			return false
		}
	}
	for _, c := range s.children {
		_ = c.hold.Close() // it fails where the process has ended
	}
	for _, c := range s.children {
		if !await(c, nil) {
			kill(s.children)
			return false
		}
	}
	return true
}

func (s *supervisor) ask() {
	for _, c := range s.children {
		c.signal(syscall.SIGTERM)
	}
}

// kill ends these at once and waits for it.
func kill(children []*child) {
	for _, c := range children {
		c.signal(syscall.SIGKILL)
	}
	late := time.After(killedWithin)
	for _, c := range children {
		select {
		case <-c.done:
		case <-late:
			return
		}
	}
}

// signal sends it unless the process has ended, whose number may be another's.
func (c *child) signal(sig syscall.Signal) { _ = c.cmd.Process.Signal(sig) }

// ended says whether it has.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// how says how it ended, with the last it said; only once done is closed.
func (c *child) how() string {
	text := c.cmd.ProcessState.String()
	if len(c.last) > 0 {
		text += "; the last it said:\n  " + strings.Join(c.last, "\n  ")
	}
	return text
}

// prefixedLines writes whole lines of several processes to one place.
type prefixedLines struct {
	colour bool

	mu sync.Mutex // guards w
	w  io.Writer
}

// write never fails: when the reader of the log has gone away, the processes
// work on.
func (p *prefixedLines) write(number int, name, line string) {
	prefix := name + " | "
	if p.colour {
		prefix = fmt.Sprintf("\x1b[%dm%s\x1b[0m", 31+(number+1)%6, prefix)
	}
	p.say(prefix + line + "\n")
}

func (p *prefixedLines) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.w, text)
}
