package badgerstore

import (
	"errors"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// trouble is what keeps one follower from its work. It is for that follower's
// goroutine alone.
type trouble struct {
	store  *Store
	stream events.Stream
	kind   string // log name of what is wrong, "" while nothing is
	times  int    // in a row
}

// kindOf tells what kind of trouble err is and what it does to the copy.
func kindOf(err error) (kind string, state projections.CopyState) {
	var unknown *events.UnknownError
	var decode *events.DecodeError
	var misplaced *projections.MisplacedError
	switch {
	case errors.Is(err, ErrSwapped):
		return logSwapped, projections.CopyOutOfService
	case errors.Is(err, errGivenUp):
		return logStopped, projections.CopyOutOfService
	case errors.Is(err, errNotRebuilt):
		return logNotRebuilt, projections.CopyRebuilding
	case errors.Is(err, errDamaged), errors.Is(err, ErrBelowFloor):
		return logDamaged, projections.CopyRebuilding
	case errors.As(err, &unknown), errors.As(err, &decode), errors.As(err, &misplaced),
		errors.Is(err, errOutOfOrder), errors.Is(err, errRowTooLarge):
		return logStopped, projections.CopyOutOfService
	case errors.Is(err, errFull):
		return logFull, projections.CopyBehind
	default:
		return logUnavailable, projections.CopyUnknown
	}
}

// pause shows the trouble, in the copy's state and on its first and every
// realarm-th time in the log, and returns how long to wait before the next try.
func (t *trouble) pause(err error) time.Duration {
	kind, state := kindOf(err)
	if kind != t.kind {
		t.kind, t.times = kind, 0
	}
	t.store.troubled(t.stream, state, err)
	opts := t.store.opts
	wait := min(opts.RetryMin<<min(t.times, 16), opts.RetryMax)
	if state == projections.CopyOutOfService {
		wait = opts.Recheck
	}
	// Damage was told where it was found.
	if kind != logDamaged && t.times%realarm == 0 {
		say := opts.Logger.Error
		if state != projections.CopyOutOfService {
			say = opts.Logger.Warn
		}
		cp, _ := t.store.Checkpoint(t.stream)
		say(kind, keyStream, string(t.stream), keyPosition, cp.Seq, keyErr, err.Error())
	}
	t.times++
	return wait
}

// over notes that a batch came through, which ends what was wrong.
func (t *trouble) over(caughtUp bool, position uint64) {
	if t.kind == "" || !caughtUp {
		return
	}
	t.kind, t.times = "", 0
	t.store.opts.Logger.Info(logCurrent, keyStream, string(t.stream), keyPosition, position)
}

// troubled shows a copy's trouble. A copy that was never complete stays
// rebuilding, whatever the log has: it is not served either way.
func (s *Store) troubled(st events.Stream, state projections.CopyState, err error) {
	s.change(func() {
		c := s.copies[st]
		if state != projections.CopyOutOfService && !c.checkpoint.Complete {
			state = projections.CopyRebuilding
		}
		c.state, c.why, c.lagKnown = state, err.Error(), false
	})
}
