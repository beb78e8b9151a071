package main

import (
	"context"
	"errors"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

// inboxes reads seats' mail for the API, from the leaders of MAIL, CURSOR and
// DEAD. It implements graph.Inboxes.
type inboxes struct{ n *node }

// Parked implements graph.Inboxes.
func (x inboxes) Parked(ctx context.Context, position uint64) (events.Recorded, error) {
	return x.n.recordAt(ctx, events.StreamDead, position)
}

// Waiting implements graph.Inboxes. The cursor is read first: what it has as open
// or unread may be settled by the time its message is looked for, and is left out
// then, or shown as it was.
func (x inboxes) Waiting(ctx context.Context, handle string, after uint64, limit int) (mail []graph.Waiting, more, found bool, err error) {
	cursor, found, err := x.n.inboxCursor(ctx, handle)
	if err != nil || !found {
		return nil, false, false, err
	}
	look := func(from uint64, o events.OpenMail) (bool, error) {
		msg, err := x.n.mail.Next(ctx, handle, events.Inbox, from)
		if errors.Is(err, events.ErrNotFound) || err == nil && o.Seq > 0 && msg.Seq != o.Seq {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		m, unreadable := events.DecodeMail(x.n.store.Subjects(), msg)
		mail = append(mail, graph.Waiting{Message: msg, Mail: m, Unreadable: unreadable, Open: o})
		return true, nil
	}
	for _, o := range cursor.Open {
		if o.Seq <= after {
			continue
		}
		if len(mail) == limit {
			return mail, true, true, nil
		}
		if _, err := look(o.Seq, o); err != nil {
			return nil, false, false, err
		}
	}
	for from := max(after, cursor.Read) + 1; len(mail) <= limit; from = mail[len(mail)-1].Message.Seq + 1 {
		there, err := look(from, events.OpenMail{})
		if err != nil {
			return nil, false, false, err
		}
		if !there {
			return mail, false, true, nil
		}
	}
	return mail[:limit], true, true, nil
}
