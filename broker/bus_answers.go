package broker

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/seat-tenure/tenure/events"
)

// Limits of the memory of answers.
const (
	answersKept      = 1000
	answersKeptBytes = 4 << 20
)

// answers remembers what became of the last commands, by their ids.
type answers struct {
	mu    sync.Mutex
	byID  map[string]*answered
	old   *list.List // of those that are done, oldest first
	bytes int        // of their answers
}

// answered is one command. answer may be read once done is closed.
type answered struct {
	id     string
	digest string // of what was asked
	done   chan struct{}
	answer busAnswer
}

func newAnswers() *answers { return &answers{byID: map[string]*answered{}, old: list.New()} }

// begin returns the command's entry. The first who asks for it carries the
// command out and calls finish. Not ok: the id was another command's.
func (a *answers) begin(cmd *busCommand) (e *answered, first, ok bool) {
	digest := events.Digest(cmd.Name + "\n" + string(cmd.Args))
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, known := a.byID[cmd.ID]; known {
		return e, false, e.digest == digest
	}
	e = &answered{id: cmd.ID, digest: digest, done: make(chan struct{})}
	a.byID[cmd.ID] = e
	return e, true, true
}

// finish tells the answer to all who wait for it. It is kept only if it is
// final: after any other a repeat is to try again.
func (a *answers) finish(e *answered, answer busAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.answer = answer
	close(e.done)
	if answer.Outcome != busDone && answer.Outcome != busRefused {
		delete(a.byID, e.id)
		return
	}
	a.old.PushBack(e)
	a.bytes += e.size()
	for a.old.Len() > answersKept || a.bytes > answersKeptBytes {
		oldest := a.old.Remove(a.old.Front()).(*answered)
		a.bytes -= oldest.size()
		delete(a.byID, oldest.id)
	}
}

func (e *answered) size() int { return len(e.answer.Reply) + len(e.answer.Message) }

func refusal(code, format string, args ...any) busAnswer {
	return busAnswer{Outcome: busRefused, Code: code, Message: clip(fmt.Sprintf(format, args...))}
}

func clip(s string) string { return s[:min(len(s), maxMessageOf)] }

// answerOf is what the asker learns of a handler's result.
func answerOf(reply json.RawMessage, err error) busAnswer {
	var refused *CommandRefusedError
	switch {
	case err == nil && len(reply) > MaxBusPayload:
		return refusal(CodeReplyUnusable, "done, but the reply has %d bytes; at most %d are sent", len(reply), MaxBusPayload)
	case err == nil && len(reply) > 0 && !json.Valid(reply):
		return refusal(CodeReplyUnusable, "done, but the reply is no JSON")
	case err == nil:
		return busAnswer{Outcome: busDone, Reply: reply}
	case errors.As(err, &refused):
		return refusal(refused.Code, "%s", refused.Message)
	case errors.Is(err, events.ErrUnknown), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return busAnswer{Outcome: busUnknown, Message: clip(err.Error())}
	case errors.Is(err, events.ErrUnavailable):
		return busAnswer{Outcome: busUnavailable, Message: clip(err.Error())}
	case errors.Is(err, events.ErrBusy):
		return busAnswer{Outcome: busBusy, Message: clip(err.Error())}
	}
	return refusal(CodeFailed, "%v", err)
}

// result is the answer as Ask returns it.
func (a busAnswer) result() (json.RawMessage, error) {
	switch a.Outcome {
	case busDone:
		return a.Reply, nil
	case busRefused:
		return nil, &CommandRefusedError{By: a.By, Code: a.Code, Message: a.Message}
	case busBusy:
		return nil, fmt.Errorf("%w: %s: %s", events.ErrBusy, a.By, a.Message)
	case busUnavailable:
		return nil, fmt.Errorf("%w: %s: %s", events.ErrUnavailable, a.By, a.Message)
	default: // busUnknown, or another build's
		return nil, fmt.Errorf("%w: %s: %s", events.ErrUnknown, a.By, a.Message)
	}
}
