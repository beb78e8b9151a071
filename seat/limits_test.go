package seat_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// slow is a stage that takes so long for each seat.
func slow(each time.Duration) func(*seattest.Node) []seat.Stage {
	return func(*seattest.Node) []seat.Stage {
		return []seat.Stage{{
			Name: "tools",
			Up: func(ctx context.Context, _ *commands.Mailboxes) error {
				select {
				case <-time.After(each):
				case <-ctx.Done():
				}
				return nil
			},
			Down: func(context.Context, string, seat.Mode) error { return nil },
		}}
	}
}

// TestAdaptiveLimits proves that an adaptive node claims as much in a pass as fits
// into half an interval by what its seats take to set up, never less than the
// floor, and that a fixed one claims exactly its limit (P2).
func TestAdaptiveLimits(t *testing.T) {
	const company, sweep = 60, 5 * time.Second
	for name, c := range map[string]struct {
		adaptive bool
		each     time.Duration
		want     int // seats claimed in the first pass
	}{
		"fixed":                 {false, 0, 4},
		"adaptive, fast seats":  {true, 0, company},
		"adaptive, 100 ms each": {true, 100 * time.Millisecond, 25},
		"adaptive, 10 s each":   {true, 10 * time.Second, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				f.Seats(handles(company)...)
				pass := &firstPass{}
				f.Start(seattest.Config{
					ID: "a", Stages: slow(c.each), Sweep: sweep, Observe: pass,
					Limits: seat.Limits{Claim: 4, Release: 2, Adaptive: c.adaptive},
				})
				f.Until(func() bool { return pass.claimed.Load() > 0 })
				if got := int(pass.claimed.Load()); got != c.want {
					t.Errorf("the first pass claimed %d of %d seats, want %d", got, company, c.want)
				}
			})
		})
	}
}

// quiet answers no claim of a seat: the log is away.
type quiet struct {
	seat.Leases
	asked atomic.Int64
}

func (q *quiet) Claim(ctx context.Context, l events.Lease, c commands.Claim, unseen commands.Unseen) (commands.Tenure, error) {
	if l.Kind != events.KindSeat {
		return q.Leases.Claim(ctx, l, c, unseen)
	}
	q.asked.Add(1)
	return commands.Tenure{}, events.ErrUnavailable
}

// TestPassEndsWhenTheLogIsAway proves that a pass asks a log that does not answer
// once, not once for every seat: each asking waits, and the pass would go on for
// minutes with what it saw at its start (P5).
func TestPassEndsWhenTheLogIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats(handles(50)...)
		claims := &quiet{}
		f.Start(seattest.Config{ID: "a", Leases: func(l seat.Leases) seat.Leases { claims.Leases = l; return claims }})
		f.Advance(time.Minute)
		if n := claims.asked.Load(); n < 10 || n > 14 {
			t.Errorf("%d claims were tried in a minute, want one in each of its 12 passes", n)
		}
	})
}

// firstPass counts the seats that the first pass with any claims established.
type firstPass struct{ running, claimed atomic.Int64 }

func (p *firstPass) Took(s seat.Step, how seat.Outcome, _ time.Duration) {
	if s == seat.StepEstablish && how == seat.OutcomeDone {
		p.running.Add(1)
	}
}

func (p *firstPass) Swept(seat.Swept) { p.claimed.CompareAndSwap(0, p.running.Load()) }

func (*firstPass) Received(time.Duration) {}

func (*firstPass) Denied(seat.Gate, seat.Denial) {}
