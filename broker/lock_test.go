package broker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
)

// lockHelperEnv makes this test binary take a lock and keep it, see TestMain.
const lockHelperEnv = "BROKER_TEST_LOCK_DIR"

func holdLock(dir string) int {
	if _, err := broker.LockDir(context.Background(), dir, 0); err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, "locked")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// lockedBy starts a process that holds dir.
func lockedBy(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), lockHelperEnv+"="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("helper says %q, %v", line, err)
	}
	return cmd
}

// Field case 37 and schedule 11: the second process on a data directory is told
// which directory and who; what a kill -9 leaves behind is no obstacle.
func TestCase37Schedule11SecondProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := lockedBy(t, dir)
	_, err := broker.LockDir(t.Context(), dir, 50*time.Millisecond)
	var locked *broker.LockedError
	if !errors.As(err, &locked) || locked.Dir != dir || locked.PID != first.Process.Pid {
		t.Fatalf("got %v, want locked by %d", err, first.Process.Pid)
	}
	if text := err.Error(); !strings.Contains(text, dir) || !strings.Contains(text, fmt.Sprint(first.Process.Pid)) {
		t.Errorf("the message %q does not say where and who", text)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if _, err := os.Stat(filepath.Join(dir, "LOCK")); err != nil {
		t.Fatalf("the killed process left no file, so this proves nothing: %v", err)
	}
	lock, err := broker.LockDir(t.Context(), dir, 0)
	if err != nil {
		t.Fatalf("after kill -9: %v", err)
	}
	if pid, err := os.ReadFile(filepath.Join(dir, "LOCK")); err != nil || strings.TrimSpace(string(pid)) != fmt.Sprint(os.Getpid()) {
		t.Errorf("the file says %q, %v", pid, err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

// Field case 37: an early successor waits for its stopping predecessor, and
// gives up when its own context ends.
func TestCase37EarlySuccessorWaits(t *testing.T) {
	dir := t.TempDir()
	lock, err := broker.LockDir(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	if _, err := broker.LockDir(ctx, dir, time.Minute); !errors.Is(err, errEnough) {
		t.Errorf("with its context ended: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		second, err := broker.LockDir(t.Context(), dir, time.Minute)
		if err == nil {
			err = second.Release()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("the successor did not wait: %v", err)
	case <-time.After(150 * time.Millisecond): // it has tried at least once
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the successor: %v", err)
	}
}

// A directory that cannot be used is named, whatever is wrong with it.
func TestLockDirUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := broker.LockDir(t.Context(), filepath.Join(file, "data"), 0)
	if err == nil || !strings.Contains(err.Error(), file) || errors.As(err, new(*broker.LockedError)) {
		t.Errorf("below a file: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "LOCK"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.LockDir(t.Context(), dir, 0); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("with a directory in the file's place: %v", err)
	}
}
