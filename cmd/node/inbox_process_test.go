package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/events"
)

// parkedJSON is what `inbox parked -o json` prints.
type parkedJSON struct {
	Mail []struct {
		Position string `json:"position"`
		ID       string `json:"id"`
		Reason   string `json:"reason"`
		Attempts int    `json:"attempts"`
		History  []struct {
			End   string `json:"end"`
			Count int    `json:"count"`
		} `json:"history"`
		Decided *struct{ How string } `json:"decided"`
	} `json:"mail"`
}

// awaitParked waits until so much mail of the seat is parked and undecided.
func (p *process) awaitParked(seat string, n int) parkedJSON {
	p.t.Helper()
	over := time.After(30 * time.Second)
	for {
		mark := p.mark()
		var got parkedJSON
		if p.must(&got, "inbox", "parked", seat, "-o", "json"); len(got.Mail) == n {
			return got
		}
		_, news := p.logs.from(mark) // the view follows the log in its own time
		select {
		case <-news:
		case <-time.After(50 * time.Millisecond):
		case <-over:
			p.t.Fatalf("parked: %+v, want %d", got.Mail, n)
		}
	}
}

// TestCase25NodeDiesInTheHandler: a node that dies in each of 25 turns on one mail,
// restarted each time, sets it aside at the 26th start, with what became of its
// turns; the node is up, and the mail behind it flows (D3, field case 25).
func TestCase25NodeDiesInTheHandler(t *testing.T) {
	doc := filepath.Join(t.TempDir(), "company.yaml")
	if err := os.WriteFile(doc, []byte(`company: {name: Acme}
roles:
  - {handle: worker, title: Worker, runner: {exec: [sleep, "600"]}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"dev", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--company", doc}
	var p *process
	began := time.Now()
	for n := range 25 {
		if p = startNode(t, args...); n == 0 {
			p.must(nil, "send", "worker", "--id", "deadly")
		}
		p.await(30*time.Second, `msg=turn_started .*event=deadly`)
		p.kill()
	}
	t.Logf("25 starts and kills took %v", time.Since(began))
	p = startNode(t, args...)
	p.await(30*time.Second, `msg=mail_parked .*event=deadly`)
	p.must(nil, "send", "worker", "--id", "next")
	p.await(30*time.Second, `msg=turn_started .*event=next`)
	got := p.awaitParked("worker", 1).Mail[0]
	if got.ID != "deadly" || got.Attempts != 25 || len(got.History) == 0 || got.History[0].End != "unfinished" {
		t.Errorf("parked: %+v", got)
	}
	if n := p.logs.count(`msg=turn_started .*event=deadly`); n > 0 {
		t.Errorf("a 26th turn was started on it")
	}
	var all struct{ Mail []struct{ ID, State string } }
	if p.must(&all, "inbox", "ls", "worker", "-o", "json"); len(all.Mail) != 1 || all.Mail[0].ID != "next" || all.Mail[0].State != "RUNNING" {
		t.Errorf("what waits: %+v", all.Mail)
	}
	p.must(nil, "inbox", "drop", "worker", got.Position, "--reason", "a test")
	p.must(nil, "inbox", "drop", "worker", got.Position, "--reason", "once more")
	p.awaitParked("worker", 0)
	if _, errs, code := p.tenure("inbox", "replay", "worker", got.Position, "--reason", "r"); code != exitFailed || !strings.Contains(errs, "ALREADY_DECIDED") {
		t.Errorf("replay of what was dropped: exit %d, %s", code, errs)
	}
	if out := p.must(nil, "inbox", "parked", "worker", got.Position); !strings.Contains(out, "dropped by") || !strings.Contains(out, "unfinished at epoch") {
		t.Errorf("it is not readable any more:\n%s", out)
	}
}

// TestPlainNATSPublish: whoever speaks plain NATS and puts the documented headers on
// a message gets a turn, once for an id; mail that lacks them, or says no JSON, is set
// aside where it can be seen, replayed, and found again; a client may publish nothing
// but mail.
func TestPlainNATSPublish(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broker := l.Addr().String()
	_ = l.Close()
	p := startNode(t, "dev", "--ephemeral", "--listen", "127.0.0.1:0", "--nats-listen", broker)
	p.awaitHeld(0, 5, startLimit)
	nc, err := nats.Connect("nats://"+broker, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	publish := func(id, typ, data string) {
		t.Helper()
		m := nats.NewMsg("crewlet.agent.writer.inbox")
		m.Data = []byte(data)
		for key, value := range map[string]string{"ce-id": id, "ce-type": typ} {
			if value != "" {
				m.Header.Set(key, value)
			}
		}
		ack, err := nc.RequestMsg(m, 10*time.Second) // the answer says that it is stored
		if err != nil || !strings.Contains(string(ack.Data), `"stream":"CREWLET_MAIL"`) {
			t.Fatalf("publish %s: %v, %s", id, err, ack.Data)
		}
	}
	publish("order-1", events.TaskAssigned, `{"text":"hello"}`)
	publish("order-1", events.TaskAssigned, `{"text":"hello"}`)
	publish("torn", events.TaskAssigned, `{"text":`)
	publish("", events.TaskAssigned, `{}`)
	publish("misspelt", "task_asigned", `{}`)
	publish("order-2", events.ExternalNotification, `{}`)
	var got completionJSON
	p.must(&got, "send", "writer", "--id", "order-1", "--wait", "-o", "json")
	if c := got.Completion; c == nil || c.Outcome != "done" || c.Attempts != 1 {
		t.Errorf("order-1: %+v", c)
	}
	p.await(30*time.Second, `msg=turn_completed .*event=order-2`)
	if n := p.logs.count(`msg=turn_started .*event=order-1`); n != 1 {
		t.Errorf("%d turns on order-1", n)
	}
	parked := p.awaitParked("writer", 3)
	for i, says := range []string{"task_asigned", "ce-id", "not JSON"} { // newest first
		if m := parked.Mail[i]; !strings.Contains(m.Reason, says) || m.Attempts != 0 {
			t.Errorf("parked: %+v, want %q", m, says)
		}
	}
	p.must(nil, "inbox", "replay", "writer", parked.Mail[0].Position, "--reason", "perhaps")
	p.awaitParked("writer", 3) // set aside anew, in a record of its own
	if out := p.must(nil, "inbox", "parked", "writer", "--decided"); strings.Count(out, "task_asigned") < 2 || !strings.Contains(out, "replayed by") {
		t.Errorf("with what was decided:\n%s", out)
	}
	if out := p.must(nil, "inbox", "replay", "writer", "--all", "--dry-run"); !strings.Contains(out, "send again "+parked.Mail[2].Position+",") {
		t.Errorf("dry run:\n%s", out)
	}
	if _, err := nc.Request("crewlet.fleet.host.writer", []byte("{}"), 500*time.Millisecond); err == nil {
		t.Error("a client wrote into the fleet's log")
	}
	for _, handle := range []string{"Writer", "wri.ter", "wri ter", "schreibkraft-ü"} {
		for _, verb := range [][]string{{"send", handle}, {"inbox", "ls", handle}, {"inbox", "parked", handle}, {"inbox", "drop", handle, "1", "--reason", "r"}} {
			if _, errs, code := p.tenure(verb...); code != exitUsage || !strings.Contains(errs, "a-z, 0-9") {
				t.Errorf("%q: exit %d, %s", verb, code, errs)
			}
		}
	}
	if _, errs, code := p.tenure("send", "writer", "--data", fmt.Sprintf("%q", strings.Repeat("x", events.MaxMailData))); code != exitUsage || !strings.Contains(errs, "655360") {
		t.Errorf("oversize: exit %d, %.200s", code, errs)
	}
}
