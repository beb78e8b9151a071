package aggregates

import (
	"slices"
	"strings"

	"github.com/seat-tenure/tenure/events"
)

// Bounds of what a cursor tells of attempts that settled nothing: with all open
// mail beside it, a record must fit one message of the broker.
const (
	// MaxTried is how many entries one cursor keeps. Past it the oldest message's
	// go first; how many attempts there were is counted all the same (D3).
	MaxTried = 500
	// maxTriedOfOne is how many of them one message has, the newest.
	maxTriedOfOne = 4
	// maxTriedWhy is what is kept of a reason, in bytes.
	maxTriedWhy = 100
)

// addTried appends one ended attempt. What ends as the one before did, under the
// same tenure and for the same reason, is counted there.
func addTried(all []events.Tried, t events.Tried) []events.Tried {
	end, _ := slices.BinarySearchFunc(all, t.Seq+1, func(have events.Tried, seq uint64) int {
		if have.Seq < seq {
			return -1
		}
		return 1
	})
	begin := end
	for begin > 0 && all[begin-1].Seq == t.Seq {
		begin--
	}
	if end > begin {
		if last := all[end-1]; last.Epoch == t.Epoch && last.End == t.End && last.Why == t.Why {
			t.Count += last.Count
			all[end-1] = t
			return all
		}
	}
	all = slices.Insert(all, end, t)
	if end-begin >= maxTriedOfOne {
		all = slices.Delete(all, begin, begin+1)
	}
	return all[max(0, len(all)-MaxTried):]
}

// forget drops what is told of a message that is settled.
func forget(all []events.Tried, seq uint64) []events.Tried {
	return slices.DeleteFunc(all, func(t events.Tried) bool { return t.Seq == seq })
}

// clipWhy bounds a reason without cutting a character in two.
func clipWhy(why string) string {
	if len(why) <= maxTriedWhy {
		return why
	}
	return strings.ToValidUTF8(why[:maxTriedWhy], "")
}
