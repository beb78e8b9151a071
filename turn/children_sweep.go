package turn

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	// sweepKeeperGrace is how long a sweep lets the keepers of a dead node finish
	// by themselves: they know all of their processes, a sweep only marked ones.
	sweepKeeperGrace = 3 * time.Second
	// sweepLimit bounds the killing that follows.
	sweepLimit = 5 * time.Second
)

// SweepLeftovers ends the processes that a dead node left behind on this
// machine: those marked with the data directory's id, and everything below
// them. Call it with the lock of that data directory held and before the first
// Run, since every marked process is a leftover only then. It returns how many
// it ended, and ErrChildrenAlive when some would not.
//
// It touches nothing else: a process counts only when it belongs to this user
// and the mark stood in its environment when its program was loaded, or when it
// descends from such a process. What it cannot see is a process that shed the
// mark and lost its marked parents, after both its node and its keeper were
// killed.
func SweepLeftovers(ctx context.Context, dataDirID string) (ended int, err error) {
	if err := markPart("data directory id", dataDirID); err != nil {
		return 0, err
	}
	return endMarked(ctx, dataDirID+"/", sweepKeeperGrace)
}

// EndChildren ends whatever is left of the runs of one seat in this process, and
// returns nil when it saw that nothing is. It is for a teardown that met
// ErrChildrenAlive and is tried again (spec H6); no run of the seat may be going
// on.
func EndChildren(ctx context.Context, m Mark, seat string) error {
	prefix, err := m.forSeat(seat)
	if err != nil {
		return err
	}
	_, err = endMarked(ctx, prefix, 0)
	return err
}

// endMarked looks and kills until a look finds nothing: a process may start
// another one between the look and its end.
func endMarked(ctx context.Context, prefix string, keeperGrace time.Duration) (ended int, err error) {
	if keeperGrace > 0 {
		found, err := findMarked(prefix)
		if err != nil {
			return 0, err
		}
		awaitEnd(keepersOf(found), earlier(ctx, time.Now().Add(keeperGrace)))
	}
	deadline := earlier(ctx, time.Now().Add(sweepLimit))
	for {
		found, err := findMarked(prefix)
		if err != nil || len(found) == 0 {
			return ended, err
		}
		var errs []error
		for _, p := range found {
			errs = append(errs, killProcess(p))
		}
		left := awaitEnd(found, deadline)
		ended += len(found) - len(left)
		if len(left) > 0 || !time.Now().Before(deadline) {
			if len(left) == 0 {
				left = found // each look found new ones
			}
			alive := &childrenAliveError{what: "they did not end when killed", pids: pidsOf(left)}
			return ended, errors.Join(append(errs, alive, ctx.Err())...)
		}
	}
}

// findMarked lists the live processes whose mark begins with prefix, and all
// below them, without this process.
func findMarked(prefix string) ([]process, error) {
	table, err := processTable()
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	var roots []int
	var found []process
	for pid, p := range table {
		if pid != self && !p.zombie && strings.HasPrefix(markOf(pid), prefix) {
			roots = append(roots, pid)
			found = append(found, p)
		}
	}
	// A node that was itself started by a leftover is no leftover, nor is what it
	// started: without its row nothing is found through it.
	delete(table, self)
	return append(found, descendants(table, roots...)...), nil
}

// markOf reads a process's mark, "" when it has none, belongs to another user,
// or cannot be read. The caller pins the process by its start time, which it
// read before this and compares after.
func markOf(pid int) string {
	info, err := os.Stat(procFile(pid, ""))
	if err != nil {
		return ""
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return ""
	}
	env, err := os.ReadFile(procFile(pid, "environ"))
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if mark, ok := bytes.CutPrefix(entry, []byte(markName+"=")); ok {
			return string(mark)
		}
	}
	return ""
}

func keepersOf(ps []process) []process {
	var keepers []process
	for _, p := range ps {
		line, err := os.ReadFile(procFile(p.pid, "cmdline"))
		if err == nil && bytes.HasPrefix(line, []byte(keeperName+"\x00")) {
			keepers = append(keepers, p)
		}
	}
	return keepers
}

func pidsOf(ps []process) []int {
	pids := make([]int, 0, len(ps))
	for _, p := range ps {
		pids = append(pids, p.pid)
	}
	return pids
}

// earlier is the sooner of ctx's deadline and t; a ctx that ended already is now.
func earlier(ctx context.Context, t time.Time) time.Time {
	if ctx.Err() != nil {
		return time.Now()
	}
	if d, ok := ctx.Deadline(); ok && d.Before(t) {
		return d
	}
	return t
}
