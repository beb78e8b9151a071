package turn_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seat-tenure/tenure/turn"
)

// startNode starts a node with three programs at work, one of them deaf to
// SIGTERM, all with children and grandchildren in sessions of their own.
func startNode(t *testing.T, dataDirID string) (node *exec.Cmd, stdin io.WriteCloser, w *witness, keepers []int) {
	t.Helper()
	node = exec.Command(os.Args[0], "behave", "node", dataDirID)
	node.Stderr = os.Stderr
	stdin, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		node.Process.Kill()
		node.Wait()
	})
	w = &witness{t: t}
	lines := bufio.NewScanner(stdout)
	for range 3 {
		if !lines.Scan() {
			t.Fatal("the node did not start its programs")
		}
		var pids []int
		if err := json.Unmarshal(lines.Bytes(), &pids); err != nil {
			t.Fatal(err)
		}
		w.pin(pids...)
		w.pids = pids
		keepers = append(keepers, pids[3])
	}
	return node, stdin, w, keepers
}

// A node that is killed, or that exits as wedged, takes all of its programs and
// all they started with it, within a bounded time and with nobody's help.
func TestCase32ChildrenDieWithTheNode(t *testing.T) {
	for name, end := range map[string]func(node *exec.Cmd, stdin io.WriteCloser) error{
		"killed": func(node *exec.Cmd, _ io.WriteCloser) error { return node.Process.Kill() },
		"exit 75": func(_ *exec.Cmd, stdin io.WriteCloser) error {
			_, err := io.WriteString(stdin, "wedged")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			node, stdin, w, _ := startNode(t, "case32-"+name[:4])
			if err := end(node, stdin); err != nil {
				t.Fatal(err)
			}
			stdin.Close()
			w.allGone(12, 10*time.Second)
		})
	}
}

// A successor on the same data directory does not go on before the leftovers are
// gone: it waits for keepers that are at work and sees to it where one is stuck.
func TestCase32SuccessorSweepsLeftovers(t *testing.T) {
	t.Run("keepers at work", func(t *testing.T) {
		node, _, w, _ := startNode(t, "case32-sweep")
		if err := node.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := sweepAfter(t, node, "case32-sweep"); err != nil {
			t.Fatal(err)
		}
		w.allGone(12, 0)
	})
	t.Run("keeper stuck", func(t *testing.T) {
		node, _, w, keepers := startNode(t, "case32-stuck")
		if err := unix.Kill(keepers[1], unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := node.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := sweepAfter(t, node, "case32-stuck"); err != nil {
			t.Fatal(err)
		}
		w.allGone(12, 0)
	})
}

// Killed together with its node, a keeper still takes its program along: the
// parent-death signal needs nobody alive. What had detached is the sweep's.
func TestCase32ProgramDiesWithItsKeeper(t *testing.T) {
	node, _, w, keepers := startNode(t, "case32-both")
	programs := &witness{t: t, fds: map[int]int{w.pids[0]: w.fds[w.pids[0]]}}
	for _, k := range keepers {
		if err := unix.Kill(k, unix.SIGSTOP); err != nil { // none acts before it is killed
			t.Fatal(err)
		}
	}
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, k := range keepers {
		if err := unix.Kill(k, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	programs.allGone(1, 10*time.Second)
	if err := sweepAfter(t, node, "case32-both"); err != nil {
		t.Fatal(err)
	}
}

func sweepAfter(t *testing.T, node *exec.Cmd, dataDirID string) error {
	node.Wait() // the successor has the lock of the data directory: the node is dead
	_, err := turn.SweepLeftovers(t.Context(), dataDirID)
	return err
}

// A sweep ends what carries the data directory's mark, and what that started;
// it leaves everybody else alone, near misses too.
func TestSweepEndsOnlyItsOwn(t *testing.T) {
	w := &witness{t: t}
	mine := startMarked(t, w, "TENURE_CHILD=dir-1/node-0:00000001/writer/3/1/")
	if err := unix.Setpriority(unix.PRIO_PROCESS, mine, 1); err != nil {
		t.Fatalf("the marked process is not there: %v", err)
	}
	others := &witness{t: t}
	startMarked(t, others, "TENURE_CHILD=dir-10/node-0:00000001/writer/3/1/")
	startMarked(t, others, "TENURE_CHILD=dir-2/node-0:00000001/dir-1/3/1/")
	startMarked(t, others, "OTHER_TENURE_CHILD=dir-1/node-0:00000001/writer/3/1/")
	startMarked(t, others, "ACME=1")

	ended, err := turn.SweepLeftovers(t.Context(), "dir-1")
	if err != nil || ended != 2 {
		t.Errorf("ended %d, %v; want the process and its child", ended, err)
	}
	w.allGone(2, 0)
	for pid, fd := range others.fds {
		if hasEnded(t, fd, 0) {
			t.Errorf("process %d was none of the sweep's and is gone", pid)
		}
	}
	if ended, err := turn.SweepLeftovers(t.Context(), "dir-1"); err != nil || ended != 0 {
		t.Errorf("a second sweep ended %d, %v", ended, err)
	}
	if _, err := turn.SweepLeftovers(t.Context(), ""); err == nil {
		t.Error("a sweep without a data directory was not refused")
	}
}

// A teardown that is tried again ends what is left of its own seat's runs, of
// no other seat's and of no other incarnation's (H6).
func TestH6EndChildrenEndsOneSeat(t *testing.T) {
	w, others := &witness{t: t}, &witness{t: t}
	startMarked(t, w, "TENURE_CHILD=dir-3/node-0:00000001/writer/3/1/")
	startMarked(t, w, "TENURE_CHILD=dir-3/node-0:00000001/writer/4/9/")
	startMarked(t, others, "TENURE_CHILD=dir-3/node-0:00000001/writer2/3/1/")
	startMarked(t, others, "TENURE_CHILD=dir-3/node-0:00000002/writer/3/1/")
	mark := turn.Mark{DataDir: "dir-3", Incarnation: "node-0:00000001"}
	if err := turn.EndChildren(t.Context(), mark, "writer"); err != nil {
		t.Fatal(err)
	}
	w.allGone(4, 0)
	for pid, fd := range others.fds {
		if hasEnded(t, fd, 0) {
			t.Errorf("process %d is another's and is gone", pid)
		}
	}
}

// startMarked starts a process with that environment alone, which starts another
// one with none, and pins both.
func startMarked(t *testing.T, w *witness, env string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "behave", "marked-parent")
	cmd.Env = []string{env}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.pin(cmd.Process.Pid)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	w.pin(child)
	return cmd.Process.Pid
}
