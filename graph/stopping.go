package graph

import (
	"context"
	"errors"
)

// errStopping ends whoever waits when the node stops.
var errStopping = errors.New("this node stops")

type stoppingKey struct{}

// withStopping puts into requests' contexts that the node is about to stop:
// stop is done then. Requests that do not wait go on until they are answered.
func withStopping(ctx, stop context.Context) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stop)
}

// untilStopping is ctx, ended with errStopping when the node stops.
func untilStopping(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop, served := ctx.Value(stoppingKey{}).(context.Context)
	if !served {
		return ctx, func() { cancel(nil) }
	}
	unhook := context.AfterFunc(stop, func() { cancel(errStopping) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}
