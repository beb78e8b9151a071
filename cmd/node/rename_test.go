package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// renamed is the company document with another name.
func renamed(t *testing.T, path, name string) []byte {
	t.Helper()
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(doc), "company: {name: Acme}", fmt.Sprintf("company: {name: %q}", name), 1))
}

// apply makes the document the newest revision, as an operator's tool does.
func (h *hosted) apply(t *testing.T, doc []byte) {
	t.Helper()
	_, next, err := packCompany("company.yaml", doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.shell.Apply(t.Context(), next); err != nil {
		t.Fatal(err)
	}
}

// agents are the agent ids of the registered mailboxes, as the node's view has them.
func (h *hosted) agents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := h.view(func(r projections.Reader) error {
		page, err := r.Mailboxes("", projections.MaxPage)
		for _, m := range page.Items {
			if m.Usable() {
				all[m.Handle] = m.AgentID
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCompanyIsRenamed proves what becomes of a fleet whose company gets another
// name, and with it every agent another id (G1): no seat moves, no mail is lost or
// done twice, also what was sent before; mailboxes are registered under the new ids;
// a turn that begins afterwards is told the new one; and the mailbox of a seat that
// was removed before stays what it was, until the seat is back.
func TestCompanyIsRenamed(t *testing.T) {
	t.Parallel()
	const seats, name = 4, "Acme Holding"
	url := natstest.R1(t).Server(0).NodeURL()
	work := newEffects(t, effectScript)
	first := work.company(seats + 1)
	doc, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	nodes := []*hosted{hostNode(t, hostedConfig(t, "a", url), doc), hostNode(t, hostedConfig(t, "b", url), nil)}
	a := nodes[0]
	eventually(t, 30*time.Second, "all seats are held", func() bool { return admitting(nodes) == seats+1 })
	less := work.company(seats)
	a.apply(t, renamed(t, less, "Acme"))
	awaitShares(t, 30*time.Second, nodes, seats/2, seats/2)
	gone, paused := seatName(seats), seatName(0)
	for range 2 { // a node takes in what its view has before it reads on: then the first is in force
		at, err := a.shell.Pause(t.Context(), paused, false, "test", "ops")
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range nodes {
			if err := h.views.AwaitPosition(t.Context(), events.StreamFleet, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	for handle, id := range map[string]string{paused: "before", gone: "late"} {
		if err := post(t.Context(), a.shell, handle, id); err != nil {
			t.Fatal(err)
		}
	}
	flow := a.flow(t, seats, 20*time.Millisecond)
	before := claims(a.history(t, events.StreamFleet))
	a.apply(t, renamed(t, less, name))
	want := map[string]string{gone: company.AgentID("Acme", gone)}
	for i := range seats {
		want[seatName(i)] = company.AgentID(name, seatName(i))
	}
	for _, h := range nodes {
		eventually(t, 20*time.Second, h.cfg.Node.ID+" has every mailbox under its new agent", func() bool {
			return fmt.Sprint(h.agents(t)) == fmt.Sprint(want)
		})
	}
	if err := post(t.Context(), a.shell, seatName(1), "after"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.shell.Resume(t.Context(), paused, "test", "ops"); err != nil {
		t.Fatal(err)
	}
	done := flow.answered(t, a, 30*time.Second)
	for _, at := range []struct{ handle, id string }{{paused, "before"}, {seatName(1), "after"}} {
		eventually(t, 20*time.Second, at.id+" is worked on", func() bool {
			c, ok, err := a.shell.Completed(t.Context(), at.handle, at.id)
			return err == nil && ok && c.Attempts == 1
		})
	}
	if now := claims(a.history(t, events.StreamFleet)); now != before {
		t.Errorf("%d seats were claimed because of a name", now-before)
	}
	effects := effectsOf(t, work.path())
	for id := range done {
		if n := len(effects[id]); n != 1 {
			t.Errorf("%s was done %d times", id, n)
		}
	}
	for id, handle := range map[string]string{"before": paused, "after": seatName(1)} {
		if e := effects[id]; len(e) != 1 || e[0].AgentID != want[handle] {
			t.Errorf("the turn on %s was given %+v, want the agent %s", id, e, want[handle])
		}
	}

	a.apply(t, renamed(t, first, name))
	eventually(t, 20*time.Second, "the seat that is back works through its mail", func() bool {
		c, ok, err := a.shell.Completed(t.Context(), gone, "late")
		return err == nil && ok && c.Attempts == 1
	})
	if e := effectsOf(t, work.path())["late"]; len(e) != 1 || e[0].AgentID != company.AgentID(name, gone) {
		t.Errorf("the turn of the seat that is back was given %+v", e)
	}
	audited(t, a.url())
}

// TestRenamesInABurst proves that nodes which take up many revisions at once, of
// which every other renames the company and each adds seats, come to run all
// seats, with every mailbox under the last name's agents, and that none of them
// goes on waiting for what an earlier revision would have had.
func TestRenamesInABurst(t *testing.T) {
	t.Parallel()
	const revisions, each = 10, 4 // seats: together more than one walk registers without looking anew
	url := natstest.R1(t).Server(0).NodeURL()
	var nodes []*hosted
	for _, id := range []string{"a", "b", "c"} {
		nodes = append(nodes, hostNode(t, hostedConfig(t, id, url), echoes(1, "")))
	}
	eventually(t, 30*time.Second, "the first seat is held", func() bool { return admitting(nodes) == 1 })
	name := ""
	for i := range revisions {
		name = []string{"Acme", "Acme Holding"}[i%2]
		doc := strings.Replace(string(echoes(1+each*(i+1), "")), "company: {name: Acme}", fmt.Sprintf("company: {name: %q}", name), 1)
		nodes[i%len(nodes)].apply(t, []byte(doc))
	}
	want := map[string]string{}
	const seats = 1 + each*revisions
	for i := range seats {
		want[seatName(i)] = company.AgentID(name, seatName(i))
	}
	for _, h := range nodes {
		eventually(t, 20*time.Second, h.cfg.Node.ID+" has every mailbox under the last name's agent", func() bool {
			return fmt.Sprint(h.agents(t)) == fmt.Sprint(want)
		})
	}
	eventually(t, 30*time.Second, "all seats are held", func() bool { return admitting(nodes) == seats })
	for _, h := range nodes {
		eventually(t, 20*time.Second, h.cfg.Node.ID+" says that it has the last revision", func() bool {
			var n projections.Node
			err := h.view(func(r projections.Reader) (err error) { n, _, err = r.Node(h.cfg.Node.ID); return err })
			return err == nil && n.CompanyRevision == revisions+1
		})
	}
	// Nobody goes on registering: the record of each seat stands still.
	still := time.NewTimer(2 * registerAgain)
	head := nodes[0].views.Copy(events.StreamFleet).Position
	<-still.C
	for _, r := range nodes[0].history(t, events.StreamFleet) {
		if _, is := r.Event.(events.MailboxRegistered); is && r.Seq > head {
			t.Errorf("%s is registered again: %+v", r.Meta.Source, r.Event)
		}
	}
}
