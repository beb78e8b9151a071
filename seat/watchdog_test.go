package seat_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

const dogTTL = 3 * time.Second

// watch runs a watchdog in a bubble and returns it with what it did.
func watch(t *testing.T, now clock.Source) (dog *seat.Watchdog, stderr *bytes.Buffer, code *atomic.Int64, stop func()) {
	t.Helper()
	stderr, code = &bytes.Buffer{}, &atomic.Int64{}
	dog = seat.NewWatchdog(dogTTL, now, stderr)
	dog.SetExit(func(c int) { code.Store(int64(c)) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = dog.Run(ctx) }()
	return dog, stderr, code, func() { cancel(); <-done }
}

// TestWatchdogEndsAStalledProcess: a duty that does not turn for longer than the
// TTL ends the process with 75 and one line that names it (X1).
func TestWatchdogEndsAStalledProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog, stderr, code, stop := watch(t, clock.FromTime)
		defer stop()
		dog.Watch("heartbeat")
		time.Sleep(dogTTL - time.Millisecond)
		synctest.Wait()
		if code.Load() != 0 {
			t.Fatalf("ended before the TTL: %s", stderr)
		}
		time.Sleep(dogTTL)
		synctest.Wait()
		if code.Load() != seat.ExitWedged || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "heartbeat") {
			t.Errorf("exit code %d, stderr %q; want 75 and one line naming the duty", code.Load(), stderr)
		}
	})
}

// stuckRenewals answer as the shell does until stuck, and then never, whatever
// their context says.
type stuckRenewals struct {
	seat.Leases
	stuck atomic.Bool
	free  chan struct{}
}

func (s *stuckRenewals) Renew(ctx context.Context, ts []commands.Tenure) []commands.Renewed {
	if s.stuck.Load() {
		<-s.free
	}
	return s.Leases.Renew(ctx, ts)
}

// TestWatchdogWatchesTheHeartbeat: a host's heartbeat is a duty. While it turns
// the process lives, and once a round hangs it ends (X1).
func TestWatchdogWatchesTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog, stderr, code, stop := watch(t, clock.FromTime)
		defer stop()
		f := seattest.New(t, dogTTL)
		renewals := &stuckRenewals{free: make(chan struct{})}
		f.Start(seattest.Config{ID: "a", Watchdog: dog, Leases: func(l seat.Leases) seat.Leases {
			renewals.Leases = l
			return renewals
		}})
		f.Advance(5 * dogTTL)
		synctest.Wait()
		if code.Load() != 0 {
			t.Fatalf("ended while the heartbeat turned: %s", stderr)
		}
		renewals.stuck.Store(true)
		f.Advance(2*dogTTL + dogTTL/2)
		synctest.Wait()
		close(renewals.free)
		if code.Load() != seat.ExitWedged || !strings.Contains(stderr.String(), "heartbeat") {
			t.Errorf("exit code %d, stderr %q; want 75 for the heartbeat", code.Load(), stderr)
		}
	})
}

// stuckClaims never answer the claim of a seat, whatever their context says.
type stuckClaims struct {
	seat.Leases
	free chan struct{}
}

func (s stuckClaims) Claim(ctx context.Context, l events.Lease, c commands.Claim, unseen commands.Unseen) (commands.Tenure, error) {
	if l.Kind == events.KindSeat {
		<-s.free
	}
	return s.Leases.Claim(ctx, l, c, unseen)
}

// TestWatchdogWatchesTheSweep: a pass is a duty too, and so is an idle one. What
// keeps to its own bound, as a broker that is away makes it wait, is no stall; what
// does not is one (X1).
func TestWatchdogWatchesTheSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog, stderr, code, stop := watch(t, clock.FromTime)
		defer stop()
		f := seattest.New(t, dogTTL)
		claims := stuckClaims{free: make(chan struct{})}
		a := f.Start(seattest.Config{ID: "a", Watchdog: dog, Leases: func(l seat.Leases) seat.Leases {
			claims.Leases = l
			return claims
		}})
		f.Advance(time.Minute) // nothing to claim: idle passes
		a.Conn.Faults.CutOff(true)
		f.Advance(3 * time.Minute) // passes that wait for the broker
		a.Conn.Faults.CutOff(false)
		f.Seats("dev")
		f.Advance(time.Minute)
		synctest.Wait()
		if code.Load() != 0 {
			t.Fatalf("ended with %d although every wait has a bound: %s", code.Load(), stderr)
		}
		f.Advance(3 * time.Minute)
		synctest.Wait()
		close(claims.free)
		if code.Load() != seat.ExitWedged || !strings.Contains(stderr.String(), "sweep") {
			t.Errorf("exit code %d, stderr %q; want 75 for the sweep", code.Load(), stderr)
		}
	})
}

// TestWatchdogStandsDown: a duty that beats, one that has ended, and a shutdown
// are no stalls (X2).
func TestWatchdogStandsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog, stderr, code, stop := watch(t, clock.FromTime)
		beating, ended := dog.Watch("beating"), dog.Watch("ended")
		ended.Done()
		for range 10 {
			time.Sleep(dogTTL / 2)
			beating.Beat()
		}
		stop() // a shutdown begins; the duty may stall from here on
		time.Sleep(3 * dogTTL)
		synctest.Wait()
		if code.Load() != 0 {
			t.Errorf("ended with %d: %s", code.Load(), stderr)
		}
	})
}

// TestCase7PauseIsNoStall: a gap in which the watchdog did not run either, a
// stopped process or a suspended machine, is no stall, and takes nothing from a wait
// that has a bound of its own; a stall after it is one (X3).
func TestCase7PauseIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skipped atomic.Int64 // time that passed while nothing here ran
		now := func() clock.Instant { return clock.FromTime().Add(time.Duration(skipped.Load())) }
		dog, stderr, code, stop := watch(t, now)
		defer stop()
		duty, tick := dog.Watch("heartbeat"), dog.Watch("tick")
		time.Sleep(dogTTL / 4)
		tick.Waits(time.Hour)
		skipped.Store(int64(3 * dogTTL))
		time.Sleep(dogTTL / 4)
		duty.Beat()
		synctest.Wait()
		if code.Load() != 0 {
			t.Fatalf("a pause ended the process: %s", stderr)
		}
		for range 8 {
			time.Sleep(dogTTL / 2)
			duty.Beat()
		}
		synctest.Wait()
		if code.Load() != 0 {
			t.Fatalf("a pause in a wait that may take an hour ended the process: %s", stderr)
		}
		time.Sleep(2 * dogTTL)
		synctest.Wait()
		if code.Load() != seat.ExitWedged || !strings.Contains(stderr.String(), "heartbeat") {
			t.Errorf("a stall after the pause did not end the process: %s", stderr)
		}
	})
}
