package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/sim"
)

// happen does what the step says, and sees to its end.
func (w *world) happen(s sim.Step) {
	p := w.nodes[s.Node]
	switch s.Do {
	case sim.Join:
		if p == nil || !p.running() {
			w.boot(s.Node)
		}
	case sim.Move, sim.Release, sim.Fence, sim.Pause:
		w.operate(s)
	case sim.Remove:
		w.removed[s.Seat]++
		w.apply()
		w.after(s.For, func() { w.removed[s.Seat] = max(0, w.removed[s.Seat]-1); w.apply() })
	case sim.Place:
		w.placed[s.Seat] = s.To
		w.apply()
		w.after(s.For, func() { delete(w.placed, s.Seat); w.apply() })
	case sim.Turns:
		w.plans.add(s.Seat, trouble{s.How, s.For}, s.Times)
	case sim.Wall:
		if p != nil {
			p.wire.jump(s.For)
		} else if s.Node == "" {
			w.f.Conn.StepClock(s.For)
		}
	default:
		if p != nil && p.running() {
			w.befall(p, s)
		}
	}
}

// befall does something to a process that runs.
func (w *world) befall(p *process, s sim.Step) {
	every := seattest.Prefix + ".>"
	faults := p.Conn.Faults
	switch s.Do {
	case sim.Crash:
		p.kill()
		w.after(s.For, func() { w.revive(s.Node) })
	case sim.Leave:
		w.acts.Go(func() { p.gate.wait(); p.Stop() })
		w.after(s.For, func() { w.revive(s.Node) })
	case sim.Stop:
		if !p.stopped {
			p.halt(s.How == "uncounted")
			w.after(s.For, func() { p.wake() })
		}
	case sim.Cut:
		p.cut(+1)
		w.after(s.For, func() { p.cut(-1) })
	case sim.Stale:
		p.stale(+1)
		w.after(s.For, func() { p.stale(-1) })
	case sim.Slow:
		slow := faults.Delay
		if s.How == "answer" {
			slow = p.wire.tarry
		}
		slow(s.For)
		w.after(time.Duration(s.Times)*time.Second, func() { slow(0) })
	case sim.Lose:
		if s.How == "write" {
			faults.DropWrite(events.Stream(s.Stream), every, s.Times)
		} else {
			faults.DropAnswer(events.Stream(s.Stream), every, s.Times)
		}
	case sim.Late:
		faults.LandLate(events.Stream(s.Stream), every, s.Times, s.For)
	case sim.Busy:
		faults.Refuse(events.Stream(s.Stream), every, s.Times, events.ErrBusy)
	case sim.Up, sim.Down:
		p.mu.Lock()
		for range s.Times {
			p.trouble[s.Do] = append(p.trouble[s.Do], trouble{s.How, s.For})
		}
		p.mu.Unlock()
	case sim.Cordon:
		w.ask(p, func(ctx context.Context) { _ = p.Host.Cordon(ctx, true) })
		w.after(s.For, func() { w.uncordon(p) })
	case sim.Drain:
		w.ask(p, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, s.For)
			defer cancel()
			_ = p.Host.Drain(ctx, "ops", nil)
		})
		w.after(2*s.For, func() { w.uncordon(p) })
	default:
		panic(fmt.Sprintf("nobody does %q", s.Do))
	}
}

// ask lets an operator want something of a process, which may take its time.
func (w *world) ask(p *process, what func(ctx context.Context)) {
	w.acts.Go(func() {
		p.gate.wait()
		what(w.ctx)
	})
}

func (w *world) uncordon(p *process) {
	if p.running() {
		w.ask(p, func(ctx context.Context) { _ = p.Host.Cordon(ctx, false) })
	}
}

// revive starts a node that is down, once what ran there before has ended.
func (w *world) revive(id string) {
	p := w.nodes[id]
	switch {
	case !p.running():
		w.boot(id)
	case !p.dead.Load():
		select {
		case <-p.Ended():
			w.boot(id)
		default:
			w.after(time.Second, func() { w.revive(id) })
		}
	}
}

// operate does what an operator wants of a seat.
func (w *world) operate(s sim.Step) {
	switch s.Do {
	case sim.Fence:
		lease := events.SeatLease(s.Seat)
		now, err := w.f.Op.Lease(w.ctx, lease)
		if err == nil && now.Status == aggregates.LeaseHeld {
			_, _ = w.f.Op.Fence(w.ctx, lease, now.Epoch, "as the script says", "ops")
		}
	case sim.Pause:
		_, _ = w.f.Op.Pause(w.ctx, s.Seat, s.How == "turn", "as the script says", "ops")
		w.after(s.For, func() { _, _ = w.f.Op.Resume(w.ctx, s.Seat, "as the script says", "ops") })
	default:
		for _, p := range w.nodes {
			if p.running() && slices.Contains(p.Host.Held(), s.Seat) {
				w.ask(p, func(ctx context.Context) {
					if s.Do == sim.Release {
						_ = p.Host.GiveBack(ctx, s.Seat)
					} else {
						_, _, _ = p.Host.Move(ctx, s.Seat, s.To, "ops")
					}
				})
			}
		}
	}
}

// kill ends a process as SIGKILL does: nothing of it reaches anybody any more.
func (p *process) kill() {
	p.dead.Store(true)
	p.Kill()
	p.free()
}

// halt makes a process stand still; its clocks show nothing of it until it wakes.
func (p *process) halt(uncounted bool) {
	p.stopped, p.uncounted = true, uncounted
	p.gate.set(true)
	p.Clock.Pause()
}

// wake lets it go on.
func (p *process) wake() {
	if !p.stopped {
		return
	}
	if p.uncounted {
		p.w.judge.Napped(p.Self, time.Now())
		p.Clock.Resume()
	} else {
		p.Clock.Wake()
	}
	p.stopped = false
	p.gate.set(false)
}

// free lets what is left of a dead process run out.
func (p *process) free() {
	p.Clock.Wake()
	p.gate.set(false)
	p.stopped = false
	p.FreezeView(false)
	p.wire.tarry(0)
}

func (p *process) cut(by int) {
	if p.cuts = max(0, p.cuts+by); !p.dead.Load() {
		p.Conn.Faults.CutOff(p.cuts > 0)
	}
}

func (p *process) stale(by int) {
	if p.stales = max(0, p.stales+by); !p.dead.Load() {
		p.FreezeView(p.stales > 0)
		p.wire.lag(p.stales > 0)
	}
}

// heal ends everything that befell a process.
func (p *process) heal() {
	if p.dead.Load() {
		return
	}
	p.wake()
	p.cuts, p.stales = 0, 0
	p.cut(0)
	p.stale(0)
	p.Conn.Faults.Delay(0)
	p.wire.tarry(0)
	p.mu.Lock()
	clear(p.trouble)
	p.mu.Unlock()
	p.w.uncordon(p)
}

// line is something that was said, and when.
type line struct {
	at   time.Time
	text string
}

func (w *world) note(text string) { w.notes = append(w.notes, line{time.Now(), text}) }

// story is what happened and what the processes logged, in order.
func (w *world) story() []string {
	lines := slices.Clone(w.notes)
	for _, p := range w.all {
		for _, r := range p.Log.All("") {
			var text strings.Builder
			fmt.Fprintf(&text, "%s %v %s", p.Self, r.Level, r.Name)
			for _, key := range r.Keys() {
				fmt.Fprintf(&text, " %s=%s", key, r.Attrs[key])
			}
			lines = append(lines, line{r.At, text.String()})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	told := make([]string, len(lines))
	for i, l := range lines {
		told[i] = l.at.UTC().Format("15:04:05.000") + " " + l.text
	}
	return told
}
