package sagas_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// TestStories tells handoffs as text: testdata/stories/handoff-*.txt. What each
// proves stands at its top. -rewrite writes down what happens now.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("../testdata/stories/handoff-*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			teller := &teller{}
			datadriven.RunTest(t, file, teller.tell)
		})
	}
}

// teller plays one story.
type teller struct {
	*world
	flight write // a write that was sent and has not arrived
	told   int   // events of the log that were told
	old    []sagas.Effect
}

func (w *teller) tell(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var out strings.Builder
	if d.Cmd == "nodes" {
		names := make([]string, len(d.CmdArgs))
		for i, arg := range d.CmdArgs {
			names[i] = arg.Key
		}
		*w = teller{world: newWorld(names...)}
		return "ok"
	}
	if err := w.play(t, d, &out); err != nil {
		fmt.Fprintf(&out, "refused: %v\n", err)
	}
	for ; w.told < len(w.log); w.told++ {
		fmt.Fprintf(&out, "%d %s\n", w.told+1, describe(w.log[w.told]))
	}
	w.expire()
	w.invariants()
	if w.broken != "" {
		t.Fatal(w.broken)
	}
	if out.Len() == 0 {
		return "ok"
	}
	return out.String()
}

// send lets a decided write arrive at once.
func (w *teller) send(wr write, err error) error {
	if err == nil && !w.land(wr) {
		return events.ErrConflict
	}
	return err
}

func (w *teller) play(t *testing.T, d *datadriven.TestData, out *strings.Builder) error {
	var h *host
	if d.HasArg("node") {
		var name string
		d.ScanArgs(t, "node", &name)
		h = w.host(name)
	}
	switch d.Cmd {
	case "hold": // an ordinary claim, established
		if err := w.send(w.claim(h, "")); err != nil {
			return err
		}
		return w.send(w.establish(h), nil)
	case "request":
		var from, to, why string
		d.ScanArgs(t, "from", &from)
		d.ScanArgs(t, "to", &to)
		d.ScanArgs(t, "why", &why)
		return w.send(w.request(w.host(from), w.host(to), events.HandoffReason(why)))
	case "next":
		for _, e := range w.next(h) {
			fmt.Fprintf(out, "%T%+v\n", e, e)
		}
	case "run": // one effect, by name, of those that are due now
		e := w.pick(t, d, h)
		w.old = append(w.old, e)
		wr, err := w.run(h, e)
		if errors.Is(err, errNothing) {
			fmt.Fprintln(out, err)
			return nil
		}
		if d.HasArg("slow") {
			w.flight = wr
			fmt.Fprintln(out, "sent, not arrived")
			return err
		}
		return w.send(wr, err)
	case "arrive":
		return w.send(w.flight, nil)
	case "late": // an effect that was asked for long ago runs now
		var i int
		d.ScanArgs(t, "effect", &i)
		fmt.Fprintf(out, "%T\n", w.old[i])
		wr, err := w.run(h, w.old[i])
		if errors.Is(err, errNothing) {
			return nil
		}
		return w.send(wr, err)
	case "abandon":
		var why string
		d.ScanArgs(t, "why", &why)
		return w.send(w.handoff(w.hosts[0], sagas.AbandonHandoff{
			Saga: w.saga.ID(), Cause: events.AbandonCause(why), By: "ops", Unseen: w.unseen(w.saga.Last), Known: true, Lease: w.lease,
		}, nil))
	default:
		return w.happens(t, d, h, out)
	}
	return nil
}

// happens plays what befalls nodes, rather than what they do for a handoff.
func (w *teller) happens(t *testing.T, d *datadriven.TestData, h *host, out *strings.Builder) error {
	switch d.Cmd {
	case "establish":
		return w.send(w.establish(h), nil)
	case "claim":
		return w.send(w.claim(h, ""))
	case "release": // by a holder that could not establish the seat (H5)
		return w.send(w.release(h, events.ReasonAcquireFailed))
	case "renew":
		return w.send(w.renew(h))
	case "blip": // a renewal fails: admission holds the mailbox (A2)
		h.blip, h.holds = true, h.holds.Take(sagas.HoldAdmission)
	case "turn":
		h.turning = d.CmdArgs[1].Key == "begins"
	case "stuck":
		h.stuck = d.CmdArgs[1].Key == "yes"
	case "unfit":
		var why string
		d.ScanArgs(t, "why", &why)
		h.unfit = events.DeclineReason(why)
	case "dies":
		h.dead, h.epoch, h.up = true, 0, false
	case "boots":
		h.boot()
	case "wait":
		var length string
		d.ScanArgs(t, "for", &length)
		wait, err := time.ParseDuration(length)
		if err != nil {
			t.Fatal(err)
		}
		w.now += wait
		if d.HasArg("renewing") { // heartbeats all along, of which the log has the last
			for _, h := range w.hosts {
				if h.epoch > 0 && !h.dead {
					return w.send(w.renew(h))
				}
			}
		}
	case "state":
		fmt.Fprintf(out, "saga %s %s; %s\n", w.saga.ID(), w.saga.Step(), describeLease(w.lease))
		for _, h := range w.hosts {
			fmt.Fprintf(out, "%s: epoch=%d up=%t holds=%q serves=%t\n", h.name, h.epoch, h.up, string(h.holds), h.serves())
		}
	default:
		t.Fatalf("no command %q", d.Cmd)
	}
	return nil
}

func (w *teller) pick(t *testing.T, d *datadriven.TestData, h *host) sagas.Effect {
	var name string
	d.ScanArgs(t, "effect", &name)
	for _, e := range w.next(h) {
		if strings.EqualFold(fmt.Sprintf("%T", e), "sagas."+name) {
			return e
		}
	}
	t.Fatalf("%s is not asked to %s, but for %+v", h.name, name, w.next(h))
	return nil
}

func describe(e events.Event) string {
	detail := ""
	switch e := e.(type) {
	case events.LeaseClaimed:
		detail = fmt.Sprintf(" epoch=%d owner=%s saga=%q", e.Epoch, e.Owner, e.Saga)
		if e.Waited != nil {
			detail += fmt.Sprintf(" waited=%v", e.Waited.Unseen.Duration())
		}
		if e.Over != nil {
			detail += fmt.Sprintf(" over=%d unseen=%v", e.Over.Epoch, e.Over.Unseen.Duration())
		}
	case events.LeaseReleased:
		detail = fmt.Sprintf(" epoch=%d reason=%s successor=%q reserved_for=%v", e.Epoch, e.Reason, e.Successor, e.ReservedFor.Duration())
	case events.LeaseDeclined:
		detail = fmt.Sprintf(" epoch=%d by=%s reason=%s", e.Epoch, e.By, e.Reason)
	case events.HandoffCompleted:
		detail = fmt.Sprintf(" %s dark_for=%v", e.ID(), e.DarkFor.Duration())
	case events.HandoffDeclined:
		detail = fmt.Sprintf(" %s at=%s cause=%s", e.ID(), e.Step, e.Cause)
	case events.HandoffAbandoned:
		detail = fmt.Sprintf(" %s at=%s cause=%s by=%s unseen=%v", e.ID(), e.Step, e.Cause, e.Ender, e.Unseen.Duration())
	case events.HandoffEvent:
		_, body := e.Handoff()
		detail = " " + body.ID()
	case events.SeatEstablished:
		detail = fmt.Sprintf(" epoch=%d owner=%s", e.Epoch, e.Owner)
	}
	return events.Name(e) + detail
}

func describeLease(l aggregates.Lease) string {
	switch {
	case l.Status != aggregates.LeaseFree:
		return fmt.Sprintf("epoch %d of %s", l.Epoch, l.Owner)
	case l.Successor != "":
		return fmt.Sprintf("free after epoch %d, reserved for %s for %v", l.Epoch, l.Successor, l.ReservedFor)
	default:
		return fmt.Sprintf("free after epoch %d", l.Epoch)
	}
}
