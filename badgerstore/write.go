package badgerstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/seat-tenure/tenure/projections"
)

// errRowTooLarge is for a row that no transaction can take.
var errRowTooLarge = errors.New("a row is larger than the store can take")

// rowOverhead is what Badger counts beside key and value, rounded up.
const rowOverhead = 64

// batch gathers the rows of many events and puts them into transactions. Each
// commits as one, with the checkpoint of what is in it; an event is never split
// over two, unless it alone is larger than a transaction: see commitLarge.
type batch struct {
	db    *badger.DB
	whole *sync.RWMutex

	txn       *badger.Txn // what is committed, and where rows go to be
	tally     tally
	rows      overlay    // since the last commit
	event     overlay    // of the event that is being applied; its maps are used again
	bytes     int        // what they take in the transaction
	pending   Checkpoint // of what is in rows
	dirty     bool
	committed Checkpoint
}

func newBatch(l *life, whole *sync.RWMutex, cp Checkpoint) (*batch, error) {
	b := &batch{db: l.db, whole: whole, pending: cp, committed: cp, event: newOverlay(nil)}
	if err := b.begin(); err != nil {
		b.discard()
		return nil, err
	}
	return b, nil
}

// begin opens a transaction and reads the tally from it, never from memory: a
// commit that failed must not be counted.
func (b *batch) begin() error {
	b.txn, b.bytes, b.dirty, b.tally = b.db.NewTransaction(true), 0, false, tally{}
	b.rows = newOverlay(stored{b.txn})
	row, _, found, err := getRow(b.txn, keyTally)
	if err != nil || !found {
		return err
	}
	if err := json.Unmarshal(row, &b.tally); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// discard drops what was not committed.
func (b *batch) discard() { b.txn.Discard() }

// add runs fn and takes its rows, all of them or none.
func (b *batch) add(cp Checkpoint, fn func(projections.Rows) error) error {
	o := &b.event
	clear(o.rows)
	clear(o.values)
	o.under = &b.rows
	if err := fn(o); err != nil {
		return err
	}
	if len(o.rows) == 0 && cp == b.pending {
		return nil
	}
	bytes := 0
	for key, row := range o.rows {
		cost := rowCost(key, row)
		if int64(cost) >= b.db.MaxBatchSize()/2 {
			return fmt.Errorf("%w: %d bytes under %q", errRowTooLarge, cost, key)
		}
		bytes += cost
	}
	if !b.fits(len(b.rows.rows)+len(o.rows), b.bytes+bytes) && b.dirty {
		if err := b.commit(); err != nil {
			return err
		}
	}
	if !b.fits(len(o.rows), bytes) {
		return b.commitLarge(o.rows, cp)
	}
	for key, row := range o.rows {
		if old, again := b.rows.rows[key]; again {
			b.bytes -= rowCost(key, old)
		}
		b.rows.rows[key] = row
		delete(b.rows.values, key)
		b.bytes += rowCost(key, row)
	}
	maps.Copy(b.rows.values, o.values)
	b.pending, b.dirty = cp, true
	return nil
}

// fits leaves half of what Badger allows for what it counts in its own way.
func (b *batch) fits(rows, bytes int) bool {
	return int64(rows) < b.db.MaxBatchCount()/2 && int64(bytes) < b.db.MaxBatchSize()/2
}

// set writes or, for nil, deletes a row, and keeps the tally.
func (b *batch) set(key string, row []byte) error {
	_, sum, found, err := getRow(b.txn, key)
	if err != nil {
		return err
	}
	if found {
		b.tally.remove(sum)
	}
	if row == nil {
		if !found {
			return nil
		}
		return damage(b.txn.Delete([]byte(key)))
	}
	sealed, sum := seal(key, row)
	b.tally.add(sum)
	return damage(b.txn.Set([]byte(key), sealed))
}

// commit commits the rows with their checkpoint and begins anew.
func (b *batch) commit() error {
	for key, row := range b.rows.rows {
		if err := b.set(key, row); err != nil {
			return err
		}
	}
	if err := b.end(b.pending); err != nil {
		return err
	}
	return b.begin()
}

// end commits the transaction with cp. After a commit that failed nobody knows
// what stands, so it counts as damage.
func (b *batch) end(cp Checkpoint) error {
	err := errors.Join(setOwn(b.txn, keyTally, b.tally), setOwn(b.txn, keyCheckpoint+string(cp.Stream), cp))
	if err != nil {
		return damage(err)
	}
	if err := guard(b.txn.Commit); err != nil {
		return damage(err)
	}
	b.committed = cp
	return nil
}

// commitLarge writes the rows of one event that no transaction can take, in
// several. No reader sees a part of them, and a process that dies half-way
// leaves a mark that has the store rebuilt.
func (b *batch) commitLarge(rows map[string][]byte, cp Checkpoint) error {
	b.whole.Lock()
	defer b.whole.Unlock()
	if err := damage(setOwn(b.txn, keyTorn, cp)); err != nil {
		return err
	}
	if err := b.next(); err != nil {
		return err
	}
	count, bytes := 0, 0
	for key, row := range rows {
		if count, bytes = count+1, bytes+rowCost(key, row); !b.fits(count, bytes) {
			if err := b.next(); err != nil {
				return err
			}
			count, bytes = 1, rowCost(key, row)
		}
		if err := b.set(key, row); err != nil {
			return err
		}
	}
	if err := damage(b.txn.Delete([]byte(keyTorn))); err != nil {
		return err
	}
	if err := b.end(cp); err != nil {
		return err
	}
	b.pending = cp
	return b.begin()
}

// next commits a part and keeps counting the tally, which no part carries.
func (b *batch) next() error {
	if err := guard(b.txn.Commit); err != nil {
		return damage(err)
	}
	b.txn = b.db.NewTransaction(true)
	return nil
}

func damage(err error) error {
	if err == nil || errors.Is(err, errDamaged) {
		return err
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}

func rowCost(key string, row []byte) int { return len(key) + len(row) + sealSize + rowOverhead }
