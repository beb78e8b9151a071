package robust_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// auditLimit bounds the audit and the export of a whole run.
const auditLimit = 2 * time.Minute

// audited has the program itself judge the history: live, and from an export that
// is kept for the other judges (conventions, "Export").
func (w *world) audited(ctx context.Context) {
	n := w.nodes[nodeCount-1]
	for _, args := range [][]string{
		{"audit"},
		{"event", "export", "--file", w.export()},
		{"audit", "--file", w.export()},
	} {
		out, err := w.tenureCLI(ctx, n, auditLimit, args...)
		if err != nil {
			w.fail("%v", err)
			continue
		}
		if args[0] == "audit" {
			w.say("tenure %s: %s", args[0], firstLine(out))
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// stopAll ends the fleet as an operator would: the clients first, since a broker
// that is gone cannot take what they give back.
func (w *world) stopAll() {
	for _, some := range [][]*node{w.nodes[brokers:], w.nodes[:brokers]} {
		done := make(chan error, len(some))
		for _, n := range some {
			go func() { done <- n.end(syscall.SIGTERM, stopLimit) }()
		}
		for range some {
			if err := <-done; err != nil {
				w.note("%v", err)
			}
		}
	}
}

// down ends whatever still runs, and waits for who waits for it.
func (w *world) down() {
	for _, n := range w.nodes {
		n.mu.Lock()
		if n.cmd != nil {
			_ = n.cmd.Process.Signal(syscall.SIGCONT)
		}
		n.mu.Unlock()
		_ = n.end(syscall.SIGKILL, 0)
	}
	w.waiters.Wait()
}

// crash is how a Go program ends that has a bug, or whose mapped file has no disk
// under it.
var crash = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|unexpected fault address .*)$`)

// unwritten is the line in which a node says that a completion was not written.
var unwritten = regexp.MustCompile(`msg=completion_unwritten seat=(\S+) .*?events="?\[([^\]]*)\]`)

// brokeOff is the line in which a node says that work failed after a call of it had
// reached outside.
var brokeOff = regexp.MustCompile(`msg=turn_broke_after_acting seat=(\S+) .*?event=(\S+)`)

// brokeOff are the works that failed so.
func (w *world) brokeOff() map[string]bool {
	told := map[string]bool{}
	for _, n := range w.nodes {
		for _, m := range brokeOff.FindAllStringSubmatch(n.logText(), -1) {
			told[workID(m[1], m[2])] = true
		}
	}
	return told
}

// readLogs looks for ends that no fault explains, and returns the works whose
// completions could not be written.
func (w *world) readLogs() map[string]bool {
	told := map[string]bool{}
	ends := map[string]int{}
	for _, n := range w.nodes {
		for _, m := range unwritten.FindAllStringSubmatch(n.logText(), -1) {
			for _, id := range strings.Fields(m[2]) {
				told[workID(m[1], id)] = true
			}
		}
		for _, m := range crash.FindAllString(n.logText(), -1) {
			if strings.HasPrefix(m, "unexpected fault address") || strings.HasPrefix(m, "fatal error: fault") {
				w.note("%s: %s (a mapped file on a full disk)", n.id, m)
				continue
			}
			w.fail("%s: %s", n.id, m)
		}
		for how, times := range n.exits {
			ends[how] += times
		}
	}
	for _, how := range slices.Sorted(maps.Keys(ends)) {
		w.note("%d processes ended with %s", ends[how], how)
	}
	return told
}

// judge holds the evidence against the rules and prints what there is.
func (w *world) judge(e *evidence, done *tally) {
	report := &strings.Builder{}
	verdict := func(rule, detail string, violations []string) {
		word := "holds"
		if len(violations) > 0 {
			word = "BROKEN"
		}
		fmt.Fprintf(report, "  %-48s %-7s %s\n", rule, word, detail)
		for i, v := range violations {
			if i == 20 {
				w.fail("%d more of this rule", len(violations)-i)
				break
			}
			w.fail("%s", v)
		}
	}
	calls, turns := 0, 0
	for _, r := range e.records {
		if letThrough(r) {
			calls++
		}
		if r.Kind == recBegin {
			turns++
		}
	}
	epochs, excused := judgeEpochs(e)
	verdict("no call under an older epoch after a newer one", fmt.Sprintf("%d turns, %d calls, %d excused by a pause no clock shows", turns, calls, excused), epochs)
	lost, n := judgeMail(e)
	verdict("acknowledged mail has its effect", fmt.Sprintf("%d acknowledged, %d sent by agents, %d once, %d again after a fault, %d recorded as failed, %d with a completion that could not be written and was reported",
		n.acked, n.relayed, n.once, n.again, n.failed, n.unwritten), lost)
	reads := judgeReads(e)
	verdict("answers are the log at their position", fmt.Sprintf("%d answers about every seat", len(e.reads)), reads)
	leases, operations := judgeLeases(e)
	verdict("each seat has one lease, in real time", fmt.Sprintf("%d operations", operations), leases)

	total, table := 0, &strings.Builder{}
	for _, r := range kindRows {
		d, not := done.done[r.kind], done.not[r.kind]
		if d+not == 0 || strings.Contains(table.String(), "  "+string(r.kind)+"  ") {
			continue
		}
		total += d
		fmt.Fprintf(table, "  %-40s  %4d", string(r.kind)+"  ", d)
		if not > 0 {
			fmt.Fprintf(table, "   %d not done", not)
		}
		fmt.Fprintln(table)
	}
	w.say("%d faults\n%s%s%d violations", total, table, report, len(w.violations))
}
