package seat_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// fenced says whether a turn of that epoch would be stopped now.
func fenced(n *seattest.Node, handle string, epoch uint64) bool {
	return n.Host.Fence(handle, epoch) != nil
}

// holding starts a node that holds one seat.
func holding(t *testing.T, f *seattest.Fleet, cfg seattest.Config) *seattest.Node {
	t.Helper()
	f.Seats("dev")
	n := f.Start(cfg)
	holds(f, []*seattest.Node{n}, 1)
	return n
}

// TestHealthyHolderIsNeverStale proves that admission stays open over an hour of
// renewals, with answers as slow as a tenth of a heartbeat (A1, A4).
func TestHealthyHolderIsNeverStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := holding(t, f, seattest.Config{ID: "a"})
		a.Conn.Faults.Delay(heartbeat / 12)
		for end := time.Now().Add(time.Hour); time.Now().Before(end); f.Advance(50 * time.Millisecond) {
			if _, err := a.Host.MayStart("dev"); err != nil {
				t.Fatalf("a healthy holder refuses: %v", err)
			}
		}
		for _, name := range []string{"seat_admission_stale", "seat_renew_not_answered"} {
			if n := a.Log.Count(name); n > 0 {
				t.Errorf("%s was logged %d times", name, n)
			}
		}
	})
}

// TestCutOffHolder proves what a holder may do while the broker does not answer:
// the seat is kept, new turns stop within one heartbeat of the sending of the
// last good renewal, the turn in flight goes on until the bought time is over and
// not a moment longer, and then the seat is torn down fenced (A1, A2, A3, F2, F3).
func TestCutOffHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		hook := &hooks{}
		a := holding(t, f, seattest.Config{ID: "a", Stages: hook.stages("mail")})
		f.Advance(time.Minute)
		hook.calls()
		a.Conn.Faults.CutOff(true)
		cut, renewed := time.Now(), lastRenewal(t, f, "dev")
		var stoppedStarting, stoppedCalling, tornDown time.Time
		for tornDown.IsZero() {
			f.Advance(10 * time.Millisecond)
			now := time.Now()
			if stoppedStarting.IsZero() && !admitted(a, "dev") {
				stoppedStarting = now
			}
			if stoppedCalling.IsZero() && fenced(a, "dev", 1) {
				stoppedCalling = now
			}
			if slices.Contains(hook.calls(), "down mail dev fenced") {
				tornDown = now
			}
			if !stoppedStarting.IsZero() && tornDown.IsZero() && !slices.Contains(a.Host.Held(), "dev") {
				t.Fatal("the seat was given up while the broker did not answer")
			}
		}
		// Counted from before the renewal was sent, which is when it was stored here.
		for what, c := range map[string]struct{ at, limit time.Time }{
			"the last start":    {stoppedStarting, renewed.Add(heartbeat)},
			"the last call":     {stoppedCalling, renewed.Add(ttl)},
			"the fenced detach": {tornDown, renewed.Add(ttl)},
		} {
			if late := c.at.Sub(c.limit); late > 20*time.Millisecond || late < 0 {
				t.Errorf("%s: %v after the limit", what, late)
			}
		}
		if a.Log.Count("seat_detached", "reason=ttl_grace") != 1 {
			t.Errorf("the reason is not in the log:\n%s", a.Log)
		}
		if stoppedStarting.Before(cut) {
			t.Error("the cut came too late to show anything")
		}
	})
}

// lastRenewal is when the seat's newest event was stored.
func lastRenewal(t *testing.T, f *seattest.Fleet, handle string) time.Time {
	t.Helper()
	msg, err := f.Conn.Stream(events.StreamFleet).Last(context.Background(), f.Subjects.Family(events.SeatLease(handle)))
	if err != nil {
		t.Fatal(err)
	}
	return msg.At
}

// TestBlipClosesAndReopensAdmission proves both edges of admission: one line
// when it closes, one when it opens again, with the renewal that succeeds and
// not a heartbeat later, and whoever deferred is told (A2, D2).
func TestBlipClosesAndReopensAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		told := make(chan []string, 1000)
		a := holding(t, f, seattest.Config{ID: "a", Renewed: func(handles []string) { told <- handles }})
		f.Advance(time.Minute)
		a.Conn.Faults.CutOff(true)
		f.Until(func() bool { return !admitted(a, "dev") })
		var stale *seat.StaleError
		if _, err := a.Host.MayStart("dev"); !errors.As(err, &stale) || stale.Age <= heartbeat {
			t.Errorf("got %v, want a StaleError that says how long", err)
		}
		if fenced(a, "dev", 1) {
			t.Error("a turn in flight is stopped by a broker that does not answer")
		}
		for len(told) > 0 {
			<-told
		}
		a.Conn.Faults.CutOff(false)
		if took := f.Until(func() bool { return admitted(a, "dev") }); took > heartbeat/5 {
			t.Errorf("admission came back %v after the broker did", took)
		}
		if got := <-told; !slices.Equal(got, []string{"dev"}) {
			t.Errorf("told of %v", got)
		}
		for name, want := range map[string]int{"seat_admission_stale": 1, "seat_admission_restored": 1} {
			if got := a.Log.Count(name, "seat=dev", "epoch=1"); got != want {
				t.Errorf("%s was logged %d times, want %d", name, got, want)
			}
		}
		if got := f.Tenures("dev"); len(got) != 1 {
			t.Errorf("the blip cost the seat: %d tenures", len(got))
		}
	})
}

// TestRenewRefused proves that a holder whose tenure moved stops at the refusal:
// nothing admitted, everything fenced, stages down fenced, and nothing released
// that is another's (L8, H5).
func TestRenewRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		hook := &hooks{}
		a := holding(t, f, seattest.Config{ID: "a", Stages: hook.stages("mail")})
		hook.calls()
		// As after a pause that nobody's clock showed: taken over under a healthy holder.
		taker := commands.New(seattest.NewLog(f.Conn), f.Subjects, "z:ffffffff")
		old := func(uint64) (time.Duration, bool) { return time.Hour, true }
		if _, err := taker.Claim(t.Context(), events.SeatLease("dev"), commands.Claim{TTL: ttl, Protocol: 4}, old); err != nil {
			t.Fatal(err)
		}
		if took := f.Until(func() bool { return fenced(a, "dev", 1) }); took > heartbeat {
			t.Errorf("noticed after %v", took)
		}
		f.Advance(time.Second)
		if admitted(a, "dev") || len(a.Host.Held()) > 0 {
			t.Error("it still runs the seat")
		}
		if got := hook.calls(); !slices.Equal(got, []string{"down mail dev fenced"}) {
			t.Errorf("the stages were told %q", got)
		}
		if a.Log.Count("seat_detached", "reason=renew_refused") != 1 || len(f.Reasons("dev")) != 0 {
			t.Errorf("released %v; log:\n%s", f.Reasons("dev"), a.Log)
		}
		if owner, epoch := standing(t, f, "dev"); owner != "z:ffffffff" || epoch != 2 {
			t.Errorf("the lease is %s's at epoch %d", owner, epoch)
		}
	})
}

// TestSchedule14RenewalProvesFromItsFirstSend proves that a renewal that was
// stored at its first send, and told of only when it was repeated much later,
// buys time from the first send only.
func TestSchedule14RenewalProvesFromItsFirstSend(t *testing.T) {
	const ttl = 150 * time.Second // its heartbeat is longer than the 40 s of the schedule
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := holding(t, f, seattest.Config{ID: "a"})
		a.Conn.Faults.DropAnswer(events.StreamFleet, f.Subjects.Prefix()+".fleet.lease.*.*.renewal", 1)
		claimed := lastRenewal(t, f, "dev")
		for !lastRenewal(t, f, "dev").After(claimed) {
			f.Advance(time.Millisecond)
		}
		stored := lastRenewal(t, f, "dev")
		a.Conn.Faults.CutOff(true) // before the log repeats it
		f.Advance(40 * time.Second)
		if a.Log.Count("seat_renew_not_answered") == 0 {
			t.Fatal("the renewal was answered: the schedule did not happen")
		}
		a.Conn.Faults.CutOff(false)
		f.Until(func() bool { return lastRenewal(t, f, "dev").After(stored) || time.Since(stored) > ttl })
		again := lastRenewal(t, f, "dev") // the round that found the first one renews over it
		a.Conn.Faults.CutOff(true)
		closed := time.Now().Add(f.Until(func() bool { return fenced(a, "dev", 1) }))
		if limit := again.Add(ttl); closed.After(limit.Add(200 * time.Millisecond)) {
			t.Errorf("fenced %v after the renewal that stands was sent", closed.Sub(again))
		}
	})
}

// TestSchedule14WithinOneRound is the same within one round: the log repeats the
// write itself, and its success is the first send's.
func TestSchedule14WithinOneRound(t *testing.T) {
	const ttl = 90 * time.Second
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := holding(t, f, seattest.Config{ID: "a"})
		a.Conn.Faults.DropAnswer(events.StreamFleet, f.Subjects.Prefix()+".fleet.lease.*.*.renewal", 1)
		claimed := lastRenewal(t, f, "dev")
		for !lastRenewal(t, f, "dev").After(claimed) {
			f.Advance(time.Millisecond)
		}
		stored := lastRenewal(t, f, "dev")
		a.Conn.Faults.CutOff(true) // before the log repeats it
		f.Advance(15 * time.Second)
		a.Conn.Faults.CutOff(false)
		f.Advance(time.Second) // repeated, found, told
		if n := a.Log.Count("seat_renew_not_answered"); n > 0 || !lastRenewal(t, f, "dev").Equal(stored) {
			t.Fatalf("the round did not find its own renewal (%d not answered)", n)
		}
		a.Conn.Faults.CutOff(true)
		f.Until(func() bool { return !admitted(a, "dev") })
		if open := time.Since(stored); open > ttl/3+200*time.Millisecond {
			t.Errorf("turns started until %v after the first send", open)
		}
		f.Until(func() bool { return fenced(a, "dev", 1) })
		if open := time.Since(stored); open > ttl+200*time.Millisecond {
			t.Errorf("calls went on until %v after the first send", open)
		}
	})
}

// TestSchedule5UncountedPause proves that a holder whose clocks did not count a
// pause, and that believes itself healthy, may start and settle nothing once the
// cursors were taken over: the log refuses its attempt (design §4, D4).
func TestSchedule5UncountedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		boxes := make(chan *commands.Mailboxes, 1)
		keep := func(*seattest.Node) []seat.Stage {
			return []seat.Stage{{
				Name: "mail",
				Up:   func(_ context.Context, m *commands.Mailboxes) error { boxes <- m; return nil },
				Down: func(context.Context, string, seat.Mode) error { return nil },
			}}
		}
		zombie := holding(t, f, seattest.Config{ID: "a", Stages: keep})
		m := <-boxes
		f.Advance(time.Minute)
		zombie.Clock.Pause()
		zombie.Conn.Faults.CutOff(true) // nothing of it runs
		b := f.Start(seattest.Config{ID: "b"})
		holds(f, []*seattest.Node{b}, 1)
		zombie.Conn.Faults.CutOff(false)
		epoch, err := zombie.Host.MayStart("dev")
		if err != nil || epoch != 1 {
			t.Fatalf("the zombie knows better already (%v): the schedule did not happen", err)
		}
		seq, err := f.Op.Send(t.Context(), events.Mail{Handle: "dev", Mailbox: events.Inbox, ID: "e1", Type: events.TaskAssigned, Time: time.Now(), Data: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		// Its shell as it was: nothing of the pause is known to it.
		shell := commands.New(seattest.NewLog(zombie.Conn), f.Subjects, zombie.Self)
		cursors := shell.Cursors(broker.NewMailboxes(zombie.Conn))
		if err := cursors.Attempt(t.Context(), m, events.Inbox, []uint64{seq}); err == nil {
			t.Error("the zombie started a turn")
		}
		if err := cursors.Settle(t.Context(), m, events.Inbox, commands.Ended{Ack: []uint64{seq}}); err == nil {
			t.Error("the zombie settled mail")
		}
		zombie.Clock.Resume()
		f.Advance(heartbeat)
		if !fenced(zombie, "dev", 1) {
			t.Error("the zombie was not told by its next renewal")
		}
	})
}
