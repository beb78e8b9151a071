package main

import (
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// TestPausesReadAgain proves that a read model that is made anew while the node
// runs, and so reads old pauses again, stops no turn and holds no seat by them:
// a stopped turn's mail is settled, so it would be lost (F4, H3).
func TestPausesReadAgain(t *testing.T) {
	cfg := DefaultConfig()
	cfg.DataDir, cfg.API.Listen = t.TempDir(), "127.0.0.1:0"
	n := hostNode(t, cfg, echoes(1, ""))
	awaitShares(t, 30*time.Second, []*hosted{n}, 1)
	handle := seatName(0)
	epoch, err := n.host.MayStart(handle)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.shell.Pause(t.Context(), handle, true, "a look", "ops@acme.example"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the pause stops turns", func() bool { return n.host.Fence(handle, epoch) != nil })
	if _, err := n.shell.Resume(t.Context(), handle, "seen", "ops@acme.example"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the pause is over", func() bool {
		var over bool
		err := n.view(func(r projections.Reader) error {
			s, _, err := r.Seat(handle)
			over = s.Paused == nil
			return err
		})
		return err == nil && over && n.host.Fence(handle, epoch) == nil
	})

	all := n.history(t, events.StreamFleet)
	src := &viewSource{n: n.node, stream: events.StreamFleet, applied: func(events.CompanyApplied) {}, told: all[len(all)-1].Seq}
	pauses := 0
	for _, r := range all {
		if _, is := r.Event.(events.SeatPaused); is { // as far as the copy has come
			pauses++
			src.tell([]events.Recorded{r}, true)
		}
	}
	if pauses != 1 {
		t.Fatalf("the history has %d pauses, want 1", pauses)
	}
	if err := n.host.Fence(handle, epoch); err != nil {
		t.Errorf("a pause that is over stopped the seat's turns: %v", err)
	}
	if err := post(t.Context(), n.shell, handle, "after"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "mail is worked on", func() bool {
		done, ok, err := n.shell.Completed(t.Context(), handle, "after")
		return err == nil && ok && done.Outcome == events.OutcomeDone
	})
}
