package seattest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// TB is what the fleet needs of a test; *testing.T and *rapid.T have it.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
}

// Prefix is the stream prefix of every fleet here.
const Prefix = "acme"

// Fleet is an in-memory broker with nodes on it.
type Fleet struct {
	// Conn is a connection of nobody's, for looking and for breaking streams.
	Conn *broker.Memory
	// Op is a shell that writes as an operator's tool.
	Op       *commands.Shell
	Subjects events.Subjects
	TTL      time.Duration

	tb TB

	mu    sync.Mutex
	boots int // guarded by mu
	seats int // revisions applied; guarded by mu
}

// New starts an empty fleet with that lease TTL, its streams marked once.
func New(tb TB, ttl time.Duration) *Fleet {
	tb.Helper()
	conn, err := broker.NewMemory(broker.Config{Prefix: Prefix, LeaseTTL: ttl})
	if err != nil {
		tb.Fatalf("start the broker: %v", err)
	}
	f := &Fleet{Conn: conn, Subjects: conn.Subjects(), TTL: ttl, tb: tb}
	tb.Cleanup(func() { _ = conn.Close() })
	if _, err := (broker.Marks{Store: conn, Source: "op:00000000"}).Mark(tb.Context()); err != nil {
		tb.Fatalf("mark the streams: %v", err)
	}
	f.Op = commands.New(NewLog(conn), f.Subjects, "op:00000000")
	return f
}

// Boot mints the incarnation of a new process of that node id.
func (f *Fleet) Boot(id string) events.Incarnation {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.boots++
	return events.Incarnation(fmt.Sprintf("%s:%08x", id, f.boots))
}

// Seats makes the company exactly these seats, any node may run each, and
// registers their mailboxes.
func (f *Fleet) Seats(handles ...string) {
	f.tb.Helper()
	seats := make([]events.RosterSeat, 0, len(handles))
	for _, handle := range handles {
		seats = append(seats, events.RosterSeat{Handle: handle})
	}
	f.Roster(seats...)
}

// Roster makes the company exactly these seats and registers their mailboxes.
func (f *Fleet) Roster(seats ...events.RosterSeat) {
	f.tb.Helper()
	f.mu.Lock()
	f.seats++
	digest := fmt.Sprintf("d%d", f.seats)
	f.mu.Unlock()
	cursors := f.Op.Cursors(broker.NewMailboxes(f.Conn))
	for i := range seats {
		seats[i].AgentID = "agent-" + seats[i].Handle
		if err := cursors.Register(f.tb.Context(), seats[i].Handle, seats[i].AgentID); err != nil {
			f.tb.Fatalf("register %s: %v", seats[i].Handle, err)
		}
	}
	if _, err := f.Op.Apply(f.tb.Context(), events.CompanyApplied{Name: "Acme", Digest: digest, Seats: seats}); err != nil {
		f.tb.Fatalf("apply the company: %v", err)
	}
}

// Advance lets time pass.
func (f *Fleet) Advance(d time.Duration) { <-time.After(d) }

// Until lets time pass until ok holds, in steps of 100 ms and for an hour at
// most, and returns how long it took.
func (f *Fleet) Until(ok func() bool) time.Duration {
	f.tb.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > time.Hour {
			f.tb.Fatalf("it did not happen within an hour")
		}
		f.Advance(100 * time.Millisecond)
	}
	return time.Since(start)
}

// History reads a stream as it is now.
func (f *Fleet) History(st events.Stream) []events.Recorded {
	f.tb.Helper()
	info, err := f.Conn.Stream(st).Info(context.Background())
	if err != nil {
		f.tb.Fatalf("read %s: %v", st, err)
	}
	var all []events.Recorded
	for seq := info.First; seq <= info.Last; seq++ {
		msg, err := f.Conn.Stream(st).Get(context.Background(), seq)
		if err != nil {
			continue // replaced or purged
		}
		r, err := events.Decode(f.Subjects, msg)
		if err != nil {
			f.tb.Fatalf("read %s: %v", st, err)
		}
		all = append(all, r)
	}
	return all
}

// Tenures replays the log: every claim of a seat, in order. It fails the test
// when an epoch does not rise by one.
func (f *Fleet) Tenures(handle string) []events.LeaseClaimed {
	f.tb.Helper()
	var claims []events.LeaseClaimed
	for _, r := range f.History(events.StreamFleet) {
		if c, ok := r.Event.(events.LeaseClaimed); ok && c.Lease == events.SeatLease(handle) {
			if want := uint64(len(claims) + 1); c.Epoch != want {
				f.tb.Fatalf("claim %d of %s has epoch %d", want, handle, c.Epoch)
			}
			claims = append(claims, c)
		}
	}
	return claims
}

// Reasons lists why the tenures of a seat were released, in order.
func (f *Fleet) Reasons(handle string) []events.Reason {
	f.tb.Helper()
	var reasons []events.Reason
	for _, r := range f.History(events.StreamFleet) {
		if e, ok := r.Event.(events.LeaseReleased); ok && e.Lease == events.SeatLease(handle) {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Holders says which of the nodes' hosts run the seat.
func Holders(handle string, nodes ...*Node) []string {
	var ids []string
	for _, n := range nodes {
		if slices.Contains(n.Host.Held(), handle) {
			ids = append(ids, n.ID)
		}
	}
	return ids
}
