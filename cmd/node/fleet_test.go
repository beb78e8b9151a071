package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
)

// externalBroker runs a broker in this process that nodes reach over TCP.
func externalBroker(t *testing.T) (url string) {
	t.Helper()
	s, err := broker.StartServer(t.Context(), broker.ServerConfig{
		Name: "broker-1", StoreDir: t.TempDir(), Prefix: "crewlet", Listen: "127.0.0.1:0", Secret: "s3cret",
		Log: slogDiscard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s.NodeURL()
}

// startFleetNode starts one node of a fleet on that broker, with the shortest TTL.
func startFleetNode(t *testing.T, id, url, company string) *process {
	t.Helper()
	return startNode(t, "run", "--node-id", id, "--data-dir", t.TempDir(), "--api-listen", "127.0.0.1:0",
		"--stream-type", "external", "--stream-urls", url, "--coordination-type", "embedded-kv",
		"--coordination-lease-ttl-seconds", "3", "--seat-sweep-interval", "1s", "--company", company)
}

// TestCase4StoppedPastItsTTL: of two nodes on one broker, the holder of a seat
// is stopped in the middle of a turn, between two of its calls, for longer than
// its TTL. The other takes the seat and runs the mail again. Resumed, the first
// makes no further call, settles nothing and starts nothing under its old
// epoch, and what its turn had sent stands once (design §10 schedules 5 and 13
// on real processes, A1, F2, F5, W1; cases 4, 9).
func TestCase4StoppedPastItsTTL(t *testing.T) {
	dir, url := agentDir(t), externalBroker(t)
	company := gated(t, "calls", dir)
	nodes := map[string]*process{"a": startFleetNode(t, "a", url, company), "b": startFleetNode(t, "b", url, company)}
	nodes["a"].awaitHeld(0, 1, 30*time.Second)
	nodes["b"].awaitHeld(0, 1, 30*time.Second)

	var shown struct {
		Seat struct{ Owner, Epoch string }
	}
	nodes["a"].must(&shown, "seat", "show", "worker", "-o", "json")
	holder, old := strings.SplitN(shown.Seat.Owner, ":", 2)[0], shown.Seat.Epoch
	victim, heir := nodes[holder], nodes[map[string]string{"a": "b", "b": "a"}[holder]]

	victim.must(nil, "send", "worker", "--id", "job-1")
	victim.await(30*time.Second, `msg=turn_started .*event=job-1`)
	awaitNote(t, dir, "worker call 1 epoch "+old)
	victim.signal(syscall.SIGSTOP)
	mark := heir.mark()
	heir.awaitFrom(mark, 30*time.Second, `msg=seat_attached .*seat=worker`)
	heir.awaitFrom(mark, 30*time.Second, `msg=turn_rerun_after_unfinished_attempt .*event=job-1`)

	resumed := victim.mark()
	victim.signal(syscall.SIGCONT)
	openGate(t, dir, epochOf(t, old)) // the old turn comes to its second call
	victim.awaitFrom(resumed, 30*time.Second, `msg=(turn_fenced|turn_broke_after_acting) .*event=job-1`)
	next := epochOf(t, old) + 1
	openGate(t, dir, next)
	var got completionJSON
	heir.must(&got, "send", "worker", "--id", "job-1", "--wait", "-o", "json")

	all := notes(t, dir)
	if !strings.Contains(all, fmt.Sprintf("worker done epoch %d", next)) {
		t.Errorf("the heir's turn did not finish:\n%s", all)
	}
	if regexp.MustCompile(`call 2 epoch ` + old + ` answer .*"ok":true`).MatchString(all) {
		t.Errorf("the stopped holder made a call after its TTL:\n%s", all)
	}
	if n := victim.logs.count(`msg=turn_completed .*seat=worker epoch=` + old); n != 0 {
		t.Errorf("the stopped holder completed a turn under its old epoch")
	}
	// Both turns' first call is one piece of mail: the sink worked on it once.
	second := regexp.MustCompile(fmt.Sprintf(`call 2 epoch %d answer .*\\"id\\":\\"([0-9a-f]{64})`, next)).FindStringSubmatch(all)
	if second == nil {
		t.Fatalf("the heir's second call has no answer:\n%s", all)
	}
	heir.await(30*time.Second, `msg=turn_completed seat=sink .*event=`+second[1])
	sinks := victim.logs.count(`msg=turn_started seat=sink`) + heir.logs.count(`msg=turn_started seat=sink`)
	if sinks != 2 {
		t.Errorf("the sink started %d turns, want 2: one for each of the two calls", sinks)
	}
	heir.must(nil, "audit")
}

// awaitNote waits until an agent has noted that. Notes are a file of another
// process, so there is no event of ours to wait on: the kernel's notice of a
// write to the folder is.
func awaitNote(t *testing.T, dir, want string) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	defer f.Close()
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CLOSE_WRITE); err != nil {
		t.Fatal(err)
	}
	for buf := make([]byte, 4096); !strings.Contains(notes(t, dir), want); {
		if _, err := f.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
}

func epochOf(t *testing.T, s string) (epoch uint64) {
	t.Helper()
	if _, err := fmt.Sscan(s, &epoch); err != nil {
		t.Fatal(err)
	}
	return epoch
}

// TestBadStarts: what can be wrong at a start is one sentence that names it and
// the way out, with the exit code that its kind has, and leaves nothing behind.
func TestBadStarts(t *testing.T) {
	busy := startNode(t, "dev", "--ephemeral", "--listen", "127.0.0.1:0")
	port := strings.TrimPrefix(busy.url, "http://")
	data := t.TempDir()
	startNode(t, "dev", "--data-dir", data, "--listen", "127.0.0.1:0")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"port in use":       {[]string{"dev", "--ephemeral", "--listen", port}, `api.listen ` + port + `: address already in use`, 1},
		"data dir in use":   {[]string{"dev", "--data-dir", data, "--listen", "127.0.0.1:0"}, `process \d+`, 1},
		"data dir a file":   {[]string{"dev", "--data-dir", file, "--listen", "127.0.0.1:0"}, `not a directory`, 1},
		"unknown flag":      {[]string{"dev", "--listn", "x"}, `--listen`, 2},
		"no such company":   {[]string{"dev", "--ephemeral", "--company", file + ".none"}, `no such file`, 78},
		"local beside NATS": {[]string{"run", "--stream-type", "external", "--stream-urls", "nats://127.0.0.1:1"}, `embedded-kv`, 78},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, c.args...)
			<-p.done
			all, _ := p.logs.from(0)
			text := strings.Join(all, "\n")
			if code := p.cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !regexp.MustCompile(c.want).MatchString(text) || strings.Contains(text, "goroutine ") {
				t.Errorf("want one sentence matching %q, got:\n%s", c.want, text)
			}
		})
	}
}
