package seat_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// lateReads gives, a tenth of the time, the presences as they were read before.
type lateReads struct {
	broker.Store
	mu     sync.Mutex
	random *rand.Rand
	before []events.Message
	late   int
}

type lateStream struct {
	broker.Stream
	reads *lateReads
}

func (l *lateReads) Stream(st events.Stream) broker.Stream {
	if st != events.StreamFleet {
		return l.Store.Stream(st)
	}
	return lateStream{l.Store.Stream(st), l}
}

func (s lateStream) LastPerSubject(ctx context.Context, filter string) ([]events.Message, error) {
	now, err := s.Stream.LastPerSubject(ctx, filter)
	l := s.reads
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.before
	l.before = now
	if before != nil && l.random.IntN(10) == 0 {
		l.late++
		return before, err
	}
	return now, err
}

// TestCase11FleetWithLateReads: on running hosts, 7 seats on 3 nodes with a tenth
// of all presence reads one sweep late: once spread, nothing moves in 200 sweeps,
// and one change of the membership moves no seat twice.
func TestCase11FleetWithLateReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		all := handles(7)
		f.Seats(all...)
		late := map[string]*lateReads{}
		start := func(id string) *seattest.Node {
			late[id] = &lateReads{random: rand.New(rand.NewPCG(11, uint64(id[0])))}
			return f.Start(seattest.Config{ID: id, Store: func(s broker.Store) broker.Store {
				late[id].Store = s
				return late[id]
			}})
		}
		a, b := start("a"), start("b")
		spread := func(sizes ...int) func() bool {
			return func() bool {
				var have []int
				for _, n := range []*seattest.Node{a, b} {
					have = append(have, len(n.Host.Held()))
				}
				slices.Sort(have)
				return slices.Equal(have, sizes)
			}
		}
		f.Until(spread(3, 4))
		before := tenuresOf(f, all)
		c := start("c")
		f.Advance(200 * 5 * time.Second)
		for handle, n := range tenuresOf(f, all) {
			if n > before[handle]+1 {
				t.Errorf("%s moved %d times for one node that joined", handle, n-before[handle])
			}
		}
		for _, n := range []*seattest.Node{a, b, c} { // three are the share of each
			if held := len(n.Host.Held()); held < 1 || held > 3 {
				t.Errorf("%s has %d of 7 seats", n.ID, held)
			}
		}
		settled := tenuresOf(f, all)
		f.Advance(200 * 5 * time.Second)
		if now := tenuresOf(f, all); !maps.Equal(now, settled) {
			t.Errorf("seats moved although nothing changed: %v, then %v", settled, now)
		}
		for id, l := range late {
			if l.late < 10 {
				t.Errorf("only %d reads of %s were late: this test proves little", l.late, id)
			}
		}
	})
}

func tenuresOf(f *seattest.Fleet, all []string) map[string]int {
	count := map[string]int{}
	for _, handle := range all {
		count[handle] = len(f.Tenures(handle))
	}
	return count
}

// TestCase12CapableNodeMakesRoom: on running hosts, a node that is full of seats
// that could run anywhere, and has one that it cannot let go, takes the seat that
// only it can run when the other that could is killed; the others give way. When
// no node can run it any more it is reported by name, and nobody runs it.
func TestCase12CapableNodeMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		gpu := map[string]string{"gpu": "yes"}
		company := func(p map[string]string) []events.RosterSeat {
			roster := []events.RosterSeat{{Handle: "p", Labels: p}}
			for _, handle := range handles(5) {
				roster = append(roster, events.RosterSeat{Handle: handle})
			}
			return roster
		}
		f.Roster(append(company(gpu), events.RosterSeat{Handle: "stuck", Node: "c"})...)
		hook := &hooks{}
		c := f.Start(seattest.Config{ID: "c", Labels: gpu, Stages: hook.stages("tools")})
		f.Until(func() bool { return len(c.Host.Held()) == 7 })
		b := f.Start(seattest.Config{ID: "b", Labels: gpu})
		a := f.Start(seattest.Config{ID: "a"})
		f.Until(func() bool { return len(a.Host.Held()) > 0 && len(b.Host.Held()) > 0 })
		if len(seattest.Holders("p", c)) == 1 {
			if _, _, err := c.Host.Move(t.Context(), "p", "b", "ops@acme.example"); err != nil {
				t.Fatal(err)
			}
		}
		f.Until(func() bool { return len(seattest.Holders("p", b)) == 1 })

		hook.on("down tools", func(_ context.Context, handle string) error {
			if handle == "stuck" {
				return errors.New("alive")
			}
			return nil
		})
		f.Roster(company(gpu)...) // "stuck" has no role any more, and c cannot let it go
		f.Until(func() bool { return len(c.Host.Unproven()) == 1 })
		b.Kill()
		f.Advance(lapses + 6*time.Second) // its lease, and one sweep
		if got := seattest.Holders("p", a, c); !slices.Equal(got, []string{"c"}) {
			t.Fatalf("p is run by %v, want c", got)
		}
		f.Until(func() bool { return len(a.Host.Held())+len(c.Host.Held()) == 6 && len(c.Host.Held()) <= 3 })

		f.Roster(company(map[string]string{"gpu": "two"})...)
		f.Advance(time.Minute)
		if got := seattest.Holders("p", a, c); len(got) != 0 {
			t.Errorf("p is run by %v, which nobody can", got)
		}
		named := false
		for _, r := range a.Log.All("seats_unplaceable") {
			named = named || r.Attrs["seats"] == "[p]"
		}
		if !named {
			t.Errorf("p was not reported by name:\n%s", a.Log)
		}
	})
}
