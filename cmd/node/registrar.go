package main

import (
	"context"
	"time"

	"github.com/seat-tenure/tenure/projections"
)

// registrar registers the mailboxes of the company's seats (U1). Every node has
// one: a mailbox is a fact about the company, not about who runs the seat.
type registrar struct {
	n    *node
	want chan struct{} // one slot: look again
}

func newRegistrar(n *node) *registrar {
	r := &registrar{n: n, want: make(chan struct{}, 1)}
	r.look()
	return r
}

// look asks for another walk; it never blocks.
func (r *registrar) look() {
	select {
	case r.want <- struct{}{}:
	default:
	}
}

// registerAgain is the pause after a walk that could not register everything.
const registerAgain = time.Second

// run walks the company at the start and at each revision, until ctx ends. Only
// seats that the view does not show as registered cost the broker anything.
func (r *registrar) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.n.views.Ready():
	}
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.want:
		case <-again:
		}
		again = nil
		if !r.walk(ctx) {
			again = time.After(registerAgain)
			continue
		}
		if r.seen(ctx) {
			r.n.host.Wake()
		}
	}
}

// walk registers what is missing and says whether nothing is left.
func (r *registrar) walk(ctx context.Context) bool {
	c, _ := r.n.roster.current()
	whole := true
	for _, s := range c.Roster() {
		if r.registered(s.Handle) {
			continue
		}
		if err := r.n.cursors.Register(ctx, s.Handle, s.AgentID); err != nil {
			whole = false
			if ctx.Err() == nil {
				r.n.log.Warn("seat_mailbox_unregistered", "seat", s.Handle, "err", err)
			}
		}
	}
	return whole
}

// seen waits until the view shows every registration, so that the pass it wakes
// finds them. It reports false when ctx ended first.
func (r *registrar) seen(ctx context.Context) bool {
	c, _ := r.n.roster.current()
	for _, s := range c.AgentSeats() {
		for {
			changed := r.n.views.Changed()
			if r.registered(s.Handle) {
				break
			}
			select {
			case <-ctx.Done():
				return false
			case <-changed:
			}
		}
	}
	return true
}

func (r *registrar) registered(handle string) (found bool) {
	err := r.n.view(func(v projections.Reader) (err error) {
		m, _, err := v.Mailbox(handle)
		found = m.Usable()
		return err
	})
	return err == nil && found
}
