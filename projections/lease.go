package projections

import "github.com/seat-tenure/tenure/events"

// claim begins a tenure. A tenure in force ends here, as lapsed: nobody
// released it. One that was fenced ended already, and stays fenced.
func claim(rows Rows, r events.Recorded, e events.LeaseClaimed) error {
	switch e.Lease.Kind {
	case events.KindSeat:
		return claimSeat(rows, r, e)
	case events.KindNode:
		n, _, err := get[Node](rows, keyNodes+e.Lease.ID)
		if err != nil {
			return err
		}
		var facts events.NodeFacts
		if e.Node != nil {
			facts = *e.Node
		}
		n.ID = e.Lease.ID
		n.said(facts)
		n.begin(r, e)
		return put(rows, keyNodes+n.ID, n)
	case events.KindWorker:
		d, _, err := get[Duty](rows, keyDuties+e.Lease.ID)
		if err != nil {
			return err
		}
		d.Name = e.Lease.ID
		d.begin(r, e)
		return put(rows, keyDuties+d.Name, d)
	default:
		return misplaced(r)
	}
}

// end ends the tenure that the event names, if it is the one in force. Any
// other is over already: a release after a fence changes nothing in the past.
func end(rows Rows, r events.Recorded, l events.Lease, epoch uint64, how Ended) error {
	how.Position, how.At = r.Seq, stamp(r)
	switch l.Kind {
	case events.KindSeat:
		return endSeat(rows, l.ID, epoch, how)
	case events.KindNode:
		n, _, err := get[Node](rows, keyNodes+l.ID)
		if err != nil || !n.finish(epoch, how) {
			return err
		}
		return put(rows, keyNodes+l.ID, n)
	case events.KindWorker:
		d, _, err := get[Duty](rows, keyDuties+l.ID)
		if err != nil || !d.finish(epoch, how) {
			return err
		}
		return put(rows, keyDuties+l.ID, d)
	default:
		return misplaced(r)
	}
}

func (t *Tenancy) begin(r events.Recorded, e events.LeaseClaimed) {
	t.Epoch, t.Ended, t.Preferred = e.Epoch, nil, e.Preferred
	t.Holder = &Holder{
		Owner: e.Owner, Epoch: e.Epoch, Since: stamp(r), Claimed: r.Seq,
		Preferred: e.Preferred, TTL: e.TTL, Protocol: e.Protocol,
	}
}

// finish says whether it changed anything.
func (t *Tenancy) finish(epoch uint64, how Ended) bool {
	if t.Holder == nil || t.Holder.Epoch != epoch {
		return false
	}
	t.Holder, t.Ended = nil, &how
	return true
}

func claimSeat(rows Rows, r events.Recorded, e events.LeaseClaimed) error {
	before, err := seatRow(rows, e.Lease.ID)
	if err != nil {
		return err
	}
	if before.Holder != nil {
		lapsed := Ended{End: EndLapsed, Position: r.Seq, At: stamp(r)}
		if err := endTenure(rows, before.Holder.Claimed, lapsed); err != nil {
			return err
		}
	}
	after := before
	after.Unproven = nil
	after.begin(r, e)
	if err := beginTenure(rows, after); err != nil {
		return err
	}
	if err := handedOver(rows, after); err != nil {
		return err
	}
	return putSeat(rows, before, after)
}

func endSeat(rows Rows, handle string, epoch uint64, how Ended) error {
	before, err := seatRow(rows, handle)
	if err != nil {
		return err
	}
	after := before
	if !after.finish(epoch, how) {
		return nil
	}
	after.Unproven = nil
	if err := endTenure(rows, before.Holder.Claimed, how); err != nil {
		return err
	}
	return putSeat(rows, before, after)
}

// establish marks the tenure in force; a later claim starts without the mark.
func establish(rows Rows, r events.Recorded, e events.SeatEstablished) error {
	before, err := seatRow(rows, e.Handle)
	if err != nil || before.Holder == nil || before.Holder.Epoch != e.Epoch || before.Holder.Established != 0 {
		return err
	}
	at, holder := stamp(r), *before.Holder
	holder.Established, holder.EstablishedAt = r.Seq, &at
	after := before
	after.Holder = &holder
	if err := handedOver(rows, after); err != nil {
		return err
	}
	err = changeTenure(rows, holder.Claimed, func(t *Tenure) { t.Established, t.EstablishedAt = r.Seq, &at })
	if err != nil {
		return err
	}
	return putSeat(rows, before, after)
}

// seatRow reads a seat. One that no row knows yet counts as removed if there is
// a company: the active revision would have named it.
func seatRow(rows Rows, handle string) (Seat, error) {
	s, found, err := get[Seat](rows, keySeats+handle)
	if err != nil || found {
		return s, err
	}
	_, company, err := rows.Get(keyCompany)
	return Seat{Handle: handle, Removed: company}, err
}

// load is how many seats a node holds.
type load struct {
	Held int `json:"held"`
}

// putSeat writes a seat and everything that counts seats.
func putSeat(rows Rows, before, after Seat) error {
	if err := put(rows, keySeats+after.Handle, after); err != nil {
		return err
	}
	if err := moveHeld(rows, before, after); err != nil {
		return err
	}
	counted := func(s Seat) Counts {
		c := Counts{Seats: one(s.Listed()), Held: one(s.Holder != nil)}
		c.Established = one(s.Holder != nil && s.Holder.Established != 0)
		return c
	}
	was, is := counted(before), counted(after)
	if was == is {
		return nil
	}
	sum, _, err := get[Counts](rows, keyCounts)
	if err != nil {
		return err
	}
	sum.Seats += is.Seats - was.Seats
	sum.Held += is.Held - was.Held
	sum.Established += is.Established - was.Established
	return put(rows, keyCounts, sum)
}

// moveHeld keeps the list of seats by holding node.
func moveHeld(rows Rows, before, after Seat) error {
	from, to := holdingNode(before), holdingNode(after)
	if from == to {
		return nil
	}
	if from != "" {
		if err := rows.Delete(keyHeld + from + "/" + after.Handle); err != nil {
			return err
		}
		if err := addLoad(rows, from, -1); err != nil {
			return err
		}
	}
	if to == "" {
		return nil
	}
	if err := put(rows, keyHeld+to+"/"+after.Handle, struct{}{}); err != nil {
		return err
	}
	return addLoad(rows, to, 1)
}

func addLoad(rows Rows, node string, by int) error {
	l, _, err := get[load](rows, keyLoad+node)
	if err != nil {
		return err
	}
	l.Held += by
	return put(rows, keyLoad+node, l)
}

func holdingNode(s Seat) string {
	if s.Holder == nil {
		return ""
	}
	return s.Holder.NodeID()
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
