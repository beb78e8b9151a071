package projections

import (
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// The reader interfaces. Every method may answer *NotServedError, when the
// store's copy of the stream it rests on is not to be trusted: that is neither
// "none" nor "empty". found is false only where the log, as far as it was read,
// has no such thing.

// FleetReader reads the present of the fleet.
type FleetReader interface {
	AsOf() (AsOf, error)
	Fleet() (Fleet, error)
	Node(id string) (n Node, found bool, err error)
	Company() (c Company, found bool, err error)
	CompanyRevision(revision uint64) (c Company, found bool, err error)
	// CompanyRevisions lists revisions newest first, those before that number; 0
	// starts at the newest.
	CompanyRevisions(before uint64, limit int) (Page[Company], error)
}

// SeatReader reads seats, removed ones too, ascending by handle.
type SeatReader interface {
	Seat(handle string) (s Seat, found bool, err error)
	Seats(f SeatFilter, after string, limit int) (Page[Seat], error)
	// Skips are the seat's newest skipped triggers, newest first, MaxSkips at most.
	Skips(handle string) ([]Skip, error)
}

// TenureReader reads the past.
type TenureReader interface {
	// Tenures lists claims newest first, those before the position before; 0
	// starts at the newest.
	Tenures(f TenureFilter, before uint64, limit int) (Page[Tenure], error)
	// HolderAt answers *BeforeHistoryError and *NotYetError for what it cannot know.
	HolderAt(handle string, at PointInTime) (Holding, error)
}

// SagaReader reads what takes several steps: the handoffs of seats. Of a seat
// it has those that are open and the MaxHandoffs that ended last.
type SagaReader interface {
	Saga(id string) (s Saga, found bool, err error)
	// OpenHandoff reads the handoff that is moving the seat, if one is.
	OpenHandoff(handle string) (s Saga, found bool, err error)
	// Sagas lists sagas newest first, those requested before the position
	// before; 0 starts at the newest.
	Sagas(f SagaFilter, before uint64, limit int) (Page[Saga], error)
}

// WorkReader reads what turns left behind.
type WorkReader interface {
	Completion(handle, eventID string) (c Completion, found bool, err error)
	// CompletionsOf lists the records of one turn, one per constituent event.
	CompletionsOf(handle, workKey string) ([]Completion, error)
}

// MailReader reads what is known of mailboxes without asking the broker.
type MailReader interface {
	Mailbox(handle string) (m Mailbox, found bool, err error)
	Mailboxes(after string, limit int) (Page[Mailbox], error)
	MailboxesIn(s MailboxState, after string, limit int) (Page[Mailbox], error)
	// ParkedCount counts the seat's parked mail that nobody has decided about.
	ParkedCount(handle string) (int, error)
	// Parked lists that mail, and with decided the mail that was replayed or dropped
	// as well, newest first, before that position in DEAD; 0 starts at the newest.
	Parked(handle string, decided bool, before uint64, limit int) (Page[Parked], error)
}

// Reader is all of it, at one instant.
type Reader interface {
	FleetReader
	SeatReader
	TenureReader
	SagaReader
	WorkReader
	MailReader
}

// MaxPage bounds a page, whatever was asked for.
const MaxPage = 1000

// Page is a part of a list; More says that the list goes on after it.
type Page[T any] struct {
	Items []T
	More  bool
}

// SeatFilter narrows a list of seats; its zero value lists all.
type SeatFilter struct {
	State        SeatState // "" for any
	Node         string    // seats held by this node
	HandlePrefix string
	Listed       bool // only seats of the active company revision
}

// TenureFilter narrows a list of tenures; its zero value lists all.
type TenureFilter struct {
	Handle string
	Node   string
}

// SagaFilter narrows a list of sagas; its zero value lists all.
type SagaFilter struct {
	Kind   SagaKind // "" for all
	Handle string
	Open   *bool // nil for both
}

// PointInTime is a position of FLEET or a time: the last event stamped at or
// before it. Make it with AtPosition or AtTime.
type PointInTime struct {
	position uint64
	time     time.Time
	byTime   bool
}

// AtPosition is the instant right after the event at that position.
func AtPosition(position uint64) PointInTime { return PointInTime{position: position} }

// AtTime is the instant right after the last event stamped at or before t.
func AtTime(t time.Time) PointInTime { return PointInTime{time: t, byTime: true} }

// Holding is who held a seat at an instant.
type Holding struct {
	Position uint64  // the position that was used
	Tenure   *Tenure // nil: nobody held the seat
}

// ErrNotServed is what every *NotServedError is.
var ErrNotServed = errors.New("the read model does not serve this now")

// NotServedError says that a copy may not be read, and why.
type NotServedError struct {
	Stream events.Stream
	State  CopyState
	Why    string
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("%v: its copy of %s is %s: %s", ErrNotServed, e.Stream, e.State, e.Why)
}

// Is makes errors.Is(err, ErrNotServed) hold.
func (e *NotServedError) Is(target error) bool { return target == ErrNotServed }

// BeforeHistoryError says that the asked instant lies before the kept history.
type BeforeHistoryError struct{ First uint64 }

func (e *BeforeHistoryError) Error() string {
	return fmt.Sprintf("the kept history begins at position %d, after the asked instant", e.First)
}

// NotYetError says that the asked position was not read yet.
type NotYetError struct{ Position uint64 }

func (e *NotYetError) Error() string {
	return fmt.Sprintf("the read model has read up to position %d, not yet to the asked one", e.Position)
}
