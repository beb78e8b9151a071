package duty_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// audited audits what the log has, FLEET first. change, unless nil, alters events
// on the way.
func (w *world) audited(change func(events.Event) events.Event) audit.Report {
	w.t.Helper()
	a := audit.New(w.subjects)
	for _, st := range []events.Stream{events.StreamFleet, events.StreamCursor} {
		info := must(w.store.Stream(st).Info(w.t.Context()))
		for seq := info.First; seq <= info.Last; seq++ {
			msg, err := w.store.Stream(st).Get(w.t.Context(), seq)
			if err != nil {
				continue
			}
			if r, err := events.Decode(w.subjects, msg); err == nil && change != nil {
				write := must(events.Encode(w.subjects, r.Meta, change(r.Event)))
				msg.Data = write.Data
			}
			a.Add(msg)
		}
	}
	return a.Finish()
}

// TestRetirementsPassTheAudit proves that what retirements leave in the log is
// legal, whoever finished them, and that an audit finds a deletion before its
// time, one by an old revision and one on a tenure that never was.
func TestRetirementsPassTheAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("dev", "ops", "qa")
		w.apply("dev")
		for _, h := range []string{"ops", "qa"} {
			w.send(h, events.Inbox)
		}
		n, c := w.node("a", usual), w.comeback()
		n.tick()
		n.ticks(98, usual.Tick) // ops and qa are retired
		w.apply()
		w.send("dev", events.Inbox)
		n.cross = func(point string) {
			if point == "before empty" {
				n.faults.CutOff(true)
			}
		}
		_, _ = n.mailboxes.Retire(t.Context(), "dev", true)
		c.add()
		time.Sleep(2 * ttl)
		c.run() // dev is taken over, and runs
		if r := w.audited(nil); r.ViolationCount > 0 {
			t.Fatalf("violations in a legal history: %v", r.Violations)
		}
		for name, change := range map[string]func(events.RetirementBody) events.RetirementBody{
			"early":        func(b events.RetirementBody) events.RetirementBody { b.Grace *= 2; b.Now = false; return b },
			"old revision": func(b events.RetirementBody) events.RetirementBody { b.Company--; return b },
			"no tenure":    func(b events.RetirementBody) events.RetirementBody { b.Epoch += 7; return b },
		} {
			r := w.audited(func(e events.Event) events.Event {
				switch e := e.(type) {
				case events.RetirementMarked:
					e.RetirementBody = change(e.RetirementBody)
					return e
				case events.RetirementTicked:
					if name == "early" {
						e.RetirementBody = change(e.RetirementBody)
					}
					return e
				}
				return e
			})
			found := false
			for _, v := range r.Violations {
				found = found || v.Rule == audit.RuleRetirement
			}
			if !found {
				t.Errorf("%s: not found: %v", name, r.Violations)
			}
		}
	})
}
