package turn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startLimit bounds how long a keeper may take to report for duty.
	startLimit = 30 * time.Second
	// lastWrite is how long a program that is not reading holds up its end.
	lastWrite = 250 * time.Millisecond
	// politeGrace is how long a program that has answered may take to exit.
	politeGrace = 2 * time.Second
	// endLimit bounds an end: the keeper's own limits, and some slack on a busy
	// machine. Past it the keeper itself is killed.
	endLimit = termGrace + killLimit + 3*time.Second
)

// farewell says how a program is ended.
type farewell int

const (
	farewellPolite    farewell = iota // it has answered: close stdin, let it exit
	farewellTerminate                 // close stdin, SIGTERM, SIGKILL
	farewellFenced                    // the same, the fenced line first
)

// exitStatus is how a program ended.
type exitStatus struct {
	own    bool // by itself: it was not told to
	lost   bool // its keeper is gone, nobody saw it
	code   int  // -1 without one
	signal syscall.Signal
}

func (s exitStatus) good() bool { return s.code == 0 && s.signal == 0 }

// child is a running program with its keeper and the goroutines that serve its
// pipes: one writes stdin, one reads stdout, one stderr, one the keeper's
// reports. end stops them all and waits for them.
type child struct {
	mark   string
	log    *slog.Logger
	keeper *exec.Cmd
	pipes  pipes
	stderr *stderrLog // read after end

	out   chan []byte   // lines for stdin; closed by end. Its reader always drains it
	lines chan []byte   // lines of stdout; closed by the reader at the end of stdout
	quit  chan struct{} // closed by end: nobody reads lines any more
	// tooLong is set before lines closes: the next line was over MaxLine.
	tooLong bool

	started chan error      // one value: nil once the program runs
	exited  chan exitStatus // at most one value: as the keeper saw it
	gone    chan struct{}   // closed when the keeper was reaped
	clean   bool            // before gone: the keeper saw nothing left
	alive   string          // before gone: what it could not end

	writing, reading, logging chan struct{} // closed as those goroutines end

	endOnce sync.Once
	exit    exitStatus // set by end
	endErr  error      // set by end: nil when nothing is left
}

// pipes are the node's ends.
type pipes struct {
	stdin, control         *os.File
	stdout, stderr, status *os.File
}

// start starts the program's keeper; awaitStart tells whether the program runs.
func (e Exec) start(req Request) (*child, error) {
	if len(e.Program) == 0 || e.Program[0] == "" {
		return nil, &StartError{"an empty program", errors.New("the runner names none")}
	}
	name := e.name()
	path, err := exec.LookPath(e.Program[0])
	if err != nil {
		return nil, &StartError{name, err}
	}
	mark, err := e.Mark.forRun(req.Seat, req.Epoch)
	if err != nil {
		return nil, &StartError{name, err}
	}
	log := e.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("seat", req.Seat, "epoch", req.Epoch)
	// argv[0] makes it a keeper; /proc/self/exe is this very binary, also after a
	// newer one was put in its place.
	cmd := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        append([]string{keeperName, path}, e.Program...),
		Env:         childEnv(os.Environ(), mark),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	c := &child{
		mark: mark, log: log, keeper: cmd, stderr: &stderrLog{log: log},
		out: make(chan []byte), lines: make(chan []byte), quit: make(chan struct{}),
		started: make(chan error, 1), exited: make(chan exitStatus, 1), gone: make(chan struct{}),
		writing: make(chan struct{}), reading: make(chan struct{}), logging: make(chan struct{}),
	}
	if err := c.launch(); err != nil {
		return nil, &StartError{name, err}
	}
	return c, nil
}

// childEnv is the node's environment without the node's own settings, and with
// the mark of the run.
func childEnv(environ []string, mark string) []string {
	env := make([]string, 0, len(environ)+1)
	for _, entry := range environ {
		if !strings.HasPrefix(entry, "TENURE_") {
			env = append(env, entry)
		}
	}
	return append(env, markName+"="+mark)
}

// launch makes the pipes, starts the keeper and the goroutines.
func (c *child) launch() (err error) {
	var theirs, ours []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	stdinR, stdinW := pipe()
	stdoutR, stdoutW := pipe()
	stderrR, stderrW := pipe()
	controlR, controlW := pipe()
	statusR, statusW := pipe()
	theirs = []*os.File{stdinR, stdoutW, stderrW, controlR, statusW}
	ours = []*os.File{stdinW, stdoutR, stderrR, controlW, statusR}
	if err == nil {
		c.keeper.Stdin, c.keeper.Stdout, c.keeper.Stderr = stdinR, stdoutW, stderrW
		c.keeper.ExtraFiles = []*os.File{keeperControl - 3: controlR, keeperStatus - 3: statusW}
		err = c.keeper.Start()
	}
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return err
	}
	c.pipes = pipes{stdin: stdinW, stdout: stdoutR, stderr: stderrR, control: controlW, status: statusR}
	go c.write()
	go c.read()
	go func() {
		defer close(c.logging)
		c.stderr.readFrom(c.pipes.stderr)
	}()
	go c.watch()
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // a nil file, where a pipe could not be made, only says so
	}
}

// awaitStart waits for the keeper's first word: nil means that the program runs.
func (c *child) awaitStart(ctx context.Context) error {
	late := time.NewTimer(startLimit)
	defer late.Stop()
	select {
	case err := <-c.started:
		return err
	case <-late.C:
		return fmt.Errorf("its keeper did not report within %v", startLimit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write feeds stdin and closes it in the end. After a failed write it only
// drains: half a line must not be continued.
func (c *child) write() {
	defer close(c.writing)
	defer c.pipes.stdin.Close()
	broken := false
	for line := range c.out {
		if !broken {
			_, err := c.pipes.stdin.Write(line)
			broken = err != nil
		}
	}
}

// read splits stdout into lines. It goes on reading when nobody listens, so that
// a program cannot hang in a write while it is being ended.
func (c *child) read() {
	defer close(c.reading)
	c.split()
	close(c.lines)
	_, _ = io.Copy(io.Discard, c.pipes.stdout)
}

func (c *child) split() {
	s := bufio.NewScanner(c.pipes.stdout)
	s.Buffer(nil, MaxLine+2) // the newline, and one byte over the limit to see it
	for s.Scan() {
		if len(s.Bytes()) > MaxLine {
			c.tooLong = true
			return
		}
		select {
		case c.lines <- bytes.Clone(s.Bytes()):
		case <-c.quit:
			return
		}
	}
	c.tooLong = errors.Is(s.Err(), bufio.ErrTooLong)
}
