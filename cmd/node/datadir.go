package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/broker"
)

// dataDir is a node's directory, exclusively locked by this process.
type dataDir struct {
	ID   string // minted with the directory: names it, wherever it is mounted
	lock *broker.Lock
}

// openDataDir makes the directory if need be, locks it, waiting for a
// predecessor that is still stopping, and reads or mints its id. A
// *broker.LockedError says which process has it.
func openDataDir(ctx context.Context, dir string, wait time.Duration) (dataDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return dataDir{}, fmt.Errorf("data_dir %s: %w; choose a directory this user may write to", dir, pathError(err))
	}
	lock, err := broker.LockDir(ctx, dir, wait)
	if err != nil {
		return dataDir{}, err
	}
	id, err := dataDirID(filepath.Join(dir, "ID"))
	if err != nil {
		_ = lock.Release()
		return dataDir{}, fmt.Errorf("data_dir %s: %w", dir, err)
	}
	return dataDir{id, lock}, nil
}

// dataDirID reads the directory's id, or mints it: written aside and renamed,
// so that a crash leaves a whole id or none.
func dataDirID(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err == nil {
		id := strings.TrimSpace(string(raw))
		if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
			return "", fmt.Errorf("file ID holds no directory id; if the directory was not copied from another node, delete the file")
		}
		return id, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	id := hex.EncodeToString(b[:])
	if err := os.WriteFile(path+".new", []byte(id+"\n"), 0o600); err != nil {
		return "", err
	}
	return id, os.Rename(path+".new", path)
}

func pathError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
