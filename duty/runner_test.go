package duty_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"log/slog"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
)

// worker is a node that runs duties.
type worker struct {
	*node
	shell *commands.Shell
	ticks atomic.Int32
	stop  func() // tells it to stop, and waits for the end
}

// worker starts a node whose duty "sweep" is due every so often. ticking, unless
// nil, is what a tick does.
func (w *world) worker(id string, every time.Duration, ticking func(ctx context.Context) error) *worker {
	n := w.node(id, usual)
	k := &worker{node: n, shell: commands.New(broker.NewLog(n.conn), w.subjects, w.incarnation(id))}
	r := duty.NewRunner(duty.Config{NodeID: id, TTL: ttl, Protocol: 4}, duty.Deps{
		Leases: k.shell, Unseen: n.logClock.UnseenFor, Now: n.clocks.now, Log: slog.New(slog.NewTextHandler(n.log, nil)),
	}, duty.Duty{Name: "sweep", Every: every, Tick: func(ctx context.Context) error {
		k.ticks.Add(1)
		if ticking != nil {
			return ticking(ctx)
		}
		return nil
	}})
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	var once sync.Once
	k.stop = func() { once.Do(func() { cancel(); running.Wait() }) }
	w.t.Cleanup(k.stop)
	return k
}

func (w *world) duty() aggregates.Lease {
	w.t.Helper()
	l, err := w.op.Lease(w.t.Context(), events.Lease{Kind: events.KindWorker, ID: "sweep"})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// TestDutyIsOneNodes proves Y1: of two nodes one ticks, its duty is renewed on the
// heartbeat for as long as it runs, and given back after the last tick when it
// stops; the other takes it on its next tick.
func TestDutyIsOneNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var inTick atomic.Bool
		a := w.worker("a", time.Minute, func(ctx context.Context) error {
			inTick.Store(true)
			defer inTick.Store(false)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return nil
		})
		time.Sleep(10 * time.Second)
		b := w.worker("b", time.Minute, nil)
		time.Sleep(time.Hour)
		if a.ticks.Load() < 55 || b.ticks.Load() != 0 {
			t.Fatalf("%d ticks of A, %d of B; want one for each minute, and none", a.ticks.Load(), b.ticks.Load())
		}
		if l := w.duty(); l.Epoch != 1 || l.Owner != a.shell.Self() {
			t.Fatalf("the duty is %+v, want A's first tenure still", l)
		}
		a.stop()
		if inTick.Load() {
			t.Error("stopped in the middle of a tick")
		}
		if l := w.duty(); l.Status != aggregates.LeaseFree || !a.log.has("duty_released", "duty=sweep") {
			t.Fatalf("not given back: %+v", l)
		}
		time.Sleep(time.Minute + 5*time.Second)
		if b.ticks.Load() == 0 {
			t.Error("B did not take it on its next tick")
		}
	})
}

// TestDeadHoldersDuty proves that a dead holder's duty is free after one TTL, not
// after hours, and that a store that does not answer skips the tick: unknown
// ownership is not ownership (Y1).
func TestDeadHoldersDuty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.worker("a", time.Minute, nil)
		time.Sleep(5 * time.Second)
		b := w.worker("b", 10*time.Second, nil)
		time.Sleep(time.Minute)
		a.faults.CutOff(true)
		before := a.ticks.Load()
		cut := time.Now()
		for b.ticks.Load() == 0 && time.Since(cut) < time.Hour {
			time.Sleep(time.Second)
		}
		if took := time.Since(cut); took > ttl+30*time.Second {
			t.Errorf("the duty was free after %v, want one TTL and a tick", took)
		}
		time.Sleep(10 * time.Minute)
		if got := a.ticks.Load() - before; got > 1 {
			t.Errorf("A ticked %d times without a log, want once at most, within its TTL", got)
		}
		if !a.log.has("duty_lost") || !a.log.has("duty_claim_not_answered") {
			t.Errorf("A does not say so: %q", a.log.lines)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestRenewalsArePruned proves that the retention duty removes old renewals, and
// that no live lease loses its last one: every holder goes on renewing over what
// is left, and who reads a lapsed one still sees its epoch.
func TestRenewalsArePruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := w.node("a", usual)
		holder := commands.New(broker.NewLog(w.store), w.subjects, "b:000000b0")
		claim := func(handle string) commands.Tenure {
			t.Helper()
			return must(holder.Claim(t.Context(), events.SeatLease(handle), commands.Claim{TTL: ttl, Protocol: 4}, n.logClock.UnseenFor))
		}
		live, dead := []commands.Tenure{claim("dev"), claim("ops")}, claim("gone")
		dead = holder.Renew(t.Context(), []commands.Tenure{dead})[0].Tenure
		prune := &duty.Renewals{TTL: ttl, Before: n.logClock.Before, Log: discard(), Purge: func(ctx context.Context, below uint64) error {
			return n.conn.Stream(events.StreamFleet).Purge(ctx, w.subjects.Renewals(), below)
		}}
		for beat := range 400 {
			time.Sleep(ttl / 3)
			for i, a := range holder.Renew(t.Context(), live) {
				if a.Err != nil {
					t.Fatalf("beat %d: %v", beat, a.Err)
				}
				live[i] = a.Tenure
			}
			if beat%7 == 0 {
				if err := prune.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, l := range live {
					if now := must(w.op.Lease(t.Context(), l.Lease)); now.Last != l.Last {
						t.Fatalf("beat %d: the last renewal of %s is gone", beat, l.Lease)
					}
				}
			}
		}
		left := 0
		for _, n := range must(n.conn.Stream(events.StreamFleet).Subjects(t.Context(), w.subjects.Renewals())) {
			left += int(n)
		}
		if left > 40 {
			t.Errorf("%d renewals are left of 800", left)
		}
		if now := must(w.op.Lease(t.Context(), dead.Lease)); now.Epoch != dead.Epoch || now.Last >= dead.Last {
			t.Errorf("the lapsed lease reads %+v, want its claim", now)
		}
		if got := claim("gone"); got.Epoch != dead.Epoch+1 {
			t.Errorf("claimed at epoch %d, want %d (L2)", got.Epoch, dead.Epoch+1)
		}
	})
}
