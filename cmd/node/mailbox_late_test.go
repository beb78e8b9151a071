package main

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// refuseCursors makes the broker refuse everything that is written to CURSOR, and
// with it every new mailbox; allow ends it.
func refuseCursors(t *testing.T, brokers *natstest.Brokers) (allow func()) {
	t.Helper()
	limit := func(bytes int32) {
		brokers.Reconfigure(t, broker.Config{Prefix: natstest.Prefix}, events.StreamCursor, func(c *jetstream.StreamConfig) { c.MaxMsgSize = bytes })
	}
	limit(1)
	return func() { limit(1 << 20) }
}

// unmade fails the test if anything of the seat's mailbox was made.
func unmade(t *testing.T, store broker.Store, handle string) {
	t.Helper()
	subjects := store.Subjects()
	for st, subject := range map[events.Stream]string{
		events.StreamFleet: subjects.MailboxRecord(handle), events.StreamCursor: subjects.Cursor(handle, events.Inbox),
	} {
		if _, err := store.Stream(st).Last(t.Context(), subject); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("%s has something of the mailbox of %s: %v", st, handle, err)
		}
	}
}

// TestUnregisteredMailboxKeepsItsMail proves R2 on a running node: a mailbox that
// cannot be registered is logged as such, nobody runs its seat, mail that is sent
// to it is kept, and the next walk registers it.
func TestUnregisteredMailboxKeepsItsMail(t *testing.T) {
	t.Parallel()
	brokers := natstest.R1(t)
	store := brokers.Store(0)
	h := hostNode(t, hostedConfig(t, "a", brokers.Server(0).NodeURL()), echoes(1, ""))
	awaitShares(t, 30*time.Second, []*hosted{h}, 1)
	allow := refuseCursors(t, brokers)
	_, next, err := packCompany("company.yaml", echoes(2, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.shell.Apply(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	unregistered := func() int {
		return h.logs.count(`level=WARN msg=seat_mailbox_unregistered .*seat=` + seatName(1) + ` `)
	}
	eventually(t, 20*time.Second, "it says that it cannot register the mailbox", func() bool { return unregistered() > 0 })
	if err := post(t.Context(), h.shell, seatName(1), "early"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "it has tried again", func() bool { return unregistered() > 2 })
	unmade(t, store, seatName(1))
	if held := h.host.Held(); len(held) != 1 {
		t.Errorf("it runs %q, and one of them has no mailbox", held)
	}
	kept, err := mailboxes{h.node}.Kept(t.Context(), []string{seatName(1)})
	if err != nil || kept[seatName(1)].Mails != 1 {
		t.Errorf("%d mails are kept: %v", kept[seatName(1)].Mails, err)
	}
	allow()
	awaitShares(t, 20*time.Second, []*hosted{h}, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if done, err := h.views.AwaitCompletion(ctx, seatName(1), "early"); err != nil || done.Outcome != events.OutcomeDone || done.Attempts != 1 {
		t.Errorf("the mail that came before the mailbox: %+v, %v", done, err)
	}
}

// sendOnceKnown sends mail by a node until that node knows the seat, and fails the
// test when it is refused in any other way.
func (p *process) sendOnceKnown(handle, id string, more ...string) (got completionJSON) {
	p.t.Helper()
	args := append([]string{"send", handle, "--id", id, "-o", "json"}, more...)
	eventually(p.t, 20*time.Second, "the node knows "+handle, func() bool {
		_, errs, code := p.tenure("send", handle, "--id", id)
		if code != exitFine && (code != exitFailed || !strings.Contains(errs, "the company has no seat")) {
			p.t.Fatalf("send: exit %d, %s", code, errs)
		}
		return code == exitFine
	})
	p.must(&got, args...)
	return got
}

// TestCase2RevisionBeforeItsMailbox: on a fleet of processes a revision adds a seat
// while two nodes that would make its mailbox are stopped, and the third cannot.
// Who sends before it gets a clear error; mail that is sent right behind it,
// through that third node and by a plain publish, is kept; sent again under the
// same ids, through other nodes, once the mailbox is there, each is worked on once
// (case 2, U1, R2).
func TestCase2RevisionBeforeItsMailbox(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a fleet")
	}
	t.Parallel()
	brokers := natstest.R1(t)
	store, url := brokers.Store(0), brokers.Server(0).NodeURL()
	work := newEffects(t, effectScript)
	first, late := work.company(3), seatName(3)
	a, b, c := startFleetNode(t, "a", url, first), startFleetNode(t, "b", url, first), startFleetNode(t, "c", url, first)
	c.must(nil, "send", seatName(0), "--id", "warm", "--wait=30s")
	client, err := nats.Connect(brokers.Server(0).ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	publish := func(id string) {
		t.Helper()
		m := nats.NewMsg(store.Subjects().Mail(late, events.Inbox))
		m.Data = []byte(`{}`)
		m.Header.Set("ce-id", id)
		m.Header.Set("ce-type", events.TaskAssigned)
		if ack, err := client.RequestMsg(m, 10*time.Second); err != nil || !strings.Contains(string(ack.Data), `"stream":"CREWLET_MAIL"`) {
			t.Fatalf("publish %s: %v", id, err)
		}
	}

	if _, errs, code := c.tenure("send", late, "--id", "too-early"); code != exitFailed || !strings.Contains(errs, "the company has no seat") {
		t.Errorf("mail before the revision: exit %d, %s", code, errs)
	}
	a.signal(syscall.SIGSTOP)
	b.signal(syscall.SIGSTOP)
	allow, mark := refuseCursors(t, brokers), c.mark()
	c.must(nil, "company", "apply", work.company(4), "--reason", "one more seat")
	publish("published")
	c.sendOnceKnown(late, "sent")
	c.awaitFrom(mark, 20*time.Second, `msg=seat_mailbox_unregistered .*seat=`+late)
	unmade(t, store, late)
	subject := store.Subjects().Mail(late, events.Inbox)
	if kept, err := store.Stream(events.StreamMail).Subjects(t.Context(), subject); err != nil || kept[subject] < 2 {
		t.Errorf("%d mails are kept: %v", kept[subject], err)
	}

	a.signal(syscall.SIGCONT)
	b.signal(syscall.SIGCONT)
	allow()
	publish("published")
	for _, from := range []*process{a, b, c} {
		for _, id := range []string{"sent", "published"} {
			got := from.sendOnceKnown(late, id, "--wait=30s")
			if got.Completion == nil || got.Completion.Outcome != "done" {
				t.Errorf("%s again: %+v", id, got.Completion)
			}
		}
	}
	done := effectsOf(t, work.path())
	for _, id := range []string{"sent", "published"} {
		if n := len(done[id]); n != 1 {
			t.Errorf("%s was worked on %d times, want once: %+v", id, n, done[id])
		}
	}
	if len(done["too-early"]) > 0 {
		t.Error("mail that was refused was worked on")
	}
	c.must(nil, "audit")
}
