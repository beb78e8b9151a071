package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/audit"
)

// startLimit is how long a test waits for what a node does at once on an idle machine.
const startLimit = 60 * time.Second

// The verbs against a real node: what each asks for is what the API and /events
// give, from the first mail to the audit of all that it caused.
func TestCLIAgainstARealNode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node")
	}
	node := startNode(t, "dev", "--ephemeral", "--listen", "127.0.0.1:0")
	node.awaitHeld(0, 5, startLimit)

	var sent sendResult
	node.must(&sent, "send", "writer", "--data", `{"text":"hello","n":12345678901234567890}`, "--id", "order-1", "--conversation", "launch", "--wait", "-o", "json")
	if c := sent.Completion; c == nil || c.Outcome != "done" || !strings.Contains(string(c.Reply), "12345678901234567890") {
		t.Errorf("send: got %+v, want a completion whose reply has the number whole", sent.Completion)
	}
	if _, errs, code := node.tenure("send", "writr"); code != exitFailed || !strings.Contains(errs, "did you mean writer?") {
		t.Errorf("send to nobody: got code %d and %q", code, errs)
	}

	var fleet apiFleet
	node.must(&fleet, "fleet", "-o", "json")
	if fleet.SeatCount != 5 || fleet.HeldCount != 5 || len(fleet.Nodes) != 1 || fleet.Nodes[0].State != "READY" || fleet.LeaseTTL != "PT45S" {
		t.Errorf("fleet: got %+v", fleet)
	}
	for verb, want := range map[string]string{
		"fleet":            `(?s)seats +5 of 5 held\nunplaceable +-\nlease +45s\n\nNODE +STATE +SEATS +REVISION +ROLES +LABELS\ndev +READY +5 +1 `,
		"node ls":          `(?m)^dev +READY +5 .* in \d+m?s +dev:[0-9a-f]{8}$`,
		"seat ls":          `(?m)^writer +HELD +dev +1 +\d+m?s ago `,
		"seat show writer": `(?s)expires +in \d+m?s.*in force`,
	} {
		if got := node.must(nil, strings.Fields(verb)...); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: got\n%swant %s", verb, got, want)
		}
	}
	if got := node.must(nil, "seat", "ls", "--state", "unowned", "-o", "jsonl"); got != "" {
		t.Errorf("seats that nobody holds: got %s, want none", got)
	}

	tailUntil(t, node, "WORK", "turn-completed", []string{"event", "tail", "--stream", "work", "--seat", "writer"})
	tailUntil(t, node, "FLEET", "seat-established", []string{"event", "tail", "--after", "0", "--seat", "lead"})

	file := filepath.Join(t.TempDir(), "history.jsonl")
	node.must(nil, "event", "export", "--file", file)
	var offline, live audit.Report
	node.must(&offline, "audit", "--file", file, "-o", "json")
	node.must(&live, "audit", "-o", "json")
	for name, r := range map[string]audit.Report{"of the export": offline, "of the node": live} {
		if !r.OK() || r.Seats != 5 || r.Tenures < 5 || r.Chain == "" {
			t.Errorf("audit %s: got %+v", name, r)
		}
	}
}

// tailUntil follows until an event of that type was shown.
func tailUntil(t *testing.T, node *process, stream, kind string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	seen := false
	stdout := writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte(kind)) {
			seen = true
			cancel()
		}
		return len(b), nil
	})
	var stderr bytes.Buffer
	code := run(ctx, append([]string{"--addr", node.url}, args...), nil, stdout, &stderr)
	if code != exitFine || !seen || stderr.Len() > 0 {
		t.Errorf("tail of %s: got code %d, saw %s: %v, stderr %q", stream, code, kind, seen, stderr.String())
	}
}
