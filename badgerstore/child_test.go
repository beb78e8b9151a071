package badgerstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// What a child can be told to do: the first word of childEnv, then the number of
// events in its log, then a directory.
const (
	childProject = "project" // projects all, tells each commit, and stays
	childFlood   = "flood"   // the same, as many at once as there are
	childKill    = "kill"    // projects all, and kills itself without closing
	childRead    = "read"    // opens each directory of its standard input, and judges it
)

// childTimeout ends a child that hangs.
const childTimeout = 30 * time.Minute

// child starts the test binary as a process of its own.
func child(t *testing.T, what string, events int, dir string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), childTimeout)
	t.Cleanup(cancel)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", childEnv, what, events, dir))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// runChild is the child's main.
func runChild(line string) int {
	var what, dir string
	var n int
	if _, err := fmt.Sscan(line, &what, &n, &dir); err != nil {
		fmt.Fprintln(os.Stdout, "child:", err)
		return 1
	}
	ctx := context.Background() // the parent ends a child that hangs
	switch what {
	case childProject, childFlood, childKill:
		if err := childProjects(ctx, dir, n, what); err != nil {
			fmt.Fprintln(os.Stdout, "child:", err)
			return 1
		}
	case childRead:
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Fprintln(os.Stdout, "opening", in.Text())
			fmt.Fprintln(os.Stdout, "result", judge(ctx, in.Text(), n))
		}
	}
	return 0
}

// perCommit is how many events a child commits at once. Few rounds need short
// ones, for a kill to meet the moment of a commit.
func perCommit() int {
	if full {
		return 50
	}
	return 2
}

func childProjects(ctx context.Context, dir string, n int, what string) error {
	s, err := badgerstore.Open(ctx, dir, options(&lines{}))
	if err != nil {
		return err
	}
	src := newSource(fleet, claims(n)...)
	src.batch = perCommit()
	if what == childFlood {
		src.batch = n
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Project(ctx, src, fleet) }()
	for last := uint64(0); last < uint64(n); {
		changed := s.Changed()
		if cp, _ := s.Checkpoint(fleet); cp.Seq > last {
			last = cp.Seq
			fmt.Fprintln(os.Stdout, last)
			continue
		}
		select {
		case <-changed:
		case err := <-failed:
			return err
		}
	}
	if what == childKill {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	<-ctx.Done()
	return nil
}

// judge opens a store that somebody damaged, and says what is wrong with it:
// rows must be those of the log up to the checkpoint at once, and those of the
// whole log once it was followed.
func judge(ctx context.Context, dir string, n int) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	log := &lines{}
	s, err := badgerstore.Open(ctx, dir, options(log))
	if err != nil {
		return fmt.Sprintf("cannot be opened: %v", err)
	}
	cp, _ := s.Checkpoint(fleet)
	if got, err := s.Dump(); err != nil || onlyRows(got) != prefix(n, cp.Seq) {
		return fmt.Sprintf("serves wrong rows at position %d, err %v", cp.Seq, err)
	}
	if err := s.View(func(v projections.View) error { _, err := v.Fleet(); return err }); (err == nil) != cp.Complete {
		return fmt.Sprintf("reading answers %v at checkpoint %+v", err, cp)
	}
	ended := make(chan error, 1)
	follow, stop := context.WithCancel(ctx)
	go func() { ended <- s.Project(follow, newSource(fleet, claims(n)...), fleet) }()
	select {
	case <-s.Ready():
	case <-ctx.Done():
		stop()
		return "does not get to the end of the log"
	}
	stop()
	if err := <-ended; err != nil {
		return err.Error()
	}
	got, err := s.Dump()
	if err != nil || onlyRows(got) != prefix(n, uint64(n)) {
		return fmt.Sprintf("is wrong at the end, err %v", err)
	}
	if err := s.Close(); err != nil {
		return err.Error()
	}
	if log.count(badgerstore.LogRebuilt) > 0 {
		return "rebuilt"
	}
	return "kept"
}

// prefix is what the rows must be after the first seq of n claims.
func prefix(n int, seq uint64) string {
	prefixes.Lock()
	defer prefixes.Unlock()
	if known, ok := prefixes.of[seq]; ok {
		return known
	}
	rows := rowstest.Memory{}
	applyUpTo(rows, claims(n), 0, seq)
	prefixes.of[seq] = rows.Dump()
	return prefixes.of[seq]
}

// prefixes remembers the answers: many stores are judged against the same few.
var prefixes = struct {
	sync.Mutex
	of map[uint64]string
}{of: map[uint64]string{}}

func applyUpTo(rows rowstest.Memory, log []events.Recorded, after, upTo uint64) {
	for _, r := range log {
		if r.Seq > after && r.Seq <= upTo {
			if err := projections.Apply(rows, r); err != nil {
				panic(err)
			}
		}
	}
}

// judgeAll has children judge the directories. A child that dies has the next
// one go on with the directory that killed it, as a supervisor would; how often
// that happened stands behind the verdict.
func judgeAll(t *testing.T, n int, dirs []string) map[string]string {
	t.Helper()
	verdicts := map[string]string{}
	deaths := map[string]int{}
	for left := dirs; len(left) > 0; {
		cmd := child(t, childRead, n, "-")
		cmd.Stdin = strings.NewReader(strings.Join(left, "\n"))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		current, before := "", len(left)
		for line := range strings.Lines(string(out)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "opening":
				current = rest
			case "result":
				if d := deaths[current]; d > 0 {
					rest += fmt.Sprintf(" after %d deaths", d)
				}
				verdicts[current] = rest
				left = left[1:]
			}
		}
		if err != nil && len(left) > 0 {
			deaths[left[0]]++
			t.Logf("%s: the process died: %v\n%.600s", left[0], err, stderr.String())
			if deaths[left[0]] > 3 {
				t.Fatalf("%s: the process dies at every start", left[0])
			}
		} else if before == len(left) {
			t.Fatalf("the child judged nothing:\n%s", out)
		}
	}
	return verdicts
}
