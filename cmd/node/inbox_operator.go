package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/projections"
)

// replayParked sends parked mail again, to a seat that somebody will work on.
func (o *operator) replayParked(ctx context.Context, op graph.ReplayParked, by graph.Act) (uint64, error) {
	if err := o.known(op.Handle); err != nil {
		return 0, err
	}
	positions := op.Positions
	if positions == nil {
		var err error
		if positions, err = o.undecided(op.Handle); err != nil {
			return 0, err
		}
	}
	return o.decideParked(ctx, op.Handle, positions, func(dead events.Recorded, try bool) (uint64, error) {
		if try {
			return 0, o.n.shell.MayReplay(ctx, dead)
		}
		return o.n.shell.Replay(ctx, dead, by.Reason, by.Actor)
	})
}

// dropParked gives parked mail up, also of a seat that the company has removed.
func (o *operator) dropParked(ctx context.Context, op graph.DropParked, by graph.Act) (uint64, error) {
	return o.decideParked(ctx, op.Handle, op.Positions, func(dead events.Recorded, try bool) (uint64, error) {
		if try {
			return 0, o.n.shell.MayDrop(ctx, dead)
		}
		return o.n.shell.Drop(ctx, dead, by.Reason, by.Actor)
	})
}

// undecided lists the oldest of a seat's parked mail that nobody decided about and
// that can be sent again, as many as one mutation takes: mail that was too large to
// be kept whole must not keep all others parked.
func (o *operator) undecided(handle string) ([]uint64, error) {
	var positions []uint64
	clipped := 0
	err := o.n.view(func(r projections.Reader) error {
		for before := uint64(0); ; {
			page, err := r.Parked(handle, false, before, projections.MaxPage)
			if err != nil {
				return err
			}
			for _, p := range page.Items {
				if before = p.Position; p.Clipped {
					clipped++
					continue
				}
				positions = append(positions, p.Position)
			}
			if !page.More {
				return nil
			}
		}
	})
	switch {
	case err != nil || len(positions) > 0:
	case clipped > 0:
		err = refuse(codeClipped, "none of the %d parked mail of %s was kept whole: have it sent smaller, and drop it", clipped, handle)
	default:
		err = refuse(codeNothingParked, "nothing of %s is parked that nobody has decided about; `tenure inbox parked %s --decided` shows what was", handle, handle)
	}
	slices.Reverse(positions)
	return positions[:min(len(positions), graph.MaxDecided)], err
}

// decideParked looks at all of the records before it does anything, so that a
// refusal has changed nothing; then it does one after the other. It returns the
// first of the events.
func (o *operator) decideParked(ctx context.Context, handle string, positions []uint64, do func(dead events.Recorded, try bool) (uint64, error)) (uint64, error) {
	records := make([]events.Recorded, len(positions))
	for i, position := range positions {
		var err error
		if records[i], err = (inboxes{o.n}).Parked(ctx, position); err != nil && !errors.Is(err, events.ErrNotFound) {
			return 0, err
		}
		if p, is := records[i].Event.(events.MailParked); !is || p.Handle != handle {
			return 0, refuse(codeUnknownMail, "no mail of %s is parked at %d; `tenure inbox parked %s` lists what is", handle, position, handle)
		}
		if _, err := do(records[i], true); err != nil {
			return 0, parkedRefusal(err)
		}
	}
	first := uint64(0)
	for i, dead := range records {
		position, err := do(dead, false)
		if err != nil && i > 0 {
			return 0, fmt.Errorf("%w: %d of %d were decided about before this: %w", events.ErrUnknown, i, len(records), err)
		}
		if err != nil {
			return 0, parkedRefusal(err)
		}
		if i == 0 {
			first = position
		}
	}
	return first, nil
}

func parkedRefusal(err error) error {
	var decided *aggregates.DecidedError
	var clipped *aggregates.ClippedError
	switch {
	case errors.As(err, &decided):
		return refuse(codeAlreadyDecided, "%v", err)
	case errors.As(err, &clipped):
		return refuse(codeClipped, "%v", err)
	}
	return err
}
