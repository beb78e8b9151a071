package projections

import (
	"maps"

	"github.com/seat-tenure/tenure/events"
)

// applyCompany makes the revision the active one: its seats are listed, all
// others removed. Rows that stay as they are are not written.
func applyCompany(rows Rows, r events.Recorded, e events.CompanyApplied) error {
	roster := make(map[string]events.RosterSeat, len(e.Seats))
	for _, s := range e.Seats {
		roster[s.Handle] = s
	}
	known, err := allSeats(rows)
	if err != nil {
		return err
	}
	for _, before := range known {
		after := before
		if listed, ok := roster[before.Handle]; ok {
			after.list(listed)
			delete(roster, before.Handle)
		} else {
			after.Removed = true
		}
		if err := putRoster(rows, before, after); err != nil {
			return err
		}
	}
	for handle, listed := range roster {
		after := Seat{Handle: handle}
		after.list(listed)
		if err := putRoster(rows, Seat{}, after); err != nil {
			return err
		}
	}
	now := Company{
		Revision: e.Revision, Name: e.Name, Digest: e.Digest, Seats: len(e.Seats), Position: r.Seq, At: stamp(r),
		Source: r.Meta.Source, Actor: clip(r.Meta.Actor), Reason: clip(r.Meta.Reason),
	}
	if err := put(rows, keyRevisions+descending(e.Revision), now); err != nil {
		return err
	}
	return put(rows, keyCompany, now)
}

func (s *Seat) list(l events.RosterSeat) {
	s.AgentID, s.Title, s.Node, s.Labels, s.Removed = l.AgentID, l.Title, l.Node, l.Labels, false
	if len(s.Labels) == 0 {
		s.Labels = nil // as the row reads back
	}
}

func putRoster(rows Rows, before, after Seat) error {
	same := before.Handle == after.Handle && before.AgentID == after.AgentID && before.Title == after.Title &&
		before.Node == after.Node && maps.Equal(before.Labels, after.Labels) && before.Removed == after.Removed
	if same {
		return nil
	}
	return putSeat(rows, before, after)
}

func allSeats(rows Rows) ([]Seat, error) {
	var all []Seat
	err := walk(rows, keySeats, "", func(kr KeyRow) (bool, error) {
		s, err := decode[Seat](kr.Key, kr.Row)
		all = append(all, s)
		return true, err
	})
	return all, err
}

// CompanyRevision reads one revision; found is false where the log, as far as it
// was read, has none of that number.
func (v View) CompanyRevision(revision uint64) (Company, bool, error) {
	return get[Company](v.rows, keyRevisions+descending(revision))
}

// CompanyRevisions lists revisions newest first, those before that number; 0
// starts at the newest.
func (v View) CompanyRevisions(before uint64, limit int) (Page[Company], error) {
	return collect(v.rows, keyRevisions, "", afterPosition(before), limit, func(kr KeyRow) (Company, bool, error) {
		c, err := decode[Company](kr.Key, kr.Row)
		return c, true, err
	})
}
