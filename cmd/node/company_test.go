package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// companyFile writes a company of echo seats, each with what its line adds.
func companyFile(t *testing.T, name string, seats ...string) string {
	t.Helper()
	text := "# Acme\ncompany: {name: Acme}\nroles:\n"
	for _, s := range seats {
		text += "  - {" + s + "}\n"
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func seatLine(handle, more string) string {
	return "handle: " + handle + ", runner: {echo: {}}" + more
}

// revisions is the revision that each node of a fleet says it has applied.
func revisions(p *process) map[string]int {
	var fleet struct {
		Nodes []struct {
			ID              string
			CompanyRevision int
		}
	}
	p.must(&fleet, "fleet", "-o", "json")
	got := map[string]int{}
	for _, n := range fleet.Nodes {
		got[n.ID] = n.CompanyRevision
	}
	return got
}

// TestCompanyApplyOnAFleet follows an apply through a fleet of two processes: it
// is made on one node, both say that they have it, the seat that was removed is
// given up for that reason and its mail is kept, the added one is claimed and
// works, the one that is placed elsewhere goes there; a second apply over the old
// revision is refused and told which is in force; and a node that is restarted
// with the file that it was started with undoes nothing (P5, R1, H4, U2).
func TestCompanyApplyOnAFleet(t *testing.T) {
	url := externalBroker(t)
	first := companyFile(t, "company.yaml", seatLine("lead", ", placement: {node: a}"), seatLine("writer", ", placement: {node: a}"))
	a, b := startFleetNode(t, "a", url, first), startFleetNode(t, "b", url, first)
	a.awaitHeld(0, 2, 30*time.Second)

	second := companyFile(t, "second.yaml", seatLine("lead", ", placement: {node: b}"), seatLine("editor", ""))
	var diff applyResult
	b.must(&diff, "company", "diff", second, "-o", "json")
	if fmt.Sprint(diff.Added, diff.Removed, diff.Moved, diff.Revision) != "[editor] [writer] [lead] <nil>" {
		t.Errorf("the diff is %+v", diff)
	}
	markA, markB := a.mark(), b.mark()
	b.must(nil, "company", "apply", second, "--expected-revision", "1", "--reason", "an editor")
	gone := a.awaitFrom(markA, 30*time.Second, `msg=seat_released_role_gone .*seat=writer`)
	if gone == "" {
		t.Error("the removed seat was not given up for that")
	}
	b.awaitFrom(markB, 30*time.Second, `msg=seat_attached .*seat=lead`)
	b.must(nil, "send", "editor", "--wait")
	eventually(t, 30*time.Second, "both nodes say that they have revision 2", func() bool {
		got := revisions(a)
		return got["a"] == 2 && got["b"] == 2
	})
	if _, stderr, code := a.tenure("send", "writer"); code != exitFailed || !strings.Contains(stderr, "the company has no seat") {
		t.Errorf("mail to a removed seat: %d %s", code, stderr)
	}

	_, stderr, code := a.tenure("company", "apply", first, "--expected-revision", "1", "--reason", "the old one")
	if code != exitFailed || !strings.Contains(stderr, "revision 2 is in force") {
		t.Errorf("a stale apply ended with %d:\n%s", code, stderr)
	}
	want, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if shown, _, _ := a.tenure("company", "show", "--revision", "1"); shown != string(want) {
		t.Errorf("revision 1 is shown as\n%s\nwant\n%s", shown, want)
	}
	list, _, _ := a.tenure("company", "revisions")
	if !regexp.MustCompile(`(?s)REVISION.*\n2 .* anonymous@\S+ +an editor\n1 .* - +-\n`).MatchString(list) {
		t.Errorf("the revisions are\n%s", list)
	}

	if code := a.stop(); code != 0 {
		t.Fatalf("a ended with %d", code)
	}
	again := startFleetNode(t, "a", url, first)
	again.await(30*time.Second, `msg=company_file_superseded .*revision=2`)
	eventually(t, 30*time.Second, "the restarted node has revision 2", func() bool { return revisions(b)["a"] == 2 })
}

// TestRemovedSeatKeepsItsMail proves that mail that waits for a seat stays when
// the seat is removed, and is worked on once it is back (R1, U2, D1).
func TestRemovedSeatKeepsItsMail(t *testing.T) {
	t.Parallel()
	h := hostNode(t, hostedConfig(t, "a", natstest.R1(t).Server(0).NodeURL()), echoes(2, ""))
	awaitShares(t, 30*time.Second, []*hosted{h}, 2)
	apply := func(n int) {
		t.Helper()
		_, next, err := packCompany("company.yaml", echoes(n, ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.shell.Apply(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	apply(1)
	awaitShares(t, 30*time.Second, []*hosted{h}, 1)
	if err := post(t.Context(), h.shell, seatName(1), "late"); err != nil { // as a client of the broker may
		t.Fatal(err)
	}
	apply(2)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done, err := h.views.AwaitCompletion(ctx, seatName(1), "late")
	if err != nil || done.Outcome != events.OutcomeDone {
		t.Errorf("the mail of a seat that is back: %+v, %v", done, err)
	}
}

// TestUnreadableRevision proves that a node that cannot read a revision keeps what
// it runs, the seats that the revision removes too, claims none of its new ones,
// judges nothing absent, says which revision it is at, and goes on with the next
// one that it can read (P10, R5).
func TestUnreadableRevision(t *testing.T) {
	t.Parallel()
	h := hostNode(t, hostedConfig(t, "a", natstest.R1(t).Server(0).NodeURL()), echoes(2, ""))
	awaitShares(t, 30*time.Second, []*hosted{h}, 2)
	_, next, err := packCompany("company.yaml", append([]byte("# of a newer build\n"), echoes(3, "")...))
	if err != nil {
		t.Fatal(err)
	}
	unreadable := next
	unreadable.Digest, unreadable.Document, unreadable.Seats = "d", []byte("packed otherwise"), next.Seats[1:]
	for _, s := range unreadable.Seats { // as the newer build's nodes do
		if err := h.cursors.Register(t.Context(), s.Handle, s.AgentID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.shell.Apply(t.Context(), unreadable); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the node says that it cannot read it", func() bool { return h.logs.count(`msg=company_unreadable .*revision=2`) > 0 })
	if _, err := (fleetSight{h.node}).Roster(t.Context()); err == nil || !strings.Contains(err.Error(), "revision 1") {
		t.Errorf("it judges by revision 1 what is absent: %v", err)
	}
	if h.converged() {
		t.Error("it takes itself for converged")
	}
	if got := len(h.host.Held()); got != 2 {
		t.Errorf("it runs %d seats, want the 2 that it had", got)
	}
	// Passes that do nothing tell nobody of it, so three of them are waited out.
	again := time.NewTimer(3 * h.cfg.Seat.SweepInterval)
	defer again.Stop()
	<-again.C
	if got := h.host.Held(); len(got) != 2 || got[0] != seatName(0) {
		t.Errorf("after three passes it runs %q, want what it had", got)
	}
	if _, err := h.shell.Apply(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	awaitShares(t, 30*time.Second, []*hosted{h}, 3)
	if n := h.logs.count(`msg=seat_released_role_gone`); n > 0 {
		t.Errorf("%d seats were given up by a revision that it could not read", n)
	}
}

// TestCompanyValidate proves that a document is judged without a node, all that
// is wrong with it is listed with line and column, and a good one is told so.
func TestCompanyValidate(t *testing.T) {
	good := companyFile(t, "good.yaml", seatLine("lead", ""), "handle: boss, kind: human")
	bad := companyFile(t, "bad.yaml", seatLine("team.lead", ""), seatLine("Team", ""), seatLine("a b", ""), seatLine("übung", ""),
		seatLine("dev", ""), seatLine("dev", ""), "handle: ops, runner: {echo: {}}, colour: red")
	for _, tt := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{good}, exitFine, []string{"Acme", "seats    1", "humans   1"}},
		{[]string{bad}, exitBadConfig, []string{"bad.yaml:4:", "bad.yaml:5:", "bad.yaml:6:", "bad.yaml:7:", "bad.yaml:9:", "bad.yaml:10:", "dev stands twice, at line 8 and line 9", "colour"}},
		{[]string{bad, "-o", "json"}, exitBadConfig, []string{`"line": 4`, `"line": 10`, `"fix":`}},
		{[]string{good + ".missing"}, exitFailed, []string{"no such file"}},
		{nil, exitUsage, []string{"one company file"}},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), append([]string{"company", "validate"}, tt.args...), strings.NewReader(""), &stdout, &stderr)
		for _, want := range tt.says {
			if all := stdout.String() + stderr.String(); !strings.Contains(all, want) {
				t.Errorf("%v does not say %q:\n%s", tt.args, want, all)
			}
		}
		if code != tt.code {
			t.Errorf("%v ended with %d, want %d", tt.args, code, tt.code)
		}
	}
}

// TestRunnerChangesWhileATurnRuns proves that a turn in flight ends on the runner
// that it began with, that the next one has the new runner, and that the seat
// stays where it is, under its tenure.
func TestRunnerChangesWhileATurnRuns(t *testing.T) {
	dir, url := agentDir(t), externalBroker(t)
	a := startFleetNode(t, "a", url, gated(t, "calls", dir))
	a.awaitHeld(0, 2, 30*time.Second)
	a.must(nil, "send", "worker", "--id", "old")
	a.await(30*time.Second, `msg=turn_started .*event=old`)
	awaitNote(t, dir, "worker call 1 epoch 1")

	a.must(nil, "company", "apply", companyFile(t, "echo.yaml", seatLine("worker", ""), seatLine("sink", "")), "--reason", "it echoes from now on")
	eventually(t, 30*time.Second, "the node has revision 2", func() bool { return revisions(a)["a"] == 2 })
	openGate(t, dir, 1)
	var first, next completionJSON
	a.must(&first, "send", "worker", "--id", "old", "--wait", "-o", "json")
	if all := notes(t, dir); !strings.Contains(all, "worker done epoch 1") || first.Completion.Attempts != 1 {
		t.Errorf("the turn in flight ended after %d attempts; the program noted:\n%s", first.Completion.Attempts, all)
	}
	before := notes(t, dir)
	a.must(&next, "send", "worker", "--id", "new", "--wait", "-o", "json")
	if all := notes(t, dir); all != before || next.Completion.Outcome != "done" || next.Completion.Epoch != "1" {
		t.Errorf("the next turn ended %+v; the program noted besides:\n%s", next.Completion, strings.TrimPrefix(all, before))
	}
}
