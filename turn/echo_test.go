package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/turn"
)

var (
	_ turn.Runner = turn.Echo{}
	_ turn.Runner = turn.Exec{}
)

// Echo answers with the last event's data as it came, or null.
func TestEchoAnswersWithTheLastEvent(t *testing.T) {
	req := request()
	req.Events = append(req.Events, turn.Event{Data: json.RawMessage(`{"text":"again"}`)})
	reply, err := turn.Echo{}.Run(t.Context(), req, nil)
	if want := `{"echo":{"text":"again"}}`; err != nil || string(reply.JSON) != want {
		t.Errorf("got %s, %v, want %s", reply.JSON, err, want)
	}
	reply, err = turn.Echo{}.Run(t.Context(), turn.Request{}, nil)
	if want := `{"echo":null}`; err != nil || string(reply.JSON) != want {
		t.Errorf("got %s, %v, want %s", reply.JSON, err, want)
	}
}

// Echo takes its delay, and stops at once with the reason when its context ends.
func TestEchoTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if _, err := (turn.Echo{Delay: time.Hour}).Run(t.Context(), request(), nil); err != nil || time.Since(begin) != time.Hour {
			t.Errorf("took %v, %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(turn.ErrFenced) })
		begin = time.Now()
		if _, err := (turn.Echo{Delay: time.Hour}).Run(ctx, request(), nil); !errors.Is(err, turn.ErrFenced) || time.Since(begin) != time.Minute {
			t.Errorf("took %v, %v", time.Since(begin), err)
		}
	})
}
