package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
)

// TestReplayOfAllLeavesOutWhatIsNotWhole proves that mail which was too large to be
// kept whole does not keep all other parked mail of its seat from being sent again,
// and that it is said when there is no other.
func TestReplayOfAllLeavesOutWhatIsNotWhole(t *testing.T) {
	t.Parallel()
	h := hostNode(t, hostedConfig(t, "a", natstest.R1(t).Server(0).NodeURL()), echoes(1, ""))
	awaitShares(t, 30*time.Second, []*hosted{h}, 1)
	seat := seatName(0)
	for _, data := range []string{strings.Repeat("x", events.MaxMailData+1), "{small"} {
		w := events.Write{Subject: h.store.Subjects().Mail(seat, events.Inbox), Data: []byte(data)}
		if _, err := h.store.Stream(events.StreamMail).Append(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	parked := func(t *testing.T) (all []projections.Parked) {
		t.Helper()
		if err := h.view(func(r projections.Reader) error {
			page, err := r.Parked(seat, true, 0, projections.MaxPage)
			all = page.Items
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	eventually(t, 30*time.Second, "both are parked", func() bool { return len(parked(t)) == 2 })

	all, by := graph.ReplayParked{Handle: seat}, graph.Act{Actor: "ops", Reason: "mended"}
	if _, err := h.operator.Operate(t.Context(), by, all); err != nil {
		t.Errorf("replay of all: %v", err)
	}
	// It cannot be read this time either, and is parked again.
	eventually(t, 30*time.Second, "the small one was sent again", func() bool { return len(parked(t)) == 3 })
	for _, p := range parked(t) {
		if p.Clipped {
			continue
		}
		if _, err := h.operator.Operate(t.Context(), by, graph.DropParked{Handle: seat, Positions: []uint64{p.Position}}); err != nil && p.Decided == nil {
			t.Fatal(err)
		}
	}
	var refused *graph.RefusedError
	eventually(t, 30*time.Second, "nothing is left that can be sent again", func() bool {
		_, err := h.operator.Operate(t.Context(), by, all)
		return errors.As(err, &refused) && refused.Code == codeClipped
	})
}
