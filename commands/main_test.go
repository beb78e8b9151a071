package commands_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl    = 3 * time.Second
	lapses = ttl + 250*time.Millisecond
)

// process is one writer: a shell on a connection and a log clock of its own.
type process struct {
	*commands.Shell
	fleet   *seattest.Fleet
	t       seattest.TB
	conn    *broker.Memory
	clock   *broker.LogClock
	cursors *commands.Cursors
}

// boot starts a writer whose log clock is fed until the test ends.
func boot(t seattest.TB, f *seattest.Fleet, id string) *process {
	p := &process{fleet: f, t: t}
	p.connect(f.Boot(id))
	p.clock = broker.NewLogClock(f.Conn.Stream(events.StreamFleet), clock.FromTime, ttl)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.clock.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		_ = p.conn.Close()
	})
	return p
}

func (p *process) connect(self events.Incarnation) {
	conn := p.fleet.Conn.Peer()
	p.conn = conn
	p.Shell = commands.New(seattest.NewLog(conn), p.fleet.Subjects, self)
	p.cursors = p.Cursors(broker.NewMailboxes(conn))
	p.t.Cleanup(conn.Faults.Settle)
}

// reconnect leaves all faults behind, with what they still hold on its way.
func (p *process) reconnect() { p.connect(p.Self()) }

func (p *process) ask() commands.Claim {
	return commands.Claim{Preferred: p.Self().NodeID(), TTL: ttl, Protocol: 4}
}

// try claims a seat.
func (p *process) try(ctx context.Context, handle string) (commands.Tenure, error) {
	return p.Claim(ctx, events.SeatLease(handle), p.ask(), p.clock.UnseenFor)
}

// claim claims a seat that must be free.
func (p *process) claim(handle string) commands.Tenure {
	p.t.Helper()
	t, err := p.try(p.t.Context(), handle)
	if err != nil {
		p.t.Fatalf("%s claims %s: %v", p.Self(), handle, err)
	}
	return t
}

// takeOver opens the seat's cursors, which must succeed.
func (p *process) takeOver(t commands.Tenure) *commands.Mailboxes {
	p.t.Helper()
	m, err := p.cursors.TakeOver(p.t.Context(), t)
	if err != nil {
		p.t.Fatalf("%s takes over %s: %v", p.Self(), t.Lease, err)
	}
	return m
}

// lapse lets time pass until a lease that is not renewed may be taken.
func (p *process) lapse() { p.fleet.Advance(lapses + time.Second) }

// standing reads a lease from the log.
func (p *process) standing(handle string) aggregates.Lease {
	p.t.Helper()
	l, err := p.fleet.Op.Lease(context.Background(), events.SeatLease(handle))
	if err != nil {
		p.t.Fatalf("read %s: %v", handle, err)
	}
	return l
}

// tenureOf is where a seat's claims and releases stand.
func tenureOf(f *seattest.Fleet, handle string) string {
	return f.Subjects.Tenure(events.SeatLease(handle))
}

// kind names the class of an error, as a caller tells them apart.
func kind(err error) string {
	var (
		held   *aggregates.HeldError
		ended  *aggregates.EndedError
		fenced *aggregates.FencedError
		none   *aggregates.NoCursorError
		wrong  *broker.IdentityError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &held):
		return "held"
	case errors.As(err, &ended):
		return "ended"
	case errors.As(err, &fenced):
		return "fenced"
	case errors.As(err, &none):
		return "no cursor"
	case errors.As(err, &wrong):
		return "another stream"
	case errors.Is(err, events.ErrUnknown):
		return "unknown"
	case errors.Is(err, events.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, events.ErrConflict):
		return "conflict"
	}
	return err.Error()
}
