package graph

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// Inboxes reads seats' mail from the broker itself: views keep none.
type Inboxes interface {
	// Waiting lists the inbox's mail that is not settled, behind that position,
	// oldest first, limit at most. found is false where the seat has no mailbox.
	Waiting(ctx context.Context, handle string, after uint64, limit int) (mail []Waiting, more, found bool, err error)
	// Parked reads the record at that position of DEAD; events.ErrNotFound when
	// there is none that is parked mail.
	Parked(ctx context.Context, position uint64) (events.Recorded, error)
}

// Waiting is one message that waits.
type Waiting struct {
	Message    events.Message
	Mail       events.Mail
	Unreadable error           // why Mail is empty
	Open       events.OpenMail // of the cursor; its zero value: not read yet
}

const maxWaiting = 100 // messages of one page: each is a read of the log's leader

// WaitingMail reads the seat's cursor and mail.
func (q queryResolver) WaitingMail(ctx context.Context, handle string, first *int, after *string) (*model.WaitingMailConnection, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	size, err := pageUpTo(maxWaiting, first, 20)
	if err != nil {
		return nil, err
	}
	from, err := positionBefore(cursorMail, after)
	if err != nil {
		return nil, err
	}
	mail, more, found, err := q.deps.Inboxes.Waiting(ctx, handle, from, size)
	if err != nil || !found {
		return nil, err
	}
	out := &model.WaitingMailConnection{Edges: []*model.WaitingMailEdge{}}
	var cursors []string
	for _, w := range mail {
		cursors = append(cursors, cursorOf(cursorMail, strconv.FormatUint(w.Message.Seq, 10)))
		out.Edges = append(out.Edges, &model.WaitingMailEdge{Cursor: cursors[len(cursors)-1], Node: waitingOf(w)})
	}
	out.PageInfo = pageInfo(cursors, more, after)
	return out, nil
}

func waitingOf(w Waiting) *model.WaitingMail {
	h := w.Message.Header
	out := &model.WaitingMail{
		Position: model.Position(w.Message.Seq), At: w.Message.At, State: model.WaitingMailStateUnread,
		ID: text(h.Get(events.HeaderID)), Type: text(h.Get(events.HeaderType)), Conversation: text(h.Get(events.HeaderConversation)),
		Source: text(h.Get(events.HeaderSource)), Attempts: w.Open.Attempts, Run: text(w.Open.Run), Bytes: len(w.Message.Data),
	}
	if json.Valid(w.Message.Data) {
		out.Data = model.JSON(w.Message.Data)
	}
	if w.Unreadable != nil {
		out.Undecodable = text(w.Unreadable.Error())
	}
	if of, err := strconv.ParseUint(h.Get(events.HeaderReplayOf), 10, 64); err == nil {
		position := model.Position(of)
		out.ReplayOf = &position
	}
	switch {
	case w.Open.Run != "":
		out.State = model.WaitingMailStateHeld
	case w.Open.Running:
		out.State = model.WaitingMailStateRunning
	case w.Open.Attempts > 0:
		out.State = model.WaitingMailStateFailed
	case w.Open.Seq > 0:
		out.State = model.WaitingMailStateRead
	}
	return out
}

// ParkedMail lists from the view.
func (q queryResolver) ParkedMail(ctx context.Context, handle string, decided *bool, first *int, after *string) (*model.ParkedMailConnection, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	size, err := pageSize(first, 50)
	if err != nil {
		return nil, err
	}
	before, err := positionBefore(cursorParked, after)
	if err != nil {
		return nil, err
	}
	r := readingOf(ctx)
	var page projections.Page[projections.Parked]
	err = r.read(ctx, func(reader projections.Reader) (err error) {
		page, err = reader.Parked(handle, decided != nil && *decided, before, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &model.ParkedMailConnection{AsOf: r.asOf, Edges: []*model.ParkedMailEdge{}}
	var cursors []string
	for _, p := range page.Items {
		cursors = append(cursors, cursorOf(cursorParked, strconv.FormatUint(p.Position, 10)))
		out.Edges = append(out.Edges, &model.ParkedMailEdge{Cursor: cursors[len(cursors)-1], Node: parkedOf(p)})
	}
	out.PageInfo = pageInfo(cursors, page.More, after)
	out.TotalCount = whole(len(out.Edges), page.More, after)
	return out, nil
}

func parkedOf(p projections.Parked) *model.ParkedMail {
	out := &model.ParkedMail{
		Position: model.Position(p.Position), Handle: p.Handle, ID: text(p.EventID), Type: text(p.Type), Conversation: text(p.Conversation),
		MailSequence: model.Position(p.MailSeq), At: p.At, Reason: p.Reason, Attempts: p.Attempts, Bytes: p.Bytes, Clipped: p.Clipped,
		History: []*model.AttemptsEnded{},
	}
	for _, h := range p.History {
		out.History = append(out.History, &model.AttemptsEnded{
			Epoch: model.Epoch(h.Epoch), End: string(h.End), Count: h.Count, Why: text(h.Why), At: stamped(h.At),
		})
	}
	if d := p.Decided; d != nil {
		out.Decided = &model.ParkedDecision{How: string(d.How), By: d.By, Reason: d.Reason, At: d.At, Position: model.Position(d.Position)}
		if d.MailSeq > 0 {
			at := model.Position(d.MailSeq)
			out.Decided.MailSequence = &at
		}
	}
	return out
}

// ParkedContent reads the record itself.
func (q queryResolver) ParkedContent(ctx context.Context, handle string, position model.Position) (*model.ParkedContent, error) {
	if err := token("handle", handle); err != nil {
		return nil, err
	}
	r, err := q.deps.Inboxes.Parked(ctx, uint64(position))
	if errors.Is(err, events.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, is := r.Event.(events.MailParked)
	if !is || p.Handle != handle {
		return nil, nil
	}
	headers, err := json.Marshal(p.Header)
	if err != nil {
		return nil, err
	}
	if p.Header == nil {
		headers = []byte("{}")
	}
	out := &model.ParkedContent{Position: position, Headers: model.JSON(headers)}
	switch {
	case json.Valid(p.Data):
		out.Data = model.JSON(p.Data)
	case len(p.Data) > 0:
		out.Raw = text(base64.StdEncoding.EncodeToString(p.Data))
	}
	return out, nil
}

// MaxDecided is how much parked mail one mutation decides about.
const MaxDecided = 100

// ReplayParked sends parked mail again.
func (m mutationResolver) ReplayParked(ctx context.Context, handle string, positions []model.Position, reason string) (model.OperationResult, error) {
	if positions == nil {
		return m.onSeat(ctx, handle, reason, ReplayParked{Handle: handle})
	}
	chosen, err := chosenMail(positions)
	if err != nil {
		return nil, err
	}
	return m.onSeat(ctx, handle, reason, ReplayParked{handle, chosen})
}

// DropParked gives parked mail up.
func (m mutationResolver) DropParked(ctx context.Context, handle string, positions []model.Position, reason string) (model.OperationResult, error) {
	chosen, err := chosenMail(positions)
	if err != nil {
		return nil, err
	}
	return m.onSeat(ctx, handle, reason, DropParked{handle, chosen})
}

func chosenMail(positions []model.Position) ([]uint64, error) {
	if len(positions) < 1 || len(positions) > MaxDecided {
		return nil, model.Badf("positions", "%d of them are not between 1 and %d", len(positions), MaxDecided)
	}
	chosen := make([]uint64, len(positions))
	for i, p := range positions {
		if chosen[i] = uint64(p); p == 0 {
			return nil, model.Badf("positions", "0 is no position")
		}
	}
	return chosen, nil
}
