package seat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestStagesInOrder proves that stages come up in order and go down in reverse,
// that no turn is admitted while they come up, and that "established" is told
// and recorded after the last one (H1, H2).
func TestStagesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		hook := &hooks{}
		var a *seattest.Node
		hook.on("up mail", func(context.Context, string) error {
			f.Advance(time.Second)
			if admitted(a, "dev") {
				t.Error("a turn is admitted while the last stage comes up")
			}
			return nil
		})
		told := make(chan string, 10)
		a = f.Start(seattest.Config{ID: "a", Stages: hook.stages("tools", "memory", "mail"), Renewed: func([]string) { told <- "renewed" }})
		f.Seats("dev")
		<-told
		if got := hook.calls(); !slices.Equal(got, []string{"up tools dev@1", "up memory dev@1", "up mail dev@1"}) {
			t.Errorf("up in the order %q", got)
		}
		if !admitted(a, "dev") {
			t.Error("told of it before turns are admitted")
		}
		f.Advance(time.Second)
		established := slices.ContainsFunc(f.History(events.StreamFleet), func(r events.Recorded) bool {
			e, is := r.Event.(events.SeatEstablished)
			return is && e.Handle == "dev" && e.Epoch == 1 && e.Owner == a.Self
		})
		if !established {
			t.Error("it is not recorded")
		}
		a.Stop()
		want := []string{"down mail dev voluntary", "down memory dev voluntary", "down tools dev voluntary"}
		if got := hook.calls(); !slices.Equal(got, want) {
			t.Errorf("down in the order %q", got)
		}
	})
}

// TestFailingStageRefusesTheSeat proves that a stage that fails or panics undoes
// itself and the earlier ones in reverse and gives the lease back, fenced, so
// that another node has the seat at once (H1, H5, L4).
func TestFailingStageRefusesTheSeat(t *testing.T) {
	for name, fail := range map[string]func(context.Context, string) error{
		"error": func(context.Context, string) error { return errors.New("no such table") },
		"panic": func(context.Context, string) error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				hook := &hooks{}
				hook.on("up memory", fail)
				f.Seats("dev")
				a := f.Start(seattest.Config{ID: "a", Stages: hook.stages("tools", "memory", "mail")})
				f.Until(func() bool { return len(f.Reasons("dev")) > 0 })
				want := []string{"up tools dev@1", "up memory dev@1", "down memory dev fenced", "down tools dev fenced"}
				if got := hook.calls(); len(got) < 4 || !slices.Equal(got[:4], want) {
					t.Errorf("told %q, want %q first", got, want)
				}
				if got := f.Reasons("dev"); got[0] != events.ReasonAcquireFailed {
					t.Errorf("given back for %v", got)
				}
				failures := a.Log.All("seat_acquire_failed")
				if len(failures) == 0 || !strings.Contains(failures[0].Attrs["err"], "memory") {
					t.Errorf("the log does not name the stage: %v", failures)
				}
				b := f.Start(seattest.Config{ID: "b"})
				if took := holds(f, []*seattest.Node{b}, 1); took > 30*time.Second {
					t.Errorf("another node had the seat after %v", took)
				}
			})
		})
	}
}

// TestUndeadSeat proves the life of a seat whose teardown errors, panics or
// hangs: it is kept, renewed and out of the held set, nobody else gets it, the
// alarm repeats every 20 heartbeats with time and attempts, and the instant the
// teardown succeeds it is released and moves (H6, O3, P7).
func TestUndeadSeat(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context, handle string) error{
		"error": func(context.Context, string) error { return errors.New("child 7 is alive") },
		"panic": func(context.Context, string) error { panic("boom") },
		"hangs": func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				hook := &hooks{}
				hook.on("down tools", func(ctx context.Context, handle string) error {
					if handle == "dev" {
						return fail(ctx, handle)
					}
					return nil
				})
				f.Seats("dev", "ops")
				a := f.Start(seattest.Config{ID: "a", Stages: hook.stages("tools", "mail")})
				holds(f, []*seattest.Node{a}, 2)
				f.Seats("ops") // dev leaves the company
				f.Until(func() bool { return a.Log.Count("seat_release_unproven", "seat=dev") == 1 })
				if got := a.Host.Held(); slices.Contains(got, "dev") {
					t.Errorf("held: %v", got)
				}
				f.Seats("ops", "dev") // it is wanted again, by anyone
				b := f.Start(seattest.Config{ID: "b"})
				f.Advance(25 * heartbeat)
				if h := seattest.Holders("dev", a, b); len(h) > 0 {
					t.Fatalf("%v runs the seat that is not proven down", h)
				}
				if owner, epoch := standing(t, f, "dev"); owner != a.Self || epoch != 1 {
					t.Fatalf("the lease is %s's at epoch %d", owner, epoch)
				}
				if since := a.Host.Unproven()["dev"]; since < 20*heartbeat*7/10 {
					t.Errorf("unproven for %v", since)
				}
				alarms := a.Log.All("seat_still_unproven")
				if len(alarms) == 0 || len(alarms) > 2 {
					t.Errorf("%d alarms in 25 to 36 heartbeats", len(alarms))
				} else if attempts := alarms[0].Attrs["attempts"]; attempts == "0" || alarms[0].Attrs["unproven_seconds"] == "0" {
					t.Errorf("the alarm says %v", alarms[0].Attrs)
				}
				hook.on("down tools", nil)
				if took := f.Until(func() bool { return a.Log.Count("seat_release_recovered", "seat=dev") == 1 }); took > time.Minute+heartbeat {
					t.Errorf("recovered after %v", took)
				}
				f.Until(func() bool { return len(seattest.Holders("dev", a, b)) == 1 })
				if len(a.Host.Unproven()) > 0 || a.Log.Count("seat_release_unproven") != 1 {
					t.Error("it is still told as unproven")
				}
				downs := slices.DeleteFunc(hook.calls(), func(c string) bool { return !strings.HasPrefix(c, "down mail dev") })
				if len(downs) != 1 {
					t.Errorf("the stage that was down was told %d times: %q", len(downs), downs)
				}
			})
		})
	}
}

// TestUndeadSeatOutlivesAnOutage proves that an undead seat is renewed again
// after an outage longer than its TTL: while nobody else took it, nobody else
// may, for its children may still be alive (H6, F3).
func TestUndeadSeatOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		hook := &hooks{}
		hook.on("down tools", func(context.Context, string) error { return errors.New("alive") })
		a := holding(t, f, seattest.Config{ID: "a", Stages: hook.stages("tools")})
		f.Seats()
		f.Until(func() bool { return len(a.Host.Unproven()) == 1 })
		a.Conn.Faults.CutOff(true)
		f.Advance(2 * ttl)
		a.Conn.Faults.CutOff(false)
		f.Advance(2 * heartbeat)
		f.Seats("dev")
		b := f.Start(seattest.Config{ID: "b"})
		f.Advance(2 * ttl)
		if owner, _ := standing(t, f, "dev"); owner != a.Self || len(b.Host.Held()) > 0 {
			t.Errorf("the undead seat went to %s", owner)
		}
	})
}

// TestDrainWaitsForWhatIsRetried proves that a stop does not leave a seat to
// lapse because its teardown failed once: heartbeats go on, and the seat is
// given back when it succeeds; and that one that never does ends the stop within
// its bound (H4, H6).
func TestDrainWaitsForWhatIsRetried(t *testing.T) {
	for name, c := range map[string]struct {
		failures int
		released bool
	}{"once": {1, true}, "for ever": {1000, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				hook := &hooks{}
				left := c.failures
				hook.on("down tools", func(context.Context, string) error {
					if left--; left >= 0 {
						return errors.New("alive")
					}
					return nil
				})
				a := holding(t, f, seattest.Config{ID: "a", Stages: hook.stages("tools")})
				start := time.Now()
				a.Stop()
				if took := time.Since(start); took > 5*time.Minute+time.Second {
					t.Errorf("the stop took %v", took)
				}
				if owner, _ := standing(t, f, "dev"); (owner == "") != c.released {
					t.Errorf("the lease is %q's after the drain", owner)
				}
			})
		})
	}
}

// TestReleaseNotAnswered proves that a seat that was torn down is no longer
// fenced open nor renewed while its release is not answered, and that the
// release is tried again until it stands (H4).
func TestReleaseNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := holding(t, f, seattest.Config{ID: "a"})
		f.Advance(time.Minute)
		a.Conn.Faults.CutOff(true)
		f.Until(func() bool { return a.Log.Count("seat_release_not_answered") > 0 })
		if !fenced(a, "dev", 1) || len(a.Host.Held()) > 0 {
			t.Error("the seat that was let go is still open")
		}
		a.Conn.Faults.CutOff(false)
		if took := f.Until(func() bool { return len(f.Reasons("dev")) == 1 }); took > 2*heartbeat {
			t.Errorf("released after %v", took)
		}
	})
}

// TestLeavingSeatCostsNoOther proves that seats that take long to be torn down
// are given back once, and that meanwhile no other seat is given up for them; a
// seat that is wanted again meanwhile is claimed anew and kept (P4, P7).
func TestLeavingSeatCostsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		hook := &hooks{}
		hook.on("down mail", func(context.Context, string) error { f.Advance(20 * time.Second); return nil }) // a turn in flight
		f.Seats("dev", "ops", "qa")
		a := f.Start(seattest.Config{ID: "a", Stages: hook.stages("mail")})
		holds(f, []*seattest.Node{a}, 3)
		f.Seats("dev")
		f.Advance(11 * time.Second)
		f.Seats("dev", "ops", "qa")
		f.Advance(time.Minute)
		for handle, want := range map[string]int{"dev": 1, "ops": 2, "qa": 2} {
			if got := f.Tenures(handle); len(got) != want {
				t.Errorf("%s has %d tenures, want %d; released for %v", handle, len(got), want, f.Reasons(handle))
			}
		}
		if got := a.Host.Held(); len(got) != 3 {
			t.Errorf("held in the end: %v", got)
		}
	})
}

// TestCase14HalfMadeClaim proves, for each write of a claim in turn and each way
// it can fail, that the seat is nobody's at once and B, waiting, has it within
// two passes; a tenure that did commit is never removed by the give-back.
func TestCase14HalfMadeClaim(t *testing.T) {
	writes := map[string]struct {
		stream  events.Stream
		subject func(f *seattest.Fleet, handle string) string
	}{
		"claim":       {events.StreamFleet, func(f *seattest.Fleet, h string) string { return f.Subjects.Tenure(events.SeatLease(h)) }},
		"cursors":     {events.StreamCursor, func(f *seattest.Fleet, h string) string { return f.Subjects.Cursor(h, events.Inbox) }},
		"established": {events.StreamFleet, func(f *seattest.Fleet, h string) string { return f.Subjects.Host(h) }},
	}
	ways := map[string]func(n *seattest.Node, st events.Stream, subject string){
		"error": func(n *seattest.Node, st events.Stream, s string) {
			n.Conn.Faults.Refuse(st, s, 1, errors.New("refused"))
		},
		"answer lost": func(n *seattest.Node, st events.Stream, s string) { n.Conn.Faults.DropAnswer(st, s, 1) },
		"lost":        func(n *seattest.Node, st events.Stream, s string) { n.Conn.Faults.DropWrite(st, s, 1) },
		"lands late":  func(n *seattest.Node, st events.Stream, s string) { n.Conn.Faults.LandLate(st, s, 1, 3*time.Second) },
		"timeout":     func(n *seattest.Node, st events.Stream, s string) { n.Conn.Faults.DropAnswer(st, s, 47) }, // until the log gives up
	}
	for write, w := range writes {
		for way, fail := range ways {
			t.Run(write+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := seattest.New(t, ttl)
					a := f.Start(seattest.Config{ID: "a"})
					b := f.Start(seattest.Config{ID: "b"})
					f.Until(func() bool { return a.Host.Ready() == nil && b.Host.Ready() == nil })
					for i := range 4 {
						handle := fmt.Sprintf("s%d", i)
						fail(a, w.stream, w.subject(f, handle))
						f.Seats(handle)
						took := f.Until(func() bool { return admitted(a, handle) || admitted(b, handle) })
						if took > 30*time.Second { // the longest: a log that gives up after 20 s, and two passes
							t.Fatalf("%s: dark for %v", handle, took)
						}
						onlyOne(t, []string{handle}, a, b)
						f.Tenures(handle)
						owner, epoch := standing(t, f, handle)
						f.Advance(10 * time.Second) // what was late has landed
						if o, e := standing(t, f, handle); o != owner || e != epoch {
							t.Fatalf("%s moved from %s@%d to %s@%d without need", handle, owner, epoch, o, e)
						}
						f.Seats()
						f.Until(func() bool { return len(seattest.Holders(handle, a, b)) == 0 })
					}
				})
			})
		}
	}
}

// TestCase14StopDuringAClaim proves, a hundred times, that a stop at any moment
// of an acquisition leaves nothing behind: B has the seat well before a TTL.
func TestCase14StopDuringAClaim(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			f := seattest.New(t, ttl)
			a := f.Start(seattest.Config{ID: "a"})
			f.Until(func() bool { return a.Host.Ready() == nil })
			a.Conn.Faults.Delay(10 * time.Millisecond)
			f.Seats("dev")
			f.Advance(time.Duration(i) * 500 * time.Microsecond)
			a.Stop()
			if owner, epoch := standing(t, f, "dev"); owner != "" {
				t.Fatalf("stopped after %d half milliseconds, the lease is still %s's at epoch %d", i, owner, epoch)
			}
			b := commands.New(seattest.NewLog(f.Conn), f.Subjects, f.Boot("b"))
			never := func(uint64) (time.Duration, bool) { return 0, false }
			if _, err := b.Claim(t.Context(), events.SeatLease("dev"), commands.Claim{TTL: ttl, Protocol: 4}, never); err != nil {
				t.Fatalf("B cannot claim at once: %v", err)
			}
		})
	}
}
