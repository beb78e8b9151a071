package duty_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// comeback is a node that has applied a revision which adds the seat back: it
// registers the mailbox, waiting for a mark or taking it over, runs the seat and
// works its mail.
type comeback struct {
	w       *world
	shell   *commands.Shell
	mail    *broker.Mailboxes
	clock   *broker.LogClock
	sent    []string // by somebody, to the seat since it is back
	got     []string // worked by it
	since   time.Time
	last    uint64 // of the retirement that it waits for
	over    bool   // it took one over
	holding *commands.Mailboxes
}

const handle = "dev"

func (w *world) comeback() *comeback {
	n := w.node("b", usual)
	return &comeback{w: w, shell: commands.New(broker.NewLog(n.conn), w.subjects, w.incarnation("b")), mail: n.mail, clock: n.logClock}
}

// add applies the revision and sends mail right behind it.
func (c *comeback) add() {
	c.w.apply(handle)
	c.send()
}

func (c *comeback) send() {
	for _, box := range events.Mailboxes {
		c.sent = append(c.sent, c.w.send(handle, box))
	}
}

// register makes one try at having the mailbox, as a node's walk does.
func (c *comeback) register() bool {
	err := c.shell.Cursors(c.mail).Register(c.w.t.Context(), handle, "agent-"+handle)
	var retiring *aggregates.RetiringError
	if err == nil {
		return true
	}
	if !errors.As(err, &retiring) {
		c.w.t.Fatalf("register: %v", err)
	}
	s, _ := c.w.saga(handle)
	if c.last != s.Last {
		c.last, c.since = s.Last, time.Now()
	}
	_, err = c.shell.Cursors(c.mail).TakeOverRetirement(c.w.t.Context(), c.mail, handle, "agent-"+handle, time.Since(c.since), usual.Patience())
	c.over = c.over || err == nil
	return err == nil
}

// run claims the seat once it can be had, and works what it finds.
func (c *comeback) run() {
	for range 600 {
		if c.holding == nil && c.register() {
			t, err := c.shell.Claim(c.w.t.Context(), events.SeatLease(handle), commands.Claim{TTL: ttl, Protocol: 4}, c.clock.UnseenFor)
			if err == nil {
				if c.holding, err = c.shell.Cursors(c.mail).TakeOver(c.w.t.Context(), t); err != nil {
					c.w.t.Fatalf("take over: %v", err)
				}
			}
		}
		if c.holding != nil {
			c.work()
			return
		}
		c.w.pass(time.Second)
	}
	c.w.t.Fatal("the seat that is back could not be had within ten minutes")
}

// work starts a turn on everything that is there, and settles it.
func (c *comeback) work() {
	cursors := c.shell.Cursors(c.mail)
	for _, box := range events.Mailboxes {
		for {
			msg, err := c.mail.Next(c.w.t.Context(), handle, box, c.holding.Cursors[box].Read+1)
			if errors.Is(err, events.ErrNotFound) {
				break
			}
			if err == nil {
				err = cursors.Attempt(c.w.t.Context(), c.holding, box, []uint64{msg.Seq})
			}
			if err == nil {
				c.got = append(c.got, msg.Header.Get(events.HeaderID))
				err = cursors.Settle(c.w.t.Context(), c.holding, box, commands.Ended{Ack: []uint64{msg.Seq}})
			}
			if err != nil {
				c.w.t.Fatalf("work: %v", err)
			}
		}
	}
}

// pauses is how the retiring node is paused between two of its steps.
var pauses = []struct {
	name string
	// during is what the rest of the fleet does while it is.
	during func(n *node, c *comeback)
}{
	{"the seat is added back", func(_ *node, c *comeback) { c.add() }},
	{"and the node that adds it tries to have it", func(_ *node, c *comeback) { c.add(); c.register() }},
	{"and gets it, the pause being long", func(_ *node, c *comeback) { c.add(); c.run(); c.send() }},
	{"and the pause shows on no clock", func(n *node, c *comeback) {
		n.clocks.stop()
		c.add()
		c.run()
		c.send()
		n.clocks.resume()
	}},
}

// TestReturnAtEveryStep proves R8: a seat is added back at each step of the
// deletion of its mailbox, with the retiring node paused there, for as long as it
// likes and seen by its clocks or not. The new mailbox loses nothing that was
// sent to it, gets nothing twice, and the retirement ends.
func TestReturnAtEveryStep(t *testing.T) {
	for _, pause := range pauses {
		t.Run(pause.name, func(t *testing.T) {
			for at := 0; ; at++ {
				more, what := true, ""
				synctest.Test(t, func(t *testing.T) { more, what = returnAt(t, at, pause.during) })
				if t.Failed() {
					t.Fatalf("paused at %d: %s", at, what)
				}
				if !more {
					if at < 20 {
						t.Errorf("only %d places to pause at", at)
					}
					return
				}
			}
		})
	}
}

// returnAt retires a mailbox and pauses at that crossing; more is false when there
// is none so far.
func returnAt(t *testing.T, at int, during func(*node, *comeback)) (more bool, what string) {
	w := newWorld(t)
	w.register(handle)
	w.apply(handle)
	for _, box := range events.Mailboxes {
		w.send(handle, box)
	}
	w.apply()
	n, c := w.node("a", usual), w.comeback()
	w.pass(time.Minute) // so that the log clocks tell lapses
	crossed := 0
	n.cross = func(point string) {
		if crossed == at {
			more, what = true, point
			during(n, c)
		}
		crossed++
	}
	_, _ = n.mailboxes.Retire(t.Context(), handle, true)
	n.cross = func(string) {}
	if !more {
		return false, ""
	}
	c.run()
	n.tick() // the next sweep, by the revision that has the seat
	c.send()
	c.work()
	if s, box := w.saga(handle); s.Open() || box.State != aggregates.MailboxRegistered {
		t.Errorf("the retirement is %s, the record %v", s.Step, box.State)
	}
	for _, id := range c.sent {
		if n := count(c.got, id); n != 1 {
			t.Errorf("%s was worked %d times; sent %q, worked %q", id, n, c.sent, c.got)
		}
	}
	return true, what
}

func count(in []string, id string) (n int) {
	for _, s := range in {
		if s == id {
			n++
		}
	}
	return n
}

// TestSchedule9DelayedPurge proves that a purge which lands long after its lease
// has lapsed, on a seat that is back and has new mail, removes what stands at or
// below the mark and nothing else; and that a cursor that a later tenure took over
// is not moved.
func TestSchedule9DelayedPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register(handle)
		w.apply()
		old := w.send(handle, events.Inbox)
		n, c := w.node("a", usual), w.comeback()
		time.Sleep(time.Minute)
		purges := 0
		n.cross = func(point string) {
			if point != "before purge" {
				return
			}
			if purges++; purges == 1 { // on its way to the broker, for ten minutes
				c.add()
				c.run()
				c.send()
			}
		}
		_, err := n.mailboxes.Retire(t.Context(), handle, true)
		if err == nil || purges == 0 {
			t.Fatalf("the retirement ended as if nothing had been: %d purges, %v", purges, err)
		}
		c.work()
		if !c.over {
			t.Error("the node that adds the seat back did not take the retirement over")
		}
		if slices.Contains(c.got, old) {
			t.Error("the new mailbox began with old mail")
		}
		for _, id := range c.sent {
			if count(c.got, id) != 1 {
				t.Errorf("%s was worked %d times", id, count(c.got, id))
			}
		}
		if !errors.As(err, new(*sagas.NotMineError)) {
			t.Errorf("the late sweep ended with %v, want that the retirement is another's", err)
		}
	})
}

// TestTakeOverWaits proves the patience of R8: a mark is taken over when it has
// not moved for twice the budget, not before, and by whoever waits.
func TestTakeOverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register(handle)
		w.apply()
		w.send(handle, events.Inbox)
		n, c := w.node("a", usual), w.comeback()
		n.cross = func(point string) {
			if point == "before empty" {
				n.faults.CutOff(true) // dead, right behind its mark
			}
		}
		_, _ = n.mailboxes.Retire(t.Context(), handle, true)
		c.add()
		for i := range 60 {
			if c.register() {
				t.Fatalf("registered after %d s, before twice the budget was over", i)
			}
			time.Sleep(time.Second)
		}
		if !c.register() {
			t.Fatal("not registered when twice the budget was over")
		}
		if s, _ := w.saga(handle); s.Step != events.RetireTakenOver || s.By != c.shell.Self() {
			t.Errorf("%s by %s", s.Step, s.By)
		}
		names := w.events(handle)
		if fmt.Sprint(names[len(names)-2:]) != "[retirement-taken-over mailbox-registered]" {
			t.Errorf("events %q", names)
		}
		c.run()
		if len(c.got) != 3 || w.kept(handle) != 3 {
			t.Errorf("worked %q, %d kept", c.got, w.kept(handle))
		}
	})
}
