package turn

import (
	"context"
	"sync"

	"github.com/seat-tenure/tenure/sagas"
)

// gate stands before an inbox's turns: named holds keep it shut, and whoever
// must know that nothing runs waits for the turn in flight. Whoever lifts a
// hold lifts its own and no other (design §5).
type gate struct {
	mu     sync.Mutex
	holds  sagas.Holds
	busy   bool
	change chan struct{} // closed and replaced at every change
}

func newGate(holds ...string) *gate {
	g := &gate{change: make(chan struct{})}
	for _, name := range holds {
		g.holds = g.holds.Take(name)
	}
	return g
}

func (g *gate) update(fn func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fn()
	close(g.change)
	g.change = make(chan struct{})
}

// set replaces the holds by what fn makes of them.
func (g *gate) set(fn func(sagas.Holds) sagas.Holds) {
	g.update(func() { g.holds = fn(g.holds) })
}

// take shuts the gate for that reason.
func (g *gate) take(name string) {
	g.set(func(h sagas.Holds) sagas.Holds { return h.Take(name) })
}

// lift ends that reason.
func (g *gate) lift(name string) {
	g.set(func(h sagas.Holds) sagas.Holds { return h.Lift(name) })
}

// enter begins a turn, unless something holds the gate.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.holds.Free() {
		return false
	}
	g.busy = true
	return true
}

// leave ends it.
func (g *gate) leave() { g.update(func() { g.busy = false }) }

// shut says whether something holds the gate, and what tells of the next change.
func (g *gate) shut() (bool, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.holds.Free(), g.change
}

// still waits until no turn is in flight. With a hold taken before, none begins
// after it either.
func (g *gate) still(ctx context.Context) error {
	for {
		g.mu.Lock()
		busy, change := g.busy, g.change
		g.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-change:
		}
	}
}
