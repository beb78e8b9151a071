package projections

import (
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// MisplacedError says that an event came from a stream that holds no such
// event, or from one that no view is made from. Nothing was changed.
type MisplacedError struct {
	Stream events.Stream
	Seq    uint64
	Event  string
}

func (e *MisplacedError) Error() string {
	return fmt.Sprintf("%s sequence %d: no view is made from a %s of this stream", e.Stream, e.Seq, e.Event)
}

// Apply adds one event to the rows. An event at or below the newest one applied
// of its stream changes nothing. Besides the errors of rows it answers only
// *MisplacedError.
func Apply(rows Rows, r events.Recorded) error {
	switch r.Stream {
	case events.StreamFleet:
		return applyFleet(rows, r)
	case events.StreamWork:
		return applyOnce(rows, keyWorkHead, r, applyWork)
	case events.StreamDead:
		return applyOnce(rows, keyDeadHead, r, applyDead)
	default:
		return misplaced(r)
	}
}

func misplaced(r events.Recorded) error {
	return &MisplacedError{Stream: r.Stream, Seq: r.Seq, Event: events.Name(r.Event)}
}

// applyFleet also keeps the index from times to positions.
func applyFleet(rows Rows, r events.Recorded) error {
	head, _, err := get[AsOf](rows, keyFleetHead)
	if err != nil || r.Seq <= head.Position {
		return err
	}
	if err := applyFleetEvent(rows, r); err != nil {
		return err
	}
	if err := stampTime(rows, head, r); err != nil {
		return err
	}
	first := head.First
	if first == 0 {
		first = r.Seq
	}
	return put(rows, keyFleetHead, AsOf{Position: r.Seq, At: stamp(r), First: first})
}

func applyFleetEvent(rows Rows, r events.Recorded) error {
	switch e := r.Event.(type) {
	case events.LeaseClaimed:
		return claim(rows, r, e)
	case events.LeaseReleased:
		return end(rows, r, e.Lease, e.Epoch, Ended{End: EndReleased, Reason: string(e.Reason)})
	case events.LeaseFenced:
		return end(rows, r, e.Lease, e.Epoch, Ended{End: EndFenced, Reason: e.Reason, By: e.By})
	case events.NodeReported:
		return report(rows, e)
	case events.SeatEstablished:
		return establish(rows, r, e)
	case events.SeatPaused:
		return pause(rows, r, e)
	case events.SeatResumed:
		return resume(rows, e)
	case events.SeatUnproven:
		return unproven(rows, r, e)
	case events.SeatProven:
		return proven(rows, e)
	case events.HandoffRequested:
		return beginHandoff(rows, r, e)
	case events.HandoffEvent:
		return stepHandoff(rows, r, e)
	case events.TriggerSkipped:
		return skip(rows, r, e)
	case events.ParkedEvent:
		return decideParked(rows, r, e)
	case events.MailboxRegistered:
		return record(rows, r, Mailbox{Handle: e.Handle, AgentID: e.AgentID})
	case events.MailboxRetiring:
		return record(rows, r, Mailbox{Handle: e.Handle, AgentID: e.AgentID, Retiring: true})
	case events.MailboxRetired:
		return record(rows, r, Mailbox{Handle: e.Handle, AgentID: e.AgentID, Retired: true})
	case events.RetirementEvent:
		return retire(rows, r, e)
	case events.CompanyApplied:
		return applyCompany(rows, r, e)
	case events.LeaseRenewed, events.LeaseDeclined, events.StreamMarked:
		// No view keeps anything of these: a renewal tells only that the tenure
		// goes on, a decline ends a reservation that no view shows, and a marker
		// is the checkpoint's business.
		return nil
	default:
		return misplaced(r)
	}
}

func applyWork(rows Rows, r events.Recorded) error {
	switch e := r.Event.(type) {
	case events.TurnCompleted:
		return complete(rows, r, e)
	case events.StreamMarked:
		return nil // the checkpoint's business
	default:
		return misplaced(r)
	}
}

func applyDead(rows Rows, r events.Recorded) error {
	switch e := r.Event.(type) {
	case events.MailParked:
		return park(rows, r, e)
	case events.StreamMarked:
		return nil // the checkpoint's business
	default:
		return misplaced(r)
	}
}

// streamHead is how far a stream other than FLEET was applied.
type streamHead struct {
	Position uint64 `json:"position"`
}

func applyOnce(rows Rows, headKey string, r events.Recorded, apply func(Rows, events.Recorded) error) error {
	head, _, err := get[streamHead](rows, headKey)
	if err != nil || r.Seq <= head.Position {
		return err
	}
	if err := apply(rows, r); err != nil {
		return err
	}
	return put(rows, headKey, streamHead{Position: r.Seq})
}

// stamp is the broker's time of r in the one form that rows keep.
func stamp(r events.Recorded) time.Time { return r.At.Round(0).UTC() }
