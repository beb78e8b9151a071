package graph

import (
	"context"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// Completion answers from the view, which may lag behind the ledger.
func (q queryResolver) Completion(ctx context.Context, handle, eventID string) (*model.Completion, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	if eventID == "" || len(eventID) > events.MaxMailID {
		return nil, model.Badf("eventId", "an event id has 1 to %d bytes", events.MaxMailID)
	}
	var c projections.Completion
	var found bool
	err := readingOf(ctx).read(ctx, func(reader projections.Reader) (err error) {
		c, found, err = reader.Completion(handle, eventID)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	return completionOf(c), nil
}

func completionOf(c projections.Completion) *model.Completion {
	epoch := model.Epoch(c.Epoch)
	return &model.Completion{
		Handle: c.Handle, WorkKey: text(c.WorkKey), EventIds: c.EventIDs, Epoch: &epoch,
		Node: text(c.Owner.NodeID()), At: c.At, Outcome: string(c.Outcome), Skipped: c.Skipped,
		Attempts: &c.Attempts, Reply: model.JSON(c.Reply), ReplyBytes: &c.ReplyBytes, Why: text(c.Why),
	}
}
