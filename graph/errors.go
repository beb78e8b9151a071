package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
	"github.com/seat-tenure/tenure/projections"
)

// Names of this package's log lines and their keys.
const (
	logInternal = "api_internal_error"
	logPanic    = "api_panicked"
	logBroken   = "api_answer_broken_off"

	keyErr   = "err"
	keyPath  = "path"
	keyStack = "stack"
)

// coder turns errors into what callers are shown.
type coder struct{ log *slog.Logger }

// code says what a caller is shown of err. What it does not know it logs and
// hides: an error's text may hold what is nobody's business.
func (c coder) code(ctx context.Context, err error, where string) *model.Error {
	var shown *model.Error
	var before *projections.BeforeHistoryError
	switch {
	case errors.As(err, &shown):
		return shown
	case errors.As(err, &before):
		return beforeHistory(before.First)
	case errors.Is(err, projections.ErrNotServed), errors.Is(err, events.ErrUnavailable), errors.Is(err, events.ErrBusy):
		return model.Unavailablef("%v", err)
	case errors.As(err, new(*projections.NotYetError)):
		return model.Unavailablef("%v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return model.Unavailablef("it took longer than the %s that a request may take; ask for less", queryTimeout)
	case errors.Is(err, context.Canceled), errors.Is(err, errStopping):
		return model.Unavailablef("the request was ended before it was answered: the caller left, or this node stops")
	}
	c.log.ErrorContext(ctx, logInternal, keyErr, err, keyPath, where)
	return &model.Error{Code: model.Internal, Message: "internal error; the node's log has it under " + logInternal}
}

func beforeHistory(first uint64) *model.Error {
	return &model.Error{
		Code: model.BeforeHistory, Message: fmt.Sprintf("the kept history begins at position %d", first),
		More: map[string]any{"first": strconv.FormatUint(first, 10)},
	}
}

// resolved codes whatever a resolver returned. So an error that reaches present
// without a code is gqlgen's own.
func (c coder) resolved(ctx context.Context, next graphql.Resolver) (any, error) {
	v, err := next(ctx)
	if err != nil {
		return v, c.code(ctx, err, graphql.GetPath(ctx).String())
	}
	return v, nil
}

// present is the one place where an error becomes what GraphQL shows.
func (c coder) present(ctx context.Context, err error) *gqlerror.Error {
	out := &gqlerror.Error{Path: graphql.GetPath(ctx)}
	var placed *gqlerror.Error
	if errors.As(err, &placed) {
		out.Path, out.Locations = placed.Path, placed.Locations
	}
	var shown *model.Error
	switch {
	case errors.As(err, &shown):
	case errors.Is(err, graphql.ErrInvalidNull):
		shown = c.code(ctx, err, out.Path.String())
	case placed != nil:
		// A document that is not GraphQL or not of this schema, or an argument
		// that gqlgen could not read: the caller's own words come back.
		shown = &model.Error{Code: model.BadRequest, Message: placed.Message}
	default:
		shown = c.code(ctx, err, out.Path.String())
	}
	out.Message, out.Extensions = shown.Message, shown.Extensions()
	return out
}

// recovered turns a panic into an internal error.
func (c coder) recovered(ctx context.Context, panicked any) error {
	c.log.ErrorContext(ctx, logPanic, keyErr, fmt.Sprint(panicked), keyStack, string(debug.Stack()))
	return &model.Error{Code: model.Internal, Message: "internal error; the node's log has it under " + logPanic}
}
