package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seat-tenure/tenure/events"
)

// Mailboxes reads the seats' mail from MAIL's leader, and tells one life of
// MAIL from another. It settles nothing: cursors do.
type Mailboxes struct{ store Store }

// NewMailboxes returns the mailboxes of the store's fleet.
func NewMailboxes(store Store) *Mailboxes { return &Mailboxes{store} }

func (m *Mailboxes) stream() Stream { return m.store.Stream(events.StreamMail) }

// Next returns the first message of the mailbox at or after from;
// events.ErrNotFound when there is none yet.
func (m *Mailboxes) Next(ctx context.Context, handle string, box events.Mailbox, from uint64) (events.Message, error) {
	return m.stream().Next(ctx, m.store.Subjects().Mail(handle, box), from)
}

// Subscribe calls wake after mail for the mailbox was committed, from now on.
// A wake may be lost with the connection.
func (m *Mailboxes) Subscribe(ctx context.Context, handle string, box events.Mailbox, wake func()) (stop func(), err error) {
	return m.store.Subscribe(ctx, m.store.Subjects().Wake(handle, box), func(string) { wake() })
}

// Purge removes the mailbox's messages up to the watermark: settled mail only,
// since a watermark never passes what is open or was not seen.
func (m *Mailboxes) Purge(ctx context.Context, handle string, box events.Mailbox, watermark uint64) error {
	return m.stream().Purge(ctx, m.store.Subjects().Mail(handle, box), watermark+1)
}

// Waiting counts what is kept for each seat's mailbox, settled mail that is not
// purged yet included: a hint, one request for the whole fleet.
func (m *Mailboxes) Waiting(ctx context.Context, box events.Mailbox) (map[string]uint64, error) {
	subjects := m.store.Subjects()
	counts, err := m.stream().Subjects(ctx, subjects.Mail("*", box))
	if err != nil {
		return nil, err
	}
	waiting := make(map[string]uint64, len(counts))
	for subject, n := range counts {
		if parts := strings.Split(subject, "."); len(parts) == 4 {
			waiting[parts[2]] = n
		}
	}
	return waiting, nil
}

// Check fails with an *IdentityError when MAIL is not the stream in which a
// reader at upTo knew that identity.
func (m *Mailboxes) Check(ctx context.Context, known events.StreamIdentity, upTo uint64) error {
	return CheckIdentity(ctx, m.store, events.StreamMail, known, upTo)
}

// Advance returns MAIL's identity for a reader that knew known, the zero value
// for none, and has read up to upTo: with the newest marker at or below that. It
// fails with an *IdentityError when MAIL was recreated since.
func (m *Mailboxes) Advance(ctx context.Context, known events.StreamIdentity, upTo uint64) (events.StreamIdentity, error) {
	if known == (events.StreamIdentity{}) {
		return NewestMarker(ctx, m.store, events.StreamMail, upTo)
	}
	info, err := m.stream().Info(ctx)
	if err != nil {
		return known, err
	}
	if now := identityOf(info.CreatedAt); now.CreatedAt != known.CreatedAt {
		return known, &IdentityError{Stream: events.StreamMail, Reason: Recreated, Want: known, Have: now}
	}
	filter := markerFilterOf(m.store, events.StreamMail)
	for range markerWalk {
		msg, err := m.stream().Next(ctx, filter, known.MarkerSeq+1)
		if errors.Is(err, events.ErrNotFound) || err == nil && msg.Seq > upTo {
			return known, nil
		}
		if err != nil {
			return known, err
		}
		id, ok := MarkerOf(msg)
		if !ok {
			return known, fmt.Errorf("message %d of %s is no marker", msg.Seq, filter)
		}
		known.MarkerSeq, known.MarkerID = msg.Seq, id
	}
	return known, fmt.Errorf("more than %d markers of MAIL since the mailbox was last read", markerWalk)
}
