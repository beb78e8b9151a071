package seat_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// One check of a rapid property here is a fleet's life; -rapid.checks runs more.
const checks = "30"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", checks); err != nil { // before the command line is read
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const (
	ttl       = 45 * time.Second
	heartbeat = ttl / 3
	lapses    = ttl + 450*time.Millisecond
)

// hooks are a seat's stages, watched, and made to fail by a test.
type hooks struct {
	mu   sync.Mutex
	told []string                                                  // "up tools dev@1", "down tools dev voluntary"
	fail map[string]func(ctx context.Context, handle string) error // by "up tools"
}

func (h *hooks) stages(names ...string) func(*seattest.Node) []seat.Stage {
	return func(*seattest.Node) []seat.Stage {
		var stages []seat.Stage
		for _, name := range names {
			stages = append(stages, seat.Stage{
				Name: name,
				Up: func(ctx context.Context, m *commands.Mailboxes) error {
					t := m.Tenure
					return h.tell(ctx, "up "+name, t.Lease.ID, fmt.Sprintf("up %s %s@%d", name, t.Lease.ID, t.Epoch))
				},
				Down: func(ctx context.Context, handle string, mode seat.Mode) error {
					how := map[seat.Mode]string{seat.Voluntary: "voluntary", seat.Fenced: "fenced"}[mode]
					return h.tell(ctx, "down "+name, handle, fmt.Sprintf("down %s %s %s", name, handle, how))
				},
			})
		}
		return stages
	}
}

func (h *hooks) tell(ctx context.Context, what, handle, told string) error {
	h.mu.Lock()
	h.told = append(h.told, told)
	fail := h.fail[what]
	h.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(ctx, handle)
}

// on makes a hook do that, nil: succeed.
func (h *hooks) on(what string, do func(ctx context.Context, handle string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail == nil {
		h.fail = map[string]func(context.Context, string) error{}
	}
	h.fail[what] = do
}

// calls returns what the hooks were told since the last time.
func (h *hooks) calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := h.told
	h.told = nil
	return told
}

// handles makes n of them.
func handles(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("s%02d", i))
	}
	return all
}

// holds waits until the nodes hold that many seats, in that order.
func holds(f *seattest.Fleet, nodes []*seattest.Node, want ...int) time.Duration {
	return f.Until(func() bool {
		for i, n := range nodes {
			if len(n.Host.Held()) != want[i] {
				return false
			}
		}
		return true
	})
}

// admitted says whether a turn may start on the seat at that node.
func admitted(n *seattest.Node, handle string) bool {
	_, err := n.Host.MayStart(handle)
	return err == nil
}

// onlyOne requires that each seat is held by at most one of the nodes, and that
// none of them admits a turn on a seat that it does not hold.
func onlyOne(t *testing.T, all []string, nodes ...*seattest.Node) {
	t.Helper()
	for _, handle := range all {
		if h := seattest.Holders(handle, nodes...); len(h) > 1 {
			t.Fatalf("%s is held by %v", handle, h)
		}
		for _, n := range nodes {
			if admitted(n, handle) && !slices.Contains(n.Host.Held(), handle) {
				t.Fatalf("%s admits turns on %s and does not hold it", n.ID, handle)
			}
		}
	}
}

// standing reads a seat's lease from the log.
func standing(t *testing.T, f *seattest.Fleet, handle string) (owner events.Incarnation, epoch uint64) {
	t.Helper()
	l, err := f.Op.Lease(context.Background(), events.SeatLease(handle))
	if err != nil {
		t.Fatal(err)
	}
	return l.Owner, l.Epoch
}
