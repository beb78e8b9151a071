package graph

import (
	"context"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// Mailboxes counts what the log keeps for seats.
type Mailboxes interface {
	// Kept tells of these seats. One that is not in the answer has nothing.
	Kept(ctx context.Context, handles []string) (map[string]Kept, error)
}

// Kept is what MAIL has for one seat.
type Kept struct {
	Mails  int
	Oldest time.Time // of the inbox's mail that is not settled; zero for none
}

// Mailbox answers one mailbox.
func (q queryResolver) Mailbox(ctx context.Context, handle string) (*model.Mailbox, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	r := readingOf(ctx)
	var m projections.Mailbox
	var found bool
	err := r.read(ctx, func(reader projections.Reader) (err error) {
		m, found, err = reader.Mailbox(handle)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	all, err := q.mailboxes(ctx, []projections.Mailbox{m})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Mailboxes lists mailboxes by handle.
func (q queryResolver) Mailboxes(ctx context.Context, filter *model.MailboxFilter, first *int, after *string) (*model.MailboxConnection, error) {
	size, err := pageSize(first, 50)
	if err != nil {
		return nil, err
	}
	from, err := handleAfter(cursorMailbox, after)
	if err != nil {
		return nil, err
	}
	var state projections.MailboxState
	if filter != nil && filter.State != nil {
		state = projections.MailboxState(*filter.State)
	}
	r := readingOf(ctx)
	var page projections.Page[projections.Mailbox]
	err = r.read(ctx, func(reader projections.Reader) (err error) {
		page, err = reader.MailboxesIn(state, from, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	all, err := q.mailboxes(ctx, page.Items)
	if err != nil {
		return nil, err
	}
	out := &model.MailboxConnection{AsOf: r.asOf, Edges: []*model.MailboxEdge{}}
	var cursors []string
	for _, m := range all {
		cursors = append(cursors, cursorOf(cursorMailbox, m.Handle))
		out.Edges = append(out.Edges, &model.MailboxEdge{Cursor: cursors[len(cursors)-1], Node: m})
	}
	out.PageInfo = pageInfo(cursors, page.More, after)
	out.TotalCount = whole(len(out.Edges), page.More, after)
	return out, nil
}

// mailboxes adds to rows what the log alone knows. That the broker does not
// answer leaves it unknown, which is neither 0 nor an error of the rest.
func (q queryResolver) mailboxes(ctx context.Context, rows []projections.Mailbox) ([]*model.Mailbox, error) {
	handles := make([]string, len(rows))
	for i, m := range rows {
		handles[i] = m.Handle
	}
	kept, keptErr := q.deps.Mailboxes.Kept(ctx, handles)
	out := make([]*model.Mailbox, len(rows))
	err := readingOf(ctx).read(ctx, func(reader projections.Reader) error {
		for i, m := range rows {
			out[i] = mailboxOf(m)
			if parked, err := reader.ParkedCount(m.Handle); err == nil { // DEAD's copy may be out of service alone
				out[i].Parked = &parked
			}
			if keptErr != nil {
				continue
			}
			k := kept[m.Handle]
			out[i].Pending = &k.Mails
			if !k.Oldest.IsZero() {
				age := max(0, q.deps.Now().Sub(k.Oldest))
				out[i].OldestAge = &age
			}
		}
		return nil
	})
	return out, err
}

func mailboxOf(m projections.Mailbox) *model.Mailbox {
	out := &model.Mailbox{Handle: m.Handle, AgentID: m.AgentID, State: model.MailboxState(m.State())}
	r := m.Retirement
	if r == nil {
		return out
	}
	id := events.RetirementID(m.Handle, r.Number)
	out.RetirementID, out.RetirementStep = &id, text(string(r.Step))
	if m.State() == projections.MailboxAbsent || m.State() == projections.MailboxRetiring {
		out.AbsentSince, out.RetiresAt, out.Refused = stamped(r.Since), stamped(r.RetiresAt), text(string(r.Refused))
	}
	return out
}
