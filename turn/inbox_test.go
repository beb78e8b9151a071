package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/turn"
)

// failFor makes the runner fail on one event, that often.
func failFor(id string, times int) func(context.Context, turn.Request, turn.Calls) (turn.Reply, error) {
	return func(_ context.Context, req turn.Request, _ turn.Calls) (turn.Reply, error) {
		if req.Events[0].ID == id && times > 0 {
			times--
			return turn.Reply{}, errors.New("the provider is away")
		}
		return turn.Reply{JSON: []byte(`{}`)}, nil
	}
}

// TestInboxReadsInOrder proves that mail sent before the seat was held and
// after it was attached runs once each, in order, is recorded, settled and
// purged up to the watermark (D1 Ack, U2).
func TestInboxReadsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		send(t, f, "e1", "e2")
		d := sit(t, f, &agent{})
		f.Advance(time.Second)
		send(t, f, "e3")
		f.Advance(time.Second)
		if got := d.agent.ids(); !slices.Equal(got, []string{"e1", "e2", "e3"}) {
			t.Errorf("ran %q", got)
		}
		for _, id := range []string{"e1", "e2", "e3"} {
			done, ok := completed(t, f, id)
			if !ok || done.Outcome != events.OutcomeDone || done.Attempts != 1 || done.WorkKey != turn.WorkKey([]string{id}) {
				t.Errorf("%s is recorded as %+v, %t", id, done, ok)
			}
		}
		if c := cursor(t, f); len(c.Open) != 0 {
			t.Errorf("open mail is left: %+v", c.Open)
		}
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d settled messages were not purged", n)
		}
	})
}

// TestNakComesAgainBehindNewerMail proves that a failed turn is tried again
// after a growing backoff, that newer mail flows meanwhile, and that the
// watermark and the purge stop at what is open (D1 Nak, Case 24).
func TestNakComesAgainBehindNewerMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		a.set(failFor("bad", 3))
		sit(t, f, a)
		send(t, f, "bad", "good1", "good2")
		f.Advance(400 * time.Millisecond)
		if got := a.ids(); !slices.Equal(got, []string{"bad", "good1", "good2"}) {
			t.Errorf("within the first backoff ran %q", got)
		}
		if c := cursor(t, f); len(c.Open) != 1 || c.Open[0].Attempts != 1 || c.Open[0].Running {
			t.Errorf("open: %+v", c.Open)
		}
		if n := waiting(t, f); n != 3 {
			t.Errorf("%d messages are kept, want all: the oldest is open", n)
		}
		f.Advance(3200 * time.Millisecond) // 0.5 + 1 + 2 s of backoff from the start
		if done, ok := completed(t, f, "bad"); !ok || done.Attempts != 4 {
			t.Errorf("recorded as %+v, %t; want the fourth attempt", done, ok)
		}
		if n := waiting(t, f); n != 0 {
			t.Errorf("%d messages are kept after all was settled", n)
		}
	})
}

// TestDeferStopsReadingUntilARenewal proves that a seat that may not start
// settles nothing, charges nothing and reads nothing until the next renewal that
// succeeds, and then goes on at once (D1 Defer, D2, A2).
func TestDeferStopsReadingUntilARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		d := sit(t, f, &agent{})
		d.admit(errStale)
		send(t, f, "e1", "e2")
		f.Advance(time.Hour)
		if got := d.agent.ids(); len(got) > 0 {
			t.Fatalf("ran %q while stale", got)
		}
		if c := cursor(t, f); c.Read != 0 || len(c.Open) > 0 {
			t.Errorf("the cursor moved: %+v", c)
		}
		d.admit(nil)
		f.Advance(time.Millisecond)
		if got := d.agent.ids(); !slices.Equal(got, []string{"e1", "e2"}) {
			t.Errorf("after the renewal ran %q", got)
		}
	})
}

// TestLostWakeUpIsFound proves that mail whose wake-up was lost is read at the
// next heartbeat: by the count of what waits, one request for the node.
func TestLostWakeUpIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		d := sit(t, f, &agent{})
		f.Advance(time.Second)
		d.conn.Faults.CutOff(true)
		send(t, f, "e1") // its wake-up finds no connection
		f.Advance(time.Second)
		d.conn.Faults.CutOff(false)
		f.Advance(time.Minute)
		if got := d.agent.ids(); len(got) > 0 {
			t.Fatalf("ran %q: the wake-up was not lost", got)
		}
		d.inboxes.Renewed([]string{"dev"})
		f.Advance(time.Millisecond)
		if got := d.agent.ids(); !slices.Equal(got, []string{"e1"}) {
			t.Errorf("ran %q", got)
		}
	})
}

// TestSchedule10SwappedMail proves that a mailbox whose stream was recreated or
// restored under it raises the alarm, and runs, skips, settles and purges nothing
// on the strength of the other stream's positions.
func TestSchedule10SwappedMail(t *testing.T) {
	for name, swap := range map[string]func(t *testing.T, d *desk){
		"recreated": func(t *testing.T, d *desk) { d.f.Conn.Recreate(events.StreamMail) },
		"recreated and grown": func(t *testing.T, d *desk) {
			d.f.Conn.Recreate(events.StreamMail)
			send(t, d.f, "n1", "n2", "n3", "n4", "n5", "n6", "n7")
		},
		"restored": func(t *testing.T, d *desk) { d.f.Conn.Restore(events.StreamMail, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleetOf(t)
				a := &agent{}
				a.set(failFor("bad", 2)) // something stays open over the swap
				d := sit(t, f, a)
				send(t, f, "e1", "bad", "e2")
				f.Advance(100 * time.Millisecond)
				before, ran := cursor(t, f), len(a.ids())
				swap(t, d)
				kept := waiting(t, f)
				d.inboxes.Renewed([]string{"dev"})
				send(t, f, "late")
				f.Advance(10 * time.Second)
				if d.swaps() == 0 || d.log.Count("mail_stream_swapped", "seat=dev") != 1 {
					t.Errorf("no alarm; log:\n%s", d.log)
				}
				if c := cursor(t, f); fmt.Sprint(c) != fmt.Sprint(before) {
					t.Errorf("the cursor is %+v, was %+v", c, before)
				}
				if got := a.ids(); len(got) != ran {
					t.Errorf("ran %q of the other stream", got[ran:])
				}
				if n := waiting(t, f); n != kept+1 {
					t.Errorf("%d messages are left of %d", n, kept+1)
				}
			})
		})
	}
}

// TestMarkersAreNoSwap proves that the marks of running nodes, which stand
// between the mail, are followed and raise no alarm.
func TestMarkersAreNoSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		d := sit(t, f, &agent{})
		for i := range 5 {
			send(t, f, fmt.Sprint("e", i))
			if _, err := (broker.Marks{Store: f.Conn, Source: "op:00000000"}).Mark(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.Advance(time.Second)
		}
		if d.swaps() > 0 || len(d.agent.ids()) != 5 {
			t.Errorf("%d alarms, ran %q", d.swaps(), d.agent.ids())
		}
	})
}

// TestPurgeNeverPassesTheWatermark proves, over a mix of outcomes, that what is
// gone from MAIL is settled, at every moment.
func TestPurgeNeverPassesTheWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		n := 0
		a.set(func(context.Context, turn.Request, turn.Calls) (turn.Reply, error) {
			if n++; n%3 == 0 {
				return turn.Reply{}, errors.New("no")
			}
			return turn.Reply{JSON: []byte(`{}`)}, nil
		})
		sit(t, f, a)
		for i := range 40 {
			send(t, f, fmt.Sprint("e", i))
			f.Advance(70 * time.Millisecond)
			c := cursor(t, f)
			first, err := f.Conn.Stream(events.StreamMail).Next(t.Context(), f.Subjects.Mail("dev", events.Inbox), 1)
			if err == nil && first.Seq > c.Watermark()+1 && len(c.Open) > 0 {
				t.Fatalf("the first message kept is %d, the watermark is %d", first.Seq, c.Watermark())
			}
			for _, o := range c.Open {
				if _, err := f.Conn.Stream(events.StreamMail).Get(t.Context(), o.Seq); err != nil {
					t.Fatalf("open mail %d: %v", o.Seq, err)
				}
			}
		}
		f.Advance(time.Minute)
		if c := cursor(t, f); len(c.Open) > 0 || waiting(t, f) > 0 {
			t.Errorf("left in the end: %+v, %d", c.Open, waiting(t, f))
		}
	})
}

// TestSuccessorRestartsWhatItFindsOpen proves that a successor runs an attempt
// that never ended at once, with a warning, and begins a Nak's backoff anew.
func TestSuccessorRestartsWhatItFindsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		first := &agent{}
		started := make(chan struct{}, 1)
		first.set(func(ctx context.Context, req turn.Request, _ turn.Calls) (turn.Reply, error) {
			if req.Events[0].ID == "failed" {
				return turn.Reply{}, errors.New("no")
			}
			started <- struct{}{}
			<-ctx.Done()
			return turn.Reply{}, context.Cause(ctx)
		})
		d := sit(t, f, first)
		send(t, f, "failed", "cut")
		<-started
		d.kill()
		next := sit(t, f, &agent{})
		f.Advance(100 * time.Millisecond)
		if got := next.agent.ids(); !slices.Equal(got, []string{"cut"}) {
			t.Errorf("at once ran %q, want the unfinished attempt alone", got)
		}
		if next.log.Count("turn_rerun_after_unfinished_attempt", "event=cut", "attempt=2") != 1 {
			t.Errorf("the re-run is not told:\n%s", next.log)
		}
		f.Advance(500 * time.Millisecond)
		if got := next.agent.ids(); !slices.Equal(got, []string{"cut", "failed"}) {
			t.Errorf("after the backoff ran %q", got)
		}
		if done, _ := completed(t, f, "cut"); done.Attempts != 2 {
			t.Errorf("its completion shows %d attempts", done.Attempts)
		}
	})
}

// TestDetachLetsTheTurnFinish proves the two ways of letting go: a voluntary one
// waits, within its bound, for the turn in flight and reads nothing more, unless
// it is told to hurry meanwhile; a fenced one abandons it and settles nothing
// (H4, H5).
func TestDetachLetsTheTurnFinish(t *testing.T) {
	for name, c := range map[string]struct {
		finish bool
		takes  time.Duration
		hurry  time.Duration // 0: never
		within time.Duration
		done   bool
	}{
		"voluntary":           {true, 20 * time.Second, 0, 31 * time.Second, true},
		"voluntary, too slow": {true, 5 * time.Minute, 0, 31 * time.Second, false},
		"voluntary, hurried":  {true, 20 * time.Second, 2 * time.Second, 3 * time.Second, false},
		"fenced":              {false, 20 * time.Second, 0, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleetOf(t)
				a := &agent{}
				started := make(chan struct{}, 10)
				a.set(func(ctx context.Context, _ turn.Request, _ turn.Calls) (turn.Reply, error) {
					started <- struct{}{}
					return turn.Echo{Delay: c.takes}.Run(ctx, turn.Request{}, nil)
				})
				d := sit(t, f, a)
				send(t, f, "e1", "e2")
				<-started
				if c.hurry > 0 {
					time.AfterFunc(c.hurry, d.inboxes.Hurry)
				}
				start := time.Now()
				if err := d.inboxes.Detach(t.Context(), "dev", c.finish); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > c.within {
					t.Errorf("detached after %v", took)
				}
				f.Advance(time.Minute)
				if got := a.ids(); len(got) != 1 {
					t.Errorf("ran %q after the detach began", got)
				}
				_, done := completed(t, f, "e1")
				if open := cursor(t, f).Open; done != c.done || (len(open) == 0) != c.done {
					t.Errorf("recorded %t, open %+v", done, open)
				}
			})
		})
	}
}

// TestInboxOutlivesAnOutage proves that an outage at any point of a turn runs it
// once: what is over is told until it is answered, not run again (K3).
func TestInboxOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf(t)
		a := &agent{}
		d := sit(t, f, a)
		a.set(func(context.Context, turn.Request, turn.Calls) (turn.Reply, error) {
			d.conn.Faults.CutOff(true) // the broker goes away while the turn runs
			return turn.Reply{JSON: []byte(`{}`)}, nil
		})
		send(t, f, "e1")
		f.Advance(3 * time.Minute)
		d.conn.Faults.CutOff(false)
		a.set(nil)
		d.admit(nil)
		f.Advance(time.Minute)
		send(t, f, "e2")
		f.Advance(time.Second)
		if got := a.ids(); !slices.Equal(got, []string{"e1", "e2"}) {
			t.Errorf("ran %q", got)
		}
		if c := cursor(t, f); len(c.Open) > 0 {
			t.Errorf("open in the end: %+v", c.Open)
		}
	})
}
