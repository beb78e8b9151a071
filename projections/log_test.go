package projections_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// start is the stamp of sequence 0 in every test's log.
var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	nodeA = events.Incarnation("node-a:0000000a")
	nodeB = events.Incarnation("node-b:0000000b")
)

// at stands e at a position of a stream, stamped one second per position.
func at(st events.Stream, seq uint64, e events.Event) events.Recorded {
	return events.Recorded{Stream: st, Seq: seq, At: start.Add(time.Duration(seq) * time.Second), Event: e,
		Meta: events.Meta{ID: fmt.Sprintf("%s-%d", st, seq)}}
}

// fleet numbers events of FLEET from 1.
func fleet(es ...events.Event) []events.Recorded {
	var log []events.Recorded
	for i, e := range es {
		log = append(log, at(events.StreamFleet, uint64(i+1), e))
	}
	return log
}

func apply(t testing.TB, rows projections.Rows, log []events.Recorded) {
	t.Helper()
	for _, r := range log {
		if err := projections.Apply(rows, r); err != nil {
			t.Fatalf("apply %s %d: %v", r.Stream, r.Seq, err)
		}
	}
}

// given returns the view after that log.
func given(t testing.TB, log ...events.Recorded) projections.View {
	t.Helper()
	rows := rowstest.Memory{}
	apply(t, rows, log)
	return projections.NewView(rows)
}

// must unwraps a result that cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func claim(handle string, epoch uint64, owner events.Incarnation) events.LeaseClaimed {
	return events.LeaseClaimed{Lease: events.SeatLease(handle), Epoch: epoch, Owner: owner, TTL: 45000, Protocol: 4}
}

func release(handle string, epoch uint64, owner events.Incarnation) events.LeaseReleased {
	return events.LeaseReleased{Lease: events.SeatLease(handle), Epoch: epoch, Owner: owner, Reason: events.ReasonDrain}
}

func fence(handle string, epoch uint64, owner events.Incarnation) events.LeaseFenced {
	return events.LeaseFenced{Lease: events.SeatLease(handle), Epoch: epoch, Owner: owner, Reason: "stuck", By: "ops"}
}

func established(handle string, epoch uint64, owner events.Incarnation) events.SeatEstablished {
	return events.SeatEstablished{Handle: handle, Epoch: epoch, Owner: owner}
}

func company(revision uint64, handles ...string) events.CompanyApplied {
	e := events.CompanyApplied{Revision: revision, Name: "Acme", Digest: fmt.Sprintf("d%d", revision)}
	for _, h := range handles {
		e.Seats = append(e.Seats, events.RosterSeat{Handle: h, AgentID: "agent-" + h, Title: "Title of " + h})
	}
	return e
}

func done(handle, id, workKey string) events.TurnCompleted {
	return events.TurnCompleted{Handle: handle, EventID: id, EventIDs: []string{id}, WorkKey: workKey,
		Epoch: 1, Owner: nodeA, Outcome: events.OutcomeDone, Attempts: 1, Reply: []byte(`{"ok":"<&>"}`)}
}

func parked(handle, id string, seq uint64) events.MailParked {
	return events.MailParked{Handle: handle, Mailbox: events.Inbox, EventID: id, MailSeq: seq, Epoch: 1, Owner: nodeA, Attempts: 25, Reason: "budget spent"}
}

// handoffOf is what every event of a handoff of the seat from A to B says.
func handoffOf(handle string, number, epoch uint64) events.HandoffBody {
	return events.HandoffBody{Handle: handle, Number: number, From: nodeA, To: nodeB, Epoch: epoch, Reason: events.HandoffDrain, By: "ops",
		Patience: events.Patience{Warm: 1, Quiesce: 2, Flush: 3, Release: 4, Claim: 5, Establish: 6}}
}

// handoffEvents lists the events of a handoff that succeeds, in order, and
// between them those of the seat that it waits for.
func handoffEvents(handle string, number, epoch uint64) []events.Event {
	body := handoffOf(handle, number, epoch)
	released, claimed := release(handle, epoch, nodeA), claim(handle, epoch+1, nodeB)
	released.Successor, released.ReservedFor, released.Saga, claimed.Saga = nodeB, 5, body.ID(), body.ID()
	return []events.Event{
		events.HandoffRequested{HandoffBody: body}, events.HandoffWarmed{HandoffBody: body}, events.HandoffQuiesced{HandoffBody: body},
		events.HandoffFlushed{HandoffBody: body}, events.HandoffReleased{HandoffBody: body, ReservedFor: 5}, released,
		claimed, established(handle, epoch+1, nodeB), events.HandoffCompleted{HandoffBody: body, ClaimedEpoch: epoch + 1, DarkFor: 41},
	}
}
