package projections

import "github.com/seat-tenure/tenure/events"

// followRetirement keeps a retirement as a saga beside its mailbox: began is the
// position of its first event, before what the mailbox knew of its retirements.
func followRetirement(rows Rows, r events.Recorded, b events.RetirementBody, before *Retirement, began uint64) error {
	if began == r.Seq {
		if err := dropOpen(rows, b.Handle, before); err != nil {
			return err
		}
		s := Saga{ID: b.ID(), Kind: SagaRetirement, Handle: b.Handle, Number: b.Number, Requested: began, RequestedAt: stamp(r)}
		s.proceed(r, b)
		return openSaga(rows, s)
	}
	s, found, err := get[Saga](rows, keySagas+descending(began))
	if err != nil || !found || !s.Open() {
		return err
	}
	s.proceed(r, b)
	return keepSaga(rows, s)
}

// dropOpen drops a retirement that is open when the next begins. No log has one.
func dropOpen(rows Rows, handle string, before *Retirement) error {
	if before == nil {
		return nil
	}
	at := descending(before.Began)
	s, found, err := get[Saga](rows, keySagas+at)
	if err != nil || !found || !s.Open() {
		return err
	}
	return dropSaga(rows, handle, at)
}

// proceed applies the newest event of the retirement.
func (s *Saga) proceed(r events.Recorded, b events.RetirementBody) {
	s.Last, s.LastAt, s.By, s.RetiresAt, s.Cause = r.Seq, stamp(r), string(b.By), b.RetiresAt, string(b.Refused)
	switch b.Step {
	case events.RetireReturned:
		s.Outcome = SagaReturned
	case events.RetireTakenOver:
		s.Outcome = SagaTakenOver
	case events.RetireCompleted:
		s.Step, s.Outcome = SagaStep(b.Step), SagaCompleted
	case events.RetireAbsent, events.RetireMarked, events.RetireRunsEnded, events.RetirePurged:
		s.Step = SagaStep(b.Step)
	}
	if !s.Open() {
		s.EndedBy, s.Cause = string(b.By), ""
	}
}
