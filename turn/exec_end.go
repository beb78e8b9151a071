package turn

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// drainLimit is how long the last output of an ended program is waited for. Its
// pipes close with its last process, unless it gave them to a stranger.
const drainLimit = time.Second

// end ends the program in the way that the first call asks for, and everything
// it started, and waits for the goroutines. Nil means that nothing is left.
func (c *child) end(ctx context.Context, how farewell) error {
	// An end that has begun is seen through, whatever becomes of ctx.
	c.endOnce.Do(func() { c.endErr = c.endNow(context.WithoutCancel(ctx), how) })
	return c.endErr
}

func (c *child) endNow(ctx context.Context, how farewell) error {
	close(c.quit)
	c.closeStdin(how)
	c.exit = exitStatus{code: -1}
	if how == farewellPolite && c.awaitExit() {
		c.exit.own = true
	} else {
		// The keeper may be gone already; then there is nobody to tell.
		_, _ = c.pipes.control.Write([]byte{orderTerminate})
	}
	var err error
	switch {
	case !c.awaitKeeper():
		err = &childrenAliveError{what: "the keeper did not end when killed", pids: []int{c.keeper.Process.Pid}}
	case !c.clean:
		err = c.endByMark(ctx)
	}
	drained := time.Now().Add(drainLimit)
	_ = c.pipes.stdout.SetReadDeadline(drained)
	_ = c.pipes.stderr.SetReadDeadline(drained)
	<-c.reading
	<-c.logging
	closeAll([]*os.File{c.pipes.stdout, c.pipes.stderr, c.pipes.control, c.pipes.status})
	return err
}

// closeStdin says the last word, if there is one, and closes stdin. A program
// that does not read misses it.
func (c *child) closeStdin(how farewell) {
	_ = c.pipes.stdin.SetWriteDeadline(time.Now().Add(lastWrite))
	if how == farewellFenced {
		c.out <- fencedLine
	}
	close(c.out)
	<-c.writing
}

// awaitExit gives a program that has answered, or that says nothing any more,
// its time to exit. It reports false when it did not.
func (c *child) awaitExit() bool {
	late := time.NewTimer(politeGrace)
	defer late.Stop()
	select {
	case c.exit = <-c.exited:
		return true
	case <-late.C:
		c.log.Warn("runner_program_lingered", "after", politeGrace)
		return false
	case <-c.gone:
	}
	// The keeper is gone; its last report may still be there to read.
	select {
	case c.exit = <-c.exited:
		return true
	default:
		c.exit.lost = true
		return false
	}
}

// awaitKeeper waits until the keeper was reaped, and kills it when it does not
// come to an end: the program's parent-death signal then ends the program.
func (c *child) awaitKeeper() bool {
	late := time.NewTimer(endLimit)
	defer late.Stop()
	select {
	case <-c.gone:
		return true
	case <-late.C:
	}
	_ = c.keeper.Process.Kill()
	late.Reset(killLimit)
	select {
	case <-c.gone:
		return true
	case <-late.C:
		return false
	}
}

// endByMark is for when the keeper could not say that nothing is left: it was
// killed, or it gave up.
func (c *child) endByMark(ctx context.Context) error {
	_, err := endMarked(ctx, c.mark, 0)
	var alive []int
	for _, field := range strings.Fields(c.alive) {
		// Another user's process carries no mark we may read; look for its pid.
		if pid, bad := strconv.Atoi(field); bad == nil {
			if p, ok := readProcess(pid); ok && !p.zombie {
				alive = append(alive, pid)
			}
		}
	}
	if len(alive) > 0 {
		err = errors.Join(err, &childrenAliveError{what: "the keeper could not end them", pids: alive})
	}
	return err
}

// watch reads the keeper's reports and reaps it.
func (c *child) watch() {
	defer close(c.gone)
	told := false // started has its value
	for s := bufio.NewScanner(c.pipes.status); s.Scan(); {
		word, rest, _ := strings.Cut(s.Text(), " ")
		number, _ := strconv.Atoi(rest)
		switch word {
		case statusUp:
			told = true
			c.started <- nil
		case statusFailed:
			told = true
			c.started <- errors.New(rest)
			c.clean = true // there was nothing to end
		case statusExit:
			c.exited <- exitStatus{code: number}
		case statusSignal:
			c.exited <- exitStatus{code: -1, signal: syscall.Signal(number)}
		case statusClean:
			c.clean = true
		case statusAlive:
			c.alive = rest
		}
	}
	_ = c.keeper.Wait()
	if !told {
		c.started <- errors.New("this binary does not act as a keeper: its main must call turn.KeepIfAsked first")
	}
}
