package turn

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A keeper is a small process between the node and one program. It is this same
// binary under another name, and it exists for one thing: no signal and no
// handler runs in a node that is killed with SIGKILL, so something that outlives
// the node by a moment must end the node's processes.
//
//   - It hears of the node's death by its control pipe closing.
//   - It is a child subreaper: whatever the program starts, and however it
//     detaches (own group, own session, a double fork, an empty environment),
//     ends up below the keeper when its parents are gone. So "no children left"
//     is an answer of the kernel's, not a guess.
//   - The program carries a parent-death signal in case the keeper is killed. It
//     fires when the thread that forked ends, so the keeper never lets go of its.
//
// The program's stdin, stdout and stderr go straight to the node.
const keeperName = "tenure-keeper"

// Descriptors of a keeper beside the program's three.
const (
	keeperControl = 3 // reads: orders of the node; closed means that the node is dead
	keeperStatus  = 4 // writes: what happened, one line each
)

// Orders and reports between node and keeper. They never leave one binary, so
// they carry no version.
const (
	orderTerminate = 'T'

	statusUp     = "up"     // the program runs
	statusFailed = "failed" // <why>: the program could not be started
	statusExit   = "exit"   // <code>: the program ended
	statusSignal = "signal" // <number>: the program was ended
	statusClean  = "clean"  // nothing of the run is left
	statusAlive  = "alive"  // <pids>: gave up on these
)

const (
	// termGrace is how long a program has between SIGTERM and SIGKILL.
	termGrace = 2 * time.Second
	// killLimit bounds how long a keeper kills before it reports who would not
	// die: another user's process, or one stuck in the kernel.
	killLimit = 5 * time.Second
	// killAgain is how long the keeper waits for news before it looks for new
	// processes while it kills.
	killAgain = 100 * time.Millisecond
)

// KeepIfAsked turns this process into a keeper when it was started as one, and
// then never returns. A binary that uses Exec calls it first in main, and a test
// binary first in TestMain.
func KeepIfAsked() {
	if len(os.Args) < 3 || os.Args[0] != keeperName {
		return
	}
	// Never unlocked: see the parent-death signal above.
	runtime.LockOSThread()
	os.Exit(keep(os.Args[1], os.Args[2:]))
}

// keeper is the state of a keeper's one goroutine. Only that goroutine reaps,
// so a child's pid stays the child's while it is looked at.
type keeper struct {
	status  *os.File
	program int // pid, 0 once it was reaped
	killing bool
	empty   bool // the kernel says there is no child left
}

func keep(path string, argv []string) int {
	k := &keeper{status: os.NewFile(keeperStatus, "status")}
	changed, err := k.prepare()
	if err == nil {
		err = k.start(path, argv)
	}
	if err != nil {
		k.say(statusFailed, err)
		return 1
	}
	k.say(statusUp)
	return k.run(changed, readOrders(os.NewFile(keeperControl, "control")))
}

// prepare makes the process fit to keep, before there is anything to keep.
func (k *keeper) prepare() (changed <-chan os.Signal, err error) {
	// The program must not inherit the pipes of the keeper, nor anything that
	// whoever started the node left open.
	unix.CloseOnExec(keeperControl)
	unix.CloseOnExec(keeperStatus)
	err = unix.CloseRange(keeperStatus+1, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("close what was inherited: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a child subreaper: %w", err)
	}
	// A stop meant for the whole service must reach the program, not take the
	// keeper away first. Caught instead of ignored: a program would inherit the
	// ignoring. Nobody reads the channel.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	// One slot is enough: a dropped signal has one waiting before it.
	sigchld := make(chan os.Signal, 1)
	signal.Notify(sigchld, unix.SIGCHLD)
	return sigchld, nil
}

// start runs the program and lets go of its three descriptors, so that they
// close when the program closes them.
func (k *keeper) start(path string, argv []string) error {
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		// A session is a process group too, and one that no terminal's Ctrl-C
		// reaches: the node decides when a turn ends.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	k.program = pid
	_, _, _ = os.Stdin.Close(), os.Stdout.Close(), os.Stderr.Close()
	return nil
}

// readOrders passes the node's orders on and closes the channel when the node is
// gone. Its goroutine lives as long as the process.
func readOrders(control *os.File) <-chan byte {
	orders := make(chan byte)
	go func() {
		defer close(orders)
		order := make([]byte, 1)
		for {
			if n, err := control.Read(order); n == 0 || err != nil {
				return
			}
			orders <- order[0]
		}
	}()
	return orders
}

// run waits until the program ended or is to end, and then until nothing of it
// is left.
func (k *keeper) run(changed <-chan os.Signal, orders <-chan byte) int {
	var graceOver, giveUp, again <-chan time.Time
	for {
		select {
		case <-changed:
			k.reap()
		case order, ok := <-orders:
			if !ok {
				orders, k.killing = nil, true
			} else if order == orderTerminate && k.program != 0 && graceOver == nil {
				_ = unix.Kill(-k.program, unix.SIGTERM)
				graceOver = time.After(termGrace)
			}
		case <-graceOver:
			k.killing = true
		case <-giveUp:
			return k.giveUp()
		case <-again:
		}
		if k.empty {
			k.say(statusClean)
			return 0
		}
		// What outlives its program is not waited for.
		if k.killing = k.killing || k.program == 0; k.killing {
			if giveUp == nil {
				giveUp = time.After(killLimit)
			}
			k.kill()
			again = time.After(killAgain)
		}
	}
}

// reap collects the children that ended.
func (k *keeper) reap() {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			k.empty = true
			return
		case err != nil || pid == 0:
			return
		}
		if pid != k.program {
			continue
		}
		k.program = 0
		if ws.Signaled() {
			k.say(statusSignal, int(ws.Signal()))
		} else {
			k.say(statusExit, ws.ExitStatus())
		}
	}
}

// kill sends SIGKILL to everything below the keeper. What is forked meanwhile is
// found by the next call; errors show as processes that stay.
func (k *keeper) kill() {
	if k.program != 0 {
		// The whole group at one instant: a fork bomb gets no turn in between.
		_ = unix.Kill(-k.program, unix.SIGKILL)
	}
	table, err := processTable()
	if err != nil {
		return
	}
	for _, p := range descendants(table, os.Getpid()) {
		_ = killProcess(p)
	}
}

func (k *keeper) giveUp() int {
	var pids []string
	if table, err := processTable(); err == nil {
		for _, p := range descendants(table, os.Getpid()) {
			pids = append(pids, fmt.Sprint(p.pid))
		}
	}
	k.say(statusAlive, strings.Join(pids, " "))
	return 1
}

// say reports to the node. A node that is gone reads nothing, and that is fine.
func (k *keeper) say(words ...any) {
	fmt.Fprintln(k.status, words...)
}
