package projections

import "github.com/seat-tenure/tenure/events"

// report replaces what a node says of itself, if its presence is in force.
func report(rows Rows, e events.NodeReported) error {
	n, _, err := get[Node](rows, keyNodes+e.Lease.ID)
	if err != nil || n.Holder == nil || n.Holder.Epoch != e.Epoch {
		return err
	}
	n.said(e.Node)
	return put(rows, keyNodes+n.ID, n)
}

// pause begins a pause, or adds to the one in force that the turn was to stop:
// it goes on from where it began, for whom it began (H3).
func pause(rows Rows, r events.Recorded, e events.SeatPaused) error {
	before, err := seatRow(rows, e.Handle)
	if err != nil {
		return err
	}
	now := Paused{By: clip(e.By), Reason: clip(e.Reason), StopTurn: e.StopTurn, Position: r.Seq, Since: stamp(r)}
	if before.Paused != nil {
		now = *before.Paused
		now.StopTurn = now.StopTurn || e.StopTurn
	}
	after := before
	after.Paused = &now
	return putSeat(rows, before, after)
}

func resume(rows Rows, e events.SeatResumed) error {
	before, err := seatRow(rows, e.Handle)
	if err != nil || before.Paused == nil {
		return err
	}
	after := before
	after.Paused = nil
	return putSeat(rows, before, after)
}

// unproven marks the tenure in force. The holder may say it again; since when
// is what it said first.
func unproven(rows Rows, r events.Recorded, e events.SeatUnproven) error {
	before, err := seatRow(rows, e.Handle)
	if err != nil || before.Holder == nil || before.Holder.Epoch != e.Epoch || before.Unproven != nil {
		return err
	}
	since := e.Since.Round(0).UTC()
	if e.Since.IsZero() {
		since = stamp(r)
	}
	after := before
	after.Unproven = &Unproven{Position: r.Seq, Since: since}
	return putSeat(rows, before, after)
}

func proven(rows Rows, e events.SeatProven) error {
	before, err := seatRow(rows, e.Handle)
	if err != nil || before.Unproven == nil || before.Holder.Epoch != e.Epoch {
		return err
	}
	after := before
	after.Unproven = nil
	return putSeat(rows, before, after)
}
