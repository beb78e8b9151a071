package commands

import (
	"context"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// Handoff decides one step of the seat's newest handoff on what the log has
// now, and returns the handoff as it stands after it. command makes the command
// from that state. Errors are the deciders' typed refusals and the log's.
//
// A step that also changes the lease is one atomic batch: the saga's event
// under the literal check of its own subject, the lease's under the family's
// (design §5). So release and abandonment exclude each other.
func (s *Shell) Handoff(ctx context.Context, handle string, command func(sagas.Handoff, aggregates.Lease) sagas.HandoffCommand) (sagas.Handoff, error) {
	lease := events.SeatLease(handle)
	var after sagas.Handoff
	err := tries(lease, func() error {
		var now sagas.Handoff
		r, ok, err := s.newest(ctx, events.StreamFleet, s.subjects.Handoff(handle))
		if err != nil {
			return err
		}
		if ok {
			now = sagas.EvolveHandoff(now, r.Seq, r.Event)
		}
		held, err := s.Lease(ctx, lease)
		if err != nil {
			return err
		}
		decided, err := sagas.DecideHandoff(now, command(now, held))
		if err != nil || len(decided) == 0 {
			after = now
			return err
		}
		after, err = s.appendStep(ctx, lease, now, held, decided)
		return err
	})
	return after, err
}

// appendStep writes what was decided: one event, or the saga's and the lease's
// in one batch.
func (s *Shell) appendStep(ctx context.Context, lease events.Lease, now sagas.Handoff, held aggregates.Lease, decided []events.Event) (sagas.Handoff, error) {
	m := signed(ctx, s.meta())
	m.Epoch = held.Epoch
	step, err := s.write(m, decided[0], s.subjects.HandoffCheck(lease.ID, now.Last))
	if err != nil {
		return now, err
	}
	var r events.Receipt
	seq := func() uint64 { return r.Seq }
	if len(decided) == 1 {
		r, err = s.log.Append(ctx, events.StreamFleet, step)
	} else {
		var release events.Write
		lm := m
		lm.ID += "-lease" // one command, two events
		if release, err = s.write(lm, decided[1], s.subjects.FamilyCheck(lease, held.Last)); err != nil {
			return now, err
		}
		r, err = s.log.AppendBatch(ctx, events.StreamFleet, []events.Write{step, release})
		seq = func() uint64 { return r.Seq - 1 } // a batch takes consecutive sequences
	}
	if err != nil {
		return now, err
	}
	return sagas.EvolveHandoff(now, seq(), decided[0]), nil
}
