package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// errSeen ends a watch that has seen what it was for.
var errSeen = errors.New("seen")

// watchFleet calls fn with every event of FLEET after that position until it
// says that it is done. Connections that break are taken up where they were.
func (cl *client) watchFleet(ctx context.Context, after uint64, fn func(events.Recorded) (done bool, err error)) error {
	t := &tail{stream: string(events.StreamFleet), cl: cl, last: after}
	t.each = func(m events.Message) error {
		subjects, err := events.NewSubjects(t.prefix)
		if err != nil {
			return err
		}
		r, err := events.Decode(subjects, m)
		if err != nil {
			return fmt.Errorf("an event that this build cannot read; run one as new as the fleet: %w", err)
		}
		done, err := fn(r)
		if err == nil && done {
			err = errSeen
		}
		return err
	}
	err := t.follow(ctx)
	switch {
	case errors.Is(err, errSeen):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}
