package robust_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// envNode tells an agent on which node it runs: the node passes it on.
const envNode = "ROBUST_NODE"

// clockFileEnv and deviation are those of the clock package's test build, of
// which no normal build has a trace.
const clockFileEnv = "TENURE_TEST_CLOCK_FILE"

type deviation struct {
	RawOffset       time.Duration `json:"raw_offset"`
	MonotonicOffset time.Duration `json:"monotonic_offset"`
	BootOffset      time.Duration `json:"boot_offset"`
	Rate            float64       `json:"rate"`
}

// How the fleet is made up.
const (
	brokers    = 3
	nodeCount  = 6
	ttl        = 15 * time.Second // the shortest that a replicated stream takes
	againAfter = time.Second      // a supervisor's pause before it starts a node again
)

// node is one place in the fleet: its disk, its network, its clocks, and the
// process that runs there now, if any.
type node struct {
	i         int
	id, ip    string
	ns        string // file of its network namespace; "" without a network
	dir       string // its disk
	wallFile  string
	clockFile string
	apiPort   int
	args      []string
	w         *world

	mu       sync.Mutex
	cmd      *exec.Cmd
	gone     chan struct{} // closed when cmd has ended
	wanted   bool          // to be started again when it ends
	once     []string      // further arguments of the next start
	starts   int
	quick    int // ends in a row, each soon after its start
	bent     deviation
	exits    map[string]int
	stopped  []span // when its process could not run
	hidden   []span // of these, without its clocks knowing
	diskFull bool
}

// span is a stretch of CLOCK_MONOTONIC; to is 0 while it goes on.
type span struct{ from, to int64 }

func (n *node) url() string { return fmt.Sprintf("http://%s:%d", n.ip, n.apiPort) }

// start starts the process, and again whenever it ends while it is wanted.
func (n *node) start(more ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted, n.once = true, more
	n.launch()
}

// launch runs the process; the caller holds mu.
func (n *node) launch() {
	if n.cmd != nil || !n.wanted {
		return
	}
	line := append([]string{n.w.tenure, "run"}, append(append([]string{}, n.args...), n.once...)...)
	n.once = nil
	if n.ns != "" {
		line = append([]string{"nsenter", "--net=" + n.ns, "--"}, line...)
	}
	log, err := os.OpenFile(filepath.Join(n.w.dir, n.id+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		n.w.fail("%s: %v", n.id, err)
		return
	}
	defer log.Close() // the process has its own
	n.starts++
	fmt.Fprintf(log, "==== start %d at %s\n", n.starts, n.w.stamp())
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), envNode+"="+n.id, clockFileEnv+"="+n.clockFile, "ROBUST_WALL_FILE="+n.wallFile, "TMPDIR="+n.dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		n.w.fail("%s: start: %v", n.id, err)
		return
	}
	gone, began := make(chan struct{}), time.Now()
	n.cmd, n.gone = cmd, gone
	n.w.waiters.Go(func() { n.attend(cmd, gone, began) })
}

// attend waits for the process to end and starts another when one is wanted.
func (n *node) attend(cmd *exec.Cmd, gone chan struct{}, began time.Time) {
	_ = cmd.Wait()
	n.mu.Lock()
	how := cmd.ProcessState.String()
	if n.diskFull {
		how += " (disk full)"
	}
	n.exits[how]++
	n.cmd = nil
	again := n.wanted
	close(gone)
	if again {
		if time.Since(began) > 10*againAfter {
			n.quick = 0
		}
		n.quick++
	}
	first := n.quick == 1
	n.mu.Unlock()
	if !again {
		return
	}
	if first {
		n.w.say("%s ended by itself: %s; it is started again until it stands", n.id, how)
	}
	<-time.After(againAfter)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.launch()
}

// end sends the signal and waits until the process has ended; limit 0 is for a
// signal that cannot be waited out. It is not started again.
func (n *node) end(s syscall.Signal, limit time.Duration) error {
	n.mu.Lock()
	n.wanted = false
	cmd, gone := n.cmd, n.gone
	n.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = cmd.Process.Signal(s)
	if limit == 0 {
		<-gone
		return nil
	}
	select {
	case <-gone:
		return nil
	case <-time.After(limit):
		_ = cmd.Process.Signal(syscall.SIGKILL)
		<-gone
		return fmt.Errorf("%s did not end within %v of %v and was killed", n.id, limit, s)
	}
}

// pause stops the process where it is.
func (n *node) pause() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return false
	}
	n.stopped = append(n.stopped, span{from: monotonic()})
	return n.cmd.Process.Signal(syscall.SIGSTOP) == nil
}

// resume lets it go on. hide takes the pause out of its clocks.
func (n *node) resume(hide bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	last := &n.stopped[len(n.stopped)-1]
	last.to = monotonic()
	if hide {
		pause := time.Duration(last.to - last.from)
		n.bent.RawOffset -= pause
		n.bent.MonotonicOffset -= pause
		n.bent.BootOffset -= pause
		n.hidden = append(n.hidden, *last)
		if err := n.bend(); err != nil {
			return err
		}
	}
	if n.cmd == nil {
		return nil // it was killed meanwhile
	}
	return n.cmd.Process.Signal(syscall.SIGCONT)
}

// bend writes the clock file; the caller holds mu.
func (n *node) bend() error {
	raw, err := json.Marshal(n.bent)
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.clockFile+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(n.clockFile+".new", n.clockFile)
}

func (n *node) bendBy(change func(*deviation)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.bent)
	return n.bend()
}

// stepWall sets by how many seconds the process's wall clock is off. The page is
// shared with it: the file must keep its place.
func (n *node) stepWall(seconds int64) error {
	f, err := os.OpenFile(n.wallFile, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(seconds)), 0)
	return err
}

// fill leaves the disk without room; drain gives the room back.
func (n *node) fill() error {
	n.mu.Lock()
	n.diskFull = true
	n.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(n.dir, "filler"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 1<<20); ; {
		_, err := f.Write(block)
		if errors.Is(err, syscall.ENOSPC) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (n *node) drainDisk() error {
	err := os.Remove(filepath.Join(n.dir, "filler"))
	n.mu.Lock()
	n.diskFull = false
	n.mu.Unlock()
	return err
}

// logText is all that the node's processes logged.
func (n *node) logText() string {
	raw, err := os.ReadFile(filepath.Join(n.w.dir, n.id+".log"))
	if err != nil {
		n.w.fail("%s: %v", n.id, err)
	}
	return strings.ToValidUTF8(string(raw), "?")
}
