package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
)

// Why a message is refused, in extensions.refusal.
const (
	refusedUnknownSeat = "unknown_seat"
	refusedHumanSeat   = "human_seat"
)

// SendMessage stores the mail and, when asked to, waits for the work. From the
// moment the mail is stored the answer is a result, whatever becomes of the
// wait: an error without a result would make the caller send again.
func (m mutationResolver) SendMessage(ctx context.Context, handle, mailType string, data model.JSON, id, conversation *string, wait *time.Duration) (*model.SendResult, error) {
	mail := events.Mail{
		Handle: handle, Mailbox: events.Inbox, Type: mailType, Time: time.Now(),
		Source: string(m.deps.Self), Data: json.RawMessage(data),
	}
	if conversation != nil {
		mail.Conversation = *conversation
	}
	if id != nil {
		mail.ID = *id
	} else {
		mail.ID = uuid.NewString()
	}
	if err := judgeMail(mail, conversation != nil, wait); err != nil {
		return nil, err
	}
	if err := m.addressed(ctx, handle); err != nil {
		return nil, err
	}
	if wait != nil {
		// Before the mail goes out, so that nobody is told "no room" for mail
		// that was sent.
		if !m.waiters.enter() {
			return nil, model.Unavailablef("%d callers wait already; send without wait and ask for completion(handle, eventId)", maxWaiters)
		}
		defer m.waiters.leave()
	}
	seq, err := m.send(ctx, mail)
	if err != nil {
		return nil, err
	}
	out := &model.SendResult{ID: mail.ID, MailSequence: model.Position(seq)}
	if wait != nil {
		out.Completion = m.await(ctx, handle, mail.ID, *wait)
	}
	return out, nil
}

// judgeMail judges the arguments by themselves.
func judgeMail(m events.Mail, conversation bool, wait *time.Duration) error {
	if err := line("id", m.ID, events.MaxMailID); err != nil {
		return err
	}
	if err := line("type", m.Type, maxText); err != nil {
		return err
	}
	if conversation {
		if err := line("conversation", m.Conversation, maxText); err != nil {
			return err
		}
	}
	if len(m.Data) > events.MaxMailData {
		return model.Badf("data", "%d bytes, and mail may say %d at most; send it in parts, or where it can be found", len(m.Data), events.MaxMailData)
	}
	if !json.Valid(m.Data) {
		return model.Badf("data", "this is no JSON value")
	}
	switch {
	case wait == nil:
	case *wait <= 0 || *wait > maxWait:
		return model.Badf("wait", "%s is not above zero and at most %s; to send without waiting leave it out", *wait, maxWait)
	case !events.Ledgered(m.Type):
		return model.Badf("wait", "mail of type %q runs no turn, so there is no completion to wait for (K4); leave it out", m.Type)
	}
	return nil
}

// line judges text that travels in a header, where brokers trim spaces and
// break lines: a changed id would be another event's.
func line(argument, s string, limit int) error {
	switch {
	case s == "" || len(s) > limit:
		return model.Badf(argument, "%d bytes are not between 1 and %d", len(s), limit)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return model.Badf(argument, "use UTF-8 without control characters")
	case strings.TrimSpace(s) != s:
		return model.Badf(argument, "remove the spaces at its ends")
	}
	return nil
}

// addressed refuses mail to what is no agent's seat.
func (m mutationResolver) addressed(ctx context.Context, handle string) error {
	c, found, err := m.deps.Company.Company(ctx)
	if err != nil {
		return err
	}
	if !found {
		return refused(refusedUnknownSeat, "there is no company yet, so there are no seats; apply one first", nil)
	}
	role, known := c.Role(handle)
	switch {
	case !known:
		nearest := c.Nearest(clip(handle), nearestHandles)
		message := fmt.Sprintf("the company has no seat %q", clip(handle))
		if len(nearest) > 0 {
			message += "; did you mean " + strings.Join(nearest, ", ") + "?"
		}
		return refused(refusedUnknownSeat, message, nearest)
	case role.Kind == company.Human:
		return refused(refusedHumanSeat, "a human has that place, and humans read no mailbox; send to an agent's seat", nil)
	}
	return nil
}

// clip keeps the search for near handles short whatever was written.
func clip(handle string) string { return handle[:min(len(handle), maxText)] }

func refused(why, message string, nearest []string) *model.Error {
	e := &model.Error{Code: model.Refused, Message: message, More: map[string]any{"refusal": why}}
	if len(nearest) > 0 {
		e.More["nearest"] = nearest
	}
	return e
}

func (m mutationResolver) send(ctx context.Context, mail events.Mail) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	seq, err := m.deps.Mail.Send(ctx, mail)
	nothingSent := errors.Is(err, events.ErrUnavailable) || errors.Is(err, events.ErrBusy)
	if errors.Is(err, events.ErrUnknown) || err != nil && ctx.Err() != nil && !nothingSent {
		return 0, &model.Error{
			Code:    model.Unavailable,
			Message: "whether the mail was stored is not known; send it again with the id " + mail.ID + ", which is worked on once",
			More:    map[string]any{"id": mail.ID, "outcome": "unknown"},
		}
	}
	return seq, err
}

// await is nil when the wait ran out. Anything else that ends it is told beside
// the result.
func (m mutationResolver) await(ctx context.Context, handle, eventID string, wait time.Duration) *model.Completion {
	waiting, done := context.WithTimeoutCause(ctx, wait, errWaitedOut)
	defer done()
	waiting, cancel := untilStopping(waiting)
	defer cancel()
	c, err := m.deps.Completions.Await(waiting, handle, eventID)
	switch {
	case err == nil:
		return completionOf(c)
	case errors.Is(err, errWaitedOut), errors.Is(context.Cause(waiting), errWaitedOut):
		return nil
	}
	shown := m.code.code(ctx, err, "await completion")
	if errors.Is(context.Cause(waiting), errStopping) {
		shown = model.Unavailablef("the mail is stored, and this node stops; ask another node for completion(handle, eventId)")
	}
	graphql.AddError(ctx, &gqlerror.Error{
		Err: shown, Message: shown.Message, Path: append(graphql.GetPath(ctx), ast.PathName("completion")),
	})
	return nil
}

var errWaitedOut = errors.New("the wait ran out")
