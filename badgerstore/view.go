package badgerstore

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

var errReadOnly = errors.New("a view cannot change rows")

// View runs fn on a snapshot of all rows. fn must not wait for anything: a
// rebuild waits for it. Rows of a stream whose copy is rebuilding or out of
// service answer *projections.NotServedError, as does everything once damage was
// found. What fn returns is returned, unless damage came to light.
func (s *Store) View(fn func(projections.View) error) error {
	return s.read(func(rows projections.Rows) error { return fn(projections.NewView(rows)) })
}

func (s *Store) read(fn func(projections.Rows) error) error {
	s.mu.Lock()
	l, refused := s.life, s.refused
	switch {
	case s.closed:
		s.mu.Unlock()
		return ErrClosed
	case s.broken != nil:
		defer s.mu.Unlock()
		return notServed(s.broken)
	}
	l.readers.Add(1)
	s.mu.Unlock()
	defer l.readers.Done()

	s.whole.RLock()
	txn := l.db.NewTransaction(false)
	s.whole.RUnlock()
	defer txn.Discard()
	rows := &snapshot{txn: txn, refused: refused}
	err := fn(rows)
	if rows.damage != nil {
		s.breakDown(l, rows.damage)
		return notServed(rows.damage)
	}
	return err
}

func notServed(why error) error {
	return &projections.NotServedError{Stream: events.StreamFleet, State: projections.CopyRebuilding, Why: why.Error()}
}

// snapshot is the rows of one read transaction.
type snapshot struct {
	txn     *badger.Txn
	refused map[events.Stream]error
	damage  error
}

func (r *snapshot) Get(key string) ([]byte, bool, error) {
	if err := r.refused[projections.StreamOf(key)]; err != nil {
		return nil, false, err
	}
	row, _, found, err := getRow(r.txn, key)
	return row, found, r.note(err)
}

func (r *snapshot) Scan(prefix, after string, limit int) ([]projections.KeyRow, error) {
	if err := r.refused[projections.StreamOf(prefix)]; err != nil {
		return nil, err
	}
	page, err := scanRows(r.txn, prefix, after, limit)
	return page, r.note(err)
}

func (r *snapshot) Put(string, []byte) error { return errReadOnly }
func (r *snapshot) Delete(string) error      { return errReadOnly }

// note keeps the damage even if the reader swallows the error.
func (r *snapshot) note(err error) error {
	if err != nil && r.damage == nil {
		r.damage = err
	}
	return err
}

// getRow reads one row and its seal. Every error is damage: a transaction that
// is open has nothing else to complain of.
func getRow(txn *badger.Txn, key string) (row []byte, sum uint64, found bool, err error) {
	err = guard(func() error {
		item, err := txn.Get([]byte(key))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: row %q: %w", errDamaged, key, err)
		}
		found = true
		row, sum, err = readItem(item)
		return err
	})
	return row, sum, found && err == nil, err
}

func readItem(item *badger.Item) (row []byte, sum uint64, err error) {
	key := string(item.Key())
	sealed, err := item.ValueCopy(nil)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: row %q: %w", errDamaged, key, err)
	}
	return unseal(key, sealed)
}

// scanRows is Rows.Scan on what txn sees.
func scanRows(txn *badger.Txn, prefix, after string, limit int) (page []projections.KeyRow, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = guard(func() error {
		opts := badger.DefaultIteratorOptions
		opts.Prefix = []byte(prefix)
		opts.PrefetchSize = min(limit, opts.PrefetchSize)
		it := txn.NewIterator(opts)
		defer it.Close()
		for it.Seek([]byte(max(prefix, after))); it.Valid() && len(page) < limit; it.Next() {
			key := string(it.Item().Key())
			if key <= after {
				continue
			}
			row, _, err := readItem(it.Item())
			if err != nil {
				return err
			}
			page = append(page, projections.KeyRow{Key: key, Row: row})
		}
		return nil
	})
	return page, err
}
