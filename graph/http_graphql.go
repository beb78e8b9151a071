package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/seat-tenure/tenure/graph/model"
)

// The media type of answers to callers who know it, and of all others.
const (
	mediaGraphQL = "application/graphql-response+json"
	mediaJSON    = "application/json"
)

// graphql serves one operation. A request that could not be run is a 400, an
// operation that ran a 200, whatever errors its answer holds.
func (a *api) graphql(w http.ResponseWriter, r *http.Request) {
	params := a.params(w, r)
	if params == nil {
		return
	}
	media := mediaJSON
	if accepts(r, mediaGraphQL) {
		media = mediaGraphQL
	}
	ctx := graphql.StartOperationTrace(r.Context())
	queued, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	select {
	case a.running <- struct{}{}:
	case <-queued.Done():
		a.fail(w, r, model.Unavailablef("%d operations run already; ask again later", maxRunning))
		return
	}
	op, errs := a.exec.CreateOperationContext(ctx, params)
	if len(errs) > 0 {
		a.running.leave()
		ctx = graphql.WithOperationContext(ctx, op)
		a.answer(w, http.StatusBadRequest, media, a.exec.DispatchError(ctx, errs))
		return
	}
	if op.Operation.Operation == ast.Mutation {
		a.running.leave() // it may wait for minutes, and has a gate of its own
		a.mutate(w, r, media, op)
		return
	}
	defer a.running.leave()
	var response *graphql.Response
	err := a.deps.withReading(queued, func(ctx context.Context, _ *reading) { response = a.run(ctx, op) })
	switch {
	case err != nil && response == nil:
		a.fail(w, r, err)
	case response == nil:
		a.fail(w, r, context.Cause(queued))
	default:
		a.answer(w, http.StatusOK, media, response)
	}
}

func (a *api) mutate(w http.ResponseWriter, r *http.Request, media string, op *graphql.OperationContext) {
	ctx, cancel := context.WithTimeout(graphql.StartOperationTrace(r.Context()), maxWait+sendTimeout)
	defer cancel()
	if response := a.run(ctx, op); response != nil {
		a.answer(w, http.StatusOK, media, response)
		return
	}
	a.fail(w, r, context.Cause(ctx))
}

// run is nil when the context ended before anything was done.
func (a *api) run(ctx context.Context, op *graphql.OperationContext) *graphql.Response {
	next, ctx := a.exec.DispatchOperation(ctx, op)
	return next(ctx)
}

// params reads the request; nil when it was refused.
func (a *api) params(w http.ResponseWriter, r *http.Request) *graphql.RawParams {
	// Browsers ask before they send this type to another origin, and nobody
	// here answers them.
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != mediaJSON {
		a.refuse(w, http.StatusUnsupportedMediaType, &model.Error{
			Code: model.BadRequest, Message: "send Content-Type: application/json",
		})
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		a.refuse(w, http.StatusRequestEntityTooLarge, badBody("the body is over %d bytes", large.Limit))
		return nil
	case err != nil:
		a.refuse(w, http.StatusBadRequest, badBody("the body could not be read"))
		return nil
	}
	var params graphql.RawParams
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // 64 bits do not fit into a float
	if err := dec.Decode(&params); err != nil {
		a.refuse(w, http.StatusBadRequest, badBody("the body is not {\"query\": ..., \"variables\": {...}}: %v", err))
		return nil
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		a.refuse(w, http.StatusBadRequest, badBody("the body holds more than one JSON object"))
		return nil
	}
	return &params
}

func badBody(format string, args ...any) *model.Error {
	return &model.Error{Code: model.BadRequest, Message: fmt.Sprintf(format, args...)}
}
