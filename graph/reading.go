package graph

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// reading is one snapshot of the read model and what was worked out from it.
// All fields of one query share it.
type reading struct {
	deps *Deps
	asOf *model.AsOf

	// mu guards reader: resolvers run beside each other, and a Reader is for one
	// goroutine at a time.
	mu     sync.Mutex
	reader projections.Reader
	failed error // why there is no reader

	roster func() (roster, error) // read once, when first asked for
}

type readingKey struct{}

// withReading runs fn with a reading in its context, also when nothing may be
// read: who answers, and what the copy is worth, can be told all the same.
func (d *Deps) withReading(ctx context.Context, fn func(context.Context, *reading)) error {
	ran := false
	run := func(reader projections.Reader, failed error) {
		ran = true
		r := d.newReading(reader, failed)
		fn(context.WithValue(ctx, readingKey{}, r), r)
	}
	err := d.Views.View(ctx, func(reader projections.Reader) error {
		run(reader, nil)
		return nil
	})
	if err != nil && !ran && errors.Is(err, projections.ErrNotServed) {
		run(nil, err)
		return nil
	}
	return err
}

func (d *Deps) newReading(reader projections.Reader, failed error) *reading {
	r := &reading{deps: d, reader: reader, failed: failed}
	r.roster = sync.OnceValues(r.readRoster)
	c := d.Views.Copy(events.StreamFleet)
	r.asOf = &model.AsOf{AnsweredBy: d.Node, Position: model.Position(c.Position), Copy: model.CopyState(c.State)}
	if c.LagKnown {
		lag := int(min(c.Lag, math.MaxInt32)) // GraphQL's Int has 32 bits
		r.asOf.Lag = &lag
	}
	if r.failed != nil {
		return r
	}
	as, err := r.reader.AsOf()
	if err != nil {
		r.failed = err
		return r
	}
	r.asOf.Position, r.asOf.AsOf = model.Position(as.Position), stamped(as.At)
	return r
}

func readingOf(ctx context.Context) *reading { return ctx.Value(readingKey{}).(*reading) }

// read calls fn with the reader, unless there is none or the request is over.
func (r *reading) read(ctx context.Context, fn func(projections.Reader) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if r.reader == nil {
		return r.failed
	}
	return fn(r.reader)
}

// stamped is t, or nil where there is none.
func stamped(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// text is s, or nil where it says nothing.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
