package seattest

import (
	"context"
	"sync"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
	"github.com/seat-tenure/tenure/seat"
)

// model is a node's read model, in memory.
type model struct {
	mu   sync.Mutex
	rows rowstest.Memory // guarded by mu
	thaw chan struct{}   // guarded by mu; not nil while the model stands still
}

// follow keeps the model up to the log until ctx ends, and the host's handoffs
// with it. The host is woken after a new company revision is in the model.
func (m *model) follow(ctx context.Context, store broker.Store, host *seat.Host) error {
	return broker.NewSource(store).Follow(ctx, events.StreamFleet, 1, func(batch []events.Recorded, caughtUp bool) error {
		m.mu.Lock()
		thaw := m.thaw
		m.mu.Unlock()
		if thaw != nil {
			select {
			case <-thaw:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, r := range batch {
			if err := projections.Apply(m.rows, r); err != nil {
				return err
			}
			if _, is := r.Event.(events.CompanyApplied); is {
				defer host.Wake()
			}
		}
		for _, r := range batch {
			host.Edge(r)
		}
		if caughtUp {
			host.Live()
		}
		return nil
	})
}

// view implements seat.View.
func (m *model) view(fn func(projections.Reader) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(projections.NewView(m.rows))
}

// freeze makes the model stand still where it is, or go on.
func (m *model) freeze(still bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case still && m.thaw == nil:
		m.thaw = make(chan struct{})
	case !still && m.thaw != nil:
		close(m.thaw)
		m.thaw = nil
	}
}
