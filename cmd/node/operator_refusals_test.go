package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/sagas"
	"github.com/seat-tenure/tenure/seat"
)

// TestRefusals: whatever says no for good reaches the operator as a refusal with
// its code, from here and from another node alike. What only says "not now", or
// is a fault, never does: it would read as final.
func TestRefusals(t *testing.T) {
	lease := events.SeatLease("dev")
	for name, tc := range map[string]struct {
		err  error
		want string // "" for no refusal
	}{
		"the host's":          {&seat.RefusedError{Code: seat.CodeNoRoom, Message: "m"}, "NO_ROOM"},
		"no room made":        {&seat.RefusedError{Code: seat.CodeNotEligible, Message: "m"}, "NOT_ELIGIBLE"},
		"a handoff is open":   {&sagas.OpenError{Saga: "dev.1"}, "MOVING"},
		"a teardown began":    {&sagas.TornDownError{Saga: "dev.1"}, "MOVING"},
		"not the holder":      {&sagas.NotHolderError{Handle: "dev"}, "NOT_HELD"},
		"fenced twice":        {&aggregates.FencedTwiceError{Lease: lease, Epoch: 1}, "ALREADY_FENCED"},
		"the tenure is over":  {&aggregates.EndedError{Lease: lease, Epoch: 1}, "NOT_HELD"},
		"no answer":           {events.ErrUnavailable, ""},
		"nobody knows":        {events.ErrUnknown, ""},
		"another write":       {events.ErrBusy, ""},
		"a fault of somebody": {errors.New("disk"), ""},
	} {
		if got := code(refusal(fmt.Errorf("asked: %w", tc.err))); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	for sent, want := range map[string]string{
		"NO_ROOM": "NO_ROOM", broker.CodeUnknownCommand: broker.CodeUnknownCommand, broker.CodeOtherIncarnation: "NOT_HELD",
		broker.CodePanicked: "", broker.CodeFailed: "", broker.CodeReplyUnusable: "", broker.CodeIDReused: "", broker.CodeUnreadable: "",
	} {
		if got := code(refusedBy(fmt.Errorf("asked: %w", &broker.CommandRefusedError{By: "b:0000000b", Code: sent}), "b")); got != want {
			t.Errorf("another node's %s: got %q, want %q", sent, got, want)
		}
	}
	if got := code(refusedBy(events.ErrUnknown, "b")); got != "" {
		t.Errorf("a lost answer: got the refusal %q", got)
	}
}

func code(err error) string {
	var refused *graph.RefusedError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}
