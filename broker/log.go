package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

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
//
// Log reads no clock: whoever counts time from a write that is repeated here
// reads its own before it calls (design §10, schedule 14).
type Log struct{ store Store }

// NewLog returns a Log on store.
func NewLog(store Store) *Log { return &Log{store} }

// Last asks the stream's leader for the newest message under filter, which may
// be a wildcard; events.ErrNotFound when there is none.
func (l *Log) Last(ctx context.Context, st events.Stream, filter string) (events.Message, error) {
	return l.store.Stream(st).Last(ctx, filter)
}

// Append stores w. The error is a *events.ConflictError (w does not stand),
// ErrExists (its write-once subject has another message), a *RefusedError,
// ErrBusy or ErrUnavailable (tried until a limit, nothing stored), or ErrUnknown
// (w may stand, or yet come to stand).
//
// On a stream that keeps one message per subject, a conflict after an unknown
// outcome says that w does not stand now: it may have stood and been replaced.
func (l *Log) Append(ctx context.Context, st events.Stream, w events.Write) (events.Receipt, error) {
	s := l.store.Stream(st)
	return l.settle(ctx, st, []events.Write{w}, func(ctx context.Context) (uint64, error) { return s.Append(ctx, w) })
}

// AppendBatch stores all of ws or none. Errors as Append; a conflict or
// ErrExists does not say which member met it, and after ErrBusy the caller may
// fall back to single writes where it does not need all or none.
func (l *Log) AppendBatch(ctx context.Context, st events.Stream, ws []events.Write) (events.Receipt, error) {
	s := l.store.Stream(st)
	return l.settle(ctx, st, ws, func(ctx context.Context) (uint64, error) { return s.AppendBatch(ctx, ws) })
}

func (l *Log) settle(ctx context.Context, st events.Stream, ws []events.Write, send func(context.Context) (uint64, error)) (events.Receipt, error) {
	p, err := proofOf(st, ws)
	if err != nil {
		return events.Receipt{}, err
	}
	// One attempt is bounded by itself, and mostly it is the only one.
	seq, err := send(ctx)
	if err == nil {
		return events.Receipt{Seq: seq, FirstHand: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	s, unknown := l.store.Stream(st), false
	for pause := settlePauseMin; ; pause = min(2*pause, settlePauseMax) {
		switch {
		case err == nil:
			return events.Receipt{Seq: seq, FirstHand: !unknown}, nil
		case isUnknown(err):
			unknown = true
			if p.kind == proofNone {
				return events.Receipt{}, err
			}
		case errors.Is(err, events.ErrConflict), errors.Is(err, events.ErrExists):
			seq, verdict := p.verdict(ctx, s, err, unknown)
			if verdict == nil {
				return events.Receipt{Seq: seq}, nil
			}
			if !errors.Is(verdict, errUndecided) {
				return events.Receipt{}, verdict
			}
		case errors.Is(err, events.ErrBusy), errors.Is(err, events.ErrUnavailable):
			// This attempt stored nothing.
		case unknown:
			return events.Receipt{}, fmt.Errorf("%w: a repeat was refused: %w", events.ErrUnknown, err)
		default:
			return events.Receipt{}, err
		}
		if unknown && p.kind == proofBeside {
			// A repeat could store a second copy, so look for the first one before.
			if seq, err := p.walk(ctx, s); err == nil {
				return events.Receipt{Seq: seq}, nil
			}
		}
		if !wait(ctx, pause) {
			return events.Receipt{}, unsettled(err, unknown)
		}
		seq, err = send(ctx)
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
