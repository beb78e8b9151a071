package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxToken bounds a handle, a node id or a prefix: one subject token.
const maxToken = 63

// ValidHandle says whether handle can name a seat: one subject token
// [a-z0-9][a-z0-9_-]{0,62}, never mangled (design §2). Node ids, duty names
// and the stream prefix follow the same rule.
func ValidHandle(handle string) error {
	if validToken(handle) {
		return nil
	}
	return fmt.Errorf("%q is not a handle: use 1 to %d of a-z, 0-9, '_' and '-', starting with a letter or a digit", handle, maxToken)
}

func validToken(s string) bool {
	if s == "" || len(s) > maxToken || s[0] == '-' || s[0] == '_' {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return true
}

// LeaseKind says what a lease is for.
type LeaseKind string

// The three kinds of lease; one aggregate serves them all (design §3).
const (
	KindSeat   LeaseKind = "seat"   // a seat's tenure
	KindNode   LeaseKind = "node"   // a node's presence (P1)
	KindWorker LeaseKind = "worker" // a singleton duty (Y1)
)

// Lease names one lease.
type Lease struct {
	Kind LeaseKind
	ID   string
}

// SeatLease is the lease of the seat with that handle.
func SeatLease(handle string) Lease { return Lease{KindSeat, handle} }

// NodeLease is the presence lease of the node with that id.
func NodeLease(id string) Lease { return Lease{KindNode, id} }

func (l Lease) String() string { return string(l.Kind) + ":" + l.ID }

// Mailbox is one of the three subjects of a seat (U4).
type Mailbox string

// A seat's mail subjects.
const (
	Inbox   Mailbox = "inbox"
	Control Mailbox = "control"
	Reflect Mailbox = "reflect"
)

// Mailboxes lists a seat's three in the order in which they are taken over.
var Mailboxes = [...]Mailbox{Inbox, Control, Reflect}

// Subjects is the subject grammar of one fleet.
type Subjects struct{ prefix string }

// NewSubjects returns the grammar under that prefix, which must be one token.
func NewSubjects(prefix string) (Subjects, error) {
	if !validToken(prefix) {
		return Subjects{}, fmt.Errorf("stream prefix: %w", ValidHandle(prefix))
	}
	return Subjects{prefix}, nil
}

// Prefix returns the first token of every subject.
func (s Subjects) Prefix() string { return s.prefix }

// StreamName is the broker's name of a stream: CREWLET_FLEET.
func (s Subjects) StreamName(st Stream) string {
	return strings.ToUpper(s.prefix) + "_" + string(st)
}

// Tenure is where a lease's claims, releases and fences stand.
func (s Subjects) Tenure(l Lease) string { return s.lease(l) + ".tenure" }

// Renewal is where a lease's renewals stand: readers of edges leave it out.
func (s Subjects) Renewal(l Lease) string { return s.lease(l) + ".renewal" }

// Renewals covers the renewals of every lease, and nothing else.
func (s Subjects) Renewals() string { return s.prefix + ".fleet.lease.*.*.renewal" }

// Family is the one wildcard string that every writer of a lease checks: the
// safe form (b) of Check, used nowhere else.
func (s Subjects) Family(l Lease) string { return s.lease(l) + ".*" }

// FamilyCheck is the condition of every lease write: the family's newest event
// still stands at last.
func (s Subjects) FamilyCheck(l Lease, last uint64) *Check {
	return &Check{Subject: s.Family(l), Last: last}
}

// TenureCheck is the condition of a holder's other writes in FLEET: the tenure
// it rests on is still the newest. Form (a), a literal subject (design §4).
func (s Subjects) TenureCheck(l Lease, claimed uint64) *Check {
	return &Check{Subject: s.Tenure(l), Last: claimed}
}

func (s Subjects) lease(l Lease) string {
	return s.prefix + ".fleet.lease." + string(l.Kind) + "." + l.ID
}

// FleetEdges lists the FLEET subjects that readers of ownership follow: all
// but the renewals, which carry nothing that views keep.
func (s Subjects) FleetEdges() []string {
	f := s.prefix + ".fleet."
	return []string{f + "lease.*.*.tenure", f + "host.*", f + "mailbox.*", f + "saga.*.*", f + "parked.*.*", f + "run.*", f + "company", f + "log"}
}

// Families covers both subjects of every lease of one kind.
func (s Subjects) Families(k LeaseKind) string {
	return s.prefix + ".fleet.lease." + string(k) + ".*.*"
}

// Host is where a seat's holder reports.
func (s Subjects) Host(handle string) string { return s.prefix + ".fleet.host." + handle }

// MailboxRecord is where a seat's mailbox is registered and retired.
func (s Subjects) MailboxRecord(handle string) string { return s.prefix + ".fleet.mailbox." + handle }

// Handoff is where the handoffs of a seat stand, one after the other.
func (s Subjects) Handoff(handle string) string { return s.prefix + ".fleet.saga.handoff." + handle }

// HandoffCheck is the condition of every step of a handoff: the saga's newest
// event still stands at last. Form (a), a literal subject.
func (s Subjects) HandoffCheck(handle string, last uint64) *Check {
	return &Check{Subject: s.Handoff(handle), Last: last}
}

// Retirement is where the retirements of a seat's mailbox stand.
func (s Subjects) Retirement(handle string) string {
	return s.prefix + ".fleet.saga.retirement." + handle
}

// Retirements covers the retirements of every mailbox.
func (s Subjects) Retirements() string { return s.Retirement("*") }

// MailboxRecords covers the record of every mailbox.
func (s Subjects) MailboxRecords() string { return s.MailboxRecord("*") }

// Company is where revisions of the company stand.
func (s Subjects) Company() string { return s.prefix + ".fleet.company" }

// FleetLog is where markers of FLEET and the other streams' identities stand.
func (s Subjects) FleetLog() string { return s.prefix + ".fleet.log" }

// Mail is one of a seat's mail subjects.
func (s Subjects) Mail(handle string, m Mailbox) string {
	return s.prefix + ".agent." + handle + "." + string(m)
}

// Wake is where the broker announces, after the commit, mail under Mail.
func (s Subjects) Wake(handle string, m Mailbox) string {
	return s.prefix + ".wake." + handle + "." + string(m)
}

// Cursor is where one mailbox's cursor stands.
func (s Subjects) Cursor(handle string, m Mailbox) string {
	return s.prefix + ".cursor." + handle + "." + string(m)
}

// Cursors covers every cursor of the fleet.
func (s Subjects) Cursors() string { return s.prefix + ".cursor.*.*" }

// Work is where the completion of one event by one seat stands, write-once.
func (s Subjects) Work(handle, eventID string) string {
	return s.prefix + ".work." + handle + "." + Digest(eventID)
}

// Completions covers every completion of the fleet.
func (s Subjects) Completions() string { return s.prefix + ".work.*.*" }

// Dead is where one parked mail stands, write-once, under its own digest.
func (s Subjects) Dead(handle, digest string) string {
	return s.prefix + ".dead." + handle + "." + digest
}

// ParkedRecord is where it stands what an operator made of one parked mail.
func (s Subjects) ParkedRecord(handle, key string) string {
	return s.prefix + ".fleet.parked." + handle + "." + key
}

// Digest is the hex SHA-256 of s: how an id that is no token stands in a subject.
func Digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
