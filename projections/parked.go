package projections

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Parked is mail that was set aside, as far as views keep it; all of it stands in
// DEAD at its position.
type Parked struct {
	Handle       string         `json:"handle"`
	Key          string         `json:"key"` // events.MailParked.Key
	Mailbox      events.Mailbox `json:"mailbox"`
	EventID      string         `json:"event_id,omitempty"`
	Type         string         `json:"type,omitempty"`
	Conversation string         `json:"conversation,omitempty"`
	MailSeq      uint64         `json:"mail_seq"`
	Attempts     int            `json:"attempts"`
	Reason       string         `json:"reason"`
	History      []events.Tried `json:"history,omitempty"`
	Clipped      bool           `json:"clipped,omitempty"` // DEAD has not all of it
	Bytes        int            `json:"bytes"`             // of what it says
	Position     uint64         `json:"position"`          // in DEAD
	At           time.Time      `json:"at"`
	// Decided is what an operator made of it; nil: nobody has decided. It comes
	// from FLEET, the rest from DEAD.
	Decided *Decided `json:"-"`
}

// Decided is what an operator made of parked mail.
type Decided struct {
	How      DecidedHow `json:"how"`
	By       string     `json:"by"`
	Reason   string     `json:"reason"`
	Position uint64     `json:"position"` // in FLEET
	At       time.Time  `json:"at"`
	DeadSeq  uint64     `json:"dead_seq"`
	MailSeq  uint64     `json:"mail_seq,omitempty"` // where it stands in MAIL again
}

// DecidedHow says what was decided about parked mail.
type DecidedHow string

// What can be decided. Replaying: it is being sent again; Returned: it was.
const (
	DecidedReplaying DecidedHow = "REPLAYING"
	DecidedReturned  DecidedHow = "REPLAYED"
	DecidedDropped   DecidedHow = "DROPPED"
)

// decideParked keeps the newest of what was decided about one mail.
func decideParked(rows Rows, r events.Recorded, e events.ParkedEvent) error {
	body := e.Parked()
	d := Decided{By: clip(body.By), Reason: clip(body.Reason), Position: r.Seq, At: stamp(r), DeadSeq: body.DeadSeq}
	switch e := e.(type) {
	case events.MailReplayed:
		d.How = DecidedReplaying
	case events.MailReturned:
		d.How, d.MailSeq = DecidedReturned, e.MailSeq
	case events.MailDropped:
		d.How = DecidedDropped
	default:
		return misplaced(r)
	}
	return put(rows, keyDecided+body.Handle+"/"+body.Key, d)
}

// parkedCount is how many mails of a seat stand in DEAD.
type parkedCount struct {
	Mails int `json:"mails"`
}

func park(rows Rows, r events.Recorded, e events.MailParked) error {
	id := e.Handle + "/" + descending(r.Seq)
	bytes := e.Bytes
	if bytes == 0 { // a record of old
		bytes = len(e.Data)
	}
	err := put(rows, keyParked+id, Parked{
		Handle: e.Handle, Key: e.Key(), Mailbox: e.Mailbox, EventID: e.EventID, MailSeq: e.MailSeq,
		Type: clip(e.Header.Get(events.HeaderType)), Conversation: clip(e.Header.Get(events.HeaderConversation)),
		Attempts: e.Attempts, Reason: clip(e.Reason), History: e.History, Clipped: e.Clipped, Bytes: bytes,
		Position: r.Seq, At: stamp(r),
	})
	if err != nil {
		return err
	}
	if err := put(rows, keyParkedSeq+ascending(r.Seq), id); err != nil {
		return err
	}
	return addParked(rows, e.Handle, 1)
}

// addParked keeps the count, and no row for nothing: rows rebuilt from a log
// whose beginning was trimmed have none either.
func addParked(rows Rows, handle string, by int) error {
	n, _, err := get[parkedCount](rows, keyParkedSeat+handle)
	if err != nil {
		return err
	}
	if n.Mails += by; n.Mails <= 0 {
		return rows.Delete(keyParkedSeat + handle)
	}
	return put(rows, keyParkedSeat+handle, n)
}

// ParkedCount counts a seat's parked mail that nobody has decided about. What was
// decided is looked up in DEAD's rows: it counts no longer once DEAD has dropped it.
func (v View) ParkedCount(handle string) (int, error) {
	n, found, err := get[parkedCount](v.rows, keyParkedSeat+handle)
	if err != nil || !found {
		return 0, err
	}
	prefix := keyDecided + handle + "/"
	err = walk(v.rows, prefix, "", func(kr KeyRow) (bool, error) {
		d, err := decode[Decided](kr.Key, kr.Row)
		if err != nil {
			return false, err
		}
		p, kept, err := get[Parked](v.rows, keyParked+handle+"/"+descending(d.DeadSeq))
		if kept && p.Key == kr.Key[len(prefix):] {
			n.Mails--
		}
		return true, err
	})
	return n.Mails, err
}

// Parked lists a seat's parked mail, newest first.
func (v View) Parked(handle string, decided bool, before uint64, limit int) (Page[Parked], error) {
	return collect(v.rows, keyParked+handle+"/", "", afterPosition(before), limit, func(kr KeyRow) (Parked, bool, error) {
		p, err := decode[Parked](kr.Key, kr.Row)
		if err != nil {
			return p, false, err
		}
		d, found, err := get[Decided](v.rows, keyDecided+handle+"/"+p.Key)
		if found {
			p.Decided = &d
		}
		return p, decided || !found, err
	})
}
