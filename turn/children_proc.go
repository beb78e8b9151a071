package turn

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// process is one row of the process table. A pid alone names nothing for long;
// pid and start time together name one process for ever.
type process struct {
	pid, ppid int
	start     uint64 // clock ticks since boot
	zombie    bool   // ended, waiting for its parent: it acts no more
}

// processTable reads all processes this one can see. One that ends while the
// table is read is left out.
func processTable() (map[int]process, error) {
	names, err := readNames("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	table := make(map[int]process, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process: /proc/meminfo and the like
		}
		if p, ok := readProcess(pid); ok {
			table[pid] = p
		}
	}
	return table, nil
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// readProcess reads /proc/<pid>/stat, see proc_pid_stat(5).
func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return process{}, false
	}
	// The command name stands in parentheses and may contain any byte, closing
	// parentheses too: the fields that follow start behind the last one.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, ppid, start = 0, 1, 19
	if len(fields) <= start {
		return process{}, false
	}
	p := process{pid: pid, zombie: fields[state][0] == 'Z' || fields[state][0] == 'X'}
	var err1, err2 error
	p.ppid, err1 = strconv.Atoi(string(fields[ppid]))
	p.start, err2 = strconv.ParseUint(string(fields[start]), 10, 64)
	return p, err1 == nil && err2 == nil
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// descendants lists the live processes below the roots, the roots left out.
func descendants(table map[int]process, roots ...int) []process {
	children := make(map[int][]process, len(table))
	for _, p := range table {
		children[p.ppid] = append(children[p.ppid], p)
	}
	seen := make(map[int]bool, len(roots))
	for _, r := range roots {
		seen[r] = true
	}
	var found []process
	for next := roots; len(next) > 0; {
		pid := next[0]
		next = next[1:]
		for _, child := range children[pid] {
			if seen[child.pid] {
				continue
			}
			seen[child.pid] = true
			next = append(next, child.pid)
			if !child.zombie {
				found = append(found, child)
			}
		}
	}
	return found
}

// openProcess pins p down: what is done through the descriptor happens to p or
// to nobody. It reports false when p is gone.
func openProcess(p process) (fd int, ok bool) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return 0, false
	}
	if now, ok := readProcess(p.pid); !ok || now.start != p.start {
		_ = unix.Close(fd) // the pid is another's by now
		return 0, false
	}
	return fd, true
}

// killProcess sends SIGKILL to p. Nil means sent, or nobody there to get it.
func killProcess(p process) error {
	fd, ok := openProcess(p)
	if !ok {
		return nil
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", p.pid, err)
	}
	return nil
}

// awaitEnd waits until all of ps have ended, at most until deadline, and
// returns those that have not.
func awaitEnd(ps []process, deadline time.Time) []process {
	var left []process
	for _, p := range ps {
		fd, ok := openProcess(p)
		if !ok {
			continue
		}
		if !pollEnd(fd, deadline) {
			left = append(left, p)
		}
		_ = unix.Close(fd)
	}
	return left
}

// pollEnd waits for the process behind a pidfd, at most until deadline.
func pollEnd(fd int, deadline time.Time) bool {
	for {
		wait := max(0, time.Until(deadline))
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		// Rounded up: 0 would ask without waiting while time is left.
		n, err := unix.Poll(fds, int((wait+time.Millisecond-1)/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n > 0:
			return err == nil
		case wait == 0:
			return false
		}
	}
}
