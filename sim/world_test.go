package sim_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
	"github.com/seat-tenure/tenure/sim"
)

// How a fleet has to come to rest once nothing befalls it any more.
const (
	// restWithin bounds how long it may take until every seat is held once, all mail
	// is done with, and nothing moves any more for as long as restFor.
	restWithin = 3 * time.Minute
	restFor    = 30 * time.Second
	tick       = 500 * time.Millisecond
)

// world is a fleet to which a script happens. All but what it hands to the
// processes belongs to the driver's goroutine.
type world struct {
	script sim.Script
	f      *seattest.Fleet
	judge  *sim.Judge
	plans  *plans
	ctx    context.Context
	parts  sync.WaitGroup // followers and inboxes, until ctx ends
	acts   sync.WaitGroup // what operators asked for

	nodes   map[string]*process // the newest of each id
	all     []*process
	removed map[string]int
	placed  map[string]string
	due     []event
	letters int
	notes   []line

	mu      sync.Mutex
	history map[events.Stream][]events.Message // guarded by mu
	faults  []string                           // the judge's apart; guarded by mu
}

// event is something the driver does at its time.
type event struct {
	at time.Time
	do func()
}

// outcome is what a script came to.
type outcome struct {
	faults []string
	tally  sim.Tally
	rested time.Duration // how long it took to come to rest
	log    []string      // what happened and what the processes logged, if something is wrong
}

// play lets a script happen, inside the bubble of t.
func play(t *testing.T, s sim.Script) outcome {
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &world{
		script: s, f: seattest.New(t, s.TTL), judge: sim.NewJudge(s.TTL), plans: &plans{next: map[string][]trouble{}}, ctx: ctx,
		nodes: map[string]*process{}, removed: map[string]int{}, placed: map[string]string{},
		history: map[events.Stream][]events.Message{},
	}
	defer func() {
		w.heal()
		w.acts.Wait()
		end()
		w.parts.Wait()
	}()
	for _, st := range []events.Stream{events.StreamFleet, events.StreamCursor, events.StreamWork, events.StreamDead} {
		w.parts.Go(func() { w.watch(st) })
	}
	w.apply()
	start := time.Now()
	for _, id := range s.Nodes {
		w.boot(id)
	}
	for _, step := range s.Steps {
		w.at(start.Add(step.At), func() { w.note(step.String()); w.happen(step) })
	}
	w.at(start.Add(s.Mail), w.send)
	well := w.until(start.Add(s.For))
	w.heal()
	if well {
		w.rest()
	}
	rested := time.Since(start) - s.For
	out := outcome{faults: w.verdict(), tally: w.judge.Tally(), rested: rested}
	if len(out.faults) > 0 {
		out.log = w.story()
	}
	return out
}

// watch tells the judge what lands in a stream, and keeps it for the audit.
func (w *world) watch(st events.Stream) {
	_ = w.f.Conn.Stream(st).Follow(w.ctx, 1, nil, func(batch []events.Message, _ bool) error {
		w.mu.Lock()
		w.history[st] = append(w.history[st], batch...)
		w.mu.Unlock()
		for _, msg := range batch {
			r, err := events.Decode(w.f.Subjects, msg)
			if err != nil {
				w.fault("%s has what nobody can read: %v", st, err)
				continue
			}
			w.judge.Logged(r, time.Now())
		}
		return nil
	})
}

func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// found is what is wrong so far. Everything that can happen in this moment has.
func (w *world) found() []string {
	synctest.Wait()
	judged := w.judge.Look()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Concat(w.faults, judged)
}

// at puts something in its place in time.
func (w *world) at(when time.Time, do func()) {
	i, _ := slices.BinarySearchFunc(w.due, when, func(e event, at time.Time) int {
		if e.at.After(at) {
			return 1
		}
		return -1
	})
	w.due = slices.Insert(w.due, i, event{when, do})
}

func (w *world) after(d time.Duration, do func()) { w.at(time.Now().Add(d), do) }

// until lets everything happen that is due before that time, and says whether all
// is well so far.
func (w *world) until(end time.Time) bool {
	for len(w.due) > 0 && w.due[0].at.Before(end) {
		next := w.due[0]
		w.due = w.due[1:]
		w.f.Advance(max(0, time.Until(next.at)))
		next.do()
		if len(w.found()) > 0 {
			return false
		}
	}
	w.f.Advance(max(0, time.Until(end)))
	return len(w.found()) == 0
}

// send sends mail to some seat, now and then under an id that was used before, or of
// a type that no turn is run on.
func (w *world) send() {
	draw := drawFor(w.script.Seed, "mail", w.letters)
	w.letters++
	id := fmt.Sprint("m", w.letters)
	if draw.IntN(20) == 0 {
		id = fmt.Sprint("m", 1+draw.IntN(w.letters))
	}
	kind := events.TaskAssigned
	if draw.IntN(40) == 0 {
		kind = "news" // which runs no turn, and is parked
	}
	seat := w.script.Seats[draw.IntN(len(w.script.Seats))]
	seq, err := w.f.Op.Send(w.ctx, events.Mail{
		Handle: seat, Mailbox: events.Inbox, ID: id, Type: kind, Time: time.Now(), Data: []byte(`"work"`),
		Conversation: []string{"", "c1", "c2"}[draw.IntN(3)],
	})
	if err != nil {
		w.fault("mail %s to %s was not stored: %v", id, seat, err)
	} else {
		w.judge.Sent(seat, id, seq, time.Now())
	}
	w.after(w.script.Mail/2+time.Duration(draw.Int64N(int64(w.script.Mail))), w.send)
}

// apply makes the company what it is to be now.
func (w *world) apply() {
	var roster []events.RosterSeat
	for _, seat := range w.script.Seats {
		if w.removed[seat] == 0 {
			roster = append(roster, events.RosterSeat{Handle: seat, Node: w.placed[seat]})
		}
	}
	w.f.Roster(roster...)
}

// heal makes all well: what was begun ends, and what was taken away comes back.
func (w *world) heal() {
	w.due = nil
	w.plans.drop()
	for _, p := range w.all {
		p.heal()
	}
	clear(w.placed)
	clear(w.removed)
	w.apply()
	for _, seat := range w.script.Seats {
		if _, err := w.f.Op.Resume(w.ctx, seat, "all is well", "ops"); err != nil {
			w.fault("resume %s: %v", seat, err)
		}
	}
}

// rest waits until the fleet has come to rest.
func (w *world) rest() {
	began, still := time.Now(), time.Now()
	edges := -1
	for {
		for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
			if !w.nodes[id].running() {
				w.boot(id)
			}
		}
		w.f.Advance(tick)
		if len(w.found()) > 0 {
			return
		}
		why := w.unsettled()
		if n := w.judge.Tally().Edges; why != "" || n != edges {
			still, edges = time.Now(), n
		}
		if time.Since(still) >= restFor {
			return
		}
		if time.Since(began) > restWithin {
			if why == "" {
				why = "FLEET does not come to rest: it ends with " + w.lately()
			}
			w.fault("%v after all was well again: %s", restWithin, why)
			return
		}
	}
}

// unsettled says what the fleet still has to do.
func (w *world) unsettled() string {
	for _, seat := range w.script.Seats {
		var holders []*process
		for _, p := range w.nodes {
			if p.running() && slices.Contains(p.Host.Held(), seat) {
				holders = append(holders, p)
			}
		}
		if len(holders) != 1 {
			return fmt.Sprintf("%d nodes hold %s", len(holders), seat)
		}
		lease, err := w.f.Op.Lease(w.ctx, events.SeatLease(seat))
		if err != nil || lease.Status != aggregates.LeaseHeld || lease.Owner != holders[0].Self {
			return fmt.Sprintf("%s holds %s, and the log says %+v (%v)", holders[0].Self, seat, lease, err)
		}
	}
	if n := w.judge.Waiting(); n > 0 {
		return fmt.Sprintf("%d mails wait", n)
	}
	return ""
}

// lately names the newest events of FLEET.
func (w *world) lately() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, msg := range slices.Backward(w.history[events.StreamFleet]) {
		if name := msg.Header.Get(events.HeaderType); !strings.HasSuffix(name, "-renewed") && len(names) < 6 {
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	return strings.Join(names, ", ")
}

// verdict ends the fleet and judges the whole of it.
func (w *world) verdict() []string {
	var leaving sync.WaitGroup
	for _, p := range w.all {
		leaving.Go(p.Stop)
	}
	leaving.Wait()
	w.found()
	faults := w.judge.Finish(func(seq uint64) bool {
		_, err := w.f.Conn.Stream(events.StreamMail).Get(w.ctx, seq)
		return err == nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	report := w.audited()
	faults = slices.Concat(w.faults, faults)
	for _, v := range report.Violations {
		faults = append(faults, fmt.Sprintf("audit: %v", v))
	}
	return faults
}

// audited audits the history as an export has it now: renewals that were pruned are
// not in it, and what is said of the events before them holds for it alone. Of
// CURSOR it has all that was ever read. The caller holds w.mu.
func (w *world) audited() audit.Report {
	auditor, fleet := audit.New(w.f.Subjects), w.f.Conn.Stream(events.StreamFleet)
	for _, msg := range w.history[events.StreamFleet] {
		if _, err := fleet.Get(w.ctx, msg.Seq); err == nil {
			auditor.Add(msg)
		}
	}
	for _, st := range []events.Stream{events.StreamCursor, events.StreamWork, events.StreamDead} {
		for _, msg := range w.history[st] {
			auditor.Add(msg)
		}
	}
	return auditor.Finish()
}
