package graph_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seat-tenure/tenure/graph"
)

// TestBeside: what is served beside the API is guarded as the API is. Without a
// token, from another site's page, and with another method nothing of it runs;
// a panic of it is an answer.
func TestBeside(t *testing.T) {
	deps := newWorld().deps(t)
	var err error
	if deps.Tokens, err = graph.NewTokens("0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	served := 0
	h := graph.Beside(deps, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served++
		if r.URL.Query().Has("panic") {
			panic("of the test")
		}
		_, _ = io.WriteString(w, "here")
	}))
	ask := func(method, target string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const bearer = "Bearer 0123456789abcdef"
	for want, got := range map[int]*httptest.ResponseRecorder{
		http.StatusUnauthorized:     ask(http.MethodGet, "/x"),
		http.StatusForbidden:        ask(http.MethodGet, "/x", "Authorization", bearer, "Sec-Fetch-Site", "cross-site"),
		http.StatusMethodNotAllowed: ask(http.MethodPost, "/x", "Authorization", bearer),
	} {
		if got.Code != want {
			t.Errorf("got %d %s, want %d", got.Code, got.Body, want)
		}
	}
	if served > 0 {
		t.Fatalf("%d of them were served", served)
	}
	if got := ask(http.MethodGet, "/x", "Authorization", bearer); got.Code != http.StatusOK || got.Body.String() != "here" {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	if got := ask(http.MethodGet, "/x?panic", "Authorization", bearer); got.Code != http.StatusInternalServerError {
		t.Errorf("got %d %s for a panic", got.Code, got.Body)
	}
}
