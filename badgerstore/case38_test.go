package badgerstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// full says whether the field cases run at their full counts.
var full = os.Getenv("TENURE_CASES") == "full"

// Case38: whatever file of a killed store is truncated, flipped in one byte or
// removed, the next start keeps the store or rebuilds it, says so, serves no
// wrong row on the way, and ends neither in a panic nor in a loop.
func TestCase38DamagedFiles(t *testing.T) {
	const n = 400
	template := t.TempDir()
	tables(t, template, 300)
	if err := child(t, childKill, n, template).Run(); !killed(err) {
		t.Fatalf("the child that leaves a killed store: %v", err)
	}
	flips := 1
	if full {
		flips = 200
	}
	random := rand.New(rand.NewPCG(1, 38))
	var dirs []string
	spoil := func(file, how string, change func(data []byte) []byte) {
		dir := filepath.Join(t.TempDir(), strings.ReplaceAll(file+" "+how, " ", "-"))
		copyStore(t, template, dir)
		path := filepath.Join(dir, file)
		data := change(read(t, path))
		if data == nil {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else {
			write(t, path, data)
		}
		dirs = append(dirs, dir)
	}
	for _, file := range files(t, template) {
		size := len(read(t, filepath.Join(template, file)))
		used := len(content(read(t, filepath.Join(template, file))))
		spoil(file, "removed", func([]byte) []byte { return nil })
		spoil(file, "cut by 1 KB", func(data []byte) []byte { return data[:max(0, size-1024)] })
		spoil(file, "cut 1 KB into its content", func(data []byte) []byte { return data[:max(0, used-1024)] })
		spoil(file, "emptied", func(data []byte) []byte { return data[:0] })
		for range flips {
			where := random.IntN(max(1, used))
			if where < size {
				spoil(file, fmt.Sprintf("flipped at %d of %d", where, used), func(data []byte) []byte { data[where] ^= 1 << random.IntN(8); return data })
			}
		}
	}
	verdicts := judgeAll(t, n, dirs)
	rebuilt, kept := 0, 0
	for _, dir := range dirs {
		switch v := verdicts[dir]; v {
		case "rebuilt":
			rebuilt++
		case "kept":
			kept++
		default:
			t.Errorf("%s: %s", filepath.Base(dir), v)
		}
	}
	t.Logf("%d damages: %d rebuilt, %d harmless", len(dirs), rebuilt, kept)
	if rebuilt == 0 || kept == 0 {
		t.Error("the damages do not tell a store that is rebuilt from one that is kept")
	}
}

// tables leaves a store of n events in dir, closed, so that it has tables.
func tables(t *testing.T, dir string, n int) {
	t.Helper()
	s := open(t, dir, options(&lines{}))
	stop := project(t, s, newSource(fleet, claims(n)...))
	<-s.Ready()
	stop()
	closed(t, s)
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == -1
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func copyStore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range files(t, from) {
		write(t, filepath.Join(to, name), read(t, filepath.Join(from, name)))
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// write leaves holes for zeros: Badger's files are mostly holes.
func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, content(data), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(len(data))); err != nil {
		t.Fatal(err)
	}
}

// content is data without the zeros at its end.
func content(data []byte) []byte {
	zeros := make([]byte, 1<<16)
	for bytes.HasSuffix(data, zeros) {
		data = data[:len(data)-len(zeros)]
	}
	return bytes.TrimRight(data, "\x00")
}
