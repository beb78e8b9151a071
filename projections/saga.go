package projections

import (
	"fmt"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// MaxSagas is how many ended sagas of one seat are kept. The log has all.
const MaxSagas = 50

// SagaKind says what a saga is for.
type SagaKind string

// What sagas are for.
const (
	SagaHandoff    SagaKind = "HANDOFF"    // moves one seat from one incarnation to another
	SagaRetirement SagaKind = "RETIREMENT" // deletes the mailbox of a removed seat
)

// SagaStep is a step of a saga: an events.HandoffStep or an events.RetirementStep.
type SagaStep string

// SagaOutcome says how a saga ended.
type SagaOutcome string

// How sagas end: handoffs by the first three, retirements by the first and the
// last two.
const (
	SagaCompleted SagaOutcome = "COMPLETED"
	SagaDeclined  SagaOutcome = "DECLINED"
	SagaAbandoned SagaOutcome = "ABANDONED"
	SagaReturned  SagaOutcome = "RETURNED"   // the seat came back before the deletion began
	SagaTakenOver SagaOutcome = "TAKEN_OVER" // the node that adds the seat back finished the deletion
)

// Saga is one handoff of a seat, or one retirement of its mailbox, as far as it got.
// What only one of them has is empty in the other.
type Saga struct {
	ID     string   `json:"id"`
	Kind   SagaKind `json:"kind"`
	Handle string   `json:"handle"`
	Number uint64   `json:"number"`
	// Step is the furthest that it reached: completed, or where it stands or
	// stood when it ended another way.
	Step        SagaStep             `json:"step"`
	From        events.Incarnation   `json:"from"`
	To          events.Incarnation   `json:"to"`
	Epoch       uint64               `json:"epoch"` // of from's tenure
	Reason      events.HandoffReason `json:"reason"`
	By          string               `json:"by"`
	Requested   uint64               `json:"requested"` // position of its first event
	RequestedAt time.Time            `json:"requested_at"`
	Last        uint64               `json:"last"` // position of its newest event
	LastAt      time.Time            `json:"last_at"`
	// Deadline is how long that event may be unseen behind the log before the
	// saga may be abandoned; 0 once it has ended. No clock of an event is in it.
	Deadline events.Millis `json:"deadline_ms,omitempty"`
	// RetiresAt is when a retirement's grace will be over, an estimate.
	RetiresAt time.Time `json:"retires_at,omitzero"`

	// Of a saga that has ended. Its end is its newest event.
	Outcome      SagaOutcome   `json:"outcome,omitempty"` // "": it is open
	Cause        string        `json:"cause,omitempty"`   // of a decline or an abandonment; what holds an open retirement
	EndedBy      string        `json:"ended_by,omitempty"`
	ClaimedEpoch uint64        `json:"claimed_epoch,omitempty"` // of to's tenure, once completed
	DarkFor      events.Millis `json:"dark_for_ms,omitempty"`   // how long nobody served the seat, once completed
}

// Open says whether the saga goes on.
func (s Saga) Open() bool { return s.Outcome == "" }

// beginHandoff records a request: the seat's open handoff from here on. No log
// has a request over an open handoff; of one that did the view would drop that.
func beginHandoff(rows Rows, r events.Recorded, e events.HandoffRequested) error {
	before, err := seatRow(rows, e.Handle)
	if err != nil {
		return err
	}
	if before.HandoffAt != 0 {
		if err := dropSaga(rows, e.Handle, descending(before.HandoffAt)); err != nil {
			return err
		}
	}
	s := Saga{
		ID: e.ID(), Kind: SagaHandoff, Handle: e.Handle, Number: e.Number, From: e.From, To: e.To,
		Epoch: e.Epoch, Reason: e.Reason, By: clip(e.By), Requested: r.Seq, RequestedAt: stamp(r),
	}
	s.reach(r, e)
	if err := openSaga(rows, s); err != nil {
		return err
	}
	after := before
	after.HandoffAt = r.Seq
	return putSeat(rows, before, after)
}

// stepHandoff takes the seat's open handoff on. An event of another one is of
// no handoff that is kept as open: it changes nothing.
func stepHandoff(rows Rows, r events.Recorded, e events.HandoffEvent) error {
	_, body := e.Handoff()
	before, err := seatRow(rows, body.Handle)
	if err != nil || before.HandoffAt == 0 {
		return err
	}
	at := descending(before.HandoffAt)
	s, _, err := get[Saga](rows, keySagas+at)
	if err != nil || s.Number != body.Number {
		return err
	}
	s.reach(r, e)
	if err := keepSaga(rows, s); err != nil || s.Open() {
		return err
	}
	after := before
	after.HandoffAt = 0
	return putSeat(rows, before, after)
}

// reach applies what the event says of the saga.
func (s *Saga) reach(r events.Recorded, e events.HandoffEvent) {
	step, body := e.Handoff()
	s.Last, s.LastAt, s.Deadline = r.Seq, stamp(r), events.MillisOf(body.Patience.At(step))
	switch e := e.(type) {
	case events.HandoffCompleted:
		s.Step, s.Outcome, s.EndedBy = SagaStep(step), SagaCompleted, string(e.To)
		s.ClaimedEpoch, s.DarkFor = e.ClaimedEpoch, e.DarkFor
	case events.HandoffDeclined:
		s.Outcome, s.Cause, s.EndedBy = SagaDeclined, string(e.Cause), string(e.To)
	case events.HandoffAbandoned:
		s.Outcome, s.Cause, s.EndedBy = SagaAbandoned, string(e.Cause), clip(e.Ender)
	case events.HandoffRequested, events.HandoffWarmed, events.HandoffQuiesced, events.HandoffFlushed, events.HandoffReleased:
		s.Step = SagaStep(step)
	default:
		panic(fmt.Sprintf("projections: a handoff cannot reach %T", e))
	}
}

// handedOver notes that the tenure that has begun in seat, or was established,
// is the one that its open handoff is for: two steps that are no events of it.
func handedOver(rows Rows, seat Seat) error {
	if seat.HandoffAt == 0 {
		return nil
	}
	key := keySagas + descending(seat.HandoffAt)
	s, _, err := get[Saga](rows, key)
	if err != nil || seat.Holder.Owner != s.To || seat.Holder.Epoch != s.Epoch+1 {
		return err
	}
	switch {
	case s.Step == SagaStep(events.StepReleased):
		s.Step = SagaStep(events.StepClaimed)
	case s.Step == SagaStep(events.StepClaimed) && seat.Holder.Established != 0:
		s.Step = SagaStep(events.StepEstablished)
	default:
		return nil
	}
	return put(rows, key, s)
}

// openSaga writes the rows of a saga that begins.
func openSaga(rows Rows, s Saga) error {
	at := descending(s.Requested)
	for _, key := range []string{keySagaOpen + at, keySagaSeat + s.Handle + "/" + at} {
		if err := put(rows, key, struct{}{}); err != nil {
			return err
		}
	}
	return put(rows, keySagas+at, s)
}

// keepSaga writes what has become of a saga.
func keepSaga(rows Rows, s Saga) error {
	at := descending(s.Requested)
	if err := put(rows, keySagas+at, s); err != nil || s.Open() {
		return err
	}
	if err := rows.Delete(keySagaOpen + at); err != nil {
		return err
	}
	return dropOldest(rows, s.Handle)
}

// dropOldest keeps a seat's sagas bounded. One has just ended, so at most one
// is too many.
func dropOldest(rows Rows, handle string) error {
	prefix := keySagaSeat + handle + "/"
	page, err := rows.Scan(prefix, "", MaxSagas+1)
	if err != nil || len(page) <= MaxSagas {
		return err
	}
	return dropSaga(rows, handle, strings.TrimPrefix(page[MaxSagas].Key, prefix))
}

func dropSaga(rows Rows, handle, at string) error {
	for _, key := range []string{keySagas + at, keySagaOpen + at, keySagaSeat + handle + "/" + at} {
		if err := rows.Delete(key); err != nil {
			return err
		}
	}
	return nil
}
