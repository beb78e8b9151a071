package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/graph/model"
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

// TestRefusedRetirements: whatever says no to a retirement reaches the operator as a
// refusal with its code, and what another moment tells otherwise as unavailable, not
// as a fault of the node.
func TestRefusedRetirements(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string // "" for no refusal
	}{
		"the company has the seat":  {&duty.PresentError{Handle: "dev"}, "SEAT_PRESENT"},
		"the company moved on":      {commands.ErrCompanyMoved, "SEAT_PRESENT"},
		"no mailbox":                {&duty.UnregisteredError{Handle: "dev"}, "UNKNOWN_MAILBOX"},
		"no company":                {errNoCompany, "UNKNOWN_MAILBOX"},
		"retired":                   {&duty.UnregisteredError{Handle: "dev", Retired: true}, "ALREADY_RETIRED"},
		"held":                      {&duty.HeldError{Handle: "dev", Refused: events.RefusedHeld}, "HELD"},
		"an older build":            {&duty.HeldError{Handle: "dev", Refused: events.RefusedProtocol}, "OLDER_PROTOCOL"},
		"the seat is back meantime": {errors.Join(&aggregates.FencedError{Handle: "dev"}, errors.New("unmarked")), "HELD"},
		"another's":                 {&sagas.RetiringError{Handle: "dev"}, "RETIRING"},
		"taken over meanwhile":      {&sagas.NotMineError{Handle: "dev"}, "RETIRING"},
		"the grace":                 {&sagas.GraceError{Handle: "dev"}, "IN_GRACE"},
		"another MAIL":              {events.ErrSwapped, "MAIL_SWAPPED"},
		"no answer":                 {events.ErrUnavailable, ""},
		"a fault of somebody":       {errors.New("disk"), ""},
	} {
		if got := code(notRetired(fmt.Errorf("asked: %w", tc.err))); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	var shown *model.Error
	if err := notRetired(&behindError{6, 7}); !errors.As(err, &shown) || shown.Code != model.Unavailable {
		t.Errorf("a node that is behind: %v", err)
	}
	if err := notRetired(duty.ErrTooLong); !errors.Is(err, events.ErrUnknown) {
		t.Errorf("one that took too long: %v", err)
	}
}

func code(err error) string {
	var refused *graph.RefusedError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}
