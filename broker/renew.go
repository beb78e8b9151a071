package broker

import (
	"context"
	"errors"

	"github.com/seat-tenure/tenure/events"
)

// Limits of AppendEach.
const (
	// MaxRenew is how many writes one of its batches carries: measured, 500
	// renewals in one batch are as cheap a piece as 1000, and a refusal redoes
	// half as many.
	MaxRenew = 500
	// maxCulprits is how many members are dropped one by one, each for a refused
	// batch; beyond it every member is looked at.
	maxCulprits = 16
	// maxBatchBusy is how often a batch is told to come back before its members
	// are written one by one.
	maxBatchBusy = 3
)

// AppendEach stores as many of ws as meet their checks, in atomic batches of at
// most MaxRenew: the renewals of a node's leases. Each member needs a check
// that covers its own subject, other than every other member's. A batch that is
// refused names the sequence that stands in its way: that member is dropped
// with ErrConflict and the rest sent again. Errors of members as of Append.
func (l *Log) AppendEach(ctx context.Context, st events.Stream, ws []events.Write) []events.Result {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	results := make([]events.Result, len(ws))
	for from := 0; from < len(ws); from += MaxRenew {
		to := min(from+MaxRenew, len(ws))
		r := &renewal{log: l, stream: l.store.Stream(st), name: st, ws: ws[from:to], results: results[from:to]}
		r.run(ctx)
	}
	return results
}

// renewal is one batch of AppendEach on its way.
type renewal struct {
	log     *Log
	stream  Stream
	name    events.Stream
	ws      []events.Write
	results []events.Result

	left     []int // members still to be stored
	unknown  bool  // a send of those left may have landed
	culprits int
	busy     int
}

func (r *renewal) run(ctx context.Context) {
	if !r.start() {
		return
	}
	for pause := settlePauseMin; len(r.left) > 0; {
		last, err := r.stream.AppendBatch(ctx, r.batch())
		pausing := true
		switch {
		case err == nil:
			r.landed(last)
			return
		case errors.Is(err, events.ErrUnknown):
			r.unknown = true
		case errors.Is(err, events.ErrConflict):
			pausing = !r.drop(ctx, err)
		case errors.Is(err, events.ErrBusy):
			if r.busy++; r.busy > maxBatchBusy && !r.unknown {
				r.singles(ctx)
				return
			}
		case errors.Is(err, events.ErrUnavailable):
		default:
			r.fail(unsettled(err, r.unknown))
			return
		}
		if pausing {
			if !wait(ctx, pause) {
				r.fail(unsettled(err, r.unknown))
				return
			}
			pause = min(2*pause, settlePauseMax)
		}
	}
}

// start refuses members that could not be recognised.
func (r *renewal) start() bool {
	for i, w := range r.ws {
		p, err := proofOf(r.name, r.ws[i:i+1])
		if err == nil && p.kind != proofNext {
			err = refuse("the write to %s has no check that covers it", w.Subject)
		}
		if r.results[i].Err = err; err == nil {
			r.left = append(r.left, i)
		}
	}
	return len(r.left) > 0
}

func (r *renewal) batch() []events.Write {
	ws := make([]events.Write, len(r.left))
	for i, member := range r.left {
		ws[i] = r.ws[member]
	}
	return ws
}

// landed gives each member its place: a batch stands without a gap.
func (r *renewal) landed(last uint64) {
	for i, member := range r.left {
		r.results[member].Seq = last - uint64(len(r.left)-1-i)
	}
	r.left = nil
}

func (r *renewal) fail(err error) {
	for _, member := range r.left {
		r.results[member].Err = err
	}
	r.left = nil
}

// drop takes the culprit of a refused batch out of it and says whether it found
// one. What the log has for the culprit may be an earlier send of this very
// batch: then all of it landed, and every member is looked at.
func (r *renewal) drop(ctx context.Context, refusal error) bool {
	var conflict *events.ConflictError
	r.culprits++
	if !errors.As(refusal, &conflict) || conflict.Actual == 0 || r.culprits > maxCulprits {
		return r.sort(ctx)
	}
	stands, err := r.stream.Get(ctx, conflict.Actual)
	if err != nil {
		return r.sort(ctx)
	}
	for i, member := range r.left {
		w := r.ws[member]
		if !covered(w.Check.Subject, stands.Subject) || w.Check.Last == stands.Seq {
			continue
		}
		if r.unknown {
			return r.sort(ctx)
		}
		r.results[member].Err = &events.ConflictError{Subject: w.Check.Subject, Actual: stands.Seq}
		r.left = append(r.left[:i], r.left[i+1:]...)
		return true
	}
	return r.sort(ctx)
}

// sort looks at every member: stored by an earlier send, in conflict, or still
// to be sent. It says whether it could read all of them and changed anything.
func (r *renewal) sort(ctx context.Context) bool {
	var left []int
	for i, member := range r.left {
		w := r.ws[member]
		last, err := r.stream.Last(ctx, w.Check.Subject)
		switch {
		case errors.Is(err, events.ErrNotFound) && w.Check.Last == 0, err == nil && last.Seq == w.Check.Last:
			left = append(left, member)
			continue
		case errors.Is(err, events.ErrNotFound):
			r.results[member].Err = &events.ConflictError{Subject: w.Check.Subject}
			continue
		case err != nil:
			r.left = append(left, r.left[i:]...)
			return false
		}
		// The first message after the expected one tells whose it is; the newest may
		// be a later one.
		m, err := r.stream.Next(ctx, w.Check.Subject, w.Check.Last+1)
		switch {
		case err != nil:
			r.left = append(left, r.left[i:]...)
			return false
		case ours(m, w):
			r.results[member].Seq = m.Seq
		default:
			r.results[member].Err = &events.ConflictError{Subject: w.Check.Subject, Actual: last.Seq}
		}
	}
	changed := len(left) < len(r.left)
	r.left = left
	return changed
}

// singles stores what is left one by one, when the broker has no room for
// batches (design §2).
func (r *renewal) singles(ctx context.Context) {
	for _, member := range r.left {
		receipt, err := r.log.Append(ctx, r.name, r.ws[member])
		r.results[member].Seq, r.results[member].Err = receipt.Seq, err
	}
	r.left = nil
}
