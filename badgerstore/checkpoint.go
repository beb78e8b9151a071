package badgerstore

import (
	"errors"
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// What is wrong with a stream under a checkpoint.
var (
	// ErrSwapped: the stream is not the one that was read before. Only a person
	// can tell which of the two is right.
	ErrSwapped = errors.New("the stream was recreated, restored or swapped")
	// ErrBelowFloor: the stream has dropped events that were not read. The copy
	// is rebuilt from what is kept.
	ErrBelowFloor = errors.New("the stream has dropped events that were not read yet")
)

// Checkpoint is how far a stream was applied, and which life of the stream that
// was.
type Checkpoint struct {
	Stream  events.Stream `json:"stream"`
	Seq     uint64        `json:"seq"`      // of the newest event applied, 0: none
	EventID string        `json:"event_id"` // of that event
	events.StreamIdentity
	// Complete: the copy has reached the end of the stream once. Until then it
	// is a part, and not served.
	Complete bool `json:"complete"`
}

// after is the checkpoint once r was applied.
func (cp Checkpoint) after(r events.Recorded) Checkpoint {
	cp.Seq, cp.EventID = r.Seq, r.Meta.ID
	if m, ok := r.Event.(events.StreamMarked); ok && m.Stream == r.Stream {
		cp.MarkerSeq, cp.MarkerID = r.Seq, m.Marker
	}
	return cp
}

// Bounds are a stream as its leader describes it.
type Bounds struct {
	CreatedAt   string // RFC 3339 with nanoseconds
	First, Last uint64 // Last: also of a message that is gone
}

// Verify compares the checkpoint with the stream as it is now: its creation,
// the newest event applied and the newest marker seen. eventAt reads the event
// at a sequence from the stream's leader, or says that there is none. The answer
// is nil, ErrSwapped, ErrBelowFloor, or the error of eventAt.
//
// A stream that drops its oldest events by design (WORK, DEAD) has no floor to
// fall below: rows of what it dropped go as well.
func (cp Checkpoint) Verify(now Bounds, eventAt func(seq uint64) (r events.Recorded, found bool, err error)) error {
	if cp.CreatedAt != "" && cp.CreatedAt != now.CreatedAt {
		return fmt.Errorf("%w: %s was created at %s, the one read before at %s", ErrSwapped, cp.Stream, now.CreatedAt, cp.CreatedAt)
	}
	if cp.Seq > now.Last {
		return fmt.Errorf("%w: %s ends at sequence %d, and was read up to %d before", ErrSwapped, cp.Stream, now.Last, cp.Seq)
	}
	drops := cp.Stream == events.StreamWork || cp.Stream == events.StreamDead
	if cp.Seq != 0 && cp.Seq < now.First && !drops {
		return fmt.Errorf("%w: %s begins at sequence %d, and was read up to %d", ErrBelowFloor, cp.Stream, now.First, cp.Seq)
	}
	check := func(seq uint64, same func(events.Recorded) bool) error {
		if seq == 0 || seq < now.First {
			return nil
		}
		r, found, err := eventAt(seq)
		if err != nil {
			return fmt.Errorf("check %s at sequence %d: %w", cp.Stream, seq, err)
		}
		if !found || !same(r) {
			return fmt.Errorf("%w: %s has at sequence %d not the event that was read there", ErrSwapped, cp.Stream, seq)
		}
		return nil
	}
	if err := check(cp.Seq, func(r events.Recorded) bool { return r.Meta.ID == cp.EventID }); err != nil {
		return err
	}
	return check(cp.MarkerSeq, func(r events.Recorded) bool {
		m, ok := r.Event.(events.StreamMarked)
		return ok && m.Marker == cp.MarkerID
	})
}
