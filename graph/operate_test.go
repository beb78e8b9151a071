package graph_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
)

const outcome = ` { __typename ... on Accepted { position sagaId } ... on Refused { code message } }`

// TestOperations: each mutation asks for its operation, on behalf of whoever
// called and for the reason that was given, and answers where it shows.
func TestOperations(t *testing.T) {
	for call, want := range map[string]graph.Operation{
		`drainNode(id: "node-b", reason: "r")`:                    graph.DrainNode{Node: "node-b", Deadline: 5 * time.Minute},
		`drainNode(id: "node-b", deadline: "PT90S", reason: "r")`: graph.DrainNode{Node: "node-b", Deadline: 90 * time.Second},
		`cordonNode(id: "node-b", reason: "r")`:                   graph.CordonNode{Node: "node-b", On: true},
		`uncordonNode(id: "node-b", reason: "r")`:                 graph.CordonNode{Node: "node-b"},
		`moveSeat(handle: "ada", to: "node-b", reason: "r")`:      graph.MoveSeat{Handle: "ada", To: "node-b"},
		`releaseSeat(handle: "ada", reason: "r")`:                 graph.ReleaseSeat{Handle: "ada"},
		`fenceSeat(handle: "ada", reason: "r")`:                   graph.FenceSeat{Handle: "ada"},
		`pauseSeat(handle: "ada", reason: "r")`:                   graph.PauseSeat{Handle: "ada"},
		`pauseSeat(handle: "ada", stopTurn: true, reason: "r")`:   graph.PauseSeat{Handle: "ada", StopTurn: true},
		`resumeSeat(handle: "ada", reason: "r")`:                  graph.ResumeSeat{Handle: "ada"},
	} {
		w := acme(t)
		got := ask(t, w, `mutation { m: `+call+outcome+` }`, nil)
		if want := `{"m":{"__typename":"Accepted","position":"18446744073709551615","sagaId":null}}`; string(got.Data) != want || len(got.Errors) > 0 {
			t.Errorf("%s: got %s, want %s", call, got.Raw, want)
		}
		if diff := cmp.Diff([]graph.Operation{want}, w.ops); diff != "" {
			t.Errorf("%s (-want +got):\n%s", call, diff)
		}
		if want := []graph.Act{{Actor: "anonymous@192.0.2.1", Reason: "r"}}; !cmp.Equal(want, w.acts) {
			t.Errorf("%s: got %v, want %v", call, w.acts, want)
		}
	}
}

// TestOperationOutcomes: a refusal is a result with its code; what nobody knows,
// or cannot be done now, is an error, never a refusal and never an acceptance.
func TestOperationOutcomes(t *testing.T) {
	const call = `mutation { m: moveSeat(handle: "ada", to: "node-b", reason: "r")` + outcome + ` }`
	for name, tc := range map[string]struct {
		done graph.Done
		err  error
		want string
	}{
		"accepted":    {graph.Done{Position: 7, Saga: "ada.3"}, nil, `{"m":{"__typename":"Accepted","position":"7","sagaId":"ada.3"}}`},
		"refused":     {graph.Done{}, fmt.Errorf("asked: %w", &graph.RefusedError{Code: "NO_ROOM", Message: "it has its share"}), `{"m":{"__typename":"Refused","code":"NO_ROOM","message":"it has its share"}}`},
		"unavailable": {graph.Done{}, fmt.Errorf("asked: %w", events.ErrUnavailable), "UNAVAILABLE "},
		"busy":        {graph.Done{}, events.ErrBusy, "UNAVAILABLE "},
		"unknown":     {graph.Done{}, events.ErrUnknown, "UNAVAILABLE unknown"},
		"a fault":     {graph.Done{}, errors.New("secret"), "INTERNAL "},
	} {
		t.Run(name, func(t *testing.T) {
			w := acme(t)
			w.operate = func(graph.Operation) (graph.Done, error) { return tc.done, tc.err }
			a := ask(t, w, call, nil)
			got := string(a.Data)
			if a.code() != "" {
				told, _ := a.Errors[0].Extensions["outcome"].(string)
				got = a.code() + " " + told
			}
			if got != tc.want {
				t.Errorf("got %s, want %s\n%s", got, tc.want, a.Raw)
			}
			if strings.Contains(a.Raw, "secret") {
				t.Errorf("an inner error is shown: %s", a.Raw)
			}
		})
	}
}

// TestOperationArguments: what cannot go into the log, or names nothing, is
// refused before anybody is asked to do it.
func TestOperationArguments(t *testing.T) {
	for call, argument := range map[string]string{
		`cordonNode(id: "node-b", reason: "")`:                                 "reason",
		`cordonNode(id: "node-b", reason: "two\nlines")`:                       "reason",
		`cordonNode(id: "node-b", reason: " padded ")`:                         "reason",
		`cordonNode(id: "node-b", reason: "` + strings.Repeat("x", 501) + `")`: "reason",
		`cordonNode(id: "Node B", reason: "r")`:                                "id",
		`drainNode(id: "node-b", deadline: "PT0S", reason: "r")`:               "deadline",
		`drainNode(id: "node-b", deadline: "PT0.0005S", reason: "r")`:          "deadline",
		`drainNode(id: "node-b", deadline: "PT25H", reason: "r")`:              "deadline",
		`moveSeat(handle: "ada", to: "", reason: "r")`:                         "to",
		`moveSeat(handle: "a.d.a", to: "node-b", reason: "r")`:                 "handle",
		`pauseSeat(handle: "` + strings.Repeat("x", 64) + `", reason: "r")`:    "handle",
	} {
		w := acme(t)
		got := ask(t, w, `mutation { m: `+call+outcome+` }`, nil)
		if got.code() != "BAD_REQUEST" || got.Errors[0].Extensions["argument"] != argument || len(w.ops) > 0 {
			t.Errorf("%s: got %s, want BAD_REQUEST about %s", call, got.Raw, argument)
		}
	}
	if got := ask(t, acme(t), `mutation { cordonNode(id: "node-b") { __typename } }`, nil); got.code() != "BAD_REQUEST" {
		t.Errorf("without a reason: got %s", got.Raw)
	}
	if got := ask(t, acme(t), `{ explainPlacement(handle: "ada", without: ["node-x"]) { verdict } }`, nil); got.code() != "BAD_REQUEST" {
		t.Errorf("without a node that never was: got %s", got.Raw)
	}
	for _, at := range []string{`{}`, `{time: "2030-01-02T03:04:05Z", position: "1"}`} {
		if got := ask(t, acme(t), `{ holderAt(handle: "ada", at: `+at+`) { owner } }`, nil); got.code() != "BAD_REQUEST" {
			t.Errorf("at %s: got %s", at, got.Raw)
		}
	}
}

// TestExplainOfAFencedSeat: nobody holds it, and yet it may not be claimed at once,
// which the arithmetic of placement does not know.
func TestExplainOfAFencedSeat(t *testing.T) {
	w := acme(t)
	w.lives[nodeC] = graph.Live
	got := ask(t, w, `{ explainPlacement(handle: "cat") { verdict why } }`, nil)
	if !strings.Contains(got.Raw, `"verdict":"free"`) || !strings.Contains(got.Raw, "its last tenure was fenced") {
		t.Errorf("got %s", got.Raw)
	}
}

// TestActorIsTheTokensName: the log is told the name of the token that was
// shown, never the token, and of one without a name a name that can be told.
func TestActorIsTheTokensName(t *testing.T) {
	w := acme(t)
	deps := w.deps(t)
	var err error
	if deps.Tokens, err = graph.NewTokens("carol:0123456789abcdef", "fedcba9876543210"); err != nil {
		t.Fatal(err)
	}
	h := graph.New(deps)
	for _, token := range []string{"0123456789abcdef", "fedcba9876543210"} {
		r := request(`mutation { cordonNode(id: "node-b", reason: "r") { __typename } }`, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		if got := post(h, r); got.Status != http.StatusOK {
			t.Fatal(got.Raw)
		}
	}
	if len(w.acts) != 2 || w.acts[0].Actor != "carol" || w.acts[1].Actor != "token-3465f6e6" {
		t.Errorf("got %v, want carol and the beginning of the other's SHA-256", w.acts)
	}
	r := request(`mutation { cordonNode(id: "node-b", reason: "r") { __typename } }`, nil)
	r.Header.Set("Authorization", "Bearer carol:0123456789abcdef")
	if got := post(h, r); got.Status != http.StatusUnauthorized || len(w.acts) != 2 {
		t.Errorf("name and token: got %d %s, want 401", got.Status, got.Raw)
	}
}

// TestOperationsCost: a request full of operations is refused before the first
// of them is done.
func TestOperationsCost(t *testing.T) {
	w := acme(t)
	var b strings.Builder
	for i := range 21 {
		fmt.Fprintf(&b, "m%d: fenceSeat(handle: \"ada\", reason: \"r\") { __typename } ", i)
	}
	if got := ask(t, w, `mutation { `+b.String()+`}`, nil); got.code() != "TOO_COMPLEX" || len(w.ops) > 0 {
		t.Errorf("got %s after %d operations, want TOO_COMPLEX and none", got.Raw, len(w.ops))
	}
}
