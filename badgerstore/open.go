package badgerstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// Keys of the store's own rows. They come before all others.
const (
	ownKeys       = "!"
	keyAbout      = "!about"
	keyTally      = "!tally"
	keyTorn       = "!torn"
	keyCheckpoint = "!checkpoint/"
)

// formatVersion numbers how this package keeps rows; projections.SchemaVersion
// numbers the rows.
const formatVersion = 1

// openingFile stands while a store is opened and checked, and counts the
// starts that have not come through.
const openingFile = "OPENING"

const maxDeadOpens = 2

// about says whose store this is and in which form it is kept.
type about struct {
	Format int    `json:"format"`
	Schema int    `json:"schema"`
	Fleet  string `json:"fleet"`
}

// life is one Badger database, from its opening to its end.
type life struct {
	db      *badger.DB
	readers sync.WaitGroup // counted up under Store.mu, and only while the store is sound
}

// openLife opens the directory's database and checks every row of it. One that
// cannot be read, or does not belong here, is wiped and made anew; the reason is
// returned then.
func openLife(dir string, opts Options) (l *life, cps map[events.Stream]Checkpoint, reason string, err error) {
	free, err := freeBytes(dir)
	if err != nil {
		return nil, nil, "", err
	}
	if free < opts.MinFree {
		return nil, nil, "", fmt.Errorf("the disk under projection store %s has %d MB left and the store needs %d MB: make room", dir, free>>20, opts.MinFree>>20)
	}
	dead, err := countOpening(dir)
	if err != nil {
		return nil, nil, "", err
	}
	var bad error
	if dead >= maxDeadOpens {
		bad = fmt.Errorf("%w: the last %d starts ended while they opened it", errDamaged, dead)
	} else {
		l, cps, bad = openChecked(dir, opts)
	}
	if bad != nil {
		if err := wipe(dir); err != nil {
			return nil, nil, "", fmt.Errorf("remove damaged projection store %s (%w): %w", dir, bad, err)
		}
		if l, cps, err = openChecked(dir, opts); err != nil {
			return nil, nil, "", fmt.Errorf("make projection store %s anew (it was damaged: %w): %w", dir, bad, err)
		}
		reason = bad.Error()
	}
	return l, cps, reason, os.Remove(filepath.Join(dir, openingFile))
}

// openChecked opens the database and checks all of it, or leaves nothing open.
func openChecked(dir string, opts Options) (*life, map[events.Stream]Checkpoint, error) {
	var db *badger.DB
	err := guard(func() (err error) {
		own := badgerOptions(dir, opts.Logger)
		if err := checkTables(dir, own); err != nil {
			return err
		}
		db, err = badger.Open(own)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: open: %w", errDamaged, err)
	}
	l := &life{db: db}
	var cps map[events.Stream]Checkpoint
	err = guard(func() (err error) {
		cps, err = inspect(db, about{Format: formatVersion, Schema: projections.SchemaVersion, Fleet: opts.Fleet})
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, l.close())
	}
	return l, cps, nil
}

func (l *life) close() error { return guard(l.db.Close) }

// inspect reads every row and compares their tally. An empty database is given
// its owner.
func inspect(db *badger.DB, want about) (map[events.Stream]Checkpoint, error) {
	own := map[string][]byte{}
	var sum tally
	err := db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			key := string(it.Item().Key())
			sealed, err := it.Item().ValueCopy(nil)
			if err != nil {
				return fmt.Errorf("%w: row %q: %w", errDamaged, key, err)
			}
			row, digest, err := unseal(key, sealed)
			switch {
			case err != nil:
				return err
			case strings.HasPrefix(key, ownKeys):
				own[key] = row
			default:
				sum.add(digest)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(own) == 0 && sum == (tally{}) {
		return nil, db.Update(func(txn *badger.Txn) error { return setOwn(txn, keyAbout, want) })
	}
	return readOwn(own, want, sum)
}

func readOwn(own map[string][]byte, want about, sum tally) (map[events.Stream]Checkpoint, error) {
	var is about
	var tallied tally
	if err := errors.Join(fromOwn(own, keyAbout, &is), fromOwn(own, keyTally, &tallied)); err != nil {
		return nil, err
	}
	if is.Format != want.Format || is.Schema != want.Schema {
		return nil, fmt.Errorf("%w: it has format %d and schema %d, this build has %d and %d", errDamaged, is.Format, is.Schema, want.Format, want.Schema)
	}
	if is.Fleet != want.Fleet {
		return nil, fmt.Errorf("%w: it is of the fleet %q, this one is %q", errDamaged, is.Fleet, want.Fleet)
	}
	if _, torn := own[keyTorn]; torn {
		return nil, fmt.Errorf("%w: an event larger than a transaction was applied in part", errDamaged)
	}
	if sum != tallied {
		return nil, fmt.Errorf("%w: it has %d rows, and others than the %d that were written", errDamaged, sum.Rows, tallied.Rows)
	}
	cps := map[events.Stream]Checkpoint{}
	for key := range own {
		if st, ok := strings.CutPrefix(key, keyCheckpoint); ok {
			var cp Checkpoint
			if err := fromOwn(own, key, &cp); err != nil {
				return nil, err
			}
			cps[events.Stream(st)] = cp
		}
	}
	return cps, nil
}

func fromOwn(own map[string][]byte, key string, into any) error {
	row, found := own[key]
	if !found && key == keyTally {
		return nil // nothing was written yet: the tally of no rows
	}
	if err := json.Unmarshal(row, into); err != nil {
		return fmt.Errorf("%w: row %q: %w", errDamaged, key, err)
	}
	return nil
}

func setOwn(txn *badger.Txn, key string, row any) error {
	data, err := json.Marshal(row)
	if err != nil {
		return err
	}
	sealed, _ := seal(key, data)
	return txn.Set([]byte(key), sealed)
}

// countOpening notes that an opening begins and returns how many before it did
// not come through.
func countOpening(dir string) (int, error) {
	path := filepath.Join(dir, openingFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	dead, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		dead = 0
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(dead+1)), 0o644); err != nil {
		return 0, fmt.Errorf("note the opening of the projection store: %w", err)
	}
	return dead, nil
}

// wipe removes the files that Badger makes, and nothing else: should the
// directory be the wrong one, nobody else's files go.
func wipe(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "MANIFEST", name == "MANIFEST-REWRITE", name == "KEYREGISTRY", name == "REWRITE-KEYREGISTRY", name == "DISCARD",
			strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".vlog"), strings.HasSuffix(name, ".mem"):
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// guard turns a panic in fn into damage. Badger panics on some of it. A fault on
// a mapped file is a panic too, as long as it happens in fn's own goroutine.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return fn()
}

// Open opens the store in dir, which it makes if need be. A store that is
// damaged, or not of this build and fleet, is made anew, and says so in the log.
// The error is a sentence for a person: the directory is in use, the disk is
// full, or cannot be written.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	opts.defaults()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make projection store %s: %w", dir, err)
	}
	lock, err := lockDir(ctx, dir, opts.LockWait)
	if err != nil {
		return nil, err
	}
	l, cps, reason, err := openLife(dir, opts)
	if err != nil {
		return nil, errors.Join(err, unlockDir(lock))
	}
	if reason != "" {
		opts.Logger.Warn(logRebuilt, keyStore, dir, keyReason, reason)
	}
	return newStore(dir, opts, lock, l, cps), nil
}
