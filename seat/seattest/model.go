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
	read uint64          // position of the newest event in it; guarded by mu
	more chan struct{}   // closed at the next batch; guarded by mu
}

// follow keeps the model up to the log until ctx ends, and the host's handoffs
// with it. The host is woken after a new company revision is in the model. edge
// is told each event once the model has it.
func (m *model) follow(ctx context.Context, store broker.Store, host *seat.Host, edge func(events.Recorded)) error {
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
		if err := m.apply(batch); err != nil {
			return err
		}
		for _, r := range batch {
			host.Edge(r)
			edge(r)
			if _, is := r.Event.(events.CompanyApplied); is {
				defer host.Wake()
			}
		}
		if caughtUp {
			host.Live()
		}
		return nil
	})
}

func (m *model) apply(batch []events.Recorded) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range batch {
		if err := projections.Apply(m.rows, r); err != nil {
			return err
		}
	}
	if len(batch) > 0 {
		m.read = batch[len(batch)-1].Seq
		close(m.more)
		m.more = make(chan struct{})
	}
	return nil
}

// view implements seat.View.
func (m *model) view(fn func(projections.Reader) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(projections.NewView(m.rows))
}

// reached implements what seat.Sighting waits for.
func (m *model) reached(ctx context.Context, position uint64) error {
	for {
		m.mu.Lock()
		read, more := m.read, m.more
		m.mu.Unlock()
		if read >= position {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
