package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const graphPath = "/graphql"

// Codes of errors in answers that are acted on here.
const (
	codeBadRequest  = "BAD_REQUEST"
	codeRefused     = "REFUSED"
	codeUnavailable = "UNAVAILABLE"
	codeInternal    = "INTERNAL"
)

// apiError is one error of an answer. Its message is for people, and says what
// to do where the node knows.
type apiError struct {
	Message    string `json:"message"`
	Path       []any  `json:"path"`
	Extensions struct {
		Code string `json:"code"`
	} `json:"extensions"`
}

func (e *apiError) Error() string {
	said := plain(e.Message)
	switch e.Extensions.Code {
	case codeUnavailable:
		return "the node cannot tell now: " + said
	case codeRefused:
		return "refused: " + said
	case codeBadRequest:
		return "the node does not take this: " + said
	case codeInternal:
		return "the node failed: " + said
	}
	return said // BEFORE_HISTORY, TOO_COMPLEX and what is still to come
}

// answer is what the API answers. Data may lack what an error says could not be
// seen.
type answer[T any] struct {
	Data   *T          `json:"data"`
	Errors []*apiError `json:"errors"`
}

// ask puts a question to the node's API and returns its answer as a T. What of
// it cannot be seen now is nil, and the user is told why.
func ask[T any](ctx context.Context, cl *client, query string, variables map[string]any) (T, error) {
	got, unseen, err := askPart[T](ctx, cl, query, variables, 0)
	if unseen != nil {
		cl.warn(unseen.Error())
	}
	return got, err
}

// askPart is ask, with the reason for what cannot be seen as unseen. longer is
// how much longer than usual the answer may take.
func askPart[T any](ctx context.Context, cl *client, query string, variables map[string]any, longer time.Duration) (_ T, unseen, err error) {
	var none T
	ctx, cancel := context.WithTimeoutCause(ctx, cl.timeout+longer, errNoAnswer)
	defer cancel()
	resp, body, err := cl.question(ctx, query, variables)
	if err != nil {
		return none, nil, err
	}
	var got answer[T]
	err = json.Unmarshal(body, &got)
	switch {
	case resp.StatusCode != http.StatusOK && (err != nil || !got.coded()):
		return none, nil, cl.refused(resp, body)
	case err == nil && got.partial():
		return *got.Data, joined(got.Errors), nil
	case err == nil && len(got.Errors) > 0:
		return none, nil, cl.denied(resp, joined(got.Errors))
	case err != nil || got.Data == nil:
		return none, nil, fmt.Errorf("%s answers, and not as the API of a node does: it is no node of tenure, or one of another version", cl.base)
	}
	return *got.Data, nil, nil
}

// question sends a question and returns the answer with its body read.
func (cl *client) question(ctx context.Context, query string, variables map[string]any) (*http.Response, []byte, error) {
	text, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return nil, nil, err
	}
	resp, err := cl.send(ctx, http.MethodPost, graphPath, nil, bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, nil, cl.explain(ctx, err)
	case len(body) > maxAnswer:
		return nil, nil, fmt.Errorf("the answer of the node at %s is over %d bytes", cl.base, maxAnswer)
	}
	return resp, body, nil
}

// coded says that the answer has errors which the API itself made.
func (a answer[T]) coded() bool {
	return len(a.Errors) > 0 && a.Errors[0].Extensions.Code != ""
}

// partial says that the answer stands, with fields that cannot be seen now and
// are shown as unknown. A whole answer that cannot be seen is none: its null
// would read as "there is no such thing".
func (a answer[T]) partial() bool {
	for _, e := range a.Errors {
		if e.Extensions.Code != codeUnavailable || len(e.Path) < 2 {
			return false
		}
	}
	return a.Data != nil && len(a.Errors) > 0
}

// joined is all of the errors, each said once.
func joined(all []*apiError) error {
	if len(all) == 1 {
		return all[0]
	}
	var errs []error
	seen := map[string]bool{}
	for _, e := range all {
		if text := e.Error(); !seen[text] {
			seen[text] = true
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}
