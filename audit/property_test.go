package audit_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// fleetRun plays a fleet: processes that know nothing but the deciders act on
// one log, each act on what the log says, as the broker's checks make it.
type fleetRun struct {
	*history
	owners []events.Incarnation
	boxes  map[string]aggregates.Cursor // cursors by subject
	moves  sagas.Handoff                // of dev
	done   map[string]bool              // recorded events by seat and id
}

func newRun() *fleetRun {
	return &fleetRun{
		history: newHistory(), owners: []events.Incarnation{alpha, beta, "node-0:0badcaf2"},
		boxes: map[string]aggregates.Cursor{}, done: map[string]bool{},
	}
}

// newest folds what a claimant reads: the family's newest event that the log
// still has.
func (f *fleetRun) newest(l events.Lease) aggregates.Lease {
	for _, m := range slices.Backward(f.messages[events.StreamFleet]) {
		if m.Subject == fleet.Tenure(l) || m.Subject == fleet.Renewal(l) {
			return aggregates.EvolveLease(aggregates.Lease{}, m.Seq, must(events.Decode(fleet, m)).Event)
		}
	}
	return aggregates.Lease{}
}

func (f *fleetRun) decide(l events.Lease, cmd aggregates.LeaseCommand) {
	decided, err := aggregates.DecideLease(f.newest(l), cmd)
	if err != nil {
		return
	}
	for _, e := range decided {
		f.put(e)
	}
}

func (f *fleetRun) lease(t *rapid.T) events.Lease {
	return rapid.SampledFrom([]events.Lease{dev, events.SeatLease("dev-2"), events.NodeLease("node-0"), {Kind: events.KindWorker, ID: "retention"}}).Draw(t, "lease")
}

func (f *fleetRun) claim(t *rapid.T) {
	l, dir := f.lease(t), rapid.SampledFrom([]string{"", "d-1"}).Draw(t, "dir")
	f.decide(l, aggregates.ClaimLease{
		Saga:  rapid.SampledFrom([]string{"", "", f.moves.ID()}).Draw(t, "saga"),
		Lease: l, Owner: rapid.SampledFrom(f.owners).Draw(t, "owner"), TTL: ttl.Duration(), Protocol: 4, Local: dir, DeadLocal: dir,
		Known: rapid.Bool().Draw(t, "known"), Unseen: rapid.SampledFrom([]time.Duration{0, ttl.Duration(), lapsed.Duration(), time.Hour}).Draw(t, "unseen"),
	})
}

func (f *fleetRun) renewOrEnd(t *rapid.T) {
	l := f.lease(t)
	s := f.newest(l)
	switch rapid.IntRange(0, 4).Draw(t, "act") {
	case 0:
		f.decide(l, aggregates.ReleaseLease{Lease: l, Owner: s.Owner, Epoch: s.Epoch, Reason: events.ReasonDrain})
	case 1:
		f.decide(l, aggregates.FenceLease{Lease: l, Epoch: s.Epoch, Reason: "sick", By: "ops"})
	case 2:
		if l.Kind == events.KindNode {
			f.decide(l, aggregates.ReportNode{Lease: l, Owner: s.Owner, Epoch: s.Epoch})
		}
	default:
		f.decide(l, aggregates.RenewLease{Lease: l, Owner: s.Owner, Epoch: s.Epoch})
	}
}

// handOff goes on with the handoff of dev, or begins one, by some steps; it may
// be declined or given up at any of them.
func (f *fleetRun) handOff(t *rapid.T) {
	for range rapid.IntRange(1, 7).Draw(t, "steps") {
		s, id := f.newest(dev), f.moves.ID()
		at := map[events.HandoffStep]sagas.HandoffCommand{
			events.StepRequested: sagas.MarkWarmed{Saga: id, By: f.moves.To}, events.StepWarmed: sagas.MarkQuiesced{Saga: id, By: f.moves.From},
			events.StepQuiesced: sagas.MarkFlushed{Saga: id, By: f.moves.From}, events.StepFlushed: sagas.ReleaseForHandoff{Saga: id, By: f.moves.From, Lease: s},
			events.StepReleased: sagas.CompleteHandoff{Saga: id, By: f.moves.To, Lease: s, DarkFor: time.Second},
		}
		cmd := at[f.moves.Step()]
		how := rapid.IntRange(0, 19).Draw(t, "how")
		switch {
		case !f.moves.Open():
			cmd = sagas.RequestHandoff{Handle: dev.ID, From: s.Owner, To: rapid.SampledFrom(f.owners).Draw(t, "to"), Reason: events.HandoffDrain, By: "ops",
				Patience: moving(1, 1, alpha, beta).Patience, Lease: s}
		case how == 0:
			cmd = sagas.DeclineHandoff{Saga: id, By: f.moves.To, Cause: events.DeclineDraining, Lease: s}
		case how <= 2:
			cmd = sagas.AbandonHandoff{Saga: id, By: "ops", Known: true, Unseen: time.Hour, Lease: s,
				Cause: rapid.SampledFrom([]events.AbandonCause{events.AbandonDeadline, events.AbandonLost, events.AbandonOperator}).Draw(t, "cause")}
		}
		decided, err := sagas.DecideHandoff(f.moves, cmd)
		if err != nil {
			return
		}
		for _, e := range decided {
			seq := f.put(e)
			if step, ofSaga := e.(events.HandoffEvent); ofSaga {
				f.moves = sagas.EvolveHandoff(f.moves, seq, step)
			}
		}
	}
}

// work is what the holder of a seat does outside the lease; a slow one may be
// the holder of any tenure there ever was.
func (f *fleetRun) work(t *rapid.T) {
	l := rapid.SampledFrom([]events.Lease{dev, events.SeatLease("dev-2")}).Draw(t, "seat")
	s := f.newest(l)
	if s.Status == aggregates.LeaseFree {
		return
	}
	box := rapid.SampledFrom(events.Mailboxes[:]).Draw(t, "box")
	subject := fleet.Cursor(l.ID, box)
	c := f.boxes[subject]
	id := rapid.SampledFrom([]string{"mail/1", "mail/2", "mail/3"}).Draw(t, "mail")
	next := c.Read + 1
	switch rapid.IntRange(0, 5).Draw(t, "work") {
	case 0:
		f.put(events.SeatEstablished{Handle: l.ID, Epoch: s.Epoch, Owner: s.Owner})
	case 1:
		f.cursor(l.ID, box, aggregates.OpenCursor{Epoch: s.Epoch, Owner: s.Owner})
	case 2:
		f.cursor(l.ID, box, aggregates.AttemptMail{Epoch: s.Epoch, Owner: s.Owner, Mail: life, Seqs: []uint64{next}})
	case 3:
		f.cursor(l.ID, box, aggregates.SettleMail{Epoch: s.Epoch, Owner: s.Owner, Mail: life, Ack: []uint64{c.Read, next}})
	case 4:
		if key := l.ID + id; !f.done[key] {
			f.done[key] = true
			f.put(completed(l.ID, id, s.Epoch, s.Owner))
		}
	default:
		if key := "dead" + l.ID + id; !f.done[key] {
			f.done[key] = true
			f.put(parked(l.ID, id, next, s.Epoch, s.Owner))
		}
	}
}

func (f *fleetRun) cursor(handle string, box events.Mailbox, cmd aggregates.CursorCommand) {
	subject := fleet.Cursor(handle, box)
	decided, err := aggregates.DecideCursor(handle, box, f.boxes[subject], cmd)
	if err != nil {
		return
	}
	for _, e := range decided {
		f.boxes[subject] = aggregates.EvolveCursor(f.boxes[subject], f.put(e), e.(events.CursorEvent))
	}
}

// prune drops every renewal below a position, as the retention duty does.
func (f *fleetRun) prune(t *rapid.T) {
	below := rapid.Uint64Range(0, f.seq[events.StreamFleet]).Draw(t, "below")
	f.messages[events.StreamFleet] = slices.DeleteFunc(f.messages[events.StreamFleet], func(m events.Message) bool {
		return m.Seq < below && strings.HasSuffix(m.Subject, ".renewal")
	})
}

// anyRun plays a run of any acts and ends it with a legal log.
func anyRun(t *rapid.T) *fleetRun {
	f := newRun()
	for _, handle := range []string{"dev", "dev-2"} {
		for _, box := range events.Mailboxes {
			f.cursor(handle, box, aggregates.CreateCursor{Mail: life})
		}
		f.put(events.MailboxRegistered{Handle: handle, AgentID: "a"})
	}
	acts := []func(*rapid.T){f.claim, f.claim, f.renewOrEnd, f.renewOrEnd, f.work, f.work, f.handOff, f.prune}
	for range rapid.IntRange(0, 60).Draw(t, "acts") {
		rapid.SampledFrom(acts).Draw(t, "act")(t)
	}
	return f
}

// TestWhatDecidersWriteAuditsClean proves that the audit and the deciders hold
// the same law: whatever they let happen, with renewals pruned at any time, is
// found to be legal.
func TestWhatDecidersWriteAuditsClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if r := anyRun(t).check(); !r.OK() {
			t.Fatalf("found in a legal history:\n%s", found(r))
		}
	})
}

// TestAnyMutationIsCaught proves that one change of a legal file, of any kind
// and anywhere, makes it no export or an illegal one.
func TestAnyMutationIsCaught(t *testing.T) {
	mutations := map[string]func(t *rapid.T, file [][]byte) [][]byte{
		"remove": func(t *rapid.T, file [][]byte) [][]byte {
			i := rapid.IntRange(0, len(file)-1).Draw(t, "line")
			return slices.Delete(file, i, i+1)
		},
		"repeat": func(t *rapid.T, file [][]byte) [][]byte {
			i := rapid.IntRange(0, len(file)-1).Draw(t, "line")
			return slices.Insert(file, rapid.IntRange(0, len(file)).Draw(t, "to"), file[i])
		},
		"move": func(t *rapid.T, file [][]byte) [][]byte {
			i := rapid.IntRange(0, len(file)-2).Draw(t, "line")
			file[i], file[i+1] = file[i+1], file[i]
			return file
		},
		"alter": func(t *rapid.T, file [][]byte) [][]byte {
			i := rapid.IntRange(0, len(file)-1).Draw(t, "line")
			at := rapid.IntRange(0, len(file[i])-1).Draw(t, "byte")
			file[i] = bytes.Clone(file[i])
			file[i][at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
			return file
		},
		"insert byte": func(t *rapid.T, file [][]byte) [][]byte {
			i := rapid.IntRange(0, len(file)-1).Draw(t, "line")
			at := rapid.IntRange(0, len(file[i])).Draw(t, "byte")
			file[i] = slices.Insert(bytes.Clone(file[i]), at, rapid.Byte().Draw(t, "value"))
			return file
		},
		"cut": func(t *rapid.T, file [][]byte) [][]byte {
			whole := bytes.Join(file, nil)
			return [][]byte{whole[:rapid.IntRange(0, len(whole)-1).Draw(t, "length")]}
		},
	}
	names := []string{"remove", "repeat", "move", "alter", "insert byte", "cut"}
	rapid.Check(t, func(t *rapid.T) {
		file := slices.Collect(bytes.Lines(anyRun(t).export()))
		name := rapid.SampledFrom(names).Draw(t, "mutation")
		mutated := bytes.Join(mutations[name](t, slices.Clone(file)), nil)
		if bytes.Equal(mutated, bytes.Join(file, nil)) {
			return // two equal lines changed places: there are none, but no matter
		}
		if r, err := audit.Check(bytes.NewReader(mutated)); err == nil && r.OK() {
			t.Fatalf("%s was not caught:\n%s", name, mutated)
		}
	})
}

// TestIllegalActsAreCaught proves that one act which no decider would decide,
// put at the end of any legal history and chained right, is found there.
func TestIllegalActsAreCaught(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyRun(t)
		l := f.lease(t)
		s := f.newest(l)
		stranger := events.Incarnation("node-9:99999999")
		forged := moving(f.moves.Number+1, 99, stranger, alpha)
		free := s.Status == aggregates.LeaseFree
		over := events.Over{Epoch: s.Epoch, Owner: s.Owner, LastSeq: s.Last, Unseen: lapsed}
		acts := map[string]events.Event{
			"renewal by a stranger":  renewed(l, max(s.Epoch, 1), stranger),
			"release by a stranger":  released(l, max(s.Epoch, 1), stranger),
			"fence of a next epoch":  fenced(l, s.Epoch+1, stranger),
			"report by a stranger":   events.SeatEstablished{Handle: "dev", Epoch: 99, Owner: stranger},
			"handoff of no tenure":   events.HandoffRequested{HandoffBody: forged},
			"step of no handoff":     events.HandoffFlushed{HandoffBody: forged},
			"completion of no claim": completed("dev", "forged", 99, stranger),
		}
		if s.Epoch > 0 {
			acts["epoch again"] = claimed(l, s.Epoch, stranger)
		}
		if !free && l.Kind == events.KindSeat {
			half := released(l, s.Epoch, s.Owner)
			half.Saga = "dev.99"
			acts["release for no handoff"] = half
		}
		if !free {
			acts["claim over a tenure"] = claimed(l, s.Epoch+1, stranger)
			short := over
			short.Unseen--
			acts["claim too early"] = takenOver(l, s.Epoch+1, stranger, short)
			other := over
			other.Epoch++
			acts["claim over another"] = takenOver(l, s.Epoch+1, stranger, other)
			local := over
			local.Unseen, local.Local = 0, true
			acts["claim as local"] = takenOver(l, s.Epoch+1, stranger, local)
		}
		if s.Successor != "" {
			acts["claim of what is reserved"] = claimed(l, s.Epoch+1, stranger)
			acts["claim too early for the reserved"] = waited(claimed(l, s.Epoch+1, stranger), events.Waited{Successor: s.Successor, LastSeq: s.Last, Unseen: 9999})
		}
		if l.Kind == events.KindSeat {
			acts["decline by a stranger"] = declined(l, max(s.Epoch, 1), alpha, stranger, "dev.1")
			acts["claim for no handoff"] = forSaga(claimed(l, s.Epoch+1, stranger), "dev.1")
		}
		if s.Status == aggregates.LeaseFenced {
			acts["second fence"] = fenced(l, s.Epoch, s.Owner)
			acts["renewal after fence"] = renewed(l, s.Epoch, s.Owner)
		}
		names := make([]string, 0, len(acts))
		for name := range acts {
			names = append(names, name)
		}
		slices.Sort(names)
		name := rapid.SampledFrom(names).Draw(t, "act")
		seq := f.put(acts[name])
		stream, _, _ := where(acts[name])
		r := f.check()
		if r.OK() || r.Violations[0].Stream != stream || r.Violations[0].Seq != seq {
			t.Fatalf("%s at %s sequence %d was not caught:\n%s", name, stream, seq, found(r))
		}
	})
}
