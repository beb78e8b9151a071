package main

import (
	"context"
	"errors"
	"iter"

	"github.com/seat-tenure/tenure/events"
)

// recordAt reads what stands at a position of a stream, from its leader;
// events.ErrNotFound when nothing does.
func (n *node) recordAt(ctx context.Context, st events.Stream, position uint64) (events.Recorded, error) {
	msg, err := n.store.Stream(st).Get(ctx, position)
	if err != nil {
		return events.Recorded{}, err
	}
	return events.Decode(n.store.Subjects(), msg)
}

// revisions reads the company's revisions behind a position, the oldest first, from
// the leader. It ends behind the newest, or with an error.
func (n *node) revisions(ctx context.Context, after uint64) iter.Seq2[events.Recorded, error] {
	fleet, subjects := n.store.Stream(events.StreamFleet), n.store.Subjects()
	return func(yield func(events.Recorded, error) bool) {
		for {
			msg, err := fleet.Next(ctx, subjects.Company(), after+1)
			if errors.Is(err, events.ErrNotFound) {
				return
			}
			var r events.Recorded
			if err == nil {
				r, err = events.Decode(subjects, msg)
			}
			if !yield(r, err) || err != nil {
				return
			}
			after = msg.Seq
		}
	}
}

// inboxCursor reads the cursor of a seat's inbox, from the leader; found is false
// when the seat has no mailbox yet.
func (n *node) inboxCursor(ctx context.Context, handle string) (c events.CursorSnapshot, found bool, err error) {
	msg, err := n.store.Stream(events.StreamCursor).Last(ctx, n.store.Subjects().Cursor(handle, events.Inbox))
	if errors.Is(err, events.ErrNotFound) {
		return c, false, nil
	}
	if err != nil {
		return c, false, err
	}
	r, err := events.Decode(n.store.Subjects(), msg)
	if err != nil {
		return c, false, err
	}
	_, _, c = r.Event.(events.CursorEvent).Cursor()
	return c, true, nil
}
