package projections

import (
	"fmt"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// MaxHandoffs is how many ended handoffs of one seat are kept. The log has all.
const MaxHandoffs = 50

// SagaKind says what a saga is for.
type SagaKind string

// SagaHandoff moves one seat from one incarnation to another.
const SagaHandoff SagaKind = "HANDOFF"

// SagaOutcome says how a saga ended.
type SagaOutcome string

// How handoffs end.
const (
	SagaCompleted SagaOutcome = "COMPLETED"
	SagaDeclined  SagaOutcome = "DECLINED"
	SagaAbandoned SagaOutcome = "ABANDONED"
)

// Saga is one handoff of a seat, as far as it got.
type Saga struct {
	ID     string   `json:"id"`
	Kind   SagaKind `json:"kind"`
	Handle string   `json:"handle"`
	Number uint64   `json:"number"`
	// Step is the furthest that it reached: completed, or where it stands or
	// stood when it ended another way.
	Step        events.HandoffStep   `json:"step"`
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

	// Of a saga that has ended. Its end is its newest event.
	Outcome      SagaOutcome   `json:"outcome,omitempty"` // "": it is open
	Cause        string        `json:"cause,omitempty"`   // of a decline or an abandonment
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
	at := descending(r.Seq)
	s := Saga{
		ID: e.ID(), Kind: SagaHandoff, Handle: e.Handle, Number: e.Number, From: e.From, To: e.To,
		Epoch: e.Epoch, Reason: e.Reason, By: clip(e.By), Requested: r.Seq, RequestedAt: stamp(r),
	}
	s.reach(r, e)
	if err := put(rows, keySagas+at, s); err != nil {
		return err
	}
	for _, key := range []string{keySagaOpen + at, keySagaSeat + e.Handle + "/" + at} {
		if err := put(rows, key, struct{}{}); err != nil {
			return err
		}
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
	if err := put(rows, keySagas+at, s); err != nil || s.Open() {
		return err
	}
	if err := rows.Delete(keySagaOpen + at); err != nil {
		return err
	}
	if err := dropOldest(rows, s.Handle); err != nil {
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
		s.Step, s.Outcome, s.EndedBy = step, SagaCompleted, string(e.To)
		s.ClaimedEpoch, s.DarkFor = e.ClaimedEpoch, e.DarkFor
	case events.HandoffDeclined:
		s.Outcome, s.Cause, s.EndedBy = SagaDeclined, string(e.Cause), string(e.To)
	case events.HandoffAbandoned:
		s.Outcome, s.Cause, s.EndedBy = SagaAbandoned, string(e.Cause), clip(e.Ender)
	case events.HandoffRequested, events.HandoffWarmed, events.HandoffQuiesced, events.HandoffFlushed, events.HandoffReleased:
		s.Step = step
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
	case s.Step == events.StepReleased:
		s.Step = events.StepClaimed
	case s.Step == events.StepClaimed && seat.Holder.Established != 0:
		s.Step = events.StepEstablished
	default:
		return nil
	}
	return put(rows, key, s)
}

// dropOldest keeps a seat's handoffs bounded. One has just ended, so at most one
// is too many.
func dropOldest(rows Rows, handle string) error {
	prefix := keySagaSeat + handle + "/"
	page, err := rows.Scan(prefix, "", MaxHandoffs+1)
	if err != nil || len(page) <= MaxHandoffs {
		return err
	}
	return dropSaga(rows, handle, strings.TrimPrefix(page[MaxHandoffs].Key, prefix))
}

func dropSaga(rows Rows, handle, at string) error {
	for _, key := range []string{keySagas + at, keySagaOpen + at, keySagaSeat + handle + "/" + at} {
		if err := rows.Delete(key); err != nil {
			return err
		}
	}
	return nil
}
