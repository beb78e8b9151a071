package badgerstore_test

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// Case16: a process killed again and again while it projects never has its
// checkpoint ahead of its rows, or behind: at every restart the rows are exactly
// those of the log up to the checkpoint, by recovery and not by a rebuild, and in
// the end the store equals a fresh rebuild byte for byte.
func TestCase16KilledWhileProjecting(t *testing.T) {
	rounds, n, every := 10, 1500, 1
	if full {
		rounds, n, every = 200, 50_000, 20
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 16))
	want := rowstest.Memory{}
	all := claims(n)
	at := uint64(0)
	for round := range rounds {
		commits := 1 + random.IntN(2*n/rounds/perCommit()-1)
		// A commit takes microseconds, so the moment after it is told is spread.
		killAfter(t, dir, n, commits, time.Duration(random.IntN(1000))*time.Microsecond)

		log := &lines{}
		s := open(t, dir, options(log))
		cp, _ := s.Checkpoint(fleet)
		if cp.Seq < at {
			t.Fatalf("round %d: the checkpoint went back from %d to %d:\n%s", round, at, cp.Seq, log)
		}
		applyUpTo(want, all, at, cp.Seq)
		at = cp.Seq
		if round%every == 0 && onlyRows(dump(t, s)) != want.Dump() {
			t.Fatalf("round %d: the rows are not those of position %d", round, at)
		}
		if log.count(badgerstore.LogRebuilt) != 0 {
			t.Fatalf("round %d: a kill cost the store:\n%s", round, log)
		}
		closed(t, s)
	}
	t.Logf("%d kills, the last at position %d of %d", rounds, at, n)
	s := open(t, dir, options(&lines{}))
	src := newSource(fleet, all...)
	src.batch = 500
	project(t, s, src)
	reaches(t, s, fleet, uint64(n))
	if got := dump(t, s); got != rebuilt(t, src) {
		t.Error("the store differs from a fresh rebuild")
	}
}

// killAfter has a child project, and kills it some time after it has told of that
// many commits, or of the last.
func killAfter(t *testing.T, dir string, n, commits int, later time.Duration) {
	t.Helper()
	cmd := child(t, childProject, n, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in, told := bufio.NewScanner(out), 0
	for told < commits && in.Scan() && in.Text() != strconv.Itoa(n) {
		told++
	}
	if in.Text() == "" {
		t.Error("the child said nothing")
	}
	<-time.After(later)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); !killed(err) {
		t.Fatalf("the child ended by itself: %v", err)
	}
}

// Case16, a disk that fills up. With room kept free, the copy stops before the
// disk is full, serves, and goes on when there is room. Without, Badger's mapped
// files fault and take the process along; nothing is lost either way.
func TestCase16DiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk takes root")
	}
	const n = 3000
	all := claims(n)
	mount := func(t *testing.T) (dir string, fill, drain func()) {
		dir = t.TempDir()
		if err := syscall.Mount("none", dir, "tmpfs", 0, "size=64m"); err != nil {
			t.Skipf("no small disk here: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, 0); err != nil {
				t.Errorf("unmount: %v", err)
			}
		})
		filler := filepath.Join(dir, "filler")
		fill = func() {
			var st syscall.Statfs_t
			if err := syscall.Statfs(dir, &st); err != nil {
				t.Fatal(err)
			}
			free := int(st.Bavail) * int(st.Bsize)
			if err := os.WriteFile(filler, make([]byte, max(0, free-1<<20)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir, fill, func() {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
		}
	}

	t.Run("room kept free", func(t *testing.T) {
		dir, fill, drain := mount(t)
		opts := options(&lines{})
		opts.MinFree = 16 << 20
		s := open(t, dir, opts)
		src := newSource(fleet, all[:100]...)
		src.batch = 50
		project(t, s, src)
		reaches(t, s, fleet, 100)
		fill()
		src.append(all[100:]...)
		until(t, s, "it is behind", func() bool { return s.Copy(fleet).State == projections.CopyBehind && !s.Copy(fleet).LagKnown })
		if err := s.View(func(v projections.View) error { _, err := v.Fleet(); return err }); err != nil {
			t.Errorf("reading beside a full disk: %v", err)
		}
		drain()
		reaches(t, s, fleet, n)
		if got := dump(t, s); got != rebuilt(t, src) {
			t.Error("the store differs from a fresh rebuild")
		}
	})
	t.Run("no room kept", func(t *testing.T) {
		dir, fill, drain := mount(t)
		store := filepath.Join(dir, "store")
		s := open(t, store, options(&lines{}))
		closed(t, s)
		fill()
		if err := child(t, childFlood, n, store).Run(); err == nil || killed(err) {
			t.Fatalf("the child got through on a full disk: %v", err)
		}
		drain()
		log := &lines{}
		s = open(t, store, options(log))
		cp, _ := s.Checkpoint(fleet)
		if onlyRows(dump(t, s)) != prefix(n, cp.Seq) {
			t.Errorf("the rows are not those of position %d", cp.Seq)
		}
		t.Logf("the process died at position %d; rebuilt: %d", cp.Seq, log.count(badgerstore.LogRebuilt))
		src := newSource(fleet, all...)
		src.batch = 50
		project(t, s, src)
		reaches(t, s, fleet, n)
		if got := dump(t, s); got != rebuilt(t, src) {
			t.Error("the store differs from a fresh rebuild")
		}
	})
}
