package projections

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/seat-tenure/tenure/events"
)

// SchemaVersion numbers the form of keys and rows. Every change of either
// raises it; a store of another version is rebuilt, not migrated.
const SchemaVersion = 5

// Rows is the inside of one transaction of a store: it reads what it wrote.
type Rows interface {
	Get(key string) (row []byte, found bool, err error)
	Put(key string, row []byte) error
	Delete(key string) error
	// Scan returns at most limit rows whose key starts with prefix and comes
	// after the key after ("" for the first), ascending by bytes.
	Scan(prefix, after string, limit int) ([]KeyRow, error)
}

// Remembering is what rows may do besides: keep the values that rows were put as,
// for as long as nothing else wrote the rows, so that a fold which comes back to a
// row need not decode it again. What is recalled is never changed in place.
type Remembering interface {
	Remember(key string, row any)
	Recall(key string) (row any, ok bool)
}

// KeyRow is one row under its key.
type KeyRow struct {
	Key string
	Row []byte
}

// pageSize is how many rows a walk over a prefix reads at a time.
const pageSize = 256

// Every key starts with the letter of the stream its row comes from, so that a
// store can refuse the rows of one stream and serve the others.
const (
	keyFleetHead  = "f/head"
	keyCompany    = "f/company"
	keyRevisions  = "f/revision/" // newest first, by the revision's number
	keyCounts     = "f/counts"
	keySeats      = "f/seat/"
	keyNodes      = "f/node/"
	keyDuties     = "f/duty/"
	keyHeld       = "f/held/"        // node/handle: live tenures by node
	keyLoad       = "f/load/"        // node: how many those are
	keyMailboxes  = "f/mailbox/"     //
	keySkips      = "f/skips/"       // handle
	keyTenures    = "f/tenure/"      // newest first, by the claim's position
	keySeatTenure = "f/tenure-seat/" // handle/newest first
	keyNodeTenure = "f/tenure-node/" // node/newest first
	keyTimes      = "f/time/"        // latest first: see times.go
	keySagas      = "f/saga/"        // newest first, by the request's position
	keySagaOpen   = "f/saga-open/"   // newest first
	keySagaSeat   = "f/saga-seat/"   // handle/newest first
	keyDecided    = "f/parked/"      // handle/key of the parked mail
	keyWorkHead   = "w/head"
	keyDone       = "w/done/" // handle/digest of the event id
	keyDoneByKey  = "w/key/"  // handle/digest of the work key/digest of the event id
	keyDoneBySeq  = "w/seq/"  // position
	keyDeadHead   = "d/head"
	keyParked     = "d/mail/"  // handle/newest first
	keyParkedSeq  = "d/seq/"   // position
	keyParkedSeat = "d/count/" // handle
)

// StreamOf says which stream the row under key comes from, "" for none of ours.
func StreamOf(key string) events.Stream {
	switch {
	case strings.HasPrefix(key, "f/"):
		return events.StreamFleet
	case strings.HasPrefix(key, "w/"):
		return events.StreamWork
	case strings.HasPrefix(key, "d/"):
		return events.StreamDead
	}
	return ""
}

// ascending renders n so that keys sort as the numbers do.
func ascending(n uint64) string { return fmt.Sprintf("%020d", n) }

// descending renders n so that the largest comes first.
func descending(n uint64) string { return ascending(math.MaxUint64 - n) }

// get reads the row under key into a T; the zero T where there is none.
func get[T any](rows Rows, key string) (row T, found bool, err error) {
	memory, _ := rows.(Remembering)
	if memory != nil {
		if value, ok := memory.Recall(key); ok {
			if row, ok := value.(T); ok {
				return row, true, nil
			}
		}
	}
	data, found, err := rows.Get(key)
	if err != nil || !found {
		return row, false, err
	}
	row, err = decode[T](key, data)
	return row, err == nil, err
}

func decode[T any](key string, data []byte) (row T, err error) {
	if err := json.Unmarshal(data, &row); err != nil {
		return row, fmt.Errorf("row %s: %w", key, err)
	}
	return row, nil
}

// put writes row under key. Encoding is canonical: struct fields in their
// order, map keys sorted, nothing escaped that JSON does not ask for.
func put(rows Rows, key string, row any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(row); err != nil {
		return fmt.Errorf("row %s: %w", key, err)
	}
	if err := rows.Put(key, bytes.TrimSuffix(b.Bytes(), []byte("\n"))); err != nil {
		return err
	}
	if memory, ok := rows.(Remembering); ok {
		memory.Remember(key, row)
	}
	return nil
}

// walk calls fn for each row under prefix after the key after, until it says stop.
func walk(rows Rows, prefix, after string, fn func(KeyRow) (more bool, err error)) error {
	for {
		page, err := rows.Scan(prefix, after, pageSize)
		if err != nil {
			return err
		}
		for _, kr := range page {
			if more, err := fn(kr); err != nil || !more {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
		after = page[len(page)-1].Key
	}
}
