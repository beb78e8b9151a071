package graph

import (
	"context"
	"log/slog"
	"time"

	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// Deps is what the API stands on. All fields but Tokens, SpoolDir
// and Now are needed.
type Deps struct {
	Node     string             // stable id of this node
	Self     events.Incarnation // this run of it
	LeaseTTL time.Duration      // of the fleet (L7)
	Subjects events.Subjects

	Views       Views
	Leases      Leases
	Company     Company
	Mail        Sender
	Inboxes     Inboxes
	Completions Completions
	Host        Host
	Readiness   Readiness
	Events      EventSource
	Operator    Operator
	Mailboxes   Mailboxes

	// Tokens are asked for on everything but /ready; nil asks nobody. Wiring
	// must set them where the listener is not on loopback.
	Tokens *Tokens
	// SpoolDir is where exports are collected before they are sent; "" is the
	// system's folder for temporary files.
	SpoolDir string
	// Now is the wall clock, for people's eyes; nil is the system's.
	Now func() time.Time
	Log *slog.Logger
}

// Views is the read model.
type Views interface {
	// View runs fn on a snapshot. It returns fn's error, or *NotServedError
	// without having called fn when nothing may be read at all.
	View(ctx context.Context, fn func(projections.Reader) error) error
	// Copy tells what the copy of a stream is worth now; it asks nobody.
	Copy(st events.Stream) projections.Copy
}

// Liveness says whether a node lives, as far as the log clock tells (L6).
type Liveness int

// Liveness has three values, so that not knowing never becomes either answer.
const (
	LivenessUnknown Liveness = iota
	Live
	Lapsed
)

// Leases knows of leases what views do not keep: their renewals.
type Leases interface {
	// Liveness judges the presence of that incarnation; it asks nobody.
	Liveness(owner events.Incarnation) Liveness
	// Expires reads from the log's leader when the tenure with that epoch ends
	// without a further renewal, by the store's clock. The zero time means that
	// this tenure is not in force any more.
	Expires(ctx context.Context, lease events.Lease, epoch uint64) (time.Time, error)
}

// Company is the company document in force, and those before it.
type Company interface {
	// Company returns the active revision; found is false where none was applied.
	// An error means that it cannot be told now.
	Company(ctx context.Context) (c company.Company, found bool, err error)
	// Apply makes the document the newest revision, or with dry says what that
	// would do. What is wrong with the document is part of the answer. Errors:
	// *aggregates.StaleRevisionError, and the log's.
	Apply(ctx context.Context, by Act, document string, expected *uint64, dry bool) (Applied, error)
	// Document reads the document of the revision at that position of FLEET.
	Document(ctx context.Context, position uint64) (string, error)
}

// Sender stores mail.
type Sender interface {
	// Send returns the mail's position in MAIL. events.ErrUnknown: it may have
	// been stored.
	Send(ctx context.Context, m events.Mail) (uint64, error)
}

// Completions waits for work to be done.
type Completions interface {
	// Await returns the completion of that event: at once when it is recorded
	// already, else when it is recorded. It returns the cause of ctx when that
	// ends first, and *NotServedError when it cannot tell.
	Await(ctx context.Context, handle, eventID string) (projections.Completion, error)
}

// Host is the seats of this process.
type Host interface {
	Held() []string
	// Unproven tells how long each undead seat has been one (O3).
	Unproven() map[string]time.Duration
}

// Readiness says whether this node can do its work.
type Readiness interface {
	// NotReady names what is missing, for people; empty when nothing is.
	NotReady() []string
}

// Bounds describes a stream as its leader sees it.
type Bounds struct {
	CreatedAt time.Time
	First     uint64 // sequence of the first message kept; Last+1 when there is none
	Last      uint64 // sequence of the newest message ever stored, also if it is gone
}

// EventSource reads the streams themselves.
type EventSource interface {
	Bounds(ctx context.Context, st events.Stream) (Bounds, error)
	// Follow hands over the messages from a position on, in order. caughtUp says
	// that nothing more was pending; it may come with an empty batch. Follow
	// returns when ctx ends (its cause), when fn returns an error (that error),
	// and when the stream is not the one it was.
	Follow(ctx context.Context, st events.Stream, from uint64, fn func(batch []events.Message, caughtUp bool) error) error
}
