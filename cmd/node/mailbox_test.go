package main

import (
	"context"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
)

// TestRemovedSeatsMailboxIsRetired proves R1 and R3 on a running node: the mailbox
// of a removed seat is retired by its duty once the grace is over, with the mail
// that came late; an operator's is refused while the company has the seat; and a
// seat that is added back runs on a mailbox of its own (U1).
func TestRemovedSeatsMailboxIsRetired(t *testing.T) {
	t.Parallel()
	cfg := hostedConfig(t, "a", natstest.R1(t).Server(0).NodeURL())
	cfg.Mailbox.Grace, cfg.Mailbox.Tick = 2*time.Second, 200*time.Millisecond
	h := hostNode(t, cfg, echoes(2, ""))
	awaitShares(t, 30*time.Second, []*hosted{h}, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	state := func(want projections.MailboxState) {
		t.Helper()
		for {
			changed := h.views.Changed()
			var m projections.Mailbox
			if err := h.view(func(r projections.Reader) (err error) { m, _, err = r.Mailbox(seatName(1)); return err }); err != nil {
				t.Fatal(err)
			}
			if m.State() == want {
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("the mailbox is %s, not %s: %+v", m.State(), want, m.Retirement)
			case <-changed:
			}
		}
	}
	apply := func(n int) {
		t.Helper()
		_, next, err := packCompany("company.yaml", echoes(n, ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.shell.Apply(ctx, next); err != nil {
			t.Fatal(err)
		}
	}
	_, err := h.operator.Operate(ctx, graph.Act{Actor: "ops", Reason: "no"}, graph.RetireMailbox{Handle: seatName(1), Now: true})
	if refused, is := err.(*graph.RefusedError); !is || refused.Code != codeSeatPresent { //nolint:errorlint // it is what the API sees
		t.Errorf("retired while the company has the seat: %v", err)
	}
	apply(1)
	awaitShares(t, 30*time.Second, []*hosted{h}, 1)
	if err := post(ctx, h.shell, seatName(1), "late"); err != nil { // as a client of the broker may
		t.Fatal(err)
	}
	state(projections.MailboxAbsent)
	state(projections.MailboxRetired)
	kept, err := mailboxes{h.node}.Kept(ctx, []string{seatName(1)})
	if err != nil || kept[seatName(1)].Mails != 0 {
		t.Errorf("%d mails are left: %v", kept[seatName(1)].Mails, err)
	}
	apply(2)
	awaitShares(t, 30*time.Second, []*hosted{h}, 2)
	if err := post(ctx, h.shell, seatName(1), "fresh"); err != nil {
		t.Fatal(err)
	}
	if done, err := h.views.AwaitCompletion(ctx, seatName(1), "fresh"); err != nil || done.Outcome != events.OutcomeDone {
		t.Errorf("the mail of a seat that is back: %+v, %v", done, err)
	}
}
