package sagas_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// lives is how often a case is played on: rapid gives each about 30 acts.
const lives = 20

// machine plays one seat, three nodes and a log with anything that can happen.
type machine struct {
	*world
	flight  []write
	asked   []asked
	counted int // events of the log that were counted
}

// asked is an effect that some process was asked for, to come back late.
type asked struct {
	by     *host
	boots  int
	effect sagas.Effect
}

func (m *machine) anyHost(t *rapid.T) *host { return rapid.SampledFrom(m.hosts).Draw(t, "node") }

// perform runs an effect: its write may arrive now, later, or never.
func (m *machine) perform(t *rapid.T, h *host, e sagas.Effect) {
	wr, err := m.run(h, e)
	if err != nil || len(wr.events) == 0 {
		return
	}
	m.sendSomehow(t, wr)
}

func (m *machine) sendSomehow(t *rapid.T, wr write) {
	switch rapid.IntRange(0, 29).Draw(t, "fate") {
	case 0: // the process dies between the effect and its event
		wr.by.dead = true
		wr.by.letGo()
	case 1, 2, 3, 4, 5:
		if len(m.flight) < 4 {
			m.flight = append(m.flight, wr)
		}
	default:
		m.land(wr)
	}
}

// step is what a runner does on an event or a timer.
func (m *machine) step(t *rapid.T) {
	var now []asked
	for _, h := range m.hosts {
		for _, e := range m.next(h) {
			if a, ok := e.(sagas.Abandon); !ok || m.unseen(a.Last) >= a.After {
				now = append(now, asked{h, h.boots, e})
			}
		}
	}
	if len(now) == 0 {
		t.Skip("nobody is asked for anything")
	}
	m.asked = append(m.asked, now...)
	a := rapid.SampledFrom(now).Draw(t, "asked")
	m.perform(t, a.by, a.effect)
}

func (m *machine) late(t *rapid.T) {
	if len(m.asked) == 0 {
		t.Skip("nothing was asked yet")
	}
	a := rapid.SampledFrom(m.asked).Draw(t, "asked")
	if a.by.dead || a.by.boots != a.boots {
		t.Skip("its process is gone")
	}
	m.perform(t, a.by, a.effect)
}

func (m *machine) arrive(t *rapid.T) {
	if len(m.flight) == 0 {
		t.Skip("nothing is in flight")
	}
	i := rapid.IntRange(0, len(m.flight)-1).Draw(t, "which")
	wr := m.flight[i]
	m.flight = append(m.flight[:i:i], m.flight[i+1:]...)
	m.land(wr)
}

// sweep is an ordinary claim of a node that finds the seat free or lapsed.
func (m *machine) sweep(t *rapid.T) {
	h := m.anyHost(t)
	if h.dead || h.unfit != "" || h.epoch > 0 {
		t.Skip("it claims nothing")
	}
	m.settle(m.claim(h, ""))
	if h.epoch > 0 {
		m.settle(m.establish(h), nil)
	}
}

func (m *machine) settle(wr write, err error) {
	if err == nil && len(wr.events) > 0 {
		m.land(wr)
	}
}

// establishOne brings up, or gives back, a seat that was claimed by a handoff.
func (m *machine) establishOne(t *rapid.T) {
	h := m.anyHost(t)
	if h.dead || h.epoch == 0 || h.up || h.epoch != m.lease.Epoch || h.torn {
		t.Skip("nothing to bring up")
	}
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		m.settle(m.release(h, events.ReasonAcquireFailed))
		return
	}
	m.settle(m.establish(h), nil)
}

func (m *machine) begin(t *rapid.T) {
	from, to := m.anyHost(t), m.anyHost(t)
	if !from.dead && !to.dead {
		m.settle(m.request(from, to, events.HandoffMove))
	}
}

func (m *machine) operator(t *rapid.T) {
	if !m.saga.Open() || rapid.IntRange(0, 3).Draw(t, "shrug") > 0 {
		t.Skip("nobody wants that")
	}
	cause := rapid.SampledFrom([]events.AbandonCause{events.AbandonOperator, events.AbandonGone, events.AbandonFailed, events.AbandonLost, events.AbandonDeadline}).Draw(t, "cause")
	wr, err := m.handoff(m.anyHost(t), sagas.AbandonHandoff{
		Saga: m.saga.ID(), Cause: cause, By: "ops", Unseen: m.unseen(m.saga.Last), Known: rapid.Bool().Draw(t, "known"), Lease: m.lease,
	}, nil)
	if err == nil && len(wr.events) > 0 {
		m.sendSomehow(t, wr)
	}
}

// befall is what happens to nodes.
func (m *machine) befall(t *rapid.T) {
	h := m.anyHost(t)
	switch rapid.IntRange(0, 14).Draw(t, "what") {
	case 0:
		h.dead = true
		h.letGo()
	case 1, 7, 8, 9, 10:
		if h.dead {
			h.boot()
		}
	case 2:
		h.turning = h.serves()
	case 3:
		h.turning = false
	case 4:
		h.stuck = !h.stuck
	case 5:
		h.unfit = rapid.SampledFrom([]events.DeclineReason{"", "", events.DeclineDraining, events.DeclineGated}).Draw(t, "unfit")
	case 6:
		h.blip = h.epoch > 0
		if h.blip {
			h.holds = h.holds.Take(sagas.HoldAdmission)
		}
	}
}

func (m *machine) beat(t *rapid.T) {
	for _, h := range m.hosts {
		if !h.dead && h.epoch > 0 {
			m.settle(m.renew(h))
		}
	}
}

// tick lets time pass. Holders that are due renew first, mostly.
func (m *machine) tick(t *rapid.T) {
	m.now += rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second, 6 * time.Second, 20 * time.Second, ttl + time.Second, 20 * time.Minute}).Draw(t, "wait")
	if rapid.IntRange(0, 7).Draw(t, "renews") > 0 {
		m.beat(t)
	}
	m.expire()
}

// TestAnyInterleaving plays source, target and bystander with crashes, restarts,
// stuck teardowns, blips, writes that arrive late, effects that run late, and
// deadlines. Whatever happens: at most one node serves, and it is the lease's
// owner; epochs rise by one; a seat whose teardown began is not resumed; every
// handoff ends; and one that was given up before the teardown leaves its source
// serving.
func TestAnyInterleaving(t *testing.T) {
	outcomes := map[events.HandoffStep]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{world: newWorld("a", "b", "c")}
		m.settle(m.claim(m.hosts[0], ""))
		m.settle(m.establish(m.hosts[0]), nil)
		m.settle(m.request(m.hosts[0], m.hosts[1], events.HandoffMove))
		anything := map[string]func(*rapid.T){
			"step": m.step, "step of another": m.step, "one more step": m.step, "late": m.late, "arrive": m.arrive, "sweep": m.sweep,
			"establish": m.establishOne, "request": m.begin, "abandon": m.operator, "befall": m.befall, "beat": m.beat, "tick": m.tick,
			"": func(t *rapid.T) {
				m.expire()
				m.invariants()
				if m.broken != "" {
					t.Fatal(m.broken)
				}
			},
		}
		for range lives {
			t.Repeat(anything)
			m.ended(outcomes)
		}
		m.end(t)
		m.replay(t)
	})
	t.Logf("%v", outcomes)
	for _, step := range []events.HandoffStep{events.StepCompleted, events.StepDeclined, events.StepAbandoned} {
		if outcomes[step] == 0 {
			t.Errorf("no handoff was %s: the model does not reach it (%v)", step, outcomes)
		}
	}
}

// ended counts how the handoffs of the log ended.
func (m *machine) ended(outcomes map[events.HandoffStep]int) {
	for ; m.counted < len(m.log); m.counted++ {
		if e, ok := m.log[m.counted].(events.HandoffEvent); ok {
			step, _ := e.Handoff()
			outcomes[step]++
		}
	}
}

// end lets whoever lives finish, with nobody's help from outside, and holds the
// end against what must be so.
func (m *machine) end(t *rapid.T) {
	if rapid.Bool().Draw(t, "all die") {
		for _, h := range m.hosts[:2] {
			h.dead = true
			h.letGo()
		}
		m.hosts[2].boot()
	}
	for i, h := range m.hosts {
		if i == 2 {
			h.dead = false
		}
		h.stuck, h.turning = false, false
	}
	for range 40 {
		for _, h := range m.hosts {
			for _, e := range m.next(h) {
				if wr, err := m.run(h, e); err == nil && len(wr.events) > 0 {
					m.land(wr)
				}
			}
			if !h.dead && h.epoch > 0 && !h.up && h.epoch == m.lease.Epoch && !h.torn {
				m.settle(m.establish(h), nil)
			}
		}
		m.beat(t)
		m.now += ttl / 3
		m.expire()
		m.invariants()
		if m.broken != "" {
			t.Fatal(m.broken)
		}
		if m.saga.Open() {
			m.now += sagas.Deadline(m.saga)
			m.beat(t)
			m.expire()
		}
	}
	if m.saga.Open() {
		t.Fatalf("handoff %s is still %s", m.saga.ID(), m.saga.Step())
	}
	for _, h := range m.hosts {
		source := h.self == m.saga.From && m.lease.Epoch == m.saga.Epoch && m.lease.Status == aggregates.LeaseHeld
		switch {
		case h.dead || !source || h.epoch == 0:
		case m.saga.TornDown():
			t.Fatalf("%s keeps a seat it was to give up", h.name)
		case !h.serves():
			t.Fatalf("%s holds the seat at epoch %d and serves it not: up %t, holds %q", h.name, h.epoch, h.up, string(h.holds))
		}
	}
}

// replay proves that a process that boots and folds the whole log is asked for
// nothing, since every handoff has ended, and that it sees what all others see.
func (m *machine) replay(t *rapid.T) {
	fresh := events.Incarnation("d:00000001")
	var s sagas.Handoff
	for i, e := range m.log {
		s = sagas.EvolveHandoff(s, uint64(i+1), e)
	}
	if s.Step() != m.saga.Step() || s.ID() != m.saga.ID() {
		t.Fatalf("replayed, the handoff is %s %s, want %s %s", s.ID(), s.Step(), m.saga.ID(), m.saga.Step())
	}
	if got := sagas.Next(s, sagas.Node{Self: fresh}); len(got) > 0 {
		t.Fatalf("a process that boots is asked for %+v", got)
	}
}
