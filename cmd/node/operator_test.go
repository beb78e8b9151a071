package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/events"
)

// echoCompany is a company file with that many seats, s1 and so on, whose agents
// echo and may run anywhere.
func echoCompany(t *testing.T, seats int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("company: {name: Acme}\nroles:\n")
	for i := range seats {
		fmt.Fprintf(&b, "  - {handle: s%d, title: Seat, kind: agent, runner: {echo: {}}}\n", i+1)
	}
	path := filepath.Join(t.TempDir(), "company.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pair is a fleet of two nodes on one broker, and what operators do to it.
type pair struct {
	t     *testing.T
	nodes map[string]*process

	read   uint64            // of FLEET
	holder map[string]string // seat → node, there
	moving int               // handoffs that are open, there
}

func startPair(t *testing.T, seats int) *pair {
	url, company := externalBroker(t), echoCompany(t, seats)
	return &pair{t: t, holder: map[string]string{}, nodes: map[string]*process{
		"a": startFleetNode(t, "a", url, company), "b": startFleetNode(t, "b", url, company),
	}}
}

// until reads on in the log, to that position at least, until who serves what is
// as it should be.
func (p *pair) until(position uint64, ok func() bool) {
	p.t.Helper()
	if p.read >= position && ok() {
		return
	}
	c := program()
	c.addr, c.timeout = p.nodes["b"].url, startLimit
	cl, err := c.client(&cobra.Command{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer cl.close()
	ctx, cancel := context.WithTimeout(p.t.Context(), startLimit)
	defer cancel()
	err = cl.watchFleet(ctx, p.read, func(r events.Recorded) (bool, error) {
		p.read = r.Seq
		switch e := r.Event.(type) {
		case events.SeatEstablished:
			p.holder[e.Handle] = e.Owner.NodeID()
		case events.LeaseReleased:
			delete(p.holder, e.Lease.ID)
		case events.LeaseFenced:
			delete(p.holder, e.Lease.ID)
		case events.HandoffRequested:
			p.moving++
		case events.HandoffCompleted, events.HandoffDeclined, events.HandoffAbandoned:
			p.moving--
		}
		return r.Seq >= position && ok(), nil
	})
	if err != nil {
		p.t.Fatalf("the fleet did not come to be so: %v; it is %v", err, p.holder)
	}
}

// level asks b until its read model is as far as was read here. It answers at
// once, and lags by milliseconds.
func (p *pair) level() {
	p.t.Helper()
	for range 1000 {
		var f apiFleet
		p.nodes["b"].must(&f, "fleet", "-o", "json")
		var at uint64
		if _, err := fmt.Sscan(f.AsOf.Position, &at); err != nil {
			p.t.Fatal(err)
		}
		if at >= p.read {
			return
		}
	}
	p.t.Fatal("b's read model does not come to the position that its events have")
}

// seats lists what a node serves, as far as was read.
func (p *pair) seats(node string) []string {
	var handles []string
	for handle, holder := range p.holder {
		if holder == node {
			handles = append(handles, handle)
		}
	}
	slices.Sort(handles)
	return handles
}

// shared says that five seats are served, neither node over its share of them.
func (p *pair) shared() bool {
	a, b := len(p.seats("a")), len(p.seats("b"))
	return a+b == 5 && max(a, b) == 3
}

func other(node string) string { return map[string]string{"a": "b", "b": "a"}[node] }

// runs is what a node itself says it runs.
func runs(t *testing.T, node *process) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, node.url+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var health struct{ Seats json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&health); err != nil {
		t.Fatal(err)
	}
	return string(health.Seats)
}

// refused runs a command that must be refused with that code.
func (p *pair) refused(code string, args ...string) {
	p.t.Helper()
	out, errs, exit := p.nodes["b"].tenure(args...)
	if exit != exitFailed || !strings.Contains(errs, "("+code+")") {
		p.t.Errorf("%s: got exit %d, %s%s; want it refused with %s", strings.Join(args, " "), exit, out, errs, code)
	}
}

// TestOperatorsWork: of two nodes on one broker, a seat is moved from one to the
// other by way of either; a node is drained from the other while mail flows, and
// every mail is worked on once; drained it claims nothing until it is uncordoned;
// a paused seat runs nothing, also where it moved to, until it is resumed; a
// fenced holder stops, and a successor takes over when its time is over; what
// names nothing, or comes too late, is refused by name; and the history of it
// all stands the audit (P6, P8, P13, H3, design §5).
func TestOperatorsWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a fleet")
	}
	p := startPair(t, 5)
	p.until(0, p.shared)
	fuller := "a"
	if len(p.seats("b")) == 3 {
		fuller = "b"
	}
	ask := p.nodes[other(fuller)] // who does not hold it: the command goes over the bus
	moving, stays := p.seats(fuller)[0], p.seats(fuller)[1]
	var moved struct{ SagaID, DarkFor string }
	ask.must(&moved, "seat", "move", moving, "--to", other(fuller), "--reason", "test", "--wait=30s", "-o", "json")
	if !strings.HasPrefix(moved.SagaID, moving+".") || !strings.HasPrefix(moved.DarkFor, "PT") {
		t.Errorf("move: got %+v", moved)
	}
	p.until(0, func() bool { return p.holder[moving] == other(fuller) && p.shared() })
	p.refused("ALREADY_HERE", "seat", "move", moving, "--to", other(fuller), "--reason", "again")
	p.refused("NO_ROOM", "seat", "move", stays, "--to", other(fuller), "--reason", "too many")
	p.refused("UNKNOWN_NODE", "seat", "move", moving, "--to", "aa", "--reason", "typo")
	p.refused("UNKNOWN_SEAT", "seat", "pause", "s11", "--reason", "typo")

	p.drained(p.seats("a")[0])
	p.uncordoned()
	p.fenced()

	p.nodes["a"].stop()
	p.refused("DEPARTED_NODE", "node", "drain", "a", "--reason", "too late")
	p.nodes["b"].must(nil, "audit")
}

// drained empties a while mail flows. The seat named held is paused meanwhile.
func (p *pair) drained(held string) {
	p.t.Helper()
	a, b := p.nodes["a"], p.nodes["b"]
	b.must(nil, "seat", "pause", held, "--reason", "hold its mail")
	b.must(nil, "send", held, "--id", "held-1")
	had := len(p.seats("a"))

	const mails, at = 50, 10 // at once
	var sent, flowing sync.WaitGroup
	flowing.Add(at)
	ids := make(chan int, mails)
	for i := range mails {
		ids <- i
	}
	close(ids)
	for w := range at {
		sent.Go(func() {
			once := sync.OnceFunc(flowing.Done)
			defer once()
			for i := range ids {
				seat := fmt.Sprintf("s%d", i%5+1)
				if seat == held {
					seat = fmt.Sprintf("s%d", (i+1)%5+1)
				}
				out, errs, code := p.nodes[[]string{"a", "b"}[w%2]].tenure("send", seat, "--id", fmt.Sprintf("mail-%d", i), "--wait=60s", "-o", "jsonl")
				if code != 0 || !strings.Contains(out, `"outcome":"done"`) || !strings.Contains(out, `"attempts":1,`) {
					p.t.Errorf("mail-%d to %s: exit %d %s%s; want it done in one turn", i, seat, code, out, errs)
				}
				once()
			}
		})
	}
	flowing.Wait() // each of the senders has had a first answer
	var done struct {
		Node  string
		Seats int
	}
	b.must(&done, "node", "drain", "a", "--deadline", "60s", "--reason", "test", "-o", "json")
	a.await(30*time.Second, `msg=node_drained`) // the answer to the last release has come
	if left := runs(p.t, a); done.Seats != had || left != "[]" {
		p.t.Errorf("drained: got %+v with %s left, want %d seats given up", done, left, had)
	}
	sent.Wait()
	p.until(0, func() bool { return p.moving == 0 && len(p.seats("b")) == 5 })
	p.level()
	var l sagaList
	b.must(&l, "saga", "ls", "-o", "json")
	drains := 0
	for _, s := range l.Sagas {
		if s.Outcome == nil || *s.Outcome != "COMPLETED" || s.DarkFor == nil {
			p.t.Errorf("saga: got %+v, want it completed", s)
			continue
		}
		if *s.Reason == "drain" {
			drains++
		}
	}
	if drains != done.Seats {
		p.t.Errorf("%d handoffs are a drain's, want %d: %+v", drains, done.Seats, l.Sagas)
	}

	resumed := time.Now()
	b.must(nil, "seat", "resume", held, "--reason", "go on")
	var ran sendResult
	a.must(&ran, "send", held, "--id", "held-1", "--wait=30s", "-o", "json")
	if c := ran.Completion; c == nil || *c.Node != "b" || *c.Attempts != 1 || c.At.Before(resumed) {
		p.t.Errorf("the resumed seat: got %+v, want its mail run by b, once, and not before it was resumed", c)
	}
}

// uncordoned: the drained node leaves alone what is free, until it may claim.
func (p *pair) uncordoned() {
	p.t.Helper()
	a, b := p.nodes["a"], p.nodes["b"]
	if got := b.must(nil, "node", "ls"); !strings.Contains(got, "a     CORDONED  0") {
		p.t.Errorf("node ls: got\n%s", got)
	}
	beforeA, beforeB := a.mark(), b.mark()
	a.must(nil, "seat", "release", "s1", "--reason", "test")
	b.awaitFrom(beforeB, 20*time.Second, `msg=seat_attached .*seat=s1`)
	if fresh, _ := a.logs.from(beforeA); strings.Contains(strings.Join(fresh, "\n"), "msg=seat_claimed") {
		p.t.Errorf("the cordoned node claimed a seat")
	}
	b.must(nil, "node", "uncordon", "a", "--reason", "test")
	p.until(0, func() bool { return len(p.seats("a")) == 2 && p.shared() })
}

// fenced: a holder that is fenced stops, and somebody else's tenure follows.
func (p *pair) fenced() {
	p.t.Helper()
	victim, mark := p.seats("b")[0], p.nodes["b"].mark()
	p.nodes["a"].must(nil, "seat", "fence", victim, "--reason", "test")
	p.refused("ALREADY_FENCED", "seat", "fence", victim, "--reason", "again")
	p.nodes["b"].awaitFrom(mark, 30*time.Second, `msg=seat_detached .*seat=`+victim+` .*reason=renew_refused`)
	var ran sendResult
	p.nodes["a"].must(&ran, "send", victim, "--id", "after-the-fence", "--wait=30s", "-o", "json")
	got := p.nodes["a"].must(nil, "seat", "show", victim)
	if ran.Completion == nil || !strings.Contains(got, "FENCED") || !strings.Contains(got, "test") {
		p.t.Errorf("after the fence: got %+v and\n%s", ran.Completion, got)
	}
}

// TestDrainEndsAtItsDeadline: a drain that nobody can finish, for the only node
// that may take the seats is stopped dead, ends with exit code 4 and leaves the
// seats that are left where they are, served.
func TestDrainEndsAtItsDeadline(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node")
	}
	dir, url := agentDir(t), externalBroker(t)
	node := startFleetNode(t, "a", url, gated(t, "calls", dir))
	node.awaitHeld(0, 2, startLimit)
	node.must(nil, "send", "worker", "--id", "job-1")
	node.await(30*time.Second, `msg=turn_started .*event=job-1`)
	out, errs, code := node.tenure("node", "drain", "a", "--deadline", "2s", "--reason", "test")
	if code != exitTimedOut || !strings.Contains(errs, "still has 1 seat after 2s: worker") {
		t.Errorf("got exit %d %s%s", code, out, errs)
	}
	node.await(30*time.Second, `msg=node_drain_ended .*err="its time was up"`)
	openGate(t, dir, 1)
	node.await(30*time.Second, `msg=turn_completed .*seat=worker`)
	node.signal(syscall.SIGTERM)
	<-node.done
}
