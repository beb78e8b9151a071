package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is how often a held lock is tried again.
const lockRetry = 100 * time.Millisecond

// Lock holds a data directory for this process. The kernel drops it with the
// process, so a file left behind by a killed one is no obstacle.
type Lock struct{ file *os.File }

// LockedError: another process uses the data directory.
type LockedError struct {
	Dir string
	PID int // 0 when the file does not say
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("data directory %s is in use by %s; stop it, or give this node a data_dir of its own", e.Dir, who)
}

// LockDir takes dir/LOCK, making dir when it is missing. While another process
// holds it, LockDir waits up to wait for that to stop. Taken before the stores
// are opened and the broker is started, released last (design §2): neither of
// them keeps a second process out.
func LockDir(ctx context.Context, dir string, wait time.Duration) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be made: %w", dir, err)
	}
	path := filepath.Join(dir, "LOCK")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written to by this user: %w", dir, err)
	}
	if err := flock(ctx, file, wait); err != nil {
		pid := holder(file)
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{Dir: dir, PID: pid}
		}
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	if err := writePID(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("data directory %s cannot be written to: %w", dir, err)
	}
	return &Lock{file}, nil
}

func flock(ctx context.Context, file *os.File, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		case !wait(ctx, lockRetry):
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return cause
			}
			return err
		}
	}
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(file *os.File) int {
	buf := make([]byte, 20)
	n, _ := file.ReadAt(buf, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// Release gives the directory up. The file stays: removing it would let two
// successors lock two different files of that name.
func (l *Lock) Release() error { return l.file.Close() }
