package broker

import (
	"context"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Limits of one request.
const (
	// MaxBatch is how many writes one atomic batch may carry (ADR-50).
	MaxBatch = 1000
	// MaxFollow is how many messages Follow hands over at once.
	MaxFollow = 512
)

// Stream is one stream of a fleet. JetStream and the in-memory twin implement it.
type Stream interface {
	// Append makes one attempt to store w and returns its sequence. The error is
	// one of events.ErrConflict (a *events.ConflictError), ErrExists, ErrBusy,
	// ErrUnknown, ErrUnavailable, or a *RefusedError for what can never succeed.
	// Use Log.Append unless one attempt is what is wanted.
	Append(ctx context.Context, w events.Write) (seq uint64, err error)

	// AppendBatch makes one attempt to store all of ws or none, in order and
	// without another message between them, and returns the last one's
	// sequence. At most MaxBatch. Errors as Append; ErrExists and a conflict do
	// not say which member met them.
	AppendBatch(ctx context.Context, ws []events.Write) (last uint64, err error)

	// Get returns the message at seq; ErrNotFound when the leader has none there.
	Get(ctx context.Context, seq uint64) (events.Message, error)
	// Last returns the newest message under filter, which may be a wildcard.
	Last(ctx context.Context, filter string) (events.Message, error)
	// Next returns the first message under filter at or after from.
	Next(ctx context.Context, filter string, from uint64) (events.Message, error)

	// LastPerSubject returns the newest message of every subject under filter,
	// by sequence. It may come from a replica that lags or is cut off: a hint,
	// which decides nothing.
	LastPerSubject(ctx context.Context, filter string) ([]events.Message, error)

	// Subjects counts the messages of every subject under filter.
	Subjects(ctx context.Context, filter string) (map[string]uint64, error)

	// Info describes the stream as its leader sees it.
	Info(ctx context.Context) (StreamInfo, error)

	// Purge removes the messages under filter with a sequence lower than below.
	// An empty filter and below 0 are refused: to the broker they mean all.
	Purge(ctx context.Context, filter string, below uint64) error

	// Delete removes one message; a *RefusedError where the stream forbids it,
	// ErrNotFound when there is none.
	Delete(ctx context.Context, seq uint64) error

	// Follow reads from a position on, in order, without gap or duplicate, and
	// hands over at most MaxFollow messages at once. filters empty means all.
	// caughtUp says that nothing more was pending when the batch's last message
	// was sent; at the start, and after a broken connection, it may come with an
	// empty batch. Follow returns when ctx ends (its cause), when fn returns an
	// error (that error), and with an *IdentityError when the stream was
	// recreated underneath, or ends before from: it never skips. Messages that
	// the stream dropped itself (retention, purges) are not seen; whoever cannot
	// do without them compares its position with StreamInfo.First.
	Follow(ctx context.Context, from uint64, filters []string, fn func(batch []events.Message, caughtUp bool) error) error
}

// StreamInfo describes a stream at one moment.
type StreamInfo struct {
	Stream    events.Stream
	CreatedAt time.Time
	First     uint64 // sequence of the first message kept; Last+1 when there is none
	Last      uint64 // sequence of the newest message ever stored, also if it is gone
	Messages  uint64
	Bytes     uint64
	Metadata  map[string]string
}

// Store is one connection to the streams of a fleet.
type Store interface {
	// Stream returns one of the fleet's streams; it panics on an unknown name.
	Stream(events.Stream) Stream

	// Subscribe calls fn with the subject of every message published under
	// subject from now on: when it returns, the broker knows of it. A wake-up
	// may be lost (connection broken, fn too slow), so it is never the only way
	// to learn of mail (design §6). stop waits until fn is not running.
	Subscribe(ctx context.Context, subject string, fn func(subject string)) (stop func(), err error)

	// LeaseTTL is the fleet's lease TTL, as FLEET's metadata has it (L7).
	LeaseTTL() time.Duration

	// Subjects is the fleet's subject grammar.
	Subjects() events.Subjects

	// Close ends the connection and waits for its goroutines. Streams fail with
	// ErrUnavailable from then on.
	Close() error
}
