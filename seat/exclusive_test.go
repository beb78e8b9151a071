package seat_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/seat/seattest"
)

const shortTTL = 6 * time.Second

// journal is what turns did, in the order in which they did it.
type journal struct {
	mu   sync.Mutex
	done []deed // guarded by mu
}

type deed struct {
	handle string
	epoch  uint64
	owner  events.Incarnation
	start  bool // an admitted turn, else an effect of one
}

func (j *journal) add(d deed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done = append(j.done, d)
}

// verdict says which turn did something after a later tenure had begun to act.
// Effects count only where no pause went uncounted: those meet the in-turn fence
// alone, and no clock of theirs shows it (design §4).
func (j *journal) verdict(effects bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	newest := map[string]uint64{}
	for i, d := range j.done {
		if d.epoch < newest[d.handle] && (d.start || effects) {
			return fmt.Errorf("deed %d: %+v, after epoch %d had acted", i, d, newest[d.handle])
		}
		if d.epoch > newest[d.handle] && (d.start || effects) {
			newest[d.handle] = d.epoch
		}
	}
	return nil
}

// busy is a stage that runs one turn after the other on its seat, each as the
// product does: admitted by MayStart and the attempt record, fenced before each
// effect, settled.
func busy(f *seattest.Fleet, j *journal) func(*seattest.Node) []seat.Stage {
	return func(n *seattest.Node) []seat.Stage {
		var mu sync.Mutex
		ends := map[string]func(){}
		return []seat.Stage{{
			Name: "turns",
			Up: func(ctx context.Context, m *commands.Mailboxes) error {
				running, stop := context.WithCancel(context.WithoutCancel(ctx))
				done := make(chan struct{})
				mu.Lock()
				ends[m.Tenure.Lease.ID] = func() { stop(); <-done }
				mu.Unlock()
				go func() {
					defer close(done)
					for running.Err() == nil {
						turnOn(running, f, n, m, j)
					}
				}()
				return nil
			},
			Down: func(_ context.Context, handle string, _ seat.Mode) error {
				mu.Lock()
				end := ends[handle]
				mu.Unlock()
				if end != nil {
					end()
				}
				return nil
			},
		}}
	}
}

func turnOn(ctx context.Context, f *seattest.Fleet, n *seattest.Node, m *commands.Mailboxes, j *journal) {
	handle := m.Tenure.Lease.ID
	select {
	case <-ctx.Done():
		return
	case <-time.After(300 * time.Millisecond):
	}
	epoch, err := n.Host.MayStart(handle)
	if err != nil || epoch != m.Tenure.Epoch {
		return
	}
	seq, err := f.Op.Send(ctx, events.Mail{Handle: handle, Mailbox: events.Inbox, ID: fmt.Sprint(n.Self, time.Now()), Type: events.TaskAssigned, Time: time.Now(), Data: []byte("1")})
	if err != nil {
		return
	}
	if err := n.Cursors.Attempt(ctx, m, events.Inbox, []uint64{seq}); err != nil {
		return
	}
	d := deed{handle, epoch, n.Self, true}
	j.add(d)
	d.start = false
	for range 20 {
		if n.Host.Fence(handle, epoch) != nil {
			return
		}
		j.add(d)
		select {
		case <-ctx.Done():
			return
		case <-time.After(70 * time.Millisecond):
		}
	}
	_ = n.Cursors.Settle(ctx, m, events.Inbox, commands.Ended{Ack: []uint64{seq}})
}

// TestExclusive runs three hosts, each with turns on every seat that it holds,
// through random cuts, delays, lost and late answers, stops, kills and stalls. It
// proves over the whole of it that no turn is admitted on a seat, and nothing is
// done by one, once a later tenure has acted; that what hosts were told of leases
// has one order in which it is true, lost answers staying open for ever; that
// epochs only rise; and that the fleet ends with every seat held once (L1, L2,
// A1, A3, F2, D4).
func TestExclusive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			f := seattest.New(t, shortTTL)
			all := handles(4)
			f.Seats(all...)
			j, h := &journal{}, &history{}
			start := func(id string) *seattest.Node {
				self := f.Boot(id)
				return f.Start(seattest.Config{
					ID: id, Reuse: self, Sweep: time.Second, Stages: busy(f, j),
					Leases: func(l seat.Leases) seat.Leases { return watched{l, self, h} },
				})
			}
			nodes := []*seattest.Node{start("a"), start("b"), start("c")}
			uncounted := rapid.Bool().Draw(t, "pauses that no clock shows")
			for range rapid.IntRange(5, 25).Draw(t, "faults") {
				i := rapid.IntRange(0, 2).Draw(t, "node")
				disturb(t, f, nodes, i, start, uncounted)
				f.Advance(time.Duration(rapid.IntRange(1, 8000).Draw(t, "for")) * time.Millisecond)
			}
			for _, n := range nodes {
				n.Conn.Faults.Delay(0)
				n.Conn.Faults.CutOff(false)
				n.Clock.Resume()
			}
			settled := func() bool {
				for _, handle := range all {
					if len(seattest.Holders(handle, nodes...)) != 1 {
						return false
					}
				}
				return true
			}
			for end := time.Now().Add(10 * shortTTL); !settled(); f.Advance(100 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the fleet did not settle; the nodes' logs:\n%s\n%s\n%s", nodes[0].Log, nodes[1].Log, nodes[2].Log)
				}
			}
			for _, n := range nodes {
				n.Stop() // all that was asked is answered
			}
			if err := j.verdict(!uncounted); err != nil {
				t.Error(err)
			}
			for _, handle := range all {
				f.Tenures(handle)
			}
			h.handedOver(f)
			if got := porcupine.CheckOperationsTimeout(leases.ToModel(), h.all(), time.Minute); got != porcupine.Ok {
				t.Errorf("what was told of leases has no order in which it is true: %v", got)
			}
		})
	})
}

// disturb does one thing to one node.
func disturb(t *rapid.T, f *seattest.Fleet, nodes []*seattest.Node, i int, start func(id string) *seattest.Node, uncounted bool) {
	n := nodes[i]
	every := seattest.Prefix + ".>"
	times := rapid.IntRange(1, 4).Draw(t, "times")
	switch rapid.IntRange(0, 10).Draw(t, "fault") {
	case 0, 1:
		n.Conn.Faults.CutOff(true)
	case 2:
		n.Conn.Faults.CutOff(false)
	case 3:
		n.Conn.Faults.Delay(time.Duration(rapid.IntRange(0, 900).Draw(t, "delay")) * time.Millisecond)
	case 4:
		n.Conn.Faults.DropAnswer(events.StreamFleet, every, times)
	case 5:
		n.Conn.Faults.DropAnswer(events.StreamCursor, every, times)
	case 6:
		n.Conn.Faults.DropWrite(events.StreamFleet, every, times)
	case 7:
		n.Conn.Faults.LandLate(events.StreamFleet, every, times, time.Duration(rapid.IntRange(1, 9000).Draw(t, "late"))*time.Millisecond)
	case 8:
		n.Stop()
		nodes[i] = start(n.ID)
	case 9:
		n.Kill()
		nodes[i] = start(n.ID)
	case 10: // stopped and continued
		n.Conn.Faults.CutOff(true)
		if uncounted {
			n.Clock.Pause()
		}
		f.Advance(time.Duration(rapid.IntRange(1, 12000).Draw(t, "stopped for")) * time.Millisecond)
		n.Clock.Resume()
		n.Conn.Faults.CutOff(false)
	}
}
