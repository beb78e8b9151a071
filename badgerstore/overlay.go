package badgerstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/seat-tenure/tenure/projections"
)

// readable is what an overlay lies over: another one, or what is stored.
type readable interface {
	Get(key string) ([]byte, bool, error)
	Scan(prefix, after string, limit int) ([]projections.KeyRow, error)
}

// stored is the rows of a transaction.
type stored struct{ txn *badger.Txn }

func (s stored) Get(key string) ([]byte, bool, error) {
	row, _, found, err := getRow(s.txn, key)
	return row, found, err
}

func (s stored) Scan(prefix, after string, limit int) ([]projections.KeyRow, error) {
	return scanRows(s.txn, prefix, after, limit)
}

// overlay holds changed rows over others: those of one event, so that an event
// that fails leaves nothing, and those of many, so that a row that every event
// changes is written once. A nil row is a deletion.
type overlay struct {
	under readable
	rows  map[string][]byte
	// values are what rows were put as, where that is known: a fold that comes
	// back to a row of its batch decodes nothing.
	values map[string]any
}

func newOverlay(under readable) overlay {
	return overlay{under: under, rows: map[string][]byte{}, values: map[string]any{}}
}

// Remember implements projections.Remembering, for a row that was just put.
func (o *overlay) Remember(key string, row any) { o.values[key] = row }

// Recall implements projections.Remembering.
func (o *overlay) Recall(key string) (any, bool) {
	if row, ok := o.values[key]; ok {
		return row, true
	}
	if _, ok := o.rows[key]; ok {
		return nil, false // put as bytes, or deleted
	}
	if under, ok := o.under.(*overlay); ok {
		return under.Recall(key)
	}
	return nil, false
}

func (o *overlay) Get(key string) ([]byte, bool, error) {
	if row, ok := o.rows[key]; ok {
		return row, row != nil, nil
	}
	return o.under.Get(key)
}

func (o *overlay) Put(key string, row []byte) error {
	if projections.StreamOf(key) == "" {
		return fmt.Errorf("row %q belongs to no stream", key)
	}
	o.rows[key] = append(make([]byte, 0, len(row)), row...)
	delete(o.values, key)
	return nil
}

func (o *overlay) Delete(key string) error {
	o.rows[key] = nil
	delete(o.values, key)
	return nil
}

// Scan merges the overlay into what lies underneath.
func (o *overlay) Scan(prefix, after string, limit int) ([]projections.KeyRow, error) {
	var over []string
	for key := range o.rows {
		if strings.HasPrefix(key, prefix) && key > after {
			over = append(over, key)
		}
	}
	// Deleted rows may fill the page underneath: read as many more.
	under, err := o.under.Scan(prefix, after, limit+len(over))
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
