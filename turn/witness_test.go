package turn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seat-tenure/tenure/turn"
)

// witness is the turn's side of a run. It pins every process that a program
// reports, so that later "it is gone" cannot mean another process of that pid.
type witness struct {
	t      *testing.T
	fds    map[int]int // pid → pidfd
	pids   []int       // in the order of the report
	answer func(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error)
}

func (w *witness) Call(ctx context.Context, _, tool string, args json.RawMessage) (json.RawMessage, error) {
	if tool == "report" {
		if json.Unmarshal(args, &w.pids) == nil {
			w.pin(w.pids...)
		}
	}
	if w.answer != nil {
		return w.answer(ctx, tool, args)
	}
	return json.RawMessage(`"noted"`), nil
}

func (w *witness) pin(pids ...int) {
	w.t.Helper()
	if w.fds == nil {
		w.fds = map[int]int{}
	}
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			w.t.Errorf("process %d was reported and is not there: %v", pid, err)
			continue
		}
		w.fds[pid] = fd
		w.t.Cleanup(func() { // a test that fails leaves nothing running
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			unix.Close(fd)
		})
	}
}

// allGone requires that at least n processes were pinned and that all of them
// have ended within wait; 0 means by now.
func (w *witness) allGone(n int, wait time.Duration) {
	w.t.Helper()
	if len(w.fds) < n {
		w.t.Errorf("%d processes were reported, want %d at least", len(w.fds), n)
	}
	deadline := time.Now().Add(wait)
	for pid, fd := range w.fds {
		if !hasEnded(w.t, fd, time.Until(deadline)) {
			w.t.Errorf("process %d is still alive", pid)
		}
	}
}

// hasEnded waits for the event of a process ending.
func hasEnded(t *testing.T, fd int, wait time.Duration) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(max(0, wait)/time.Millisecond))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

// record keeps log lines for a test to read.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// inOrder requires that each of the words shows after the one before.
func inOrder(t *testing.T, text string, words ...string) {
	t.Helper()
	rest := text
	for _, word := range words {
		_, after, ok := strings.Cut(rest, word)
		if !ok {
			t.Fatalf("%q is missing, or out of order, in:\n%s", word, text)
		}
		rest = after
	}
}

// runner makes an Exec of a behaviour, and the record of its log.
func runner(t *testing.T, behaviour ...string) (turn.Exec, *record) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := &record{}
	return turn.Exec{
		Program: append([]string{self, "behave"}, behaviour...),
		Timeout: time.Minute,
		Log:     slog.New(slog.NewTextHandler(log, nil)),
		Mark:    turn.Mark{DataDir: t.Name()[:4] + "-data", Incarnation: "node-0:0123abcd"},
	}, log
}

func request() turn.Request {
	return turn.Request{
		Seat: "writer", AgentID: "0f0e", Epoch: 7, WorkKey: "k", Attempt: 2,
		Events: []turn.Event{{
			ID: "e1", Type: "task_assigned", Time: time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC),
			Data: json.RawMessage(`{"text":"hello"}`), Conversation: "c1",
		}},
	}
}
