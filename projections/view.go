package projections

import (
	"errors"
	"strings"

	"github.com/seat-tenure/tenure/events"
)

// View answers every reader interface from rows alone.
type View struct{ rows Rows }

var _ Reader = View{}

// NewView reads from rows, which must stay as they are while it is used.
func NewView(rows Rows) View { return View{rows} }

// AsOf tells how far FLEET was read.
func (v View) AsOf() (AsOf, error) {
	head, _, err := get[AsOf](v.rows, keyFleetHead)
	return head, err
}

// Fleet reads all nodes and duties, and sums up the seats.
func (v View) Fleet() (Fleet, error) {
	var f Fleet
	var err error
	if f.AsOf, err = v.AsOf(); err != nil {
		return Fleet{}, err
	}
	if f.Counts, _, err = get[Counts](v.rows, keyCounts); err != nil {
		return Fleet{}, err
	}
	err = walk(v.rows, keyNodes, "", func(kr KeyRow) (bool, error) {
		n, err := decode[Node](kr.Key, kr.Row)
		if err == nil {
			n.SeatsHeld, err = v.held(n.ID)
		}
		f.Nodes = append(f.Nodes, n)
		return true, err
	})
	if err != nil {
		return Fleet{}, err
	}
	err = walk(v.rows, keyDuties, "", func(kr KeyRow) (bool, error) {
		d, err := decode[Duty](kr.Key, kr.Row)
		f.Duties = append(f.Duties, d)
		return true, err
	})
	return f, err
}

// Node reads one node's presence.
func (v View) Node(id string) (Node, bool, error) {
	n, found, err := get[Node](v.rows, keyNodes+id)
	if err != nil || !found {
		return Node{}, false, err
	}
	n.SeatsHeld, err = v.held(id)
	return n, err == nil, err
}

func (v View) held(node string) (int, error) {
	l, _, err := get[load](v.rows, keyLoad+node)
	return l.Held, err
}

// Company reads the active revision.
func (v View) Company() (Company, bool, error) { return get[Company](v.rows, keyCompany) }

// Seat reads one seat.
func (v View) Seat(handle string) (Seat, bool, error) {
	s, found, err := get[Seat](v.rows, keySeats+handle)
	if err != nil || !found {
		return Seat{}, false, err
	}
	err = v.withHandoff(&s)
	return s, err == nil, err
}

// withHandoff adds the seat's open handoff, which few have.
func (v View) withHandoff(s *Seat) error {
	if s.HandoffAt == 0 {
		return nil
	}
	saga, err := v.sagaAt(descending(s.HandoffAt))
	s.Handoff = &saga
	return err
}

// Seats lists seats by handle, those after the handle after.
func (v View) Seats(f SeatFilter, after string, limit int) (Page[Seat], error) {
	prefix := keySeats
	if f.Node != "" {
		prefix = keyHeld + f.Node + "/"
	}
	return collect(v.rows, prefix, f.HandlePrefix, after, limit, func(kr KeyRow) (Seat, bool, error) {
		var s Seat
		var err error
		if f.Node != "" {
			s, _, err = v.Seat(strings.TrimPrefix(kr.Key, prefix))
		} else {
			s, err = decode[Seat](kr.Key, kr.Row)
		}
		if err != nil || (f.State != "" && s.State() != f.State) || (f.Listed && !s.Listed()) {
			return s, false, err
		}
		return s, true, v.withHandoff(&s)
	})
}

// Skips lists the seat's newest skipped triggers, newest first.
func (v View) Skips(handle string) ([]Skip, error) {
	skips, _, err := get[[]Skip](v.rows, keySkips+handle)
	return skips, err
}

// Mailbox reads a seat's registration.
func (v View) Mailbox(handle string) (Mailbox, bool, error) {
	return get[Mailbox](v.rows, keyMailboxes+handle)
}

// Mailboxes lists registered mailboxes by handle.
func (v View) Mailboxes(after string, limit int) (Page[Mailbox], error) {
	return collect(v.rows, keyMailboxes, "", after, limit, func(kr KeyRow) (Mailbox, bool, error) {
		m, err := decode[Mailbox](kr.Key, kr.Row)
		return m, true, err
	})
}

// Completion reads the record of one event.
func (v View) Completion(handle, eventID string) (Completion, bool, error) {
	c, found, err := get[Completion](v.rows, keyDone+doneID(handle, eventID))
	if err != nil || !found {
		return Completion{}, false, err
	}
	c.Skipped, err = v.skipped(c)
	return c, err == nil, err
}

// CompletionsOf lists the records of one turn.
func (v View) CompletionsOf(handle, workKey string) ([]Completion, error) {
	var all []Completion
	prefix := keyDoneByKey + doneID(handle, workKey) + "/"
	err := walk(v.rows, prefix, "", func(kr KeyRow) (bool, error) {
		id := handle + "/" + strings.TrimPrefix(kr.Key, prefix)
		c, found, err := get[Completion](v.rows, keyDone+id)
		if err != nil || !found {
			return true, err
		}
		c.Skipped, err = v.skipped(c)
		all = append(all, c)
		return true, err
	})
	return all, err
}

// skipped reads FLEET, whose copy may be out of service while WORK's is sound:
// the completion counts more than this remark on it.
func (v View) skipped(c Completion) (bool, error) {
	skips, err := v.Skips(c.Handle)
	if errors.Is(err, ErrNotServed) {
		return false, nil
	}
	for _, s := range skips {
		if s.EventID == c.EventID && s.Why == events.SkipCompleted {
			return true, err
		}
	}
	return false, err
}

// afterPosition is the cursor into a list that is newest first.
func afterPosition(before uint64) string {
	if before == 0 {
		return ""
	}
	return descending(before)
}

// collect fills a page with the wanted rows whose key is prefix and something
// that starts with within and comes after after.
func collect[T any](rows Rows, prefix, within, after string, limit int, read func(KeyRow) (T, bool, error)) (Page[T], error) {
	limit = min(max(limit, 0), MaxPage)
	if after != "" {
		after = prefix + after
	}
	if after < prefix+within {
		after = "" // a cursor before the part asked for
	} else if !strings.HasPrefix(after, prefix+within) {
		return Page[T]{}, nil // a cursor behind it
	}
	var page Page[T]
	err := walk(rows, prefix+within, after, func(kr KeyRow) (bool, error) {
		item, wanted, err := read(kr)
		if err != nil || !wanted {
			return true, err
		}
		if len(page.Items) == limit {
			page.More = true
			return false, nil
		}
		page.Items = append(page.Items, item)
		return true, nil
	})
	return page, err
}
