package sagas_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

const (
	a  events.Incarnation = "a:00000001"
	a2 events.Incarnation = "a:00000002" // the same node, started again
	b  events.Incarnation = "b:00000001"
	c  events.Incarnation = "c:00000001"
)

// body is handoff dev.1 of epoch 7 from a to b.
func body() events.HandoffBody {
	return events.HandoffBody{Handle: "dev", Number: 1, From: a, To: b, Epoch: 7, Reason: events.HandoffDrain, By: "ops", Patience: patience}
}

// dark is body once the quiesce, at 30, is known.
func dark() events.HandoffBody {
	d := body()
	d.Quiesced = 30
	return d
}

// Facts.
var (
	requested = events.HandoffRequested{HandoffBody: body()}
	warmed    = events.HandoffWarmed{HandoffBody: body()}
	quiesced  = events.HandoffQuiesced{HandoffBody: body()}
	flushed   = events.HandoffFlushed{HandoffBody: dark()}
	released  = events.HandoffReleased{HandoffBody: dark(), ReservedFor: patience.Claim}
	completed = events.HandoffCompleted{HandoffBody: dark(), ClaimedEpoch: 8, DarkFor: 40}

	leaseReleased = events.LeaseReleased{Lease: dev, Epoch: 7, Owner: a, Reason: events.ReasonDrain, Successor: b, ReservedFor: patience.Claim, Saga: "dev.1"}
	leaseDeclined = events.LeaseDeclined{Lease: dev, Epoch: 7, Owner: a, By: b, Reason: events.DeclineGated, Saga: "dev.1"}
)

func abandoned(at events.HandoffStep, why events.AbandonCause) events.HandoffAbandoned {
	e := events.HandoffAbandoned{HandoffBody: body(), Step: at, Cause: why, Ender: "ops"}
	if at == events.StepFlushed || at == events.StepReleased {
		e.HandoffBody = dark()
	}
	return e
}

func declined(at events.HandoffStep, body events.HandoffBody) events.HandoffDeclined {
	return events.HandoffDeclined{HandoffBody: body, Step: at, Cause: events.DeclineGated}
}

// way is the handoff's events up to and with that step; each stands at the tens.
func way(to events.HandoffStep) []events.Event {
	all := []events.Event{requested, warmed, quiesced, flushed, released, completed}
	for i, e := range all {
		if step, _ := e.(events.HandoffEvent).Handoff(); step == to {
			return all[:i+1]
		}
	}
	return nil
}

func and(given []events.Event, more ...events.Event) []events.Event {
	return append(given[:len(given):len(given)], more...)
}

// Leases as their family's newest event has them.
var (
	heldByA  = lease(events.LeaseRenewed{Lease: dev, Epoch: 7, Owner: a})
	fencedA  = lease(events.LeaseFenced{Lease: dev, Epoch: 7, Owner: a, Reason: "sick", By: "ops"})
	freed    = lease(events.LeaseReleased{Lease: dev, Epoch: 7, Owner: a, Reason: events.ReasonTTLGrace})
	reserved = lease(leaseReleased)
	undone   = lease(leaseDeclined)
	heldByB  = lease(events.LeaseClaimed{Lease: dev, Epoch: 8, Owner: b, TTL: 45000, Saga: "dev.1"})
	heldByC  = lease(events.LeaseClaimed{Lease: dev, Epoch: 8, Owner: c, TTL: 45000})
	bAgain   = lease(events.LeaseClaimed{Lease: dev, Epoch: 9, Owner: b, TTL: 45000})
	freedByB = lease(events.LeaseReleased{Lease: dev, Epoch: 8, Owner: b, Reason: events.ReasonAcquireFailed})
)

func lease(newest events.Event) aggregates.Lease {
	return aggregates.EvolveLease(aggregates.Lease{}, 100, newest)
}

func fold(given ...events.Event) sagas.Handoff {
	var s sagas.Handoff
	for i, e := range given {
		s = sagas.EvolveHandoff(s, uint64(10*(i+1)), e)
	}
	return s
}

func request(from, to events.Incarnation, l aggregates.Lease) sagas.RequestHandoff {
	return sagas.RequestHandoff{Handle: "dev", From: from, To: to, Reason: events.HandoffDrain, By: "ops", Patience: patience, Lease: l}
}

func abandon(why events.AbandonCause, unseen time.Duration, l aggregates.Lease) sagas.AbandonHandoff {
	return sagas.AbandonHandoff{Saga: "dev.1", Cause: why, By: "ops", Unseen: unseen, Known: true, Lease: l}
}

// story is one row: what happened, what is asked, what happens then, or the
// type of the refusal.
type story struct {
	given   []events.Event
	when    sagas.HandoffCommand
	then    []events.Event
	refused error
}

func then(es ...events.Event) []events.Event { return es }

func tell(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			state := fold(s.given...)
			got, err := sagas.DecideHandoff(state, s.when)
			if reflect.TypeOf(err) != reflect.TypeOf(s.refused) {
				t.Fatalf("refused with %T (%v), want %T", err, err, s.refused)
			}
			if !reflect.DeepEqual(got, s.then) {
				t.Errorf("got %+v, want %+v", got, s.then)
			}
			if err != nil || len(got) == 0 {
				return
			}
			// A command that is repeated changes nothing.
			again, err := sagas.DecideHandoff(sagas.EvolveHandoff(state, 1000, got[0]), s.when)
			if _, request := s.when.(sagas.RequestHandoff); !request && (err != nil || len(again) > 0) {
				t.Errorf("repeated, it decided %+v (%v)", again, err)
			}
		})
	}
}

// TestRequest proves that a seat has one open handoff at a time, of its holder,
// and that no handoff begins of a tenure that can only end (design §5).
func TestRequest(t *testing.T) {
	second := body()
	second.Number = 2
	next := body()
	next.Number, next.Epoch, next.From, next.To = 2, 8, b, a
	tell(t, map[string]story{
		"the first":                        {nil, request(a, b, heldByA), then(requested), nil},
		"of a fenced tenure":               {nil, request(a, b, fencedA), then(requested), nil},
		"while one is requested":           {way(events.StepRequested), request(a, b, heldByA), nil, &sagas.OpenError{}},
		"while one is released":            {way(events.StepReleased), request(a, c, heldByA), nil, &sagas.OpenError{}},
		"by its target while it is open":   {way(events.StepReleased), request(b, c, heldByB), nil, &sagas.OpenError{}},
		"after one completed":              {way(events.StepCompleted), request(b, a, heldByB), then(events.HandoffRequested{HandoffBody: next}), nil},
		"after one abandoned early":        {and(way(events.StepWarmed), abandoned(events.StepWarmed, events.AbandonOperator)), request(a, b, heldByA), then(events.HandoffRequested{HandoffBody: second}), nil},
		"after one declined early":         {and(way(events.StepRequested), declined(events.StepRequested, body())), request(a, b, heldByA), then(events.HandoffRequested{HandoffBody: second}), nil},
		"after one abandoned in teardown":  {and(way(events.StepQuiesced), abandoned(events.StepQuiesced, events.AbandonOperator)), request(a, b, heldByA), nil, &sagas.TornDownError{}},
		"after one declined in teardown":   {and(way(events.StepFlushed), declined(events.StepFlushed, dark())), request(a, b, heldByA), nil, &sagas.TornDownError{}},
		"of the tenure after that one":     {and(way(events.StepQuiesced), abandoned(events.StepQuiesced, events.AbandonOperator)), request(b, a, heldByB), then(events.HandoffRequested{HandoffBody: next}), nil},
		"of a seat that nobody holds":      {nil, request(a, b, freed), nil, &sagas.NotHolderError{}},
		"of a seat that nobody ever held":  {nil, request(a, b, aggregates.Lease{}), nil, &sagas.NotHolderError{}},
		"of a seat that another holds":     {nil, request(a, b, heldByC), nil, &sagas.NotHolderError{}},
		"of a seat that its node once had": {nil, request(a2, b, heldByA), nil, &sagas.NotHolderError{}},
		"to itself":                        {nil, request(a, a, heldByA), nil, &sagas.NotYoursError{}},
	})
}

// TestMarks proves who takes which step, in which order, and that one taken
// already is no error (design §5).
func TestMarks(t *testing.T) {
	warm := sagas.MarkWarmed{Saga: "dev.1", By: b}
	quiesce := sagas.MarkQuiesced{Saga: "dev.1", By: a}
	flush := sagas.MarkFlushed{Saga: "dev.1", By: a}
	over := and(way(events.StepWarmed), abandoned(events.StepWarmed, events.AbandonOperator))
	tell(t, map[string]story{
		"warmed":                       {way(events.StepRequested), warm, then(warmed), nil},
		"warmed again":                 {way(events.StepFlushed), warm, nil, nil},
		"warmed by the source":         {way(events.StepRequested), sagas.MarkWarmed{Saga: "dev.1", By: a}, nil, &sagas.NotYoursError{}},
		"warmed by a later process":    {way(events.StepRequested), sagas.MarkWarmed{Saga: "dev.1", By: "b:00000002"}, nil, &sagas.NotYoursError{}},
		"warmed when over":             {over, warm, nil, &sagas.NotOpenError{}},
		"warmed without a handoff":     {nil, warm, nil, &sagas.NotOpenError{}},
		"warmed for another handoff":   {way(events.StepRequested), sagas.MarkWarmed{Saga: "dev.2", By: b}, nil, &sagas.NotOpenError{}},
		"quiesced":                     {way(events.StepWarmed), quiesce, then(quiesced), nil},
		"quiesced again":               {way(events.StepReleased), quiesce, nil, nil},
		"quiesced before the warming":  {way(events.StepRequested), quiesce, nil, &sagas.OutOfStepError{}},
		"quiesced by the target":       {way(events.StepWarmed), sagas.MarkQuiesced{Saga: "dev.1", By: b}, nil, &sagas.NotYoursError{}},
		"quiesced when over":           {over, quiesce, nil, &sagas.NotOpenError{}},
		"flushed":                      {way(events.StepQuiesced), flush, then(flushed), nil},
		"flushed again":                {way(events.StepFlushed), flush, nil, nil},
		"flushed before the quiesce":   {way(events.StepWarmed), flush, nil, &sagas.OutOfStepError{}},
		"flushed by somebody":          {way(events.StepQuiesced), sagas.MarkFlushed{Saga: "dev.1", By: c}, nil, &sagas.NotYoursError{}},
		"flushed when over":            {and(way(events.StepQuiesced), abandoned(events.StepQuiesced, events.AbandonDeadline)), flush, nil, &sagas.NotOpenError{}},
		"flushed for another that was": {way(events.StepQuiesced), sagas.MarkFlushed{Saga: "dev.0", By: a}, nil, &sagas.NotOpenError{}},
	})
}

// TestRelease proves that the saga's release and the lease's are one decision,
// and that each half has its own refusals.
func TestRelease(t *testing.T) {
	release := func(by events.Incarnation, l aggregates.Lease) sagas.ReleaseForHandoff {
		return sagas.ReleaseForHandoff{Saga: "dev.1", By: by, Lease: l}
	}
	tell(t, map[string]story{
		"in one batch":             {way(events.StepFlushed), release(a, heldByA), then(released, leaseReleased), nil},
		"of a fenced tenure":       {way(events.StepFlushed), release(a, fencedA), then(released, leaseReleased), nil},
		"again":                    {way(events.StepReleased), release(a, reserved), nil, nil},
		"before the flush":         {way(events.StepQuiesced), release(a, heldByA), nil, &sagas.OutOfStepError{}},
		"by the target":            {way(events.StepFlushed), release(b, heldByA), nil, &sagas.NotYoursError{}},
		"when abandoned":           {and(way(events.StepFlushed), abandoned(events.StepFlushed, events.AbandonDeadline)), release(a, heldByA), nil, &sagas.NotOpenError{}},
		"after a plain release":    {way(events.StepFlushed), release(a, freed), nil, &aggregates.EndedError{}},
		"after a successor's":      {way(events.StepFlushed), release(a, heldByC), nil, &aggregates.EndedError{}},
		"after its own next claim": {way(events.StepFlushed), release(a, lease(events.LeaseClaimed{Lease: dev, Epoch: 8, Owner: a, TTL: 45000})), nil, &aggregates.EndedError{}},
	})
	for reason, want := range map[events.HandoffReason]events.Reason{
		events.HandoffDrain: events.ReasonDrain, events.HandoffRebalance: events.ReasonRebalance, events.HandoffMove: events.ReasonMoved,
	} {
		f := flushed
		f.Reason = reason
		got, err := sagas.DecideHandoff(fold(requested, warmed, quiesced, f), release(a, heldByA))
		if err != nil || got[1].(events.LeaseReleased).Reason != want {
			t.Errorf("a %s releases with %+v (%v), want reason %s (H4)", reason, got, err, want)
		}
	}
}

// TestDecline proves that the target can decline at every step until it claims,
// and that a reservation made by then ends in the same batch.
func TestDecline(t *testing.T) {
	decline := func(by events.Incarnation, l aggregates.Lease) sagas.DeclineHandoff {
		return sagas.DeclineHandoff{Saga: "dev.1", By: by, Cause: events.DeclineGated, Lease: l}
	}
	tell(t, map[string]story{
		"at once":                 {way(events.StepRequested), decline(b, heldByA), then(declined(events.StepRequested, body())), nil},
		"when warm":               {way(events.StepWarmed), decline(b, heldByA), then(declined(events.StepWarmed, body())), nil},
		"during the teardown":     {way(events.StepQuiesced), decline(b, heldByA), then(declined(events.StepQuiesced, body())), nil},
		"after the flush":         {way(events.StepFlushed), decline(b, heldByA), then(declined(events.StepFlushed, dark())), nil},
		"after the release":       {way(events.StepReleased), decline(b, reserved), then(declined(events.StepReleased, dark()), leaseDeclined), nil},
		"after its own claim":     {way(events.StepReleased), decline(b, heldByB), nil, &aggregates.NotReservedError{}},
		"after somebody's claim":  {way(events.StepReleased), decline(b, heldByC), nil, &aggregates.NotReservedError{}},
		"again":                   {and(way(events.StepReleased), declined(events.StepReleased, dark())), decline(b, undone), nil, nil},
		"by the source":           {way(events.StepRequested), decline(a, heldByA), nil, &sagas.NotYoursError{}},
		"by its next process":     {way(events.StepReleased), decline("b:00000002", reserved), nil, &sagas.NotYoursError{}},
		"when completed":          {way(events.StepCompleted), decline(b, heldByB), nil, &sagas.NotOpenError{}},
		"when abandoned":          {and(way(events.StepReleased), abandoned(events.StepReleased, events.AbandonLost)), decline(b, heldByC), nil, &sagas.NotOpenError{}},
		"what was never asked":    {nil, decline(b, heldByA), nil, &sagas.NotOpenError{}},
		"another handoff's offer": {way(events.StepRequested), sagas.DeclineHandoff{Saga: "dev.7", By: b, Lease: heldByA}, nil, &sagas.NotOpenError{}},
	})
}

// TestComplete proves that a handoff completes by the very tenure it is for.
func TestComplete(t *testing.T) {
	complete := func(by events.Incarnation, l aggregates.Lease) sagas.CompleteHandoff {
		return sagas.CompleteHandoff{Saga: "dev.1", By: by, Lease: l, DarkFor: 40*time.Millisecond + 700*time.Microsecond}
	}
	tell(t, map[string]story{
		"by the target's claim":     {way(events.StepReleased), complete(b, heldByB), then(completed), nil},
		"again":                     {way(events.StepCompleted), complete(b, heldByB), nil, nil},
		"before the release":        {way(events.StepFlushed), complete(b, heldByA), nil, &sagas.OutOfStepError{}},
		"without a claim":           {way(events.StepReleased), complete(b, reserved), nil, &aggregates.EndedError{}},
		"by somebody's claim":       {way(events.StepReleased), complete(b, heldByC), nil, &aggregates.EndedError{}},
		"by a later claim":          {way(events.StepReleased), complete(b, bAgain), nil, &aggregates.EndedError{}},
		"after the claim was given": {way(events.StepReleased), complete(b, freedByB), nil, &aggregates.EndedError{}},
		"by the source":             {way(events.StepReleased), complete(a, heldByB), nil, &sagas.NotYoursError{}},
		"when abandoned":            {and(way(events.StepReleased), abandoned(events.StepReleased, events.AbandonDeadline)), complete(b, heldByB), nil, &sagas.NotOpenError{}},
	})
}

// TestAbandon proves that every step ages out by its own patience, no sooner and
// never unknown, and which other causes end a handoff when (design §5).
func TestAbandon(t *testing.T) {
	for step, patient := range map[events.HandoffStep]events.Millis{
		events.StepRequested: patience.Warm, events.StepWarmed: patience.Quiesce, events.StepQuiesced: patience.Flush,
		events.StepFlushed: patience.Release, events.StepReleased: patience.Claim + patience.Establish,
	} {
		limit := patient.Duration()
		if got := sagas.Deadline(fold(way(step)...)); got != limit {
			t.Errorf("%s: deadline %v, want %v", step, got, limit)
		}
		unknown := abandon(events.AbandonDeadline, time.Hour, heldByA)
		unknown.Known = false
		want := abandoned(step, events.AbandonDeadline)
		want.Unseen = patient
		tell(t, map[string]story{
			string(step) + " in time":     {way(step), abandon(events.AbandonDeadline, limit-1, heldByA), nil, &sagas.TooEarlyError{}},
			string(step) + " too long":    {way(step), abandon(events.AbandonDeadline, limit, heldByA), then(want), nil},
			string(step) + " no one knew": {way(step), unknown, nil, &sagas.TooEarlyError{}},
		})
	}
	early := abandoned(events.StepWarmed, events.AbandonLost)
	late := abandoned(events.StepReleased, events.AbandonLost)
	tell(t, map[string]story{
		"by an operator":                   {way(events.StepRequested), abandon(events.AbandonOperator, 0, heldByA), then(abandoned(events.StepRequested, events.AbandonOperator)), nil},
		"as a node is gone":                {way(events.StepQuiesced), abandon(events.AbandonGone, 0, heldByA), then(abandoned(events.StepQuiesced, events.AbandonGone)), nil},
		"as the warming failed":            {way(events.StepRequested), abandon(events.AbandonFailed, 0, heldByA), then(abandoned(events.StepRequested, events.AbandonFailed)), nil},
		"by an operator, when flushed":     {way(events.StepFlushed), abandon(events.AbandonOperator, 0, heldByA), then(abandoned(events.StepFlushed, events.AbandonOperator)), nil},
		"by an operator, when released":    {way(events.StepReleased), abandon(events.AbandonOperator, 0, reserved), nil, &sagas.TooLateError{}},
		"as a node is gone, when released": {way(events.StepReleased), abandon(events.AbandonGone, 0, reserved), nil, &sagas.TooLateError{}},
		"as lost, and it is not":           {way(events.StepWarmed), abandon(events.AbandonLost, 0, heldByA), nil, &sagas.NotLostError{}},
		"as lost by a fence alone":         {way(events.StepWarmed), abandon(events.AbandonLost, 0, fencedA), nil, &sagas.NotLostError{}},
		"as lost, by what is older":        {way(events.StepWarmed), abandon(events.AbandonLost, 0, aggregates.Lease{Last: 5, Epoch: 6}), nil, &sagas.NotLostError{}},
		"as lost by a release":             {way(events.StepWarmed), abandon(events.AbandonLost, 0, freed), then(early), nil},
		"as lost by a claim":               {way(events.StepWarmed), abandon(events.AbandonLost, 0, heldByC), then(early), nil},
		"as lost by the target's claim":    {way(events.StepWarmed), abandon(events.AbandonLost, 0, heldByB), then(early), nil},
		"as lost, while it is reserved":    {way(events.StepReleased), abandon(events.AbandonLost, 0, reserved), nil, &sagas.NotLostError{}},
		"as lost, by the target's tenure":  {way(events.StepReleased), abandon(events.AbandonLost, 0, heldByB), nil, &sagas.NotLostError{}},
		"as lost past its reservation":     {way(events.StepReleased), abandon(events.AbandonLost, 0, heldByC), then(late), nil},
		"as lost by the target's failure":  {way(events.StepReleased), abandon(events.AbandonLost, 0, freedByB), then(late), nil},
		"as lost by a later tenure":        {way(events.StepReleased), abandon(events.AbandonLost, 0, bAgain), then(late), nil},
		"as lost by a bare decline":        {way(events.StepReleased), abandon(events.AbandonLost, 0, undone), then(late), nil},
		"when it completed":                {way(events.StepCompleted), abandon(events.AbandonDeadline, time.Hour, heldByB), nil, &sagas.NotOpenError{}},
		"when it was declined":             {and(way(events.StepRequested), declined(events.StepRequested, body())), abandon(events.AbandonDeadline, time.Hour, heldByA), nil, &sagas.NotOpenError{}},
		"what never was":                   {nil, abandon(events.AbandonOperator, 0, heldByA), nil, &sagas.NotOpenError{}},
	})
}

// TestRefusalsSayWhatToDo proves that a refusal names the handoff, what stands
// and, where only time is missing, from where and how long it counts.
func TestRefusalsSayWhatToDo(t *testing.T) {
	_, err := sagas.DecideHandoff(fold(way(events.StepFlushed)...), abandon(events.AbandonDeadline, 0, heldByA))
	var early *sagas.TooEarlyError
	if !errors.As(err, &early) || *early != (sagas.TooEarlyError{Saga: "dev.1", Last: 40, After: ttl}) {
		t.Errorf("got %+v, want 45s after sequence 40", err)
	}
	for want, c := range map[string]struct {
		given []events.Event
		when  sagas.HandoffCommand
	}{
		"a:00000002 cannot hand seat \"dev\" over: a:00000001 has epoch 7": {nil, request(a2, b, heldByA)},
		"a:00000001 cannot hand seat \"dev\" over: nobody holds it":        {nil, request(a, b, freed)},
		"handoff dev.1 is over: it was completed":                          {way(events.StepCompleted), abandon(events.AbandonOperator, 0, heldByB)},
		"handoff dev.1 is not open: the seat's newest is \"\"":             {nil, abandon(events.AbandonOperator, 0, heldByB)},
		"handoff dev.1 is only requested, the next step needs it to be warmed": {
			way(events.StepRequested), sagas.MarkQuiesced{Saga: "dev.1", By: a}},
		"this step of handoff dev.1 is for b:00000001, not for a:00000001": {
			way(events.StepRequested), sagas.MarkWarmed{Saga: "dev.1", By: a}},
	} {
		if _, err := sagas.DecideHandoff(fold(c.given...), c.when); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
