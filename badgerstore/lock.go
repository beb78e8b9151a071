package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	lockFile  = "LOCK" // tells whose the directory is; the lock is on the directory
	lockRetry = 50 * time.Millisecond
)

// lockDir takes the exclusive lock that Badger itself would take, so other tools
// stay out too, and waits a bounded time for a predecessor that is stopping. The
// lock goes with the process; a file left behind is no obstacle.
func lockDir(ctx context.Context, dir string, wait time.Duration) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(wait)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
			if err := os.WriteFile(filepath.Join(dir, lockFile), pid, 0o644); err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock projection store %s: %w", dir, err), f.Close())
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("projection store %s is in use by %s: stop it, or give this node a data directory of its own",
				dir, holder(dir)), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(lockRetry):
		}
	}
}

func holder(dir string) string {
	pid, err := os.ReadFile(filepath.Join(dir, lockFile))
	if err != nil {
		return "another process"
	}
	return "another process (pid " + strings.TrimSpace(string(pid)) + ")"
}

// unlockDir lets go of the directory.
func unlockDir(f *os.File) error { return f.Close() }

// freeBytes is what an unprivileged process may still write to dir's disk.
func freeBytes(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
