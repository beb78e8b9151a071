package duty_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/duty"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// busyNode is a whole node: it runs seats, works their mail, answers queries, and
// has duties, all of it as one incarnation.
type busyNode struct {
	t *testing.T
	f *seattest.Fleet
	*seattest.Node
	log *logged

	mu    sync.Mutex
	boxes map[string]*commands.Mailboxes // by seat, of its tenure
	downs int                            // attachments that ended
	ticks map[string]int
	cut   map[string]int // ticks that were told to end
}

func startBusyNode(t *testing.T, seats ...string) *busyNode {
	t.Helper()
	b := &busyNode{t: t, f: seattest.New(t, ttl), log: &logged{}, boxes: map[string]*commands.Mailboxes{}, ticks: map[string]int{}, cut: map[string]int{}}
	b.f.Seats(seats...)
	b.Node = b.f.Start(seattest.Config{ID: "a", Stages: func(*seattest.Node) []seat.Stage {
		return []seat.Stage{{
			Name: "inbox",
			Up: func(_ context.Context, m *commands.Mailboxes) error {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.boxes[m.Tenure.Lease.ID] = m
				return nil
			},
			Down: func(context.Context, string, seat.Mode) error {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.downs++
				return nil
			},
		}}
	}})
	b.f.Until(func() bool { return len(b.Host.Held()) == len(seats) })
	return b
}

// duty is one that ticks; a tick of it lasts, if it is told to, until the duty is
// lost.
func (b *busyNode) duty(name string, lasts bool) duty.Duty {
	return duty.Duty{Name: name, Every: 10 * time.Second, Tick: func(ctx context.Context) error {
		b.mu.Lock()
		b.ticks[name]++
		b.mu.Unlock()
		if !lasts {
			return nil
		}
		select {
		case <-time.After(time.Hour):
			return nil
		case <-ctx.Done():
			b.mu.Lock()
			defer b.mu.Unlock()
			b.cut[name]++
			return context.Cause(ctx)
		}
	}}
}

// run runs the duties until the returned function is called, which waits.
func (b *busyNode) run(duties ...duty.Duty) (stop func()) {
	r := duty.NewRunner(duty.Config{NodeID: "a", TTL: ttl, Protocol: 4}, duty.Deps{
		Leases: b.Shell, Unseen: b.LogClock().UnseenFor, Now: b.Clock.Now, Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}, duties...)
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// awaitOwn waits until the duty is the node's.
func (b *busyNode) awaitOwn(name string) (now aggregates.Lease) {
	b.t.Helper()
	b.f.Until(func() bool {
		now = must(b.f.Op.Lease(b.t.Context(), events.Lease{Kind: events.KindWorker, ID: name}))
		return now.Status == aggregates.LeaseHeld && now.Owner == b.Self
	})
	return now
}

// moveAway fences the node's duty and lets another have it, and let go of it.
func (b *busyNode) moveAway(name string) {
	b.t.Helper()
	lease := events.Lease{Kind: events.KindWorker, ID: name}
	other := commands.New(broker.NewLog(b.f.Conn), b.f.Subjects, "b:000000b0")
	mine := b.awaitOwn(name)
	if _, err := b.f.Op.Fence(b.t.Context(), lease, mine.Epoch, "moved away", "ops"); err != nil {
		b.t.Fatal(err)
	}
	var tenure commands.Tenure
	b.f.Until(func() bool {
		var err error
		tenure, err = other.Claim(b.t.Context(), lease, commands.Claim{TTL: ttl, Protocol: 4}, b.LogClock().UnseenFor)
		var held *aggregates.HeldError
		if err != nil && !errors.As(err, &held) {
			b.t.Fatal(err)
		}
		if err != nil && held.Owner == b.Self && !held.Fenced { // it was quicker: once more
			_, _ = b.f.Op.Fence(b.t.Context(), lease, held.Epoch, "moved away", "ops")
		}
		return err == nil
	})
	if err := other.Release(b.t.Context(), tenure, events.ReasonDrain); err != nil {
		b.t.Fatal(err)
	}
}

// works sends the seat mail and works it under the tenure that the node has.
func (b *busyNode) works(handle, id string) error {
	b.mu.Lock()
	m := b.boxes[handle]
	b.mu.Unlock()
	epoch, err := b.Host.MayStart(handle)
	if err != nil || epoch != m.Tenure.Epoch {
		return fmt.Errorf("epoch %d, the inbox's is %d: %w", epoch, m.Tenure.Epoch, err)
	}
	seq, err := b.f.Op.Send(b.t.Context(), events.Mail{Handle: handle, Mailbox: events.Inbox, ID: id, Type: "task_assigned", Time: time.Now(), Data: []byte(`{}`)})
	if err == nil {
		err = b.Cursors.Attempt(b.t.Context(), m, events.Inbox, []uint64{seq})
	}
	if err == nil {
		err = b.Cursors.Settle(b.t.Context(), m, events.Inbox, commands.Ended{Ack: []uint64{seq}})
	}
	return err
}

// answers asks the node's read model who has the seats.
func (b *busyNode) answers() (held int, err error) {
	err = b.View(func(r projections.Reader) error {
		fleet, err := r.Fleet()
		held = fleet.Established
		return err
	})
	return held, err
}

// TestCase26MovingADutyStopsNothingElse proves that each of a node's duties can be
// moved away from it again and again, 50 times in full, and ends that duty's tick and nothing else: the
// node's seats stay in their first tenure and admit turns, their inboxes stay
// attached and their mail is worked on, queries are answered, another duty is
// renewed and ticks on in its first tenure, and what was lost can be had again.
func TestCase26MovingADutyStopsNothingElse(t *testing.T) {
	moves := 15
	if full {
		moves = 50
	}
	synctest.Test(t, func(t *testing.T) {
		b, began := startBusyNode(t, "dev", "ops"), time.Now()
		moved := []string{"maintenance", "retention"}
		stop := b.run(b.duty(moved[0], true), b.duty(moved[1], true), b.duty("kept", false))
		for round := range moves {
			for _, name := range moved {
				b.moveAway(name)
				for _, handle := range []string{"dev", "ops"} {
					if err := b.works(handle, fmt.Sprintf("%s-%s-%d", handle, name, round)); err != nil {
						t.Fatalf("round %d, %s moved: work of %s: %v", round, name, handle, err)
					}
				}
				if held, err := b.answers(); held != 2 || err != nil {
					t.Fatalf("round %d, %s moved: it sees %d seats established: %v", round, name, held, err)
				}
			}
		}
		for _, name := range moved {
			if now := b.awaitOwn(name); now.Epoch < uint64(2*moves+1) {
				t.Errorf("%s is the node's again at epoch %d, after %d moves", name, now.Epoch, moves)
			}
		}
		stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		due := int(time.Since(began) / (10 * time.Second))
		if b.cut[moved[0]] < moves || b.cut[moved[1]] < moves || b.ticks["kept"] < due-1 {
			t.Errorf("ticks cut short: %v of %d each; %d of %d ticks of the duty that was not moved", b.cut, moves, b.ticks["kept"], due)
		}
		if b.downs > 0 || len(b.Host.Held()) != 2 {
			t.Errorf("%d inboxes were detached; it runs %q", b.downs, b.Host.Held())
		}
		for _, handle := range []string{"dev", "ops"} {
			if n := len(b.f.Tenures(handle)); n != 1 {
				t.Errorf("%s has had %d tenures, want its first", handle, n)
			}
		}
		var ended []uint64
		kept := b.f.Subjects.Tenure(events.Lease{Kind: events.KindWorker, ID: "kept"})
		for _, msg := range must(b.f.Conn.Stream(events.StreamFleet).LastPerSubject(t.Context(), kept)) {
			ended = append(ended, must(events.Decode(b.f.Subjects, msg)).Event.(events.LeaseReleased).Epoch)
		}
		if !slices.Equal(ended, []uint64{1}) {
			t.Errorf("the duty that was not moved ended at epochs %v, want its first", ended)
		}
	})
}
