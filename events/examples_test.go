package events_test

import (
	"encoding/json"
	"time"

	"github.com/seat-tenure/tenure/events"
)

const (
	alpha events.Incarnation = "node-0:0badcafe"
	beta  events.Incarnation = "node-1:5eedf00d"
)

// fleet is the grammar that every fixture is written in.
var fleet = must(events.NewSubjects("crewlet"))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// envelopes of the two fixtures of a name.
var (
	minMeta  = events.Meta{ID: "e-1", Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	fullMeta = events.Meta{
		ID: "0199d1f0-7c1e-7a52-9f0e-3f1d2c4b5a69", Source: alpha,
		Time:    time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.UTC),
		Command: "cmd-7", Causation: "0199d1f0-7c1e-7a52-9f0e-000000000001", Correlation: "order 17, \"rush\" <eu>",
		Actor: "ops@acme.example", Reason: "Wartung – Knoten wird ersetzt", Epoch: 7, FleetSeq: 4711,
	}
)

// example holds what the two fixtures of a wire name say.
type example struct{ full, min events.Event }

var mailLife = events.StreamIdentity{CreatedAt: "2026-03-01T08:00:00.123456789Z", MarkerSeq: 90, MarkerID: "m-3"}

// examples has every wire name. A fixture that exists is never written again,
// so a change here needs a new version there.
var examples = makeExamples()

func makeExamples() map[string]example {
	all := map[string]example{
		events.NameSeatEstablished: {
			events.SeatEstablished{Handle: "dev-2", Epoch: 7, Owner: alpha},
			events.SeatEstablished{Handle: "a", Epoch: 1, Owner: alpha}},
		events.NameSeatPaused: {
			events.SeatPaused{Handle: "dev-2", By: "ops@acme.example", Reason: "Prüfung & <review>", StopTurn: true},
			events.SeatPaused{Handle: "a", By: "o", Reason: "r"}},
		events.NameSeatResumed: {
			events.SeatResumed{Handle: "dev-2", By: "ops@acme.example", Reason: "reviewed"},
			events.SeatResumed{Handle: "a", By: "o", Reason: "r"}},
		events.NameSeatUnproven: {
			events.SeatUnproven{Handle: "dev-2", Epoch: 7, Owner: alpha, Since: time.Date(2026, 3, 4, 5, 1, 2, 345000000, time.UTC)},
			events.SeatUnproven{Handle: "a", Epoch: 1, Owner: alpha}},
		events.NameSeatProven: {
			events.SeatProven{Handle: "dev-2", Epoch: 7, Owner: alpha},
			events.SeatProven{Handle: "a", Epoch: 1, Owner: alpha}},
		events.NameNodeReported: {
			events.NodeReported{Lease: events.NodeLease("node-1"), Epoch: 7, Owner: beta, Local: "d-1", Node: events.NodeFacts{
				Roles: []string{"seats", "data"}, Labels: map[string]string{"zone": "a"}, Draining: true, Cordoned: true, Withdrawn: true, SeatsHeld: new(2000)}},
			events.NodeReported{Lease: events.NodeLease("a"), Epoch: 1, Owner: alpha}},
		events.NameTriggerSkipped: {
			events.TriggerSkipped{Handle: "dev-2", Epoch: 7, Owner: alpha, EventID: "mail/17", Why: events.SkipBrokeOutside, Detail: "exit status 2"},
			events.TriggerSkipped{Handle: "a", Epoch: 1, Owner: alpha, EventID: "x", Why: events.SkipCompleted}},
		events.NameMailboxRegistered: {
			events.MailboxRegistered{Handle: "dev-2", AgentID: "7d9f1c7e-3c5b-5a64-8f0a-2b9e1d4c6a70"},
			events.MailboxRegistered{Handle: "a", AgentID: "1"}},
		events.NameMailboxRetiring: {
			events.MailboxRetiring{Handle: "dev-2", AgentID: "7d9f1c7e-3c5b-5a64-8f0a-2b9e1d4c6a70", Saga: "dev-2.retirement-2"},
			events.MailboxRetiring{Handle: "a", AgentID: "1", Saga: "a.retirement-1"}},
		events.NameMailboxRetired: {
			events.MailboxRetired{Handle: "dev-2", AgentID: "7d9f1c7e-3c5b-5a64-8f0a-2b9e1d4c6a70", Saga: "dev-2.retirement-2"},
			events.MailboxRetired{Handle: "a", AgentID: "1", Saga: "a.retirement-1"}},
		events.NameCursorRetired: {events.CursorRetired{CursorBody: cursorFull()}, events.CursorRetired{CursorBody: cursorMin()}},
		events.NameStreamMarked: {
			events.StreamMarked{Stream: events.StreamWork, Marker: "8f3a", CreatedAt: mailLife.CreatedAt},
			events.StreamMarked{Stream: events.StreamFleet, Marker: "1"}},
		events.NameCompanyApplied: {
			events.CompanyApplied{Revision: 3, Name: "Acme", Digest: "sha256:5f", Document: []byte{0x1f, 0x8b, 0, 255}, Seats: []events.RosterSeat{
				{Handle: "dev-2", AgentID: "7d9f1c7e-3c5b-5a64-8f0a-2b9e1d4c6a70", Title: "Entwicklung & <Test>", Node: "node-1"},
				{Handle: "sales_eu", AgentID: "2", Labels: map[string]string{"zone": "b", "gpu": "none"}}}},
			events.CompanyApplied{Revision: 1, Name: "Acme", Digest: "d"}},
		events.NameTurnCompleted: {
			events.TurnCompleted{Handle: "dev-2", EventID: "mail/17", EventIDs: []string{"mail/16", "mail/17"}, WorkKey: "9c1e", Epoch: 7, Owner: alpha,
				Outcome: events.OutcomeFailed, Attempts: 2, Reply: json.RawMessage(`{"text":"done","n":1.50}`), Why: "timeout"},
			events.TurnCompleted{Handle: "a", EventID: "x", Epoch: 1, Owner: alpha, Outcome: events.OutcomeDone}},
		events.NameMailParked: {
			events.MailParked{Handle: "dev-2", Mailbox: events.Control, EventID: "mail/17", MailSeq: 17, Mail: mailLife, Epoch: 7, Owner: alpha, Attempts: 25,
				Reason: "budget spent", Header: events.Header{"ce-id": {"mail/17"}, "x": {"1", "2"}}, Data: []byte("\x00not JSON")},
			events.MailParked{Handle: "a", MailSeq: 1, Epoch: 1, Owner: alpha, Reason: "unreadable"}},
		events.NameCursorCreated: {
			events.CursorCreated{CursorBody: events.CursorBody{Handle: "dev-2", Mailbox: events.Reflect, CursorSnapshot: events.CursorSnapshot{Mail: mailLife}}},
			events.CursorCreated{CursorBody: events.CursorBody{Handle: "a", Mailbox: events.Inbox}}},
		events.NameSeatDeclined: {
			events.LeaseDeclined{Lease: events.SeatLease("dev-2"), Epoch: 7, Owner: alpha, By: beta, Reason: events.DeclineDraining, Saga: "dev-2.3"},
			events.LeaseDeclined{Lease: events.SeatLease("a"), Epoch: 1, Owner: alpha, By: beta, Reason: events.DeclineGated}},
		events.NameHandoffRequested: {events.HandoffRequested{HandoffBody: handoffFull()}, events.HandoffRequested{HandoffBody: handoffMin()}},
		events.NameHandoffWarmed:    {events.HandoffWarmed{HandoffBody: handoffFull()}, events.HandoffWarmed{HandoffBody: handoffMin()}},
		events.NameHandoffQuiesced:  {events.HandoffQuiesced{HandoffBody: handoffFull()}, events.HandoffQuiesced{HandoffBody: handoffMin()}},
		events.NameHandoffFlushed:   {events.HandoffFlushed{HandoffBody: handoffFull()}, events.HandoffFlushed{HandoffBody: handoffMin()}},
		events.NameHandoffReleased: {
			events.HandoffReleased{HandoffBody: handoffFull(), ReservedFor: 5000},
			events.HandoffReleased{HandoffBody: handoffMin(), ReservedFor: 1}},
		events.NameHandoffCompleted: {
			events.HandoffCompleted{HandoffBody: handoffFull(), ClaimedEpoch: 8, DarkFor: 41},
			events.HandoffCompleted{HandoffBody: handoffMin(), ClaimedEpoch: 2}},
		events.NameHandoffDeclined: {
			events.HandoffDeclined{HandoffBody: handoffFull(), Step: events.StepReleased, Cause: events.DeclineReplaced},
			events.HandoffDeclined{HandoffBody: handoffMin(), Step: events.StepRequested, Cause: events.DeclineBehind}},
		events.NameHandoffAbandoned: {
			events.HandoffAbandoned{HandoffBody: handoffFull(), Step: events.StepFlushed, Cause: events.AbandonDeadline, Ender: string(beta), Unseen: 45000},
			events.HandoffAbandoned{HandoffBody: handoffMin(), Step: events.StepWarmed, Cause: events.AbandonOperator, Ender: "ops"}},
		events.NameCursorOpened:    {events.CursorOpened{CursorBody: cursorFull()}, events.CursorOpened{CursorBody: cursorMin()}},
		events.NameCursorAttempted: {events.CursorAttempted{CursorBody: cursorFull()}, events.CursorAttempted{CursorBody: cursorMin()}},
		events.NameCursorHeld: {
			events.CursorHeld{CursorBody: cursorHeld()}, events.CursorHeld{CursorBody: cursorMin()}},
		events.NameCursorFreed: {events.CursorFreed{CursorBody: cursorHeld()}, events.CursorFreed{CursorBody: cursorMin()}},
		events.NameMailReplayed: {
			events.MailReplayed{ParkedBody: parkedFull()}, events.MailReplayed{ParkedBody: parkedMin()}},
		events.NameMailReturned: {
			events.MailReturned{ParkedBody: parkedFull(), MailSeq: 140}, events.MailReturned{ParkedBody: parkedMin(), MailSeq: 1}},
		events.NameMailDropped: {
			events.MailDropped{ParkedBody: parkedFull()}, events.MailDropped{ParkedBody: parkedMin()}},
		events.NameCursorSettled: {events.CursorSettled{CursorBody: cursorFull()}, events.CursorSettled{CursorBody: cursorMin()}},
	}
	addRetirements(all)
	for _, l := range []events.Lease{events.SeatLease("dev-2"), events.NodeLease("node-1"), {Kind: events.KindWorker, ID: "retention"}} {
		claim := events.LeaseClaimed{Lease: l, Epoch: 8, Owner: beta, Preferred: "node-1", TTL: 45000, Protocol: 4, Local: "d-1",
			Over: &events.Over{Epoch: 7, Owner: alpha, LastSeq: 4810, Unseen: 45450}}
		switch l.Kind {
		case events.KindNode:
			claim.Node = &events.NodeFacts{Roles: []string{"seats", "data"}, Labels: map[string]string{"zone": "a"}}
		case events.KindWorker:
			claim.Over.Unseen, claim.Over.Local = 0, true
		case events.KindSeat:
		}
		add(all, example{claim, events.LeaseClaimed{Lease: l, Epoch: 1, Owner: alpha, TTL: 3000}})
		add(all, example{events.LeaseRenewed{Lease: l, Epoch: 7, Owner: alpha, Local: "d-1"}, events.LeaseRenewed{Lease: l, Epoch: 1, Owner: alpha}})
		add(all, example{events.LeaseReleased{Lease: l, Epoch: 7, Owner: alpha, Reason: events.ReasonDrain}, events.LeaseReleased{Lease: l, Epoch: 1, Owner: alpha, Reason: events.ReasonNotHeld}})
		add(all, example{events.LeaseFenced{Lease: l, Epoch: 7, Owner: alpha, Reason: "node is sick", By: "ops@acme.example", Local: "d-1"},
			events.LeaseFenced{Lease: l, Epoch: 1, Owner: alpha, Reason: "r", By: "b"}})
	}
	return all
}

func add(all map[string]example, e example) { all[events.Name(e.full)] = e }

func cursorFull() events.CursorBody {
	return events.CursorBody{Handle: "dev-2", Mailbox: events.Inbox, CursorSnapshot: events.CursorSnapshot{
		Epoch: 7, Owner: alpha, Mail: mailLife, Read: 120,
		Open: []events.OpenMail{{Seq: 101, Attempts: 3}, {Seq: 118, Attempts: 1, Running: true}, {Seq: 120}},
	}}
}

// cursorHeld has what cursors of later builds keep beside: holds and history.
func cursorHeld() events.CursorBody {
	b := cursorFull()
	b.Open = append(b.Open[:2:2], events.OpenMail{Seq: 120, Run: "run-7"})
	b.Tried = []events.Tried{
		{Seq: 101, Epoch: 6, End: events.AttemptUnfinished, Count: 1},
		{Seq: 101, Epoch: 7, End: events.AttemptFailed, Count: 2, Why: "exit status 2", At: time.Date(2026, 3, 4, 5, 1, 2, 345000000, time.UTC)},
	}
	return b
}

func parkedFull() events.ParkedBody {
	return events.ParkedBody{Handle: "dev-2", Key: events.Digest("mail 17"), DeadSeq: 12, EventID: "mail/17", By: "ops@acme.example", Reason: "provider is back & <well>"}
}

func parkedMin() events.ParkedBody {
	return events.ParkedBody{Handle: "a", Key: "1", DeadSeq: 1, By: "o", Reason: "r"}
}

func handoffFull() events.HandoffBody {
	return events.HandoffBody{Handle: "dev-2", Number: 3, From: alpha, To: beta, Epoch: 7, Reason: events.HandoffDrain, By: "ops@acme.example",
		Patience: events.Patience{Warm: 60000, Quiesce: 630000, Flush: 90000, Release: 45000, Claim: 5000, Establish: 60000}, Quiesced: 4712}
}

func handoffMin() events.HandoffBody {
	return events.HandoffBody{Handle: "a", Number: 1, From: alpha, To: beta, Epoch: 1, Reason: events.HandoffMove, By: "o",
		Patience: events.Patience{Warm: 1, Quiesce: 1, Flush: 1, Release: 1, Claim: 1, Establish: 1}}
}

func cursorMin() events.CursorBody {
	return events.CursorBody{Handle: "a", Mailbox: events.Control, CursorSnapshot: events.CursorSnapshot{Epoch: 1, Owner: alpha}}
}
