package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agentCode is the program that test seats run, when the binary was started as
// one: `BINARY test-agent BEHAVIOUR DIR`. It speaks the exec runner's protocol
// and leaves what it did in DIR, where the test, and not the node, reads it.
//
//	gate      waits for the test between start and done
//	stubborn  as gate, and does not go when it is asked to
//	calls     sends mail, waits for the test, sends again, done
//	busy      makes calls until one is refused; under a later epoch than 1, done
func agentCode() (code int, is bool) {
	if len(os.Args) != 4 || os.Args[1] != "test-agent" {
		return 0, false
	}
	return runAgent(os.Args[2], os.Args[3]), true
}

type agentTurn struct {
	Seat    string `json:"seat"`
	Epoch   uint64 `json:"epoch"`
	Attempt int    `json:"attempt"`
	Events  []struct {
		ID string `json:"id"`
	} `json:"events"`
}

func runAgent(behaviour, dir string) int {
	in := bufio.NewReader(os.Stdin)
	var turn agentTurn
	line, err := in.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &turn) != nil {
		return 1
	}
	note(dir, "%s started epoch %d attempt %d event %s", turn.Seat, turn.Epoch, turn.Attempt, turn.Events[0].ID)
	switch behaviour {
	case "busy":
		if turn.Epoch == 1 {
			return beBusy(in, dir, turn)
		}
		behaviour = ""
	case "calls":
		call(in, dir, turn, 1)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		note(dir, "%s stays", turn.Seat)
	}
	if behaviour != "" {
		passGate(dir, turn.Epoch)
	}
	if behaviour == "calls" {
		call(in, dir, turn, 2)
	}
	note(dir, "%s done epoch %d", turn.Seat, turn.Epoch)
	fmt.Printf(`{"type":"done","reply":{"epoch":%d}}`+"\n", turn.Epoch)
	return 0
}

// call sends mail to the seat "sink" and notes the node's answer.
func call(in *bufio.Reader, dir string, turn agentTurn, n int) {
	fmt.Printf(`{"type":"call","id":"%d","tool":"send","args":{"to":"sink","data":{"n":%d}}}`+"\n", n, n)
	line, err := in.ReadString('\n')
	if err != nil {
		line = err.Error()
	}
	note(dir, "%s call %d epoch %d answer %q", turn.Seat, n, turn.Epoch, line)
}

// beBusy asks for a seat's status again and again, and notes each call that was
// let through and when, until one is refused.
func beBusy(in *bufio.Reader, dir string, turn agentTurn) int {
	for n := 1; ; n++ {
		fmt.Printf(`{"type":"call","id":"%d","tool":"seat_status","args":{"seat":"sink"}}`+"\n", n)
		line, err := in.ReadString('\n')
		if err != nil || !strings.Contains(line, `"ok":true`) {
			return 1
		}
		note(dir, "%s called epoch %d at %d", turn.Seat, turn.Epoch, time.Now().UnixNano())
		<-time.After(5 * time.Millisecond)
	}
}

// note appends one line, whole, to the file that the test reads.
func note(dir, format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(dir, "notes"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(9)
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}

// gatePath is a FIFO: opening it for reading waits until the test opens it.
func gatePath(dir string, epoch uint64) string {
	return filepath.Join(dir, fmt.Sprintf("gate-%d", epoch))
}

func passGate(dir string, epoch uint64) {
	f, err := os.Open(gatePath(dir, epoch))
	if err == nil {
		_ = f.Close()
	}
}

// agentDir makes the folder of a test agent, with gates for the first epochs.
func agentDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for epoch := uint64(1); epoch <= 8; epoch++ {
		if err := syscall.Mkfifo(gatePath(dir, epoch), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// openGate lets the agent of that epoch go on, whether it stands there already
// or comes later. Opened for both ways a FIFO blocks nobody, and a writer that
// stays keeps it open.
func openGate(t *testing.T, dir string, epoch uint64) {
	t.Helper()
	f, err := os.OpenFile(gatePath(dir, epoch), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
}

// notes returns what the agents noted.
func notes(t *testing.T, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "notes"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}
