package projections

import (
	"strings"

	"github.com/seat-tenure/tenure/events"
)

// Trim drops rows of events that their stream has dropped: those below first,
// the stream's first kept sequence, at most limit of them. more says that some
// are left. FLEET is kept for ever, so for it there is nothing to do.
func Trim(rows Rows, st events.Stream, first uint64, limit int) (more bool, err error) {
	switch st {
	case events.StreamWork:
		return trim(rows, keyDoneBySeq, keyWorkHead, first, limit, dropCompletion)
	case events.StreamDead:
		return trim(rows, keyParkedSeq, keyDeadHead, first, limit, dropParked)
	default:
		return false, nil
	}
}

func trim(rows Rows, bySeq, headKey string, first uint64, limit int, drop func(Rows, string) error) (more bool, err error) {
	page, err := rows.Scan(bySeq, "", limit)
	if err != nil {
		return false, err
	}
	for _, kr := range page {
		if kr.Key >= bySeq+ascending(first) {
			return false, trimHead(rows, headKey, first)
		}
		id, err := decode[string](kr.Key, kr.Row)
		if err != nil {
			return false, err
		}
		if err := drop(rows, id); err != nil {
			return false, err
		}
		if err := rows.Delete(kr.Key); err != nil {
			return false, err
		}
	}
	if len(page) == limit {
		return true, nil
	}
	return false, trimHead(rows, headKey, first)
}

// trimHead forgets the newest event once the stream has: rows rebuilt from what
// is left would not know of it.
func trimHead(rows Rows, headKey string, first uint64) error {
	head, found, err := get[streamHead](rows, headKey)
	if err != nil || !found || head.Position >= first {
		return err
	}
	return rows.Delete(headKey)
}

func dropCompletion(rows Rows, id string) error {
	if err := forget(rows, id); err != nil {
		return err
	}
	return rows.Delete(keyDone + id)
}

func dropParked(rows Rows, id string) error {
	handle, _, _ := strings.Cut(id, "/")
	if err := rows.Delete(keyParked + id); err != nil {
		return err
	}
	return addParked(rows, handle, -1)
}
