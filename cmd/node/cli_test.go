package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// program is the program as a test runs it: in this process, with a clock that
// stands still and ids that are counted.
func program() *cli {
	ids := 0
	return &cli{
		now:   func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) },
		newID: func() string { ids++; return fmt.Sprintf("id-%d", ids) },
	}
}

// node that answers what it was told to, in that order.
type recordedNode struct {
	t       *testing.T
	server  *httptest.Server
	mu      sync.Mutex
	replies []reply
	asked   []string
}

type reply struct {
	status int
	body   string
	breaks bool // off at the end of the body
}

func newRecordedNode(t *testing.T) *recordedNode {
	n := &recordedNode{t: t}
	n.server = httptest.NewServer(n)
	t.Cleanup(n.server.Close)
	return n
}

func (n *recordedNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		n.t.Errorf("reading a request: %v", err)
	}
	n.mu.Lock()
	n.asked = append(n.asked, question(n.t, r, body))
	next := reply{status: http.StatusTeapot, body: "the test has no reply left"}
	if len(n.replies) > 0 {
		next, n.replies = n.replies[0], n.replies[1:]
	}
	n.mu.Unlock()
	if next.status/100 == 3 {
		w.Header().Set("Location", "https://elsewhere.example/")
	}
	w.WriteHeader(next.status)
	_, _ = io.WriteString(w, next.body)
	if next.breaks {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// question is a request in one line: what a command asks for.
func question(t *testing.T, r *http.Request, body []byte) string {
	line := r.Method + " " + r.URL.RequestURI()
	if token := r.Header.Get("Authorization"); token != "" {
		line += " with " + token
	}
	if r.Method == http.MethodGet {
		return line
	}
	if got := r.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("got Content-Type %q, want application/json", got)
	}
	var q struct {
		Query     string          `json:"query"`
		Variables json.RawMessage `json:"variables"`
	}
	if err := json.Unmarshal(body, &q); err != nil || q.Query == "" {
		t.Errorf("got %s, want a question of GraphQL (%v)", body, err)
	}
	return line + " " + string(q.Variables)
}

// TestCLI proves, command by command and error by error, what the program prints
// on stdout and on stderr, what it asks the node for and which code it ends with.
func TestCLI(t *testing.T) {
	files, err := filepath.Abs("testdata/cli")
	if err != nil {
		t.Fatal(err)
	}
	datadriven.Walk(t, files, func(t *testing.T, path string) {
		t.Chdir(t.TempDir())
		node := newRecordedNode(t)
		t.Setenv("TENURE_ADDR", node.server.URL)
		t.Setenv("NO_COLOR", "")
		stdin := ""
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "reply":
				next := reply{status: http.StatusOK, body: d.Input, breaks: d.HasArg("breaks")}
				d.MaybeScanArgs(t, "status", &next.status)
				node.replies = append(node.replies, next)
				return ""
			case "history":
				node.replies = append(node.replies, reply{http.StatusOK, damaged(t, d), d.HasArg("breaks")})
				return ""
			case "file":
				text := d.Input
				if d.HasArg("history") {
					text = damaged(t, d)
				}
				writeFile(t, d.CmdArgs[0].Key, text)
				return ""
			case "env":
				name, value, _ := strings.Cut(strings.TrimSpace(d.Input), "=")
				t.Setenv(name, value)
				return ""
			case "stdin":
				stdin = d.Input
				if d.HasArg("history") {
					stdin = damaged(t, d)
				}
				return ""
			case "run":
				out := node.run(t.Context(), d.Input, stdin)
				stdin = ""
				return out
			case "cat":
				text, err := os.ReadFile(d.CmdArgs[0].Key)
				if err != nil {
					return err.Error() + "\n"
				}
				return lines("", string(text))
			case "ls":
				return list(names(t)) + "\n"
			}
			d.Fatalf(t, "%s is no command of these files", d.Cmd)
			return ""
		})
	})
}

// names are the files of the folder that the test stands in.
func names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// run runs the program on a command line and shows all that came of it.
func (n *recordedNode) run(ctx context.Context, line, stdin string) string {
	var stdout, stderr bytes.Buffer
	n.asked = nil
	code := program().run(ctx, words(line), strings.NewReader(stdin), &stdout, &stderr)
	out := fmt.Sprintf("exit %d\n", code)
	for _, q := range n.asked {
		out += "asks " + q + "\n"
	}
	out += lines("out| ", stdout.String()) + lines("err| ", stderr.String())
	if len(n.replies) > 0 {
		out += fmt.Sprintf("%d replies were not asked for\n", len(n.replies))
		n.replies = nil
	}
	return strings.ReplaceAll(out, n.server.URL, "http://node.test")
}

func lines(prefix, text string) string {
	out := ""
	for line := range strings.Lines(text) {
		out += prefix + strings.TrimSuffix(line, "\n") + "\n"
	}
	return out
}

// words splits a command line as a shell does, with single quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(strings.TrimSpace(line), "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

// story is a legal history in FLEET and WORK: node-a holds dev, completes a
// turn and lets go, then node-b holds it.
func story(t *testing.T) []events.Message {
	t.Helper()
	subjects, err := events.NewSubjects("crewlet")
	if err != nil {
		t.Fatal(err)
	}
	const a, b = events.Incarnation("node-a:0000000a"), events.Incarnation("node-b:0000000b")
	seat := events.SeatLease("dev")
	var out []events.Message
	add := func(st events.Stream, seq uint64, m events.Meta, e events.Event) {
		m.ID, m.Time, m.Command = fmt.Sprintf("%s-%d", st, seq), start, "c"
		w, err := events.Encode(subjects, m, e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, events.Message{Stream: st, Seq: seq, Subject: w.Subject, At: start.Add(time.Duration(seq) * time.Second), Header: w.Header, Data: w.Data})
	}
	add(events.StreamFleet, 1, events.Meta{Source: a, Epoch: 1}, events.LeaseClaimed{Lease: seat, Epoch: 1, Owner: a, TTL: 45000, Protocol: 4})
	add(events.StreamFleet, 2, events.Meta{Source: a, Epoch: 1}, events.SeatEstablished{Handle: "dev", Epoch: 1, Owner: a})
	add(events.StreamFleet, 3, events.Meta{Source: a, Epoch: 1}, events.LeaseReleased{Lease: seat, Epoch: 1, Owner: a, Reason: events.ReasonDrain})
	add(events.StreamFleet, 4, events.Meta{Source: b, Epoch: 2}, events.LeaseClaimed{Lease: seat, Epoch: 2, Owner: b, TTL: 45000, Protocol: 4})
	add(events.StreamWork, 1, events.Meta{Source: a, Epoch: 1, FleetSeq: 1}, events.TurnCompleted{
		Handle: "dev", EventID: "order-1", EventIDs: []string{"order-1"}, WorkKey: events.Digest("order-1"), Epoch: 1, Owner: a, Outcome: events.OutcomeDone, Attempts: 1,
	})
	return out
}

// damaged is the story as an export, with the damage that d asks for: stream=S
// alone as a follower gets it, after=N, usurped, altered, short, cut.
func damaged(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	all := story(t)
	subjects, err := events.NewSubjects("crewlet")
	if err != nil {
		t.Fatal(err)
	}
	var stream string
	var after uint64
	d.MaybeScanArgs(t, "stream", &stream)
	d.MaybeScanArgs(t, "after", &after)
	if d.HasArg("usurped") {
		all = append(all[:2:2], all[3:]...) // node-a never let go
	}
	tally := audit.NewTally(subjects)
	for _, m := range all {
		tally.Add(m)
	}
	created := start.UTC().Format(time.RFC3339Nano)
	h := tally.Header(map[events.Stream]string{events.StreamFleet: created, events.StreamWork: created})
	if stream != "" { // a follower's header announces nothing
		h.Streams = []audit.StreamHeader{{Stream: events.Stream(stream), CreatedAt: created}}
	}
	var out bytes.Buffer
	w, err := audit.NewWriter(&out, h)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range all {
		if stream != "" && (string(m.Stream) != stream || m.Seq <= after) || d.HasArg("short") && i == len(all)-1 {
			continue
		}
		if err := w.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = w.Close() // it complains of what is asked for here
	text := out.String()
	if d.HasArg("altered") {
		text = strings.Replace(text, `"reason":"drain"`, `"reason":"moved"`, 1)
	}
	if d.HasArg("cut") {
		text = text[:len(text)-20]
	}
	return text
}

// start is when the story's streams were made.
var start = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)
