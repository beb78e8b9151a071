// Package badgertest reads what a projection store keeps from outside, for tests
// that compare whole nodes byte for byte. It is for one goroutine, and for a
// store that is closed.
package badgertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// Dump renders every row of the store in that directory by key, its checkpoints
// among them.
func Dump(tb testing.TB, dir string) string {
	tb.Helper()
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithReadOnly(true))
	if err != nil {
		tb.Fatalf("open the store in %s: %v", dir, err)
	}
	defer db.Close()
	var b strings.Builder
	err = db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			err := it.Item().Value(func(row []byte) error {
				_, err := fmt.Fprintf(&b, "%s %q\n", it.Item().Key(), row)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatalf("read the store in %s: %v", dir, err)
	}
	return b.String()
}
