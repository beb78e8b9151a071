package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seat-tenure/tenure/turn"
)

// What a program reads is the turn as the conventions write it, and what it
// replies comes back as it is.
func TestExecHandsOverTheTurnAndTheReply(t *testing.T) {
	e, _ := runner(t, "done")
	reply, err := e.Run(t.Context(), request(), &witness{t: t})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"turn","seat":"writer","agent_id":"0f0e","epoch":7,"work_key":"k","attempt":2,"events":[` +
		`{"id":"e1","type":"task_assigned","time":"2030-01-02T03:04:05.000000006Z","data":{"text":"hello"},"conversation":"c1"}]}`
	if got := string(reply.JSON); got != want {
		t.Errorf("the program read\n%s\nwant\n%s", got, want)
	}
}

// Each way to break is its own type, names the program and says what happened
// and what can be done.
func TestExecTellsHowAProgramBroke(t *testing.T) {
	as := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	for name, c := range map[string]struct {
		program []string
		is      func(error) bool
		says    []string
	}{
		"failed":         {[]string{"say", `{"type":"failed","why":"no credit left"}`}, as(new(*turn.FailedError)), []string{"no credit left"}},
		"exit 3":         {[]string{"exit", "3", "first words", "last words"}, as(new(*turn.ExitError)), []string{"exited with 3", "first words | last words", "run it by hand"}},
		"silent":         {[]string{"exit", "0"}, as(new(*turn.ExitError)), []string{"never wrote a done", "flush"}},
		"killed":         {[]string{"die"}, as(new(*turn.ExitError)), []string{"signal 9", "out-of-memory"}},
		"exit 7 late":    {[]string{"crash-late"}, as(new(*turn.ExitError)), []string{"exited with 7"}},
		"garbage":        {[]string{"say", "Hello, I am a banner"}, as(new(*turn.ProtocolError)), []string{"line 1", "Hello, I am a banner", "belongs on stderr"}},
		"unknown type":   {[]string{"say", `{"type":"progress"}`}, as(new(*turn.ProtocolError)), []string{`unknown type \"progress\"`}},
		"nameless call":  {[]string{"say", `{"type":"call","tool":"send"}`}, as(new(*turn.ProtocolError)), []string{`needs an "id"`}},
		"line too long":  {[]string{"line", strconv.Itoa(turn.MaxLine + 1)}, as(new(*turn.ProtocolError)), []string{"line 1", "longer than 1048576 bytes"}},
		"much too long":  {[]string{"line", strconv.Itoa(3 * turn.MaxLine)}, as(new(*turn.ProtocolError)), []string{"line 1", "longer than 1048576 bytes"}},
		"stdout closed":  {[]string{"close-stdout"}, as(new(*turn.ProtocolError)), []string{"closed its stdout"}},
		"unknown script": {[]string{"nothing-like-it"}, as(new(*turn.ExitError)), []string{"exited with 99", "no behaviour"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := runner(t, c.program...)
			reply, err := e.Run(t.Context(), request(), &witness{t: t})
			if err == nil || !c.is(err) || reply.JSON != nil {
				t.Fatalf("got reply %s and %T %v", reply.JSON, err, err)
			}
			for _, word := range append(c.says, "behave "+c.program[0]) {
				if !strings.Contains(err.Error(), strings.ReplaceAll(word, `\"`, `"`)) {
					t.Errorf("the error does not say %q: %v", word, err)
				}
			}
		})
	}
}

// ExitError keeps what a caller may want to decide by.
func TestExecKeepsCodeAndSignal(t *testing.T) {
	var exit *turn.ExitError
	e, _ := runner(t, "exit", "3")
	if _, err := e.Run(t.Context(), request(), &witness{t: t}); !errors.As(err, &exit) || exit.Code != 3 || exit.Signal != 0 {
		t.Errorf("got %+v, want code 3", exit)
	}
	e, _ = runner(t, "die")
	if _, err := e.Run(t.Context(), request(), &witness{t: t}); !errors.As(err, &exit) || exit.Code != -1 || exit.Signal != syscall.SIGKILL {
		t.Errorf("got %+v, want SIGKILL", exit)
	}
}

// The limit on a line is the line of exactly that size: it passes, both ways.
func TestExecTakesALineOfTheLimit(t *testing.T) {
	e, _ := runner(t, "line", strconv.Itoa(turn.MaxLine))
	reply, err := e.Run(t.Context(), request(), &witness{t: t})
	if err != nil || len(reply.JSON) != turn.MaxLine-len(`{"type":"done","reply":}`) {
		t.Errorf("got a reply of %d bytes, %v", len(reply.JSON), err)
	}

	req := request()
	req.Events[0].Data = json.RawMessage(`""`)
	e, _ = runner(t, "done")
	reply, err = e.Run(t.Context(), req, &witness{t: t})
	if err != nil {
		t.Fatal(err)
	}
	fill := turn.MaxLine - len(reply.JSON)
	req.Events[0].Data = json.RawMessage(`"` + strings.Repeat("x", fill+1) + `"`)
	if _, err := e.Run(t.Context(), req, &witness{t: t}); err == nil || !strings.Contains(err.Error(), "1048577 bytes") {
		t.Errorf("a turn of one byte over the limit was handed over: %v", err)
	}
}

// A program that gives no answer is ended at its timeout.
func TestExecEndsAHangingProgram(t *testing.T) {
	e, _ := runner(t, "pause")
	e.Timeout = 300 * time.Millisecond
	var timeout *turn.TimeoutError
	_, err := e.Run(t.Context(), request(), &witness{t: t})
	if !errors.As(err, &timeout) || timeout.After != e.Timeout {
		t.Errorf("got %v, want a timeout", err)
	}
}

// Calls are asked for one by one, in order, and each is answered: with its
// value, or with its error, which does not end the run.
func TestExecAnswersEveryCall(t *testing.T) {
	const n = 500
	e, _ := runner(t, "calls", strconv.Itoa(n))
	asked := 0
	w := &witness{t: t, answer: func(_ context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
		if want := fmt.Sprintf(`{"i":%d}`, asked); tool != "count" || string(args) != want {
			t.Errorf("call %d is %s %s", asked, tool, args)
		}
		asked++
		if asked%2 == 0 {
			return nil, fmt.Errorf("no luck with %d", asked-1)
		}
		return args, nil
	}}
	reply, err := e.Run(t.Context(), request(), w)
	if err != nil {
		t.Fatal(err)
	}
	var results []json.RawMessage
	if err := json.Unmarshal(reply.JSON, &results); err != nil || len(results) != n {
		t.Fatalf("the program read %d results (%v), want %d", len(results), err, n)
	}
	if got, want := string(results[6]), `{"type":"result","id":"6","ok":true,"value":{"i":6}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(results[7]), `{"type":"result","id":"7","ok":false,"error":"no luck with 7"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A program that asks for many calls before it reads the first result does not
// lock up against results that fill its pipe.
func TestExecServesABurstOfCalls(t *testing.T) {
	e, _ := runner(t, "burst", "100")
	big := json.RawMessage(`"` + strings.Repeat("x", 60_000) + `"`)
	w := &witness{t: t, answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return big, nil }}
	reply, err := e.Run(t.Context(), request(), w)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := strconv.Atoi(string(reply.JSON)); got < 100*len(big) {
		t.Errorf("the program read %d bytes of results, want %d at least", got, 100*len(big))
	}
}

// A result that does not fit a line is told as an error: the call was done, and
// a program that waits for an answer gets one.
func TestExecTellsOfAResultTooLong(t *testing.T) {
	e, _ := runner(t, "calls", "1")
	w := &witness{t: t, answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`"` + strings.Repeat("x", turn.MaxLine) + `"`), nil
	}}
	reply, err := e.Run(t.Context(), request(), w)
	if err != nil || !strings.Contains(string(reply.JSON), "the call was done, but its result is a line of") {
		t.Errorf("got %.200s, %v", reply.JSON, err)
	}
}

// A program that closed its stdin is judged by its answer and its exit.
func TestExecTakesAProgramThatDoesNotRead(t *testing.T) {
	e, _ := runner(t, "ignore-stdin")
	reply, err := e.Run(t.Context(), request(), &witness{t: t})
	if err != nil || string(reply.JSON) != `"fine"` {
		t.Errorf("got %s, %v", reply.JSON, err)
	}
}

// A done line stands though the program has to be helped out afterwards.
func TestExecKeepsTheReplyOfAProgramThatLingers(t *testing.T) {
	e, log := runner(t, "linger")
	reply, err := e.Run(t.Context(), request(), &witness{t: t})
	if err != nil || string(reply.JSON) != `"early"` {
		t.Errorf("got %s, %v", reply.JSON, err)
	}
	inOrder(t, log.String(), "runner_program_lingered", "seat=writer", "epoch=7")
}

// What a program floods stderr with is cut in length and in number, says so, and
// costs the turn nothing.
func TestExecBoundsWhatItLogs(t *testing.T) {
	e, log := runner(t, "chatter", "20000")
	if _, err := e.Run(t.Context(), request(), &witness{t: t}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) > 2000 {
		t.Errorf("%d lines were logged", len(lines))
	}
	for _, line := range lines {
		if len(line) > 5000 {
			t.Errorf("a line of %d bytes was logged", len(line))
		}
	}
	inOrder(t, log.String(), "runner_stderr ", "endless", "line 0", "runner_stderr_suppressed")
}

// The node's own settings do not reach a program, the rest of the environment
// does, and so does the mark.
func TestExecKeepsTheNodesSettingsToItself(t *testing.T) {
	t.Setenv("TENURE_STREAM__CREDENTIALS", "secret")
	t.Setenv("ACME_KEY", "for the program")
	e, _ := runner(t, "env")
	reply, err := e.Run(t.Context(), request(), &witness{t: t})
	if err != nil {
		t.Fatal(err)
	}
	env := string(reply.JSON)
	if strings.Contains(env, "secret") || !strings.Contains(env, "ACME_KEY=for the program") {
		t.Errorf("the program got %s", env)
	}
	if !strings.Contains(env, "TENURE_CHILD=Test-data/node-0:0123abcd/writer/7/") {
		t.Errorf("the program carries no mark: %s", env)
	}
}

// A program has its three pipes and no other: not its keeper's, which carry
// orders, and nothing that the node itself was given.
func TestExecProgramInheritsNothing(t *testing.T) {
	var leaky [2]int
	if err := unix.Pipe2(leaky[:], 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaky[0])
	defer unix.Close(leaky[1])
	e, _ := runner(t, "pipes")
	reply, err := e.Run(t.Context(), request(), &witness{t: t})
	if err != nil || string(reply.JSON) != "[]" {
		t.Errorf("the program has %s, %v", reply.JSON, err)
	}
}

// What cannot start says so as its own type, and never half runs.
func TestExecTellsWhyAProgramDidNotStart(t *testing.T) {
	script := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(script, []byte("no program at all"), 0o700); err != nil {
		t.Fatal(err)
	}
	mark := turn.Mark{DataDir: "d", Incarnation: "node-0:0123abcd"}
	for name, c := range map[string]struct {
		exec turn.Exec
		says string
	}{
		"none":           {turn.Exec{Mark: mark}, "names none"},
		"not found":      {turn.Exec{Program: []string{"no-such-agent"}, Mark: mark}, "executable file not found"},
		"not a program":  {turn.Exec{Program: []string{script}, Mark: mark}, "exec format error"},
		"without a mark": {turn.Exec{Program: []string{"true"}}, "data directory id"},
		"slash in mark":  {turn.Exec{Program: []string{"true"}, Mark: turn.Mark{DataDir: "a/b", Incarnation: "n"}}, "data directory id"},
	} {
		t.Run(name, func(t *testing.T) {
			var start *turn.StartError
			_, err := c.exec.Run(t.Context(), request(), &witness{t: t})
			if !errors.As(err, &start) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want a start error that says %q", err, c.says)
			}
		})
	}
}

// A binary whose main forgot about keepers is told, and runs no second node.
func TestExecNamesAMainThatIsNoKeeper(t *testing.T) {
	t.Setenv(withoutKeeper, "1")
	e, _ := runner(t, "done")
	_, err := e.Run(t.Context(), request(), &witness{t: t})
	if err == nil || !strings.Contains(err.Error(), "turn.KeepIfAsked") {
		t.Errorf("got %v", err)
	}
}

// The price of a turn: two processes, one of them this binary again.
func BenchmarkExecTurn(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	e := turn.Exec{Program: []string{self, "behave", "done"}, Mark: turn.Mark{DataDir: "bench", Incarnation: "node-0:0123abcd"}}
	for b.Loop() {
		if _, err := e.Run(b.Context(), request(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
