package graph

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/executor"

	"github.com/seat-tenure/tenure/graph/generated"
	"github.com/seat-tenure/tenure/graph/model"
)

// api is the handler's state.
type api struct {
	deps *Deps
	code coder
	exec *executor.Executor

	running   gate // operations
	followers gate // of /events
	exports   gate
}

// New returns the whole API as one handler. Serve it with Serve, which lets
// whoever waits know when the node stops.
func New(deps Deps) http.Handler {
	code := coder{deps.Log}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	a := &api{
		deps: &deps, code: code,
		running: newGate(maxRunning), followers: newGate(maxFollowers), exports: newGate(maxExports),
	}
	a.exec = executor.New(generated.NewExecutableSchema(generated.Config{
		Resolvers:  &resolver{deps: &deps, code: code, waiters: newGate(maxWaiters), operators: newGate(maxOperations)},
		Complexity: costs(),
	}))
	a.exec.SetErrorPresenter(code.present)
	a.exec.SetRecoverFunc(code.recovered)
	a.exec.SetParserTokenLimit(maxTokens)
	a.exec.Use(&limits{})
	a.exec.AroundFields(code.resolved)
	return a.routes()
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/graphql", a.only(a.authorize(a.graphql), http.MethodPost))
	mux.HandleFunc("/query/fleet", a.only(a.authorize(a.queryFleet), http.MethodGet))
	mux.HandleFunc("/events", a.only(a.authorize(a.events), http.MethodGet))
	// Whoever restarts or routes to nodes has no token: these two say what it
	// needs, and what runs here only to those who have one.
	mux.HandleFunc("/health", a.only(a.health, http.MethodGet, http.MethodHead))
	mux.HandleFunc("/ready", a.only(a.ready, http.MethodGet, http.MethodHead))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		a.refuse(w, http.StatusNotFound, &model.Error{
			Code: model.NotFound, Message: "there is /graphql, /query/fleet, /events, /metrics, /health and /ready",
		})
	})
	return a.guard(a.recovering(mux))
}

func (a *api) only(next http.HandlerFunc, methods ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			a.refuse(w, http.StatusMethodNotAllowed, &model.Error{
				Code: model.BadRequest, Message: r.URL.Path + " takes " + methods[0] + " only",
			})
			return
		}
		next(w, r)
	}
}

// recovering answers after a panic of our own code.
func (a *api) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.rescue(w, r)
		next.ServeHTTP(w, r)
	})
}

// rescue is deferred. What net/http aborts by a panic goes on being aborted.
func (a *api) rescue(w http.ResponseWriter, r *http.Request) {
	switch panicked := recover(); panicked {
	case nil:
	case http.ErrAbortHandler:
		panic(panicked)
	default:
		a.fail(w, r, a.code.recovered(r.Context(), panicked))
	}
}

// fail answers err outside of GraphQL.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := a.code.code(r.Context(), err, r.URL.Path)
	var status int
	switch e.Code {
	case model.BadRequest, model.TooComplex:
		status = http.StatusBadRequest
	case model.BeforeHistory:
		status = http.StatusGone
	case model.Unavailable:
		status = http.StatusServiceUnavailable
	default:
		status = http.StatusInternalServerError
	}
	a.refuse(w, status, e)
}

// refuse answers in the form that GraphQL errors have, so that callers need one
// reader for all of them.
func (a *api) refuse(w http.ResponseWriter, status int, e *model.Error) {
	type shown struct {
		Message    string         `json:"message"`
		Extensions map[string]any `json:"extensions"`
	}
	a.answer(w, status, "application/json", map[string]any{"errors": []shown{{e.Message, e.Extensions()}}})
}

func (a *api) answer(w http.ResponseWriter, status int, mediaType string, body any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		panic(err) // the bodies are ours
	}
	w.Header().Set("Content-Type", mediaType+"; charset=utf-8")
	// A writer that has no deadline is a test's; a caller who has left does not
	// want the answer.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// accepts says whether the caller named that media type.
func accepts(r *http.Request, mediaType string) bool {
	return strings.Contains(strings.Join(r.Header.Values("Accept"), ","), mediaType)
}
