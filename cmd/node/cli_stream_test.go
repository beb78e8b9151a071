package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// silentNode sends what it has and then nothing more, until it is asked no more.
func silentNode(t *testing.T, say string) (addr string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client leaves
		if say != "" {
			_, _ = io.WriteString(w, say)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A node that is silent costs a bounded time, whatever was asked of it and
// however much of the answer has come.
func TestCLIEveryWaitEnds(t *testing.T) {
	whole := damaged(t, &datadriven.TestData{})
	for _, tt := range []struct {
		name, say string
		args      []string
	}{
		{"no answer", "", []string{"fleet"}},
		{"half an answer", `{"data":`, []string{"seat", "ls"}},
		{"half an export", whole[:len(whole)/2], []string{"audit"}},
		{"no head of a follow", "", []string{"event", "tail", "--after", "0"}},
		{"no answer to mail", "", []string{"send", "dev"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"--addr", silentNode(t, tt.say), "--timeout", "50ms"}, tt.args...)
			if code := program().run(t.Context(), args, nil, &stdout, &stderr); code != exitFailed {
				t.Errorf("got code %d, want %d", code, exitFailed)
			}
			if got := stderr.String(); !strings.Contains(got, "did not answer within 50ms") {
				t.Errorf("got %q, want what was waited for and how long", got)
			}
		})
	}
}

// writerFunc is a stdout that a test looks into.
type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// Ctrl-C is how a follow ends: code 0, nothing said. Silence is no fault, even
// when it lasts longer than the timeout.
func TestCLIFollowEndsWithItsCaller(t *testing.T) {
	addr := silentNode(t, damaged(t, &datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "stream", Vals: []string{"FLEET"}}}}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	stdout := writerFunc(func(b []byte) (int, error) {
		if seen += bytes.Count(b, []byte("\n")); seen == 4 {
			time.AfterFunc(200*time.Millisecond, cancel) // four times the timeout
		}
		return len(b), nil
	})
	var stderr bytes.Buffer
	code := program().run(ctx, []string{"--addr", addr, "--timeout", "50ms", "event", "tail", "--after", "0"}, nil, stdout, &stderr)
	if code != exitFine || seen != 4 || stderr.Len() > 0 {
		t.Errorf("got code %d, %d lines and %q, want 0, 4 and nothing said", code, seen, stderr.String())
	}
}

// A signal while a node thinks ends the wait, and mail that may be out is not
// called unsent.
func TestCLIInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	code := program().run(ctx, []string{"--addr", server.URL, "send", "dev"}, nil, &stdout, &stderr)
	want := "tenure: interrupted; the mail may be stored or not: send it again with --id id-1, and it is worked on once\n"
	if code != exitFailed || stderr.String() != want {
		t.Errorf("got code %d and %q, want 1 and %q", code, stderr.String(), want)
	}
}

// Whoever reads our output may go away when they have seen enough, as head does:
// no error, nothing said.
func TestCLIClosedOutput(t *testing.T) {
	follower := &datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "stream", Vals: []string{"FLEET"}}}}
	for _, tt := range []struct {
		name string
		say  string
		args []string
	}{
		{"tail", damaged(t, follower), []string{"event", "tail", "--after", "0"}},
		{"export", damaged(t, &datadriven.TestData{}), []string{"event", "export"}},
		{"version", "", []string{"version"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.say) }))
			defer server.Close()
			stdout := writerFunc(func([]byte) (int, error) {
				return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
			})
			var stderr bytes.Buffer
			code := program().run(t.Context(), append([]string{"--addr", server.URL}, tt.args...), nil, stdout, &stderr)
			if code != exitFine || stderr.Len() > 0 {
				t.Errorf("got code %d and %q, want 0 and nothing said", code, stderr.String())
			}
		})
	}
}

// What cannot be written is an error like any other: a full disk must not leave
// half an export with code 0.
func TestCLIFailedOutput(t *testing.T) {
	history := damaged(t, &datadriven.TestData{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, history) }))
	defer server.Close()
	full := writerFunc(func([]byte) (int, error) { return 0, syscall.ENOSPC })
	var stderr bytes.Buffer
	code := program().run(t.Context(), []string{"--addr", server.URL, "event", "export"}, nil, full, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("got code %d and %q, want 1 and why", code, stderr.String())
	}
}

// A node that is restarted is followed again, and what cannot pass ends the
// follow: passing says which is which.
func TestCLIPassing(t *testing.T) {
	said := func(code string) error {
		e := &apiError{}
		e.Extensions.Code = code
		return e
	}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&lostError{}, true},
		{&absentError{}, true},
		{said(codeUnavailable), true},
		{said("BEFORE_HISTORY"), false},
		{said(codeBadRequest), false},
		{errors.New("no space left"), false},
	} {
		if got := passing(tt.err); got != tt.want {
			t.Errorf("%T %v: got %v, want %v", tt.err, tt.err, got, tt.want)
		}
	}
}

// Colours are around words that stand alone, and columns stay in line.
func TestCLIColour(t *testing.T) {
	var b bytes.Buffer
	o := output{w: &b, colour: true}
	if err := o.table([]string{"SEAT", "STATE", "NODE"}, [][]string{{"dev", "HELD", "HELDEN"}, {"ops", "UNOWNED", unknown}}); err != nil {
		t.Fatal(err)
	}
	want := "SEAT  STATE    NODE\ndev   \x1b[32mHELD\x1b[0m     HELDEN\nops   \x1b[33mUNOWNED\x1b[0m  \x1b[31munknown\x1b[0m\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Durations as people write them, and as the API does: read back what was
// written, and refuse what has no length or is none.
func TestCLIDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 300 * time.Microsecond: "1ms", 420 * time.Millisecond: "420ms", 59*time.Second + 900*time.Millisecond: "59s",
		3*time.Minute + 4*time.Second: "3m04s", 5*time.Hour + 3*time.Minute: "5h03m", 50 * time.Hour: "2d02h", -2 * time.Second: "-2s",
	} {
		if got := human(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
	for s, want := range map[string]time.Duration{
		"PT45S": 45 * time.Second, "PT10M": 10 * time.Minute, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "PT0S": 0, "P2D": 48 * time.Hour,
	} {
		if got, ok := parseISO(s); !ok || got != want {
			t.Errorf("%s: got %s, %v, want %s", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "P", "PT", "P1DT", "P1M", "45S", "PT-1S", "PT1S ", "PT1e3S", "P999999999999D"} {
		if got, ok := parseISO(s); ok {
			t.Errorf("%q: got %s, want it refused", s, got)
		}
	}
	for _, d := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, 10 * time.Minute} {
		if got, ok := parseISO(writeISO(d)); !ok || got != d {
			t.Errorf("%s: got %s, %v back from %s", d, got, ok, writeISO(d))
		}
	}
}
