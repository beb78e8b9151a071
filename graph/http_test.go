package graph_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/graph"
)

// TestHealth: /health lists what this node runs; a seat whose teardown cannot
// be proven is named with its seconds and is then not among the seats (O1, O3).
func TestHealth(t *testing.T) {
	w := newWorld()
	health := func(h http.Handler) string { return strings.TrimSpace(get(h, "/health").Body.String()) }
	if got, want := health(graph.New(w.deps(t))), `{"status":"ok","node":"node-a","owner":"node-a:0000000a","seats":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.held = []string{"bob", "ada", "cat"}
	w.unproven = map[string]time.Duration{"cat": 61500 * time.Millisecond}
	if got, want := health(graph.New(w.deps(t))),
		`{"status":"ok","node":"node-a","owner":"node-a:0000000a","seats":["ada","bob"],"unproven_seconds":{"cat":61}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// Whoever has no token learns that the process answers, and no more; that
	// there are no seats is not what it reads.
	deps := w.deps(t)
	deps.Tokens, _ = graph.NewTokens("0123456789abcdef")
	if got, want := health(graph.New(deps)), `{"status":"ok","node":"node-a","owner":"node-a:0000000a"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestReady: 503 with the reasons, until there are none.
func TestReady(t *testing.T) {
	w := newWorld()
	w.notReady = []string{"node_id_in_use"}
	h := graph.New(w.deps(t))
	if got := get(h, "/ready"); got.Code != http.StatusServiceUnavailable || strings.TrimSpace(got.Body.String()) != `{"ready":false,"reasons":["node_id_in_use"]}` {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	w.notReady = nil
	if got := get(h, "/ready"); got.Code != http.StatusOK || strings.TrimSpace(got.Body.String()) != `{"ready":true}` {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

// TestPaths: what is not there says what is, in the form of all errors.
func TestPaths(t *testing.T) {
	h := graph.New(newWorld().deps(t))
	if got := get(h, "/metrics"); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), `"code":"NOT_FOUND"`) {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodDelete, "/events", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestTokens: everything but /health and /ready asks for a token, and takes
// each of those it has and nothing like them.
func TestTokens(t *testing.T) {
	deps := acme(t).deps(t)
	var err error
	if deps.Tokens, err = graph.NewTokens("0123456789abcdef", "fedcba9876543210"); err != nil {
		t.Fatal(err)
	}
	h := graph.New(deps)
	with := func(authorization string) answer {
		r := request("{ asOf { copy } }", nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		return post(h, r)
	}
	for _, good := range []string{"Bearer 0123456789abcdef", "bearer fedcba9876543210"} {
		if got := with(good); got.Status != http.StatusOK || got.code() != "" {
			t.Errorf("%s: got %d %s", good, got.Status, got.Raw)
		}
	}
	for _, bad := range []string{"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Basic 0123456789abcdef", "0123456789abcdef"} {
		if got := with(bad); got.Status != http.StatusUnauthorized || got.code() != "UNAUTHENTICATED" {
			t.Errorf("%q: got %d %s", bad, got.Status, got.Raw)
		}
	}
	for _, path := range []string{"/events", "/query/fleet"} {
		if got := get(h, path); got.Code != http.StatusUnauthorized || got.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: got %d", path, got.Code)
		}
	}
	if got := get(h, "/ready"); got.Code != http.StatusOK {
		t.Errorf("/ready: got %d", got.Code)
	}
	for _, tokens := range [][]string{{}, {"short"}, {"0123456789abcdef", "with a space in it"}} {
		if _, err := graph.NewTokens(tokens...); err == nil {
			t.Errorf("%q were taken", tokens)
		}
	}
}

// TestWebPagesStayOut: on loopback no page of another origin reaches the node,
// neither by its own name for 127.0.0.1 nor through a browser's request across.
func TestWebPagesStayOut(t *testing.T) {
	server := httptest.NewServer(graph.New(acme(t).deps(t)))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	status := func(method, host string, header map[string]string) int {
		body := io.Reader(http.NoBody)
		path := "/query/fleet"
		if method == http.MethodPost {
			path, body = "/graphql", strings.NewReader(`{"query":"{asOf{copy}}"}`)
		}
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for key, value := range header {
			r.Header.Set(key, value)
		}
		if host != "" {
			r.Host = host
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if got := answer.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("Access-Control-Allow-Origin: %s", got)
		}
		return answer.StatusCode
	}
	own := "http://" + server.Listener.Addr().String()
	for name, tc := range map[string]struct {
		host   string
		header map[string]string
		want   int
	}{
		"its address":        {"", nil, 200},
		"localhost":          {"localhost:8420", nil, 200},
		"IPv6":               {"[::1]:8420", nil, 200},
		"no port":            {"127.0.0.1", nil, 200},
		"rebound name":       {"acme.example", nil, 403},
		"rebound with port":  {"localhost.acme.example:8420", nil, 403},
		"its own page":       {"", map[string]string{"Origin": own}, 200},
		"another's page":     {"", map[string]string{"Origin": "https://acme.example"}, 403},
		"a file":             {"", map[string]string{"Origin": "null"}, 403},
		"fetch across sites": {"", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"other port":         {"", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"typed by a person":  {"", map[string]string{"Sec-Fetch-Site": "none"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if got := status(method, tc.host, tc.header); got != tc.want {
					t.Errorf("%s: got %d, want %d", method, got, tc.want)
				}
			}
		})
	}
}

// serve runs Serve until stop is called, which returns what Serve returned.
func serve(t *testing.T, w *world) (url string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- graph.Serve(ctx, l, graph.New(w.deps(t))) }()
	return "http://" + l.Addr().String(), func() error {
		cancel()
		return <-served
	}
}

// TestServeEndsWaiters: when the node stops, whoever waits is answered at once:
// the mail is stored, and what became of it is to be asked elsewhere.
func TestServeEndsWaiters(t *testing.T) {
	w := acme(t)
	url, stop := serve(t, w)
	body, _ := json.Marshal(map[string]any{"query": send, "variables": message(vars{"wait": "PT10M"})})
	answered := make(chan answer, 1)
	go func() {
		var a answer
		r, err := http.Post(url+"/graphql", "application/json", strings.NewReader(string(body)))
		if err == nil {
			err = json.NewDecoder(r.Body).Decode(&a)
			r.Body.Close()
		}
		if err != nil {
			a.Raw = err.Error()
		}
		answered <- a
	}()
	w.await(t, func() bool { return len(w.sent) == 1 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	got := <-answered
	if got.code() != "UNAVAILABLE" || string(got.Data) != `{"sendMessage":{"id":"mail-7","mailSequence":"1","completion":null}}` {
		t.Errorf("got %s, data %s, errors %v", got.Raw, got.Data, got.Errors)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("it still listens")
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestServeSaysWhyItCannot: a listener that is closed already is an error.
func TestServeSaysWhyItCannot(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := graph.Serve(t.Context(), l, http.NotFoundHandler()); err == nil {
		t.Error("no error")
	}
}
