package seat

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/seat-tenure/tenure/commands"
)

// Mode is how a seat is torn down: losing a lease and choosing to let go are
// opposites.
type Mode int

const (
	// Voluntary: stop taking work, let the turn in flight finish within a bound,
	// detach (H4).
	Voluntary Mode = iota
	// Fenced: detach first, abandon what is in flight, settle nothing (H5).
	Fenced
)

// Stage is one step of establishing a seat. Stages come up in order, the inbox
// last, and go down in reverse (H1).
type Stage struct {
	Name string
	// Up brings the stage up for a tenure that has the seat's cursors. An error
	// refuses the seat.
	Up func(ctx context.Context, m *commands.Mailboxes) error
	// Down tears it down and returns only when that is proven. An error, or a
	// panic, leaves the seat undead, and Down is called again at every
	// heartbeat until it succeeds (H6). It must be safe to repeat, and must
	// return soon after ctx ends: until it does, the seat is leaving and nothing
	// else is tried on it.
	Down func(ctx context.Context, handle string, mode Mode) error
}

// bringUp runs the stages for m and returns how many are up. The one that
// failed counts as up: it may have done a part of its work.
func (h *Host) bringUp(ctx context.Context, m *commands.Mailboxes) (up int, err error) {
	for i, stage := range h.deps.Stages {
		if err := recovered(stage.Name, func() error { return stage.Up(ctx, m) }); err != nil {
			return i + 1, fmt.Errorf("%s: %w", stage.Name, err)
		}
	}
	return len(h.deps.Stages), nil
}

// tearDown takes the first up stages down in reverse and returns how many are
// still up.
func (h *Host) tearDown(ctx context.Context, handle string, up int, mode Mode) (int, error) {
	for ; up > 0; up-- {
		stage := h.deps.Stages[up-1]
		if err := recovered(stage.Name, func() error { return stage.Down(ctx, handle, mode) }); err != nil {
			return up, fmt.Errorf("%s: %w", stage.Name, err)
		}
	}
	return 0, nil
}

// recovered turns a hook's panic into an error: one bad stage must not end the
// node, whose other seats are healthy.
func recovered(name string, hook func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s panicked: %v\n%s", name, p, debug.Stack())
		}
	}()
	return hook()
}
