package projections

import (
	"slices"
	"strings"

	"github.com/seat-tenure/tenure/events"
)

// Bounds of what rows keep.
const (
	MaxReply  = 256 << 10 // bytes of a completion's reply
	MaxSkips  = 20        // skipped triggers of one seat
	maxDetail = 1 << 10   // bytes of free text in a row
)

// skip keeps a seat's newest skipped triggers.
func skip(rows Rows, r events.Recorded, e events.TriggerSkipped) error {
	skips, _, err := get[[]Skip](rows, keySkips+e.Handle)
	if err != nil {
		return err
	}
	skips = slices.Insert(skips, 0, Skip{
		EventID: e.EventID, Why: e.Why, Detail: clip(e.Detail),
		Epoch: e.Epoch, Owner: e.Owner, Position: r.Seq, At: stamp(r),
	})
	return put(rows, keySkips+e.Handle, skips[:min(len(skips), MaxSkips)])
}

// complete records one event's completion, with its way in by work key and its
// way out by position.
func complete(rows Rows, r events.Recorded, e events.TurnCompleted) error {
	id := doneID(e.Handle, e.EventID)
	if err := forget(rows, id); err != nil {
		return err
	}
	c := Completion{
		Handle: e.Handle, EventID: e.EventID, EventIDs: e.EventIDs, WorkKey: e.WorkKey,
		Epoch: e.Epoch, Owner: e.Owner, Outcome: e.Outcome, Attempts: e.Attempts,
		Reply: e.Reply, ReplyBytes: len(e.Reply), Why: clip(e.Why), Position: r.Seq, At: stamp(r),
	}
	if len(c.Reply) > MaxReply {
		c.Reply = nil
	}
	if err := put(rows, keyDone+id, c); err != nil {
		return err
	}
	if e.WorkKey != "" {
		if err := put(rows, doneByKey(c), struct{}{}); err != nil {
			return err
		}
	}
	return put(rows, keyDoneBySeq+ascending(r.Seq), id)
}

// forget drops the ways to an earlier record of the same event. The subject is
// write-once, so the stream has dropped that record already.
func forget(rows Rows, id string) error {
	old, found, err := get[Completion](rows, keyDone+id)
	if err != nil || !found {
		return err
	}
	if old.WorkKey != "" {
		if err := rows.Delete(doneByKey(old)); err != nil {
			return err
		}
	}
	return rows.Delete(keyDoneBySeq + ascending(old.Position))
}

func doneID(handle, eventID string) string { return handle + "/" + events.Digest(eventID) }

func doneByKey(c Completion) string {
	return keyDoneByKey + doneID(c.Handle, c.WorkKey) + "/" + events.Digest(c.EventID)
}

// clip bounds free text without cutting a character in two.
func clip(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "")
}
