package badgerstore

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// Update runs fn in one write transaction, without a follower.
func (s *Store) Update(fn func(projections.Rows) error) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	b, err := newBatch(s.life, &s.whole, Checkpoint{Stream: events.StreamFleet})
	if err != nil {
		return err
	}
	defer func() { b.discard() }()
	if err := b.add(b.pending, fn); err != nil {
		return err
	}
	return b.commit()
}

// Read runs fn on a snapshot, whatever the copies' states.
func (s *Store) Read(fn func(projections.Rows) error) error {
	txn := s.life.db.NewTransaction(false)
	defer txn.Discard()
	return fn(&snapshot{txn: txn})
}

// Dump renders every row of the store, checkpoints and tally among them.
func (s *Store) Dump() (string, error) {
	var b strings.Builder
	err := s.life.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			row, _, err := readItem(it.Item())
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %s\n", it.Item().Key(), row)
		}
		return nil
	})
	return b.String(), err
}

// Corrupt flips a bit of the row under key behind the seal's back.
func (s *Store) Corrupt(key string) error {
	return s.life.db.Update(func(txn *badger.Txn) error {
		item, err := txn.Get([]byte(key))
		if err != nil {
			return err
		}
		sealed, err := item.ValueCopy(nil)
		if err != nil {
			return err
		}
		sealed[len(sealed)-1] ^= 1
		return txn.Set([]byte(key), sealed)
	})
}

// Lose removes the row under key without a trace.
func (s *Store) Lose(key string) error {
	return s.life.db.Update(func(txn *badger.Txn) error { return txn.Delete([]byte(key)) })
}

// Tear leaves the mark of an event that was committed in part.
func (s *Store) Tear() error {
	return s.life.db.Update(func(txn *badger.Txn) error { return setOwn(txn, keyTorn, Checkpoint{}) })
}

// SetSchema makes the store look like one of another schema version.
func (s *Store) SetSchema(version int, fleet string) error {
	return s.life.db.Update(func(txn *badger.Txn) error {
		return setOwn(txn, keyAbout, about{Format: formatVersion, Schema: version, Fleet: fleet})
	})
}

// TransactionRows is how many rows one transaction takes.
func (s *Store) TransactionRows() int { return int(s.life.db.MaxBatchCount() / 2) }

// Encode renders a row as the store would.
func Encode(v any) string { b, _ := json.Marshal(v); return string(b) }

// Names of log lines that tests look for.
const (
	LogRebuilt     = logRebuilt
	LogDamaged     = logDamaged
	LogSwapped     = logSwapped
	LogStopped     = logStopped
	LogFull        = logFull
	LogUnavailable = logUnavailable
	LogCurrent     = logCurrent
	MaxRebuilds    = maxRebuilds
	OpeningFile    = openingFile
	RealarmEvery   = realarm
)

// SetMinFree changes what room the store asks for.
func (s *Store) SetMinFree(bytes uint64) { s.opts.MinFree = bytes }
