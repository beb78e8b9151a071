package projections

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// MailboxState says what a mailbox is, as far as the log was read.
type MailboxState string

// States of a mailbox. A returned seat's is active again.
const (
	MailboxActive   MailboxState = "ACTIVE"
	MailboxAbsent   MailboxState = "ABSENT"   // the seat was seen missing; the grace runs
	MailboxRetiring MailboxState = "RETIRING" // it is being deleted
	MailboxRetired  MailboxState = "RETIRED"
)

// Mailbox is a seat's mailbox: its newest record, and its newest retirement.
type Mailbox struct {
	Handle   string    `json:"handle"`
	AgentID  string    `json:"agent_id"`
	Position uint64    `json:"position"` // of the newest record; 0: it was never registered
	At       time.Time `json:"at"`
	Retiring bool      `json:"retiring,omitempty"` // the record says so
	Retired  bool      `json:"retired,omitempty"`
	// Retirement is the newest one, nil where the seat was never seen missing.
	Retirement *Retirement `json:"retirement,omitempty"`
}

// Retirement is what views keep of a mailbox's retirement.
type Retirement struct {
	Number    uint64                   `json:"number"`
	Began     uint64                   `json:"began"` // position of its first event
	Step      events.RetirementStep    `json:"step"`
	By        events.Incarnation       `json:"by"`
	Since     time.Time                `json:"since,omitzero"`      // wall clock of who saw it missing first
	RetiresAt time.Time                `json:"retires_at,omitzero"` // an estimate
	Grace     events.Millis            `json:"grace_ms"`
	Absent    events.Millis            `json:"absent_for_ms"`
	Refused   events.RetirementRefusal `json:"refused,omitempty"`
	Owner     events.Incarnation       `json:"owner,omitempty"`
	Last      uint64                   `json:"last"` // position of its newest event
	LastAt    time.Time                `json:"last_at"`
}

// Usable says whether a seat may run on the mailbox: it is registered, and no
// retirement deletes it (R8).
func (m Mailbox) Usable() bool { return m.Position > 0 && !m.Retiring && !m.Retired }

// State tells what the mailbox is.
func (m Mailbox) State() MailboxState {
	switch {
	case m.Retired:
		return MailboxRetired
	case m.Retiring:
		return MailboxRetiring
	case m.Retirement != nil && m.Retirement.Step == events.RetireAbsent:
		return MailboxAbsent
	default:
		return MailboxActive
	}
}

// MailboxesIn lists registered mailboxes by handle; of any state when s is "".
func (v View) MailboxesIn(s MailboxState, after string, limit int) (Page[Mailbox], error) {
	return collect(v.rows, keyMailboxes, "", after, limit, func(kr KeyRow) (Mailbox, bool, error) {
		m, err := decode[Mailbox](kr.Key, kr.Row)
		return m, err == nil && m.Position > 0 && (s == "" || m.State() == s), err
	})
}

// record applies the newest record of a mailbox.
func record(rows Rows, r events.Recorded, m Mailbox) error {
	before, _, err := get[Mailbox](rows, keyMailboxes+m.Handle)
	if err != nil {
		return err
	}
	m.Position, m.At, m.Retirement = r.Seq, stamp(r), before.Retirement
	return put(rows, keyMailboxes+m.Handle, m)
}

// retire applies the newest event of a mailbox's retirement.
func retire(rows Rows, r events.Recorded, e events.RetirementEvent) error {
	b := e.Retirement()
	m, _, err := get[Mailbox](rows, keyMailboxes+b.Handle)
	if err != nil {
		return err
	}
	began, before := r.Seq, m.Retirement
	if before != nil && before.Number == b.Number {
		began = before.Began
	}
	m.Handle = b.Handle
	m.Retirement = &Retirement{
		Number: b.Number, Began: began, Step: b.Step, By: b.By, Since: b.Since, RetiresAt: b.RetiresAt, Grace: b.Grace,
		Absent: b.Absent, Refused: b.Refused, Owner: b.Owner, Last: r.Seq, LastAt: stamp(r),
	}
	if err := put(rows, keyMailboxes+b.Handle, m); err != nil {
		return err
	}
	return followRetirement(rows, r, b, before, began)
}
