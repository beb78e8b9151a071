package badgerstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// errRowTooLarge is for a row that no transaction can take.
var errRowTooLarge = errors.New("a row is larger than the store can take")

// rowOverhead is what Badger counts beside key and value, rounded up.
const rowOverhead = 64

// batch puts rows and their checkpoint into transactions. Each commits as one,
// with the checkpoint of what is in it; an event is never split over two, unless
// it alone is larger than a transaction: see commitLarge.
type batch struct {
	db    *badger.DB
	whole *sync.RWMutex

	txn       *badger.Txn
	tally     tally
	rows      int
	bytes     int
	pending   Checkpoint // of what is in txn
	dirty     bool
	committed Checkpoint
}

func newBatch(l *life, whole *sync.RWMutex, cp Checkpoint) (*batch, error) {
	b := &batch{db: l.db, whole: whole, pending: cp, committed: cp}
	if err := b.begin(); err != nil {
		b.discard()
		return nil, err
	}
	return b, nil
}

// begin opens a transaction and reads the tally from it, never from memory: a
// commit that failed must not be counted.
func (b *batch) begin() error {
	b.txn, b.rows, b.bytes, b.dirty, b.tally = b.db.NewTransaction(true), 0, 0, false, tally{}
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
	o := &overlay{txn: b.txn, rows: map[string][]byte{}}
	if err := fn(o); err != nil {
		return err
	}
	if len(o.rows) == 0 && cp == b.pending {
		return nil
	}
	rows, bytes, largest := o.size()
	if int64(largest) >= b.db.MaxBatchSize() {
		return fmt.Errorf("%w: %d bytes", errRowTooLarge, largest)
	}
	if !b.fits(rows, bytes) && b.dirty {
		if err := b.commit(); err != nil {
			return err
		}
	}
	if !b.fits(rows, bytes) {
		return b.commitLarge(o, cp)
	}
	for key, row := range o.rows {
		if err := b.set(key, row); err != nil {
			return err
		}
	}
	b.rows, b.bytes, b.pending, b.dirty = b.rows+rows, b.bytes+bytes, cp, true
	return nil
}

// fits leaves half of what Badger allows for what it counts in its own way.
func (b *batch) fits(rows, bytes int) bool {
	return int64(b.rows+rows) < b.db.MaxBatchCount()/2 && int64(b.bytes+bytes) < b.db.MaxBatchSize()/2
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

// commit ends the transaction together with its checkpoint, and begins another.
func (b *batch) commit() error {
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

// commitLarge writes one event that no transaction can take, in several. No
// reader sees a part of it, and a process that dies half-way leaves a mark that
// has the store rebuilt.
func (b *batch) commitLarge(o *overlay, cp Checkpoint) error {
	b.whole.Lock()
	defer b.whole.Unlock()
	if err := damage(setOwn(b.txn, keyTorn, cp)); err != nil {
		return err
	}
	if err := b.next(); err != nil {
		return err
	}
	for key, row := range o.rows {
		cost := rowCost(key, row)
		if !b.fits(1, cost) {
			if err := b.next(); err != nil {
				return err
			}
		}
		if err := b.set(key, row); err != nil {
			return err
		}
		b.rows, b.bytes = b.rows+1, b.bytes+cost
	}
	if err := damage(b.txn.Delete([]byte(keyTorn))); err != nil {
		return err
	}
	b.pending = cp
	return b.commit()
}

// next commits a part and keeps counting the tally, which no part carries.
func (b *batch) next() error {
	if err := guard(b.txn.Commit); err != nil {
		return damage(err)
	}
	b.txn, b.rows, b.bytes = b.db.NewTransaction(true), 0, 0
	return nil
}

func damage(err error) error {
	if err == nil || errors.Is(err, errDamaged) {
		return err
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}

func rowCost(key string, row []byte) int { return len(key) + len(row) + sealSize + rowOverhead }

// overlay holds the rows of one event over a transaction, so that an event that
// fails leaves nothing. A nil row is a deletion.
type overlay struct {
	txn  *badger.Txn
	rows map[string][]byte
}

func (o *overlay) size() (rows, bytes, largest int) {
	for key, row := range o.rows {
		cost := rowCost(key, row)
		bytes, largest = bytes+cost, max(largest, cost)
	}
	return len(o.rows), bytes, largest
}

func (o *overlay) Get(key string) ([]byte, bool, error) {
	if row, ok := o.rows[key]; ok {
		return row, row != nil, nil
	}
	row, _, found, err := getRow(o.txn, key)
	return row, found, err
}

func (o *overlay) Put(key string, row []byte) error {
	if projections.StreamOf(key) == events.Stream("") {
		return fmt.Errorf("row %q belongs to no stream", key)
	}
	o.rows[key] = append(make([]byte, 0, len(row)), row...)
	return nil
}

func (o *overlay) Delete(key string) error {
	o.rows[key] = nil
	return nil
}

// Scan merges the overlay into what the transaction has.
func (o *overlay) Scan(prefix, after string, limit int) ([]projections.KeyRow, error) {
	var over []string
	for key := range o.rows {
		if strings.HasPrefix(key, prefix) && key > after {
			over = append(over, key)
		}
	}
	// Deleted or replaced rows may fill the page underneath: read as many more.
	under, err := scanRows(o.txn, prefix, after, limit+len(over))
	if err != nil {
		return nil, err
	}
	merged := map[string][]byte{}
	for _, kr := range under {
		merged[kr.Key] = kr.Row
	}
	for _, key := range over {
		merged[key] = o.rows[key]
	}
	var page []projections.KeyRow
	for _, key := range slices.Sorted(maps.Keys(merged)) {
		if len(page) >= limit {
			break
		}
		if merged[key] != nil {
			page = append(page, projections.KeyRow{Key: key, Row: merged[key]})
		}
	}
	return page, nil
}
