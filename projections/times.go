package projections

import (
	"math"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// The index of times answers: which is the last event stamped at or before T?
// The broker's clock can go back, so the row of an event drops all rows that
// are stamped at or after it: asked for their time, the answer would be this
// event too. What is left ascends by time and by position alike.

type timeRow struct {
	Position uint64 `json:"position"`
}

func stampTime(rows Rows, head AsOf, r events.Recorded) error {
	at := timeOf(r.At)
	if head.Position != 0 && at < timeOf(head.At) {
		err := walk(rows, keyTimes, "", func(kr KeyRow) (bool, error) {
			if kr.Key > keyTimes+descending(at) {
				return false, nil
			}
			return true, rows.Delete(kr.Key)
		})
		if err != nil {
			return err
		}
	}
	return put(rows, keyTimes+descending(at), timeRow{Position: r.Seq})
}

// farFuture is the last second whose nanoseconds an int64 can count.
var farFuture = time.Unix(math.MaxInt64/int64(time.Second), 0)

// timeOf renders a time as a key has it: nanoseconds since 1970, none below.
func timeOf(t time.Time) uint64 {
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case t.After(farFuture):
		return uint64(farFuture.UnixNano())
	default:
		return uint64(t.UnixNano())
	}
}

// positionAt is the position of the last event stamped at or before t, 0 when
// every event is stamped later.
func positionAt(rows Rows, t time.Time) (uint64, error) {
	// Right after the key of the next nanosecond comes that of t.
	page, err := rows.Scan(keyTimes, keyTimes+descending(timeOf(t)+1), 1)
	if err != nil || len(page) == 0 {
		return 0, err
	}
	row, err := decode[timeRow](page[0].Key, page[0].Row)
	return row.Position, err
}
