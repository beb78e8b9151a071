package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/sagas"
)

// mailboxes counts what MAIL keeps, for the API. It implements graph.Mailboxes.
type mailboxes struct{ n *node }

// Kept implements graph.Mailboxes: one listing for each kind of subject, and for
// each inbox that has mail its cursor and its oldest message that is not settled.
func (x mailboxes) Kept(ctx context.Context, handles []string) (map[string]graph.Kept, error) {
	kept := map[string]graph.Kept{}
	for _, box := range events.Mailboxes {
		counts, err := x.n.mail.Waiting(ctx, box)
		if err != nil {
			return nil, err
		}
		for _, handle := range handles {
			if counts[handle] == 0 {
				continue
			}
			k := kept[handle]
			k.Mails += int(counts[handle])
			if box == events.Inbox {
				oldest, err := x.oldest(ctx, handle)
				if err != nil {
					return nil, err
				}
				if oldest.Seq == 0 {
					k.Mails -= int(counts[handle]) // settled, and not purged yet
				}
				k.Oldest = oldest.At
			}
			kept[handle] = k
		}
	}
	return kept, nil
}

// oldest is the inbox's first message that is not settled; the zero value for none.
func (x mailboxes) oldest(ctx context.Context, handle string) (events.Message, error) {
	cursor, _, err := x.n.inboxCursor(ctx, handle) // none: the mail came before the mailbox
	if err != nil {
		return events.Message{}, err
	}
	first, err := x.n.mail.Next(ctx, handle, events.Inbox, cursor.Watermark()+1)
	if errors.Is(err, events.ErrNotFound) {
		return events.Message{}, nil
	}
	return first, err
}

// retireMailbox retires the mailbox of a removed seat, on this node: what
// excludes another that does so is the log.
func (o *operator) retireMailbox(ctx context.Context, op graph.RetireMailbox, by graph.Act) (graph.Done, error) {
	s, err := o.n.duties.mailboxes.Retire(commands.Acting(ctx, by.Actor, by.Reason), op.Handle, op.Now)
	if err != nil {
		return graph.Done{}, notRetired(err)
	}
	o.log.Info("operator_command", "command", "mailbox-retire", "actor", by.Actor, "reason", by.Reason, "seat", op.Handle)
	return graph.Done{Position: s.Last, Saga: s.ID()}, nil
}

// notRetired makes one kind of all that refuses a retirement, and of what cannot be
// told now; other errors pass.
func notRetired(err error) error {
	var (
		present  *duty.PresentError
		unknown  *duty.UnregisteredError
		held     *duty.HeldError
		retiring *sagas.RetiringError
		grace    *sagas.GraceError
		others   *sagas.NotMineError
		fenced   *aggregates.FencedError
		behind   *behindError
	)
	switch {
	case errors.As(err, &present):
		return refuse(codeSeatPresent, "%v", present)
	case errors.As(err, &unknown) && unknown.Retired:
		return refuse(codeAlreadyRetired, "%v", unknown)
	case errors.As(err, &unknown):
		return refuse(codeUnknownMailbox, "%v", unknown)
	case errors.As(err, &held) && held.Refused == events.RefusedProtocol:
		return refuse(codeOlderProtocol, "%v", held)
	case errors.As(err, &held):
		return refuse(codeSeatHeld, "%v", held)
	case errors.As(err, &retiring):
		return refuse(codeRetiring, "%v", retiring)
	case errors.As(err, &grace):
		return refuse(codeInGrace, "%v; --now does not wait for the rest", grace)
	case errors.As(err, &others):
		return refuse(codeRetiring, "%v", others)
	case errors.As(err, &fenced):
		return refuse(codeSeatHeld, "%v", fenced)
	case errors.Is(err, commands.ErrCompanyMoved):
		return refuse(codeSeatPresent, "%v; look again", err)
	case errors.Is(err, events.ErrSwapped):
		return refuse(codeMailSwapped, "%v; --now gives up what the lost stream had for the seat", err)
	case errors.Is(err, errNoCompany):
		return refuse(codeUnknownMailbox, "%v", err)
	case errors.As(err, &behind):
		return model.Unavailablef("%v; ask again in a moment", behind)
	case errors.Is(err, duty.ErrTooLong):
		return fmt.Errorf("%w: %w", events.ErrUnknown, err)
	}
	return err
}
