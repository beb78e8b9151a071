package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seat-tenure/tenure/turn"
)

// A fence that closes in the middle of a run ends it at the next call: the
// program reads so, its stdin closes, it gets SIGTERM, in that order (F2).
func TestExecFencedMidRun(t *testing.T) {
	e, log := runner(t, "fenced")
	w := &witness{t: t, answer: func(_ context.Context, tool string, _ json.RawMessage) (json.RawMessage, error) {
		if tool == "more" {
			return nil, fmt.Errorf("epoch 7 is over: %w", turn.ErrFenced)
		}
		return json.RawMessage("null"), nil
	}}
	reply, err := e.Run(t.Context(), request(), w)
	if !errors.Is(err, turn.ErrFenced) || errors.Is(err, turn.ErrChildrenAlive) || reply.JSON != nil {
		t.Fatalf("got %s, %v", reply.JSON, err)
	}
	inOrder(t, log.String(), `saw {\"type\":\"fenced\"}`, "saw the end of stdin", "saw SIGTERM")
}

// A run whose context ends is ended the same way, wherever it stands, and
// returns the reason.
func TestExecCancelled(t *testing.T) {
	e, log := runner(t, "fenced")
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &witness{t: t, answer: func(ctx context.Context, tool string, _ json.RawMessage) (json.RawMessage, error) {
		if tool == "more" {
			cancel(fmt.Errorf("the lease ran out: %w", turn.ErrFenced))
			return nil, ctx.Err()
		}
		return json.RawMessage("null"), nil
	}}
	_, err := e.Run(ctx, request(), w)
	if !errors.Is(err, turn.ErrFenced) || !strings.Contains(err.Error(), "the lease ran out") {
		t.Fatalf("got %v", err)
	}
	inOrder(t, log.String(), `saw {\"type\":\"fenced\"}`, "saw the end of stdin", "saw SIGTERM")
}

// A run that is cancelled before it began starts nothing that stays.
func TestExecCancelledBeforeItBegan(t *testing.T) {
	e, _ := runner(t, "done")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Run(ctx, request(), &witness{t: t}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A program that ignores both the end of its stdin and SIGTERM is killed.
func TestExecKillsWhatIgnoresSIGTERM(t *testing.T) {
	e, log := runner(t, "family", "scrubbed", "stubborn")
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &witness{t: t, answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		cancel(turn.ErrFenced)
		return nil, turn.ErrFenced
	}}
	_, err := e.Run(ctx, request(), w)
	if !errors.Is(err, turn.ErrFenced) || errors.Is(err, turn.ErrChildrenAlive) {
		t.Fatalf("got %v", err)
	}
	w.allGone(4, 0)
	if !strings.Contains(log.String(), "no thanks") {
		t.Error("the program was killed without a SIGTERM first")
	}
}

// When Run returns, everything the program started is gone, however it had got
// away: same group, own session, an empty environment, its parent dead (H7).
func TestExecLeavesNoFamilyBehind(t *testing.T) {
	for _, away := range []string{"plain", "marked", "scrubbed"} {
		t.Run(away, func(t *testing.T) {
			t.Parallel()
			e, _ := runner(t, "family", away, "done")
			w := &witness{t: t}
			reply, err := e.Run(t.Context(), request(), w)
			if err != nil || string(reply.JSON) != `"all born"` {
				t.Fatalf("got %s, %v", reply.JSON, err)
			}
			w.allGone(4, 0)
		})
	}
}

// A child that keeps the program's stdout open does not hold up the turn.
func TestExecDoesNotWaitForAnHeirOfStdout(t *testing.T) {
	e, _ := runner(t, "heir")
	reply, err := e.Run(t.Context(), request(), &witness{t: t})
	if err != nil || string(reply.JSON) != `"left one behind"` {
		t.Errorf("got %s, %v", reply.JSON, err)
	}
}

// A panic in a call unwinds through Run, and the children are ended first (B1).
func TestExecPanicLeavesNoFamilyBehind(t *testing.T) {
	e, _ := runner(t, "family", "scrubbed", "pause")
	w := &witness{t: t, answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		panic("a defect of ours")
	}}
	func() {
		defer func() {
			if r := recover(); r != "a defect of ours" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, err := e.Run(t.Context(), request(), w)
		t.Errorf("Run returned %v", err)
	}()
	w.allGone(4, 0)
}

// A killed keeper takes the program along by the parent-death signal, and the
// run ends what detached by its mark.
func TestExecEndsTheFamilyOfAKilledKeeper(t *testing.T) {
	e, _ := runner(t, "family", "marked", "pause")
	w := &witness{t: t}
	w.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage("null"), unix.Kill(w.pids[3], unix.SIGKILL)
	}
	var exit *turn.ExitError
	_, err := e.Run(t.Context(), request(), w)
	if !errors.As(err, &exit) || !exit.Lost || errors.Is(err, turn.ErrChildrenAlive) {
		t.Errorf("got %v, want a lost program and nothing left", err)
	}
	w.allGone(4, 0)
}
