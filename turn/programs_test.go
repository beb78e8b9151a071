package turn_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seat-tenure/tenure/turn"
)

const withoutKeeper = "TURN_TEST_WITHOUT_KEEPER"

// behave is a program that a runner starts: this test binary in another part.
func behave(how string, args []string) {
	p := program{in: bufio.NewReaderSize(os.Stdin, 4<<20)}
	if f, ok := behaviours[how]; ok {
		f(p, args)
		return
	}
	fmt.Fprintf(os.Stderr, "no behaviour %q\n", how)
	os.Exit(99)
}

var behaviours = map[string]func(p program, args []string){
	"done":          func(p program, _ []string) { p.done(p.turn()) },
	"say":           func(_ program, args []string) { fmt.Fprintln(os.Stdout, args[0]) },
	"exit":          exitWith,
	"pause":         func(program, []string) { pause() },
	"die":           func(program, []string) { unix.Kill(os.Getpid(), unix.SIGKILL); pause() },
	"line":          longLine,
	"calls":         manyCalls,
	"burst":         burstOfCalls,
	"fenced":        watchFence,
	"family":        family,
	"orphan":        func(_ program, args []string) { fmt.Fprintln(os.Stdout, spawn(args[0], "pause")) },
	"linger":        func(p program, _ []string) { p.done("early"); pause() },
	"crash-late":    func(p program, _ []string) { p.done("early"); os.Exit(7) },
	"chatter":       chatter,
	"close-stdout":  func(program, []string) { os.Stdout.Close(); pause() },
	"env":           func(p program, _ []string) { p.done(os.Environ()) },
	"pipes":         func(p program, _ []string) { p.done(inheritedPipes()) },
	"heir":          func(p program, _ []string) { spawn("heir", "pause"); p.done("left one behind") },
	"node":          node,
	"ignore-stdin":  func(p program, _ []string) { os.Stdin.Close(); p.call("ignored", nil); p.done("fine") },
	"marked-parent": func(program, []string) { fmt.Fprintln(os.Stdout, spawn("scrubbed", "pause")); pause() },
}

// program speaks the protocol from the other side.
type program struct{ in *bufio.Reader }

func (p program) line() (string, bool) {
	s, err := p.in.ReadString('\n')
	return strings.TrimSuffix(s, "\n"), err == nil
}

func (p program) turn() json.RawMessage {
	s, _ := p.line()
	return json.RawMessage(s)
}

func say(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(b, '\n'))
}

func (p program) done(reply any) { say(map[string]any{"type": "done", "reply": reply}) }

func (p program) call(tool string, args any) {
	say(map[string]any{"type": "call", "id": "1", "tool": tool, "args": args})
}

// report tells the test something and waits until it was taken note of.
func (p program) report(what any) {
	p.turn()
	p.call("report", what)
	p.line()
}

// inheritedPipes lists the pipes it has beside stdin, stdout and stderr.
func inheritedPipes() []string {
	found := []string{}
	for fd := 3; fd < 256; fd++ {
		if to, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); err == nil && strings.HasPrefix(to, "pipe:") {
			found = append(found, to)
		}
	}
	return found
}

func pause() {
	for {
		unix.Pause()
	}
}

func exitWith(_ program, args []string) {
	code, _ := strconv.Atoi(args[0])
	for _, line := range args[1:] {
		fmt.Fprintln(os.Stderr, line)
	}
	os.Exit(code)
}

// longLine writes a done line of exactly so many bytes.
func longLine(_ program, args []string) {
	size, _ := strconv.Atoi(args[0])
	frame := len(`{"type":"done","reply":""}`)
	fmt.Fprintf(os.Stdout, `{"type":"done","reply":"%s"}`+"\n", strings.Repeat("x", size-frame))
	pause() // it does not help itself out of this by exiting
}

// manyCalls asks for one call after another and replies with the results.
func manyCalls(p program, args []string) {
	n, _ := strconv.Atoi(args[0])
	p.turn()
	results := make([]json.RawMessage, 0, n)
	for i := range n {
		say(map[string]any{"type": "call", "id": strconv.Itoa(i), "tool": "count", "args": map[string]int{"i": i}})
		result, ok := p.line()
		if !ok {
			os.Exit(1)
		}
		results = append(results, json.RawMessage(result))
	}
	p.done(results)
}

// burstOfCalls asks for all its calls before it reads the first result.
func burstOfCalls(p program, args []string) {
	n, _ := strconv.Atoi(args[0])
	p.turn()
	for i := range n {
		say(map[string]any{"type": "call", "id": strconv.Itoa(i), "tool": "count"})
	}
	bytes := 0
	for range n {
		result, _ := p.line()
		bytes += len(result)
	}
	p.done(bytes)
}

// watchFence says on stderr, in order, what an end brings.
func watchFence(p program, _ []string) {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	p.report("up")
	p.call("more", nil)
	for {
		line, ok := p.line()
		if !ok {
			fmt.Fprintln(os.Stderr, "saw the end of stdin")
			break
		}
		fmt.Fprintln(os.Stderr, "saw "+line)
	}
	<-terms
	fmt.Fprintln(os.Stderr, "saw SIGTERM")
	os.Exit(0)
}

// family starts a child, and a grandchild that leaves in the way args[0] says;
// it reports the pids of all and then goes on as args[1] says.
func family(p program, args []string) {
	child := spawn("heir", "pause")
	middle := exec.Command(os.Args[0], "behave", "orphan", args[0])
	out, err := middle.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	orphan, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	terms := make(chan os.Signal, 1)
	if args[1] == "stubborn" { // before the report, which may bring the SIGTERM
		signal.Notify(terms, syscall.SIGTERM)
	}
	p.report([]int{os.Getpid(), child, orphan, os.Getppid()})
	switch args[1] {
	case "done":
		p.done("all born")
	case "pause":
		pause()
	case "stubborn": // neither looks at stdin nor gives in
		for range terms {
			fmt.Fprintln(os.Stderr, "no thanks")
		}
	}
}

// spawn starts this binary again and lets go of it.
//   - heir: with everything inherited, stdout too
//   - plain: with the session and the mark inherited
//   - marked: in a session of its own, with the mark
//   - scrubbed: in a session of its own, with an empty environment
func spawn(how, behaviour string) int {
	cmd := exec.Command(os.Args[0], "behave", behaviour)
	switch how {
	case "heir":
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	case "scrubbed":
		cmd.Env = []string{"PATH=/nowhere"}
		fallthrough
	case "marked":
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return cmd.Process.Pid
}

// chatter floods stderr, with one endless line too.
func chatter(p program, args []string) {
	n, _ := strconv.Atoi(args[0])
	w := bufio.NewWriter(os.Stderr)
	fmt.Fprintln(w, strings.Repeat("endless ", 10_000))
	for i := range n {
		fmt.Fprintln(w, "line", i)
	}
	w.Flush()
	p.done(nil)
}

// node is a node that runs three turns at once until it is killed. It prints the
// pids that its programs report, and exits with 75 when its stdin says so.
func node(_ program, args []string) {
	programs := [][]string{{"family", "scrubbed", "stubborn"}, {"family", "marked", "pause"}, {"family", "scrubbed", "pause"}}
	for i, p := range programs {
		e := turn.Exec{
			Program: append([]string{os.Args[0], "behave"}, p...),
			Mark:    turn.Mark{DataDir: args[0], Incarnation: "node-0:00000001"},
		}
		go func() {
			_, err := e.Run(context.Background(), turn.Request{Seat: fmt.Sprint("seat-", i), Epoch: 1}, announce{})
			fmt.Fprintln(os.Stderr, "a run ended:", err)
		}()
	}
	if b, _ := io.ReadAll(os.Stdin); string(b) == "wedged" {
		os.Exit(75)
	}
	pause()
}

// announce prints what a program reports and leaves it waiting.
type announce struct{}

func (announce) Call(ctx context.Context, _, _ string, args json.RawMessage) (json.RawMessage, error) {
	fmt.Fprintln(os.Stdout, string(args))
	<-ctx.Done()
	return nil, ctx.Err()
}
