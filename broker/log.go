package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/events"
)

// Limits of settling one write.
const (
	// settleFor bounds it in time, besides the caller's context: three times a
	// leader's fail-over.
	settleFor = 20 * time.Second
	// Pauses between repeats.
	settlePauseMin = 5 * time.Millisecond
	settlePauseMax = 500 * time.Millisecond
	// settleWalk bounds how many messages are looked at for a command id where
	// the check does not cover the write's own subject.
	settleWalk = 1000
)

// Receipt says where a write stands and what its acknowledgement proves.
type Receipt struct {
	// Seq is the sequence of the write, of a batch's last one.
	Seq uint64
	// Sent was read before the first send: time proven by this write counts from
	// there, however often it was repeated (design §10, schedule 14).
	Sent clock.Instant
	// FirstHand: the broker acknowledged it directly, and no send of it was ever
	// of unknown outcome. Only that admits a turn (design §4): what was found by
	// reading may have been overtaken before it was found.
	FirstHand bool
}

// Log writes to a store and settles unknown outcomes.
//
// A write of which the outcome is not known is repeated until it succeeds or
// conflicts; after a conflict the log is read for the command id that the write
// carries. So every write with a check needs one (events.HeaderCommand), minted
// for this write alone. Where the check covers the write's own subject this is
// exact: if the write stands, it is the first message after the expected
// position. Where it does not (a host event checked on the tenure) a repeat can
// store a second copy, with the same event id: readers know it by that.
//
// Unconditional writes are repeated only where the broker itself knows a repeat:
// by Nats-Msg-Id, or in a write-once stream.
type Log struct {
	store Store
	now   clock.Source
}

// NewLog returns a Log on store that reads time from now.
func NewLog(store Store, now clock.Source) *Log { return &Log{store: store, now: now} }

// Store returns what the log writes to.
func (l *Log) Store() Store { return l.store }

// Append stores w. The error is a *events.ConflictError (w does not stand),
// ErrExists (its write-once subject has another message), a *RefusedError,
// ErrBusy or ErrUnavailable (tried until a limit, nothing stored), or ErrUnknown
// (w may stand, or yet come to stand).
//
// On a stream that keeps one message per subject, a conflict after an unknown
// outcome says that w does not stand now: it may have stood and been replaced.
func (l *Log) Append(ctx context.Context, st events.Stream, w events.Write) (Receipt, error) {
	s := l.store.Stream(st)
	return l.settle(ctx, st, []events.Write{w}, func(ctx context.Context) (uint64, error) { return s.Append(ctx, w) })
}

// AppendBatch stores all of ws or none. Errors as Append; a conflict or
// ErrExists does not say which member met it, and after ErrBusy the caller may
// fall back to single writes where it does not need all or none.
func (l *Log) AppendBatch(ctx context.Context, st events.Stream, ws []events.Write) (Receipt, error) {
	s := l.store.Stream(st)
	return l.settle(ctx, st, ws, func(ctx context.Context) (uint64, error) { return s.AppendBatch(ctx, ws) })
}

func (l *Log) settle(ctx context.Context, st events.Stream, ws []events.Write, send func(context.Context) (uint64, error)) (Receipt, error) {
	p, err := proofOf(st, ws)
	if err != nil {
		return Receipt{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	s, sent, unknown := l.store.Stream(st), l.now(), false
	for pause := settlePauseMin; ; pause = min(2*pause, settlePauseMax) {
		seq, err := send(ctx)
		switch {
		case err == nil:
			return Receipt{Seq: seq, Sent: sent, FirstHand: !unknown}, nil
		case isUnknown(err):
			unknown = true
			if p.kind == proofNone {
				return Receipt{}, err
			}
		case errors.Is(err, events.ErrConflict), errors.Is(err, events.ErrExists):
			seq, verdict := p.verdict(ctx, s, err, unknown)
			if verdict == nil {
				return Receipt{Seq: seq, Sent: sent}, nil
			}
			if !errors.Is(verdict, errUndecided) {
				return Receipt{}, verdict
			}
		case errors.Is(err, events.ErrBusy), errors.Is(err, events.ErrUnavailable):
			// This attempt stored nothing.
		case unknown:
			return Receipt{}, fmt.Errorf("%w: a repeat was refused: %w", events.ErrUnknown, err)
		default:
			return Receipt{}, err
		}
		if unknown && p.kind == proofBeside {
			// A repeat could store a second copy, so look for the first one before.
			if seq, err := p.walk(ctx, s); err == nil {
				return Receipt{Seq: seq, Sent: sent}, nil
			}
		}
		if !wait(ctx, pause) {
			return Receipt{}, unsettled(err, unknown)
		}
	}
}

// unsettled is the answer when the limits ran out after err.
func unsettled(err error, unknown bool) error {
	switch {
	case unknown && errors.Is(err, events.ErrUnknown):
		return err
	case unknown:
		return fmt.Errorf("%w: not settled in time: %v", events.ErrUnknown, err) //nolint:errorlint // unknown, and nothing else
	case errors.Is(err, events.ErrConflict), errors.Is(err, events.ErrExists):
		// Refused, so nothing is stored, but what stands there could not be read.
		return fmt.Errorf("%w: %v, and the log could not be read", events.ErrBusy, err) //nolint:errorlint // busy, and nothing else
	}
	return err
}
