package projections_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
	"pgregory.net/rapid"
)

// anyLog draws events of the three streams in any order, legal or not: Apply is
// total. Positions have gaps, and the broker's clock goes back now and then.
func anyLog(t *rapid.T) []events.Recorded {
	handle := rapid.SampledFrom([]string{"dev", "pm", "qa"})
	owner := rapid.SampledFrom([]events.Incarnation{nodeA, nodeB, "node-a:000000aa"})
	epoch := rapid.Uint64Range(1, 4)
	lease := rapid.Custom(func(t *rapid.T) events.Lease {
		kind := rapid.SampledFrom([]events.LeaseKind{events.KindSeat, events.KindSeat, events.KindSeat, events.KindNode, events.KindWorker}).Draw(t, "kind")
		return events.Lease{Kind: kind, ID: handle.Draw(t, "id")}
	})
	id := rapid.SampledFrom([]string{"e1", "e2", "e3"})
	one := rapid.Custom(func(t *rapid.T) events.Recorded {
		fleet, work, dead := events.StreamFleet, events.StreamWork, events.StreamDead
		l, o, h, n := lease.Draw(t, "lease"), owner.Draw(t, "owner"), handle.Draw(t, "handle"), epoch.Draw(t, "epoch")
		switch rapid.IntRange(0, 14).Draw(t, "what") {
		case 0, 1, 2:
			return events.Recorded{Stream: fleet, Event: events.LeaseClaimed{Lease: l, Epoch: n, Owner: o, TTL: 1}}
		case 3:
			return events.Recorded{Stream: fleet, Event: events.LeaseReleased{Lease: l, Epoch: n, Owner: o, Reason: "drain"}}
		case 4:
			return events.Recorded{Stream: fleet, Event: events.LeaseFenced{Lease: l, Epoch: n, Owner: o, Reason: "r", By: "ops"}}
		case 5:
			return events.Recorded{Stream: fleet, Event: established(h, n, o)}
		case 6:
			hs := rapid.SliceOfNDistinct(handle, 0, 3, rapid.ID).Draw(t, "roster")
			return events.Recorded{Stream: fleet, Event: company(n, hs...)}
		case 7:
			return events.Recorded{Stream: fleet, Event: events.TriggerSkipped{Handle: h, EventID: id.Draw(t, "id"), Why: events.SkipCompleted, Epoch: n, Owner: o}}
		case 8:
			return events.Recorded{Stream: fleet, Event: anyRecord(t, h, n, o)}
		case 9:
			return events.Recorded{Stream: fleet, Event: anyReport(t, h, n, o)}
		case 10, 11, 12:
			return events.Recorded{Stream: fleet, Event: anyStep(t, h, n)}
		case 13:
			return events.Recorded{Stream: work, Event: done(h, id.Draw(t, "id"), rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(t, "key"))}
		default:
			return events.Recorded{Stream: dead, Event: parked(h, id.Draw(t, "id"), n)}
		}
	})
	log := rapid.SliceOfN(one, 0, 40).Draw(t, "log")
	seq, clock := uint64(0), start
	for i := range log {
		seq += rapid.Uint64Range(1, 3).Draw(t, "gap")
		clock = clock.Add(time.Duration(rapid.IntRange(-3, 5).Draw(t, "tick")) * time.Second)
		log[i].Seq, log[i].At = seq, clock
	}
	return log
}

// anyRecord draws a mailbox's record, or an event of its retirement.
func anyRecord(t *rapid.T, handle string, n uint64, owner events.Incarnation) events.Event {
	return rapid.SampledFrom([]events.Event{
		events.MailboxRegistered{Handle: handle, AgentID: "x"}, events.MailboxRetiring{Handle: handle, AgentID: "x", Saga: "s"},
		events.MailboxRetired{Handle: handle, AgentID: "x", Saga: "s"}, events.MailboxAbsent{RetirementBody: absence(handle, events.RetireAbsent)},
		events.RetirementMarked{RetirementBody: absence(handle, events.RetireMarked)}, events.MailboxReturned{RetirementBody: absence(handle, events.RetireReturned)},
	}).Draw(t, "record")
}

// absence is the body of an event of a retirement.
func absence(handle string, step events.RetirementStep) events.RetirementBody {
	return events.RetirementBody{
		Handle: handle, Number: 1, Step: step, By: nodeA, Company: 1, Since: start, RetiresAt: start.Add(time.Hour), Grace: 3600000, Absent: 60000,
		Refused: events.RefusedHeld, Epoch: 3, Owner: nodeB, Marks: &events.Marks{Inbox: 4},
	}
}

// anyReport draws what a holder, a node or an operator reports.
func anyReport(t *rapid.T, handle string, epoch uint64, owner events.Incarnation) events.Event {
	return rapid.SampledFrom([]events.Event{
		events.SeatPaused{Handle: handle, By: "ops", Reason: "r", StopTurn: epoch > 2}, events.SeatResumed{Handle: handle, By: "ops", Reason: "r"},
		events.SeatUnproven{Handle: handle, Epoch: epoch, Owner: owner}, events.SeatProven{Handle: handle, Epoch: epoch, Owner: owner},
		events.NodeReported{Lease: events.NodeLease(handle), Epoch: epoch, Owner: owner, Node: events.NodeFacts{Draining: true, SeatsHeld: new(int(epoch))}},
		events.LeaseDeclined{Lease: events.SeatLease(handle), Epoch: epoch, Owner: owner, By: nodeB, Reason: events.DeclineGated},
	}).Draw(t, "report")
}

// anyStep draws an event of a handoff, whatever step it is at.
func anyStep(t *rapid.T, handle string, epoch uint64) events.Event {
	body := handoffOf(handle, rapid.Uint64Range(1, 2).Draw(t, "number"), epoch)
	return rapid.SampledFrom([]events.Event{
		events.HandoffRequested{HandoffBody: body}, events.HandoffRequested{HandoffBody: body}, events.HandoffWarmed{HandoffBody: body},
		events.HandoffReleased{HandoffBody: body, ReservedFor: 5}, events.HandoffCompleted{HandoffBody: body, ClaimedEpoch: epoch + 1},
		events.HandoffDeclined{HandoffBody: body, Step: events.StepWarmed, Cause: events.DeclineGated},
		events.HandoffAbandoned{HandoffBody: body, Step: events.StepWarmed, Cause: events.AbandonOperator, Ender: "ops"},
	}).Draw(t, "step")
}

// Design §7: rows rebuilt from nothing equal rows kept up in any batches, also
// after a restart that repeats events it had applied, at every prefix.
func TestRebuiltEqualsIncremental(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := anyLog(t)
		incremental := rowstest.Memory{}
		for i, r := range log {
			if err := projections.Apply(incremental, r); err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 4).Draw(t, "restart") == 0 { // repeats the last few
				for _, again := range log[rapid.IntRange(0, i).Draw(t, "from") : i+1] {
					if err := projections.Apply(incremental, again); err != nil {
						t.Fatal(err)
					}
				}
			}
			rebuilt := rowstest.Memory{}
			for _, r := range log[:i+1] {
				if err := projections.Apply(rebuilt, r); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := incremental.Dump(), rebuilt.Dump(); got != want {
				t.Fatalf("after %d events:\ngot\n%s\nwant\n%s", i+1, got, want)
			}
		}
	})
}

// interval is a tenure as the naive oracle has it.
type interval struct {
	epoch, from, to uint64 // to 0: still in force
	end             projections.End
}

// oracle replays one seat's tenures in the dumbest way.
func oracle(log []events.Recorded, handle string) []interval {
	var all []interval
	for _, r := range log {
		open := len(all) > 0 && all[len(all)-1].to == 0
		finish := func(how projections.End) { all[len(all)-1].to, all[len(all)-1].end = r.Seq, how }
		switch e := r.Event.(type) {
		case events.LeaseClaimed:
			if e.Lease == events.SeatLease(handle) {
				if open {
					finish(projections.EndLapsed)
				}
				all = append(all, interval{epoch: e.Epoch, from: r.Seq})
			}
		case events.LeaseReleased:
			if e.Lease == events.SeatLease(handle) && open && all[len(all)-1].epoch == e.Epoch {
				finish(projections.EndReleased)
			}
		case events.LeaseFenced:
			if e.Lease == events.SeatLease(handle) && open && all[len(all)-1].epoch == e.Epoch {
				finish(projections.EndFenced)
			}
		}
	}
	return all
}

// The tenure index agrees with a naive replay: every tenure with its end, the
// holder at every position and at every time, and the counts.
func TestTenuresAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := anyLog(t)
		rows := rowstest.Memory{}
		var edges []events.Recorded
		for _, r := range log {
			if err := projections.Apply(rows, r); err != nil {
				t.Fatal(err)
			}
			if r.Stream == events.StreamFleet {
				edges = append(edges, r)
			}
		}
		v := projections.NewView(rows)
		held := 0
		for _, h := range []string{"dev", "pm", "qa"} {
			want := oracle(edges, h)
			var got []interval
			for _, x := range must(v.Tenures(projections.TenureFilter{Handle: h}, 0, 100)).Items {
				i := interval{epoch: x.Epoch, from: x.Claimed}
				if x.Ended != nil {
					i.to, i.end = x.Ended.Position, x.Ended.End
				} else {
					held++
				}
				got = append(got, i)
			}
			slices.Reverse(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: got %v, want %v", h, got, want)
			}
			checkHolders(t, v, h, edges, want)
		}
		if f := must(v.Fleet()); f.Held != held {
			t.Fatalf("held: got %d, want %d", f.Held, held)
		}
	})
}

func checkHolders(t *rapid.T, v projections.View, handle string, edges []events.Recorded, want []interval) {
	holder := func(position uint64) string {
		for _, i := range want {
			if i.from <= position && (i.to == 0 || position < i.to) {
				return fmt.Sprint(position, i.epoch)
			}
		}
		return fmt.Sprint(position, "nobody")
	}
	got := func(at projections.PointInTime) string {
		h, err := v.HolderAt(handle, at)
		if err != nil {
			t.Fatal(err)
		}
		if h.Tenure == nil {
			return fmt.Sprint(h.Position, "nobody")
		}
		return fmt.Sprint(h.Position, h.Tenure.Epoch)
	}
	for _, r := range edges {
		if g, w := got(projections.AtPosition(r.Seq)), holder(r.Seq); g != w {
			t.Fatalf("%s at position %d: got %s, want %s", handle, r.Seq, g, w)
		}
		last := uint64(0)
		for _, other := range edges {
			if !other.At.After(r.At) {
				last = other.Seq
			}
		}
		if g, w := got(projections.AtTime(r.At)), holder(last); g != w {
			t.Fatalf("%s at time %v: got %s, want %s", handle, r.At, g, w)
		}
	}
}

// The form of rows is frozen per SchemaVersion: a store keeps rows of older
// builds. If this fails, raise SchemaVersion and write a new golden file
// (make golden).
func TestRowsGolden(t *testing.T) {
	rows := rowstest.Memory{}
	presence := events.LeaseClaimed{Lease: events.NodeLease("node-a"), Epoch: 1, Owner: nodeA, TTL: 45000, Protocol: 4, Node: &events.NodeFacts{Roles: []string{"seats"}}}
	apply(t, rows, fleet(company(1, "dev", "pm"), presence, claim("dev", 1, nodeA), established("dev", 1, nodeA), fence("dev", 1, nodeA),
		claim("dev", 2, nodeB), claim("pm", 1, nodeA), claim("pm", 2, nodeB), company(2, "dev"),
		events.MailboxRegistered{Handle: "dev", AgentID: "agent-dev"},
		events.TriggerSkipped{Handle: "dev", EventID: "e1", Why: events.SkipPanicked, Detail: "boom", Epoch: 2, Owner: nodeB},
		events.NodeReported{Lease: events.NodeLease("node-a"), Epoch: 1, Owner: nodeA, Node: events.NodeFacts{
			Roles: []string{"seats"}, Draining: true, Cordoned: true, Withdrawn: true, SeatsHeld: new(0), CompanyRevision: 2}},
		events.SeatPaused{Handle: "dev", By: "ops", Reason: "review", StopTurn: true},
		events.SeatUnproven{Handle: "dev", Epoch: 2, Owner: nodeB, Since: start},
		events.MailboxRegistered{Handle: "pm", AgentID: "agent-pm"}, events.MailboxAbsent{RetirementBody: absence("pm", events.RetireAbsent)},
		events.RetirementMarked{RetirementBody: absence("pm", events.RetireMarked)}, events.MailboxRetiring{Handle: "pm", AgentID: "agent-pm", Saga: "pm.retirement-1"}))
	ended := append([]events.Event{company(1, "dev", "pm"), claim("dev", 1, nodeA)}, handoffEvents("dev", 1, 1)...)
	handoffs := rowstest.Memory{}
	apply(t, handoffs, fleet(append(ended, claim("pm", 1, nodeA), events.HandoffRequested{HandoffBody: handoffOf("pm", 1, 1)})...))
	apply(t, rows, []events.Recorded{at(events.StreamWork, 1, done("dev", "e1", "k1")), at(events.StreamDead, 1, parked("dev", "e2", 9))})
	golden := filepath.Join("testdata", fmt.Sprintf("rows.v%d.txt", projections.SchemaVersion))
	if os.Getenv("TENURE_GOLDEN") == "rewrite" {
		if err := os.WriteFile(golden, []byte(rows.Dump()+handoffs.Dump()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := rows.Dump() + handoffs.Dump(); got != string(want) {
		t.Errorf("rows changed their form:\ngot\n%s\nwant\n%s", got, want)
	}
}
