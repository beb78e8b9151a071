package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/seat-tenure/tenure/events"
)

// Send stores mail for a seat and returns its position in MAIL. An id that the
// sender repeats is settled by the completion ledger, not here; the broker
// collapses only the repeats of this one attempt to send.
func (s *Shell) Send(ctx context.Context, m events.Mail) (uint64, error) {
	w, err := events.EncodeMail(s.subjects, m, uuid.NewString())
	if err != nil {
		return 0, err
	}
	r, err := s.log.Append(ctx, events.StreamMail, w)
	if err != nil {
		return 0, fmt.Errorf("mail to %s: %w", m.Handle, err)
	}
	return r.Seq, nil
}

// Completed asks the ledger's leader, never a view, whether the work behind an
// event is done (K1). ok is false when there is no record; an error is "not
// known", which fails open: the caller runs it (K3).
func (s *Shell) Completed(ctx context.Context, handle, eventID string) (done events.TurnCompleted, ok bool, err error) {
	r, ok, err := s.newest(ctx, events.StreamWork, s.subjects.Work(handle, eventID))
	if err != nil || !ok {
		return done, false, err
	}
	return r.Event.(events.TurnCompleted), true, nil
}

// maxBatchBytes is how much one atomic batch may carry: each record of a turn has
// its whole reply.
const maxBatchBytes = 4 << 20

// Complete records a turn in the ledger, one write-once record per constituent
// id: in one batch, or one by one where some id is recorded already, where they
// are too large together, or where the broker has no room for batches (K2).
func (s *Shell) Complete(ctx context.Context, t Tenure, c events.TurnCompleted) error {
	ws, bytes := make([]events.Write, 0, len(c.EventIDs)), 0
	// An id named twice is one record; a batch may not have two members for it.
	for _, id := range slices.Compact(slices.Sorted(slices.Values(c.EventIDs))) {
		c.EventID = id
		w, err := s.write(s.outside(t), c, nil)
		if err != nil {
			return err
		}
		w.Check = &events.Check{Subject: w.Subject} // so that a lost answer can be settled by writing
		ws, bytes = append(ws, w), bytes+len(w.Data)
	}
	if len(ws) > 1 && bytes <= maxBatchBytes {
		_, err := s.log.AppendBatch(ctx, events.StreamWork, ws)
		if err == nil || !recorded(err) && !errors.Is(err, events.ErrBusy) {
			return err
		}
	}
	var failed []error
	for _, w := range ws {
		if _, err := s.log.Append(ctx, events.StreamWork, w); err != nil && !recorded(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

type name string

func (n name) String() string { return string(n) }
