package sagas_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

func claimedBy(owner events.Incarnation, epoch uint64, saga string) events.LeaseClaimed {
	return events.LeaseClaimed{Lease: dev, Epoch: epoch, Owner: owner, TTL: 45000, Saga: saga}
}

func freeBy(owner events.Incarnation, epoch uint64) events.LeaseReleased {
	return events.LeaseReleased{Lease: dev, Epoch: epoch, Owner: owner, Reason: events.ReasonDrain}
}

// TestNext proves what each node is asked for at each point: its own step, what
// an end leaves to it, and the end itself when it is due.
func TestNext(t *testing.T) {
	due := func(step events.HandoffStep, last uint64, times int) sagas.Effect {
		return sagas.Abandon{Saga: "dev.1", Cause: events.AbandonDeadline, Last: last, After: time.Duration(times) * sagas.Deadline(fold(way(step)...))}
	}
	lost := func(last uint64, after time.Duration) sagas.Effect {
		return sagas.Abandon{Saga: "dev.1", Cause: events.AbandonLost, Last: last, After: after}
	}
	rel := and(way(events.StepReleased), leaseReleased)
	claimedStep := and(rel, claimedBy(b, 8, "dev.1"))
	establishedStep := and(claimedStep, events.SeatEstablished{Handle: "dev", Epoch: 8, Owner: b})
	unhold, giveUp := sagas.Unhold{Handle: "dev", Through: 1}, sagas.GiveUp{Saga: "dev.1", Epoch: 7, Reason: events.ReasonDrain}
	decline := sagas.Decline{Saga: "dev.1", Cause: events.DeclineDraining}
	establish := (patience.Claim + patience.Establish).Duration()
	type effects = []sagas.Effect
	for name, c := range map[string]struct {
		given []events.Event
		self  events.Incarnation
		unfit events.DeclineReason
		want  effects
	}{
		"nobody, before any":         {nil, a, "", nil},
		"requested, target":          {way(events.StepRequested), b, "", effects{sagas.Warm{Saga: "dev.1", Keep: patience.Total()}, due(events.StepRequested, 10, 1)}},
		"requested, unfit target":    {way(events.StepRequested), b, events.DeclineDraining, effects{decline, due(events.StepRequested, 10, 1)}},
		"requested, source":          {way(events.StepRequested), a, "", effects{due(events.StepRequested, 10, 1)}},
		"requested, bystander":       {way(events.StepRequested), c, "", effects{due(events.StepRequested, 10, 2)}},
		"requested, restarted":       {way(events.StepRequested), a2, "", effects{due(events.StepRequested, 10, 2)}},
		"warmed, source":             {way(events.StepWarmed), a, "", effects{sagas.Quiesce{Saga: "dev.1", Epoch: 7, Hold: "handoff:1"}, due(events.StepWarmed, 20, 1)}},
		"warmed, target":             {way(events.StepWarmed), b, "", effects{due(events.StepWarmed, 20, 1)}},
		"warmed, unfit target":       {way(events.StepWarmed), b, events.DeclineDraining, effects{decline, due(events.StepWarmed, 20, 1)}},
		"quiesced, source":           {way(events.StepQuiesced), a, "", effects{sagas.Flush{Saga: "dev.1", Epoch: 7}, due(events.StepQuiesced, 30, 1)}},
		"flushed, source":            {way(events.StepFlushed), a, "", effects{sagas.Release{Saga: "dev.1", Epoch: 7}, due(events.StepFlushed, 40, 1)}},
		"flushed, fenced source":     {and(way(events.StepFlushed), events.LeaseFenced{Lease: dev, Epoch: 7, Owner: a, Reason: "r", By: "b"}), a, "", effects{sagas.Release{Saga: "dev.1", Epoch: 7}, due(events.StepFlushed, 40, 1)}},
		"released, source":           {rel, a, "", effects{due(events.StepReleased, 50, 1)}},
		"released, target":           {rel, b, "", effects{sagas.Claim{Saga: "dev.1"}, due(events.StepReleased, 50, 1)}},
		"released, unfit target":     {rel, b, events.DeclineDraining, effects{decline, due(events.StepReleased, 50, 1)}},
		"released, alone in view":    {then(released), b, "", effects{sagas.Claim{Saga: "dev.1"}, sagas.Abandon{Saga: "dev.1", Cause: events.AbandonDeadline, Last: 10, After: establish}}},
		"claimed, target":            {claimedStep, b, "", effects{due(events.StepReleased, 50, 1)}},
		"claimed, unfit target":      {claimedStep, b, events.DeclineDraining, effects{due(events.StepReleased, 50, 1)}},
		"established, target":        {establishedStep, b, "", effects{sagas.Complete{Saga: "dev.1", Quiesced: 30}, due(events.StepReleased, 50, 1)}},
		"established, unfit target":  {establishedStep, b, events.DeclineDraining, effects{sagas.Complete{Saga: "dev.1", Quiesced: 30}, due(events.StepReleased, 50, 1)}},
		"established, source":        {establishedStep, a, "", effects{due(events.StepReleased, 50, 1)}},
		"completed, target":          {and(establishedStep, completed), b, "", nil},
		"completed, source":          {and(establishedStep, completed), a, "", nil},
		"completed, bystander":       {and(establishedStep, completed), c, "", nil},
		"abandoned warm, source":     {and(way(events.StepWarmed), abandoned(events.StepWarmed, events.AbandonOperator)), a, "", effects{unhold}},
		"abandoned warm, target":     {and(way(events.StepWarmed), abandoned(events.StepWarmed, events.AbandonOperator)), b, "", nil},
		"abandoned warm, restarted":  {and(way(events.StepWarmed), abandoned(events.StepWarmed, events.AbandonOperator)), a2, "", nil},
		"abandoned warm, moved on":   {and(way(events.StepWarmed), abandoned(events.StepWarmed, events.AbandonOperator), freeBy(a, 7)), a, "", nil},
		"abandoned quiesced, source": {and(way(events.StepQuiesced), abandoned(events.StepQuiesced, events.AbandonOperator)), a, "", effects{giveUp}},
		"abandoned flushed, source":  {and(way(events.StepFlushed), abandoned(events.StepFlushed, events.AbandonDeadline)), a, "", effects{giveUp}},
		"given up, source":           {and(way(events.StepFlushed), abandoned(events.StepFlushed, events.AbandonDeadline), freeBy(a, 7)), a, "", nil},
		"declined warm, source":      {and(way(events.StepWarmed), declined(events.StepWarmed, body())), a, "", effects{unhold}},
		"declined quiesced, source":  {and(way(events.StepQuiesced), declined(events.StepQuiesced, body())), a, "", effects{giveUp}},
		"declined released, source":  {and(rel, declined(events.StepReleased, dark()), leaseDeclined), a, "", nil},
		"declined released, alone":   {then(declined(events.StepReleased, dark())), a, "", nil},
		"given back meanwhile":       {and(way(events.StepQuiesced), freeBy(a, 7)), a, "", effects{lost(30, 0)}},
		"claimed by another":         {and(way(events.StepQuiesced), claimedBy(c, 8, "")), b, "", effects{lost(30, 0)}},
		"claimed by another, holder": {and(way(events.StepQuiesced), claimedBy(c, 8, "")), c, "", effects{lost(30, 0)}},
		"claimed by another, others": {and(way(events.StepQuiesced), claimedBy(c, 8, "")), "d:00000001", "", effects{lost(30, 90*time.Second)}},
		"claimed by the target":      {and(way(events.StepFlushed), claimedBy(b, 8, "")), b, "", effects{lost(40, 0)}},
		"reservation outlived":       {and(rel, claimedBy(c, 8, "")), b, "", effects{lost(50, 0)}},
		"target gave it back":        {and(claimedStep, freeBy(b, 8)), b, "", effects{lost(50, 0)}},
		"target lost it":             {and(establishedStep, claimedBy(c, 9, "")), b, "", effects{lost(50, 0)}},
	} {
		if got := sagas.Next(fold(c.given...), sagas.Node{Self: c.self, Unfit: c.unfit}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// TestTargetGone proves that a source gives a handoff up at once when its target
// has ended, up to the release: after it the seat is reserved, and only what is
// proven ends that. Nobody else acts on it.
func TestTargetGone(t *testing.T) {
	for step, gone := range map[events.HandoffStep]bool{
		events.StepRequested: true, events.StepWarmed: true, events.StepQuiesced: true, events.StepFlushed: true, events.StepReleased: false,
	} {
		s := fold(way(step)...)
		for _, self := range []events.Incarnation{a, b, c} {
			got := sagas.Next(s, sagas.Node{Self: self, TargetGone: true})
			want := sagas.Next(s, sagas.Node{Self: self})
			if gone && self == a {
				want = []sagas.Effect{sagas.Abandon{Saga: "dev.1", Cause: events.AbandonGone, Last: s.Last}}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got %+v, want %+v", step, self, got, want)
			}
		}
	}
}

// TestSchedule8SecondHandoffClearsTheFirst proves that a hold of an abandoned
// handoff outlives the next request only until its source looks, at any step.
func TestSchedule8SecondHandoffClearsTheFirst(t *testing.T) {
	second := body()
	second.Number = 2
	s := fold(requested, warmed, abandoned(events.StepWarmed, events.AbandonOperator), events.HandoffRequested{HandoffBody: second})
	for _, e := range []events.Event{nil, events.HandoffWarmed{HandoffBody: second}, events.HandoffQuiesced{HandoffBody: second}} {
		if e != nil {
			s = sagas.EvolveHandoff(s, s.Last+10, e)
		}
		if got := sagas.Next(s, sagas.Node{Self: a}); len(got) < 2 || got[0] != (sagas.Unhold{Handle: "dev", Through: 1}) {
			t.Errorf("%s: got %+v, want the first handoff's hold lifted before all else", s.Step(), got)
		}
	}
}

// TestSchedule8HoldsAreNamed proves that whoever lifts a hold lifts its own: a
// renewal after a blip undoes no quiesce (A2), a late effect of one handoff not
// the next one's, and neither a person's pause (H3).
func TestSchedule8HoldsAreNamed(t *testing.T) {
	var h sagas.Holds
	h = h.Take(sagas.HoldPause).Take(sagas.HoldOf(9)).Take(sagas.HoldOf(10)).Take(sagas.HoldAdmission).Take(sagas.HoldAdmission)
	for _, c := range []struct {
		do   func(sagas.Holds) sagas.Holds
		want string
	}{
		{func(h sagas.Holds) sagas.Holds { return h.Lift(sagas.HoldAdmission) }, "handoff:10,handoff:9,pause"},
		{func(h sagas.Holds) sagas.Holds { return h.Lift(sagas.HoldAdmission) }, "handoff:10,handoff:9,pause"},
		{func(h sagas.Holds) sagas.Holds { return h.LiftHandoffs(8) }, "handoff:10,handoff:9,pause"},
		{func(h sagas.Holds) sagas.Holds { return h.LiftHandoffs(9) }, "handoff:10,pause"},
		{func(h sagas.Holds) sagas.Holds { return h.LiftHandoffs(99) }, "pause"},
		{func(h sagas.Holds) sagas.Holds { return h.Lift(sagas.HoldPause) }, ""},
		{func(h sagas.Holds) sagas.Holds { return h.Lift(sagas.HoldPause) }, ""},
	} {
		if h = c.do(h); string(h) != c.want || h.Free() != (c.want == "") {
			t.Errorf("holds %q, want %q", h, c.want)
		}
	}
}

// TestNewestEventDecides proves that a decision needs the saga's newest event
// alone, which the writer reads from the leader in one request.
func TestNewestEventDecides(t *testing.T) {
	for _, step := range []events.HandoffStep{events.StepRequested, events.StepWarmed, events.StepQuiesced, events.StepFlushed, events.StepReleased, events.StepCompleted} {
		given := way(step)
		whole := fold(given...)
		newest := sagas.EvolveHandoff(sagas.Handoff{}, whole.Last, given[len(given)-1])
		for _, cmd := range []sagas.HandoffCommand{
			request(a, c, heldByA), sagas.MarkWarmed{Saga: "dev.1", By: b}, sagas.MarkQuiesced{Saga: "dev.1", By: a}, sagas.MarkFlushed{Saga: "dev.1", By: a},
			sagas.ReleaseForHandoff{Saga: "dev.1", By: a, Lease: heldByA}, sagas.DeclineHandoff{Saga: "dev.1", By: b, Cause: events.DeclineGated, Lease: reserved},
			sagas.CompleteHandoff{Saga: "dev.1", By: b, Lease: heldByB}, abandon(events.AbandonDeadline, time.Hour, heldByA), abandon(events.AbandonLost, 0, heldByC),
		} {
			want, wantErr := sagas.DecideHandoff(whole, cmd)
			got, err := sagas.DecideHandoff(newest, cmd)
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
				t.Errorf("%s, %T: the newest event decides %+v (%v), all decide %+v (%v)", step, cmd, got, err, want, wantErr)
			}
		}
	}
}

// TestOtherReportsChangeNothing proves that a runner can feed all that stands
// under a seat's subjects, of which a handoff waits for little.
func TestOtherReportsChangeNothing(t *testing.T) {
	s := fold(way(events.StepReleased)...)
	for _, e := range []events.Event{
		events.TriggerSkipped{Handle: "dev", Epoch: 8, Owner: b, EventID: "x", Why: events.SkipParked},
		events.MailboxRegistered{Handle: "dev", AgentID: "1"},
		events.SeatEstablished{Handle: "dev", Epoch: 7, Owner: a},
	} {
		if got := sagas.EvolveHandoff(s, 1000, e); got.Last != s.Last || !reflect.DeepEqual(sagas.Next(got, sagas.Node{Self: b}), sagas.Next(s, sagas.Node{Self: b})) {
			t.Errorf("%s made the handoff %+v, want %+v", events.Name(e), got, s)
		}
	}
}

// TestUnknownFieldsAreCarriedOn proves L9 for a saga that two builds drive: what
// the newer one added to the request is in the older one's next event.
func TestUnknownFieldsAreCarriedOn(t *testing.T) {
	r := requested
	r.Unknown = events.Fields{"urgency": json.RawMessage(`"high"`)}
	got, err := sagas.DecideHandoff(fold(r), sagas.MarkWarmed{Saga: "dev.1", By: b})
	if err != nil || !reflect.DeepEqual(events.UnknownOf(got[0]), r.Unknown) {
		t.Errorf("decided %+v (%v), want the unknown field in it", got, err)
	}
}

// TestDecidedCanBeWritten proves that every event a decider emits has a subject
// of the fleet's log and reads back as it was.
func TestDecidedCanBeWritten(t *testing.T) {
	subjects, err := events.NewSubjects("crewlet")
	if err != nil {
		t.Fatal(err)
	}
	all := and(way(events.StepCompleted), leaseReleased, leaseDeclined, declined(events.StepReleased, dark()), abandoned(events.StepFlushed, events.AbandonLost), claimedBy(b, 8, "dev.1"))
	for _, e := range all {
		w, err := events.Encode(subjects, events.Meta{ID: "e", Time: time.Unix(1, 0).UTC()}, e)
		if err != nil {
			t.Errorf("%s: %v", events.Name(e), err)
			continue
		}
		got, err := events.Decode(subjects, events.Message{Stream: events.StreamFleet, Seq: 1, Subject: w.Subject, Header: w.Header, Data: w.Data})
		if err != nil || !reflect.DeepEqual(got.Event, e) {
			t.Errorf("%s: read back %+v (%v), want %+v", events.Name(e), got.Event, err, e)
		}
	}
}

// TestCase30ReplayDrivesNothing folds a history of 1,000 handoffs, of all ends,
// as a process does that boots: it is asked for nothing, and of an open one
// only for its end, once that is due.
func TestCase30ReplayDrivesNothing(t *testing.T) {
	var s sagas.Handoff
	seq := uint64(0)
	put := func(e events.Event) {
		seq++
		s = sagas.EvolveHandoff(s, seq, e)
	}
	epoch := uint64(1)
	put(claimedBy(a, epoch, ""))
	for n := uint64(1); n <= 1000; n++ {
		h := events.HandoffBody{Handle: "dev", Number: n, From: a, To: b, Epoch: epoch, Reason: events.HandoffMove, By: "ops", Patience: patience}
		put(events.HandoffRequested{HandoffBody: h})
		put(events.HandoffWarmed{HandoffBody: h})
		if n%3 == 0 {
			put(events.HandoffAbandoned{HandoffBody: h, Step: events.StepWarmed, Cause: events.AbandonOperator, Ender: "ops"})
			continue
		}
		put(events.HandoffQuiesced{HandoffBody: h})
		put(events.HandoffFlushed{HandoffBody: h})
		put(events.HandoffReleased{HandoffBody: h, ReservedFor: patience.Claim})
		put(events.LeaseReleased{Lease: dev, Epoch: epoch, Owner: a, Reason: events.ReasonMoved, Successor: b, ReservedFor: patience.Claim, Saga: h.ID()})
		epoch++
		if n%3 == 1 {
			put(events.HandoffDeclined{HandoffBody: h, Step: events.StepReleased, Cause: events.DeclineBehind})
			put(events.LeaseDeclined{Lease: dev, Epoch: epoch - 1, Owner: a, By: b, Reason: events.DeclineBehind, Saga: h.ID()})
		} else {
			put(claimedBy(b, epoch, h.ID()))
			put(events.SeatEstablished{Handle: "dev", Epoch: epoch, Owner: b})
			put(events.HandoffCompleted{HandoffBody: h, ClaimedEpoch: epoch})
			put(events.LeaseReleased{Lease: dev, Epoch: epoch, Owner: b, Reason: events.ReasonMoved})
			epoch++
		}
		put(claimedBy(a, epoch, ""))
	}
	for _, booted := range []events.Incarnation{a2, "b:00000002", c} {
		if got := sagas.Next(s, sagas.Node{Self: booted}); got != nil {
			t.Errorf("%s is asked for %+v after %s", booted, got, s.ID())
		}
	}
	decided, err := sagas.DecideHandoff(s, request(a, b, aggregates.Lease{Status: aggregates.LeaseHeld, Owner: a, Epoch: epoch}))
	if err != nil {
		t.Fatal(err)
	}
	put(decided[0])
	for _, booted := range []events.Incarnation{a2, "b:00000002", c} {
		want := []sagas.Effect{sagas.Abandon{Saga: "dev.1001", Cause: events.AbandonDeadline, Last: seq, After: 2 * time.Minute}}
		if got := sagas.Next(s, sagas.Node{Self: booted}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is asked for %+v, want %+v", booted, got, want)
		}
	}
}

// TestDefaultPatience proves the relations that the bounds must have: a
// reservation outlives the log clock's sampling and is far below the TTL that
// the seat would be dark for without it, and a turn may end within its own bound.
func TestDefaultPatience(t *testing.T) {
	for _, ttl := range []time.Duration{3 * time.Second, 15 * time.Second, 45 * time.Second, 10 * time.Minute} {
		p := sagas.DefaultPatience(ttl, turn)
		if p.Claim.Duration() < 2*time.Second || p.Claim.Duration() > max(2*time.Second, ttl/3) {
			t.Errorf("TTL %v: reserved for %v", ttl, p.Claim.Duration())
		}
		if p.Quiesce.Duration() < turn {
			t.Errorf("TTL %v: a turn of %v cannot end within %v", ttl, turn, p.Quiesce.Duration())
		}
		if got, want := p.Total(), (p.Warm + p.Quiesce + p.Flush + p.Release + p.Claim).Duration(); got != want {
			t.Errorf("TTL %v: total %v, want %v", ttl, got, want)
		}
		var zero []string
		v := reflect.ValueOf(p)
		for i := range v.NumField() {
			if v.Field(i).Int() <= 0 {
				zero = append(zero, v.Type().Field(i).Name)
			}
		}
		if zero != nil {
			t.Errorf("TTL %v: %s has no bound", ttl, fmt.Sprint(zero))
		}
	}
}
