package events_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/events"
)

// TestReservationOnTheWire proves that what a handoff adds to a release and a
// claim stands there under its names, comes back, and is absent without one, so
// that events of before are what they were (L9).
func TestReservationOnTheWire(t *testing.T) {
	seat := events.SeatLease("dev")
	release := events.LeaseReleased{Lease: seat, Epoch: 7, Owner: alpha, Reason: events.ReasonDrain}
	claim := events.LeaseClaimed{Lease: seat, Epoch: 8, Owner: beta, TTL: 3000}
	handedOver, forSaga, past := release, claim, claim
	handedOver.Successor, handedOver.ReservedFor, handedOver.Saga = beta, 5000, "dev.3"
	forSaga.Saga = "dev.3"
	past.Waited = &events.Waited{Successor: beta, LastSeq: 41, Unseen: 5001}
	for want, e := range map[string]events.Event{
		`{"epoch":7,"owner":"node-0:0badcafe","reason":"drain"}`:                                                                                       release,
		`{"epoch":7,"owner":"node-0:0badcafe","reason":"drain","successor":"node-1:5eedf00d","reserved_for_ms":5000,"saga":"dev.3"}`:                   handedOver,
		`{"epoch":8,"owner":"node-1:5eedf00d","ttl_ms":3000,"protocol":0}`:                                                                             claim,
		`{"epoch":8,"owner":"node-1:5eedf00d","ttl_ms":3000,"protocol":0,"saga":"dev.3"}`:                                                              forSaga,
		`{"epoch":8,"owner":"node-1:5eedf00d","ttl_ms":3000,"protocol":0,"waited":{"successor":"node-1:5eedf00d","last_seq":41,"unseen_for_ms":5001}}`: past,
	} {
		msg := stored(t, e)
		if string(msg.Data) != want {
			t.Errorf("stored as %s, want %s", msg.Data, want)
		}
		rec, err := events.Decode(fleet, msg)
		if err != nil || !reflect.DeepEqual(rec.Event, e) {
			t.Errorf("read back %+v (%v), want %+v", rec.Event, err, e)
		}
	}
}

// TestHandoffsAreRefusedWhenDamaged proves that a handoff without its parties,
// bounds or evidence is neither written nor read.
func TestHandoffsAreRefusedWhenDamaged(t *testing.T) {
	whole := handoffFull()
	for name, damage := range map[string]func(*events.HandoffBody){
		"no number":       func(b *events.HandoffBody) { b.Number = 0 },
		"no epoch":        func(b *events.HandoffBody) { b.Epoch = 0 },
		"no source":       func(b *events.HandoffBody) { b.From = "" },
		"a node as aim":   func(b *events.HandoffBody) { b.To = "node-1" },
		"to itself":       func(b *events.HandoffBody) { b.To = b.From },
		"no reason":       func(b *events.HandoffBody) { b.Reason = "" },
		"asked by nobody": func(b *events.HandoffBody) { b.By = "" },
		"no bound":        func(b *events.HandoffBody) { b.Patience.Quiesce = 0 },
		"a bound of less": func(b *events.HandoffBody) { b.Patience.Claim = -1 },
		"a wild handle":   func(b *events.HandoffBody) { b.Handle = "*" },
	} {
		body := whole
		damage(&body)
		if w, err := events.Encode(fleet, minMeta, events.HandoffRequested{HandoffBody: body}); err == nil {
			t.Errorf("%s: written to %s %s", name, w.Subject, w.Data)
		}
	}
	seat := events.SeatLease("dev")
	for name, e := range map[string]events.Event{
		"released, reserved for no time":   events.HandoffReleased{HandoffBody: whole},
		"completed without an epoch":       events.HandoffCompleted{HandoffBody: whole},
		"declined without a cause":         events.HandoffDeclined{HandoffBody: whole, Step: events.StepWarmed},
		"declined at no step":              events.HandoffDeclined{HandoffBody: whole, Cause: events.DeclineGated},
		"abandoned by nobody":              events.HandoffAbandoned{HandoffBody: whole, Step: events.StepWarmed, Cause: events.AbandonLost},
		"reserved for nobody":              events.LeaseReleased{Lease: seat, Epoch: 1, Owner: alpha, Reason: events.ReasonDrain, ReservedFor: 5},
		"reserved for ever":                events.LeaseReleased{Lease: seat, Epoch: 1, Owner: alpha, Reason: events.ReasonDrain, Successor: beta},
		"a node's presence, declined":      events.LeaseDeclined{Lease: events.NodeLease("n"), Epoch: 1, Owner: alpha, By: beta, Reason: events.DeclineGated},
		"declined by a node":               events.LeaseDeclined{Lease: seat, Epoch: 1, Owner: alpha, By: "node-1", Reason: events.DeclineGated},
		"waited, and nobody knows on what": events.LeaseClaimed{Lease: seat, Epoch: 1, Owner: alpha, TTL: 1, Waited: &events.Waited{Successor: beta}},
	} {
		if w, err := events.Encode(fleet, minMeta, e); err == nil {
			t.Errorf("%s: written to %s %s", name, w.Subject, w.Data)
		}
	}
	msg := stored(t, events.HandoffRequested{HandoffBody: whole})
	msg.Data = bytes.Replace(msg.Data, []byte(`"warm_ms":60000`), []byte(`"warm_ms":0`), 1)
	if rec, err := events.Decode(fleet, msg); err == nil {
		t.Errorf("read without a bound: %+v", rec.Event)
	}
}

// TestHandoffStandsUnderItsSeat proves where a seat's handoffs stand, one after
// the other, that their check is literal (form a), and how each is called.
func TestHandoffStandsUnderItsSeat(t *testing.T) {
	check := fleet.HandoffCheck("dev-2", 17)
	if check.Subject != "crewlet.fleet.saga.handoff.dev-2" || check.Last != 17 || strings.Contains(check.Subject, "*") {
		t.Errorf("check %+v, want the literal subject at 17", check)
	}
	if got := handoffFull().ID(); got != "dev-2.3" {
		t.Errorf("id %s, want dev-2.3", got)
	}
	msg := stored(t, events.HandoffWarmed{HandoffBody: handoffFull()})
	for _, wrong := range []string{"crewlet.fleet.saga.retirement.dev-2", "crewlet.fleet.saga.handoff.Dev", "crewlet.fleet.saga.handoff", fleet.Host("dev-2")} {
		msg.Subject = wrong
		if rec, err := events.Decode(fleet, msg); err == nil {
			t.Errorf("read under %s: %+v", wrong, rec.Event)
		}
	}
}
