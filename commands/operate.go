package commands

import (
	"context"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// Fence ends the renewals of the seat's tenure at that epoch by an operator's
// hand. A successor still waits out the proven time (design §3). It returns the
// fence's position; refusals are *aggregates.EndedError and
// *aggregates.FencedTwiceError.
func (s *Shell) Fence(ctx context.Context, l events.Lease, epoch uint64, reason, by string) (uint64, error) {
	var seq uint64
	err := tries(l, func() error {
		now, err := s.Lease(ctx, l)
		if err != nil {
			return err
		}
		decided, err := aggregates.DecideLease(now, aggregates.FenceLease{Lease: l, Epoch: epoch, Reason: reason, By: by})
		if err != nil {
			return err
		}
		m := s.meta()
		m.Epoch, m.Actor, m.Reason = epoch, by, reason
		seq, err = s.appendLease(ctx, l, m, decided[0], now.Last)
		return err
	})
	return seq, err
}

// Pause holds the seat's mail, wherever it runs, until Resume (H3). It rests on
// no tenure and stays when the seat moves. Its events stand under the seat's host
// subject among a holder's reports, so no sequence there is a check for it:
// nothing is read and decided, and doing it twice says it twice, which changes
// nothing.
func (s *Shell) Pause(ctx context.Context, handle string, stopTurn bool, reason, by string) (uint64, error) {
	return s.announce(ctx, events.SeatPaused{Handle: handle, By: by, Reason: reason, StopTurn: stopTurn}, reason, by)
}

// Resume ends a pause.
func (s *Shell) Resume(ctx context.Context, handle, reason, by string) (uint64, error) {
	return s.announce(ctx, events.SeatResumed{Handle: handle, By: by, Reason: reason}, reason, by)
}

func (s *Shell) announce(ctx context.Context, e events.Event, reason, by string) (uint64, error) {
	m := s.meta()
	m.Actor, m.Reason = by, reason
	w, err := s.write(m, e, nil)
	if err != nil {
		return 0, err
	}
	r, err := s.log.Append(ctx, events.StreamFleet, w)
	return r.Seq, err
}
