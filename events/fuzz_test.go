package events_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/events"
)

// FuzzDecode proves that no message makes Decode panic, that a refusal is one
// of the two it promises, and that what is read once is read the same for ever:
// decode, encode, decode gives the same event.
func FuzzDecode(f *testing.F) {
	for _, file := range fixtureFiles(f) {
		x := readFixture(f, file)
		f.Add(x.Headers.Get(events.HeaderType), x.Headers.Get(events.HeaderVersion), x.Headers.Get(events.HeaderEpoch), x.Subject, []byte(x.Data))
	}
	f.Fuzz(func(t *testing.T, name, version, epoch, subject string, data []byte) {
		msg := events.Message{Stream: events.StreamFleet, Seq: 1, Subject: subject, Header: events.Header{}, Data: data}
		for key, value := range map[string]string{
			events.HeaderType: name, events.HeaderVersion: version, events.HeaderEpoch: epoch,
			events.HeaderID: "e-1", events.HeaderTime: "2026-03-04T05:06:07Z",
		} {
			msg.Header.Set(key, value)
		}
		first, err := events.Decode(fleet, msg)
		if err != nil {
			var unknown *events.UnknownError
			var bad *events.DecodeError
			if !errors.As(err, &unknown) && !errors.As(err, &bad) {
				t.Fatalf("refused with %T: %v", err, err)
			}
			return
		}
		stable(t, first)
	})
}

// stable fails unless rec survives being written and read again.
func stable(t testing.TB, rec events.Recorded) {
	t.Helper()
	w, err := events.Encode(fleet, rec.Meta, rec.Event)
	if err != nil {
		t.Fatalf("%+v was read but cannot be written: %v", rec.Event, err)
	}
	again, err := events.Decode(fleet, events.Message{Stream: rec.Stream, Seq: rec.Seq, Subject: w.Subject, Header: w.Header, Data: w.Data})
	if err != nil {
		t.Fatalf("%s %s was written but cannot be read: %v", w.Subject, w.Data, err)
	}
	twice, err := events.Encode(fleet, again.Meta, again.Event)
	if err != nil || !reflect.DeepEqual(twice, w) {
		t.Fatalf("written as %s, then as %s (%v)", w.Data, twice.Data, err)
	}
	if !reflect.DeepEqual(again.Meta, rec.Meta) {
		t.Fatalf("envelope %+v, then %+v", rec.Meta, again.Meta)
	}
}

// TestRoundTrip proves that any event that can be encoded comes back equal.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyEvent().Draw(t, "event")
		meta := fullMeta
		meta.Epoch = rapid.Uint64().Draw(t, "meta epoch")
		meta.Command = rapid.String().Draw(t, "command")
		w, err := events.Encode(fleet, meta, want)
		if err != nil {
			t.Fatalf("encode %+v: %v", want, err)
		}
		rec, err := events.Decode(fleet, events.Message{Subject: w.Subject, Header: w.Header, Data: w.Data})
		if err != nil {
			t.Fatalf("decode %s %s: %v", w.Subject, w.Data, err)
		}
		if !reflect.DeepEqual(rec.Event, want) || rec.Meta != meta {
			t.Fatalf("got %+v %+v, want %+v %+v", rec.Event, rec.Meta, want, meta)
		}
	})
}

// anyEvent draws events whose fields are anything that validation allows.
func anyEvent() *rapid.Generator[events.Event] {
	return rapid.Custom(func(t *rapid.T) events.Event {
		handle := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,62}`).Draw(t, "handle")
		owner := events.Incarnation(rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,8}:[0-9a-f]{8}`).Draw(t, "owner"))
		epoch := rapid.Uint64Min(1).Draw(t, "epoch")
		text := rapid.StringN(1, 20, -1).Draw(t, "text")
		lease := events.Lease{Kind: rapid.SampledFrom([]events.LeaseKind{events.KindSeat, events.KindNode, events.KindWorker}).Draw(t, "kind"), ID: handle}
		mail := events.StreamIdentity{CreatedAt: text, MarkerSeq: epoch, MarkerID: text}
		switch rapid.IntRange(0, 10).Draw(t, "what") {
		case 0:
			claim := events.LeaseClaimed{Lease: lease, Epoch: epoch, Owner: owner, TTL: events.Millis(rapid.Int64Min(1).Draw(t, "ttl")), Local: text,
				Protocol: rapid.Int().Draw(t, "protocol")}
			if rapid.Bool().Draw(t, "over") {
				claim.Over = &events.Over{Epoch: epoch, Owner: owner, LastSeq: epoch, Local: rapid.Bool().Draw(t, "local")}
			}
			if lease.Kind == events.KindNode {
				claim.Node = &events.NodeFacts{Roles: []string{text}, Labels: map[string]string{text: text}}
			}
			return claim
		case 1:
			return events.LeaseRenewed{Lease: lease, Epoch: epoch, Owner: owner, Local: text}
		case 2:
			return events.LeaseReleased{Lease: lease, Epoch: epoch, Owner: owner, Reason: events.Reason(text)}
		case 3:
			return events.LeaseFenced{Lease: lease, Epoch: epoch, Owner: owner, Reason: text, By: text}
		case 4:
			return events.TriggerSkipped{Handle: handle, Epoch: epoch, Owner: owner, EventID: text, Why: events.SkipPanicked, Detail: text}
		case 5:
			body := events.CursorBody{Handle: handle, Mailbox: rapid.SampledFrom(events.Mailboxes[:]).Draw(t, "box"),
				CursorSnapshot: events.CursorSnapshot{Epoch: epoch, Owner: owner, Mail: mail}}
			for range rapid.IntRange(0, 5).Draw(t, "open") {
				body.Read += uint64(rapid.IntRange(1, 1000).Draw(t, "step"))
				body.Open = append(body.Open, events.OpenMail{Seq: body.Read, Attempts: rapid.IntRange(0, 25).Draw(t, "attempts"), Running: rapid.Bool().Draw(t, "running")})
			}
			return events.CursorAttempted{CursorBody: body}
		case 6:
			node := events.NodeFacts{Roles: []string{text}, Draining: rapid.Bool().Draw(t, "draining"), Cordoned: rapid.Bool().Draw(t, "cordoned"),
				Withdrawn: rapid.Bool().Draw(t, "withdrawn")}
			if rapid.Bool().Draw(t, "counted") {
				node.SeatsHeld = new(rapid.IntMin(0).Draw(t, "held"))
			}
			return events.NodeReported{Lease: events.NodeLease(handle), Epoch: epoch, Owner: owner, Local: text, Node: node}
		case 7:
			return events.SeatPaused{Handle: handle, By: text, Reason: text, StopTurn: rapid.Bool().Draw(t, "stop")}
		case 8:
			return events.SeatUnproven{Handle: handle, Epoch: epoch, Owner: owner, Since: time.Unix(rapid.Int64Range(0, 1<<35).Draw(t, "since"), 0).UTC()}
		case 9:
			return events.TurnCompleted{Handle: handle, EventID: text, EventIDs: []string{text}, WorkKey: text, Epoch: epoch, Owner: owner, Outcome: events.Outcome(text), Attempts: 1}
		default:
			return events.MailParked{Handle: handle, Mailbox: events.Inbox, EventID: rapid.String().Draw(t, "id"), MailSeq: epoch, Mail: mail, Epoch: epoch, Owner: owner,
				Reason: text, Header: events.Header{text: {text}}, Data: rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "data")}
		}
	})
}
