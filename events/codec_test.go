package events_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/events"
)

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := must(gzip.NewWriterLevel(&b, gzip.BestSpeed))
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stored is the message that e makes, in its place.
func stored(t testing.TB, e events.Event) events.Message {
	t.Helper()
	w, err := events.Encode(fleet, fullMeta, e)
	if err != nil {
		t.Fatal(err)
	}
	return events.Message{Stream: events.StreamFleet, Seq: 42, Subject: w.Subject, Header: w.Header, Data: w.Data}
}

// TestDecodeStopsAtWhatItCannotKnow proves that a new name or version is told
// apart from damage, and that both name the place (design §2).
func TestDecodeStopsAtWhatItCannotKnow(t *testing.T) {
	for _, change := range [][2]string{
		{events.HeaderType, "seat-teleported"}, {events.HeaderType, ""},
		{events.HeaderVersion, "2"}, {events.HeaderVersion, "01"}, {events.HeaderVersion, ""},
	} {
		msg := stored(t, events.SeatEstablished{Handle: "dev", Epoch: 1, Owner: alpha})
		msg.Header.Set(change[0], change[1])
		_, err := events.Decode(fleet, msg)
		var unknown *events.UnknownError
		if !errors.As(err, &unknown) || unknown.Seq != 42 || unknown.Stream != events.StreamFleet {
			t.Errorf("%s=%q: got %v, want an UnknownError at FLEET 42", change[0], change[1], err)
		}
	}
}

// TestDecodeRefusesDamage proves that nothing that is damaged, incomplete or in
// another's place is read, and that the error says where it stands.
func TestDecodeRefusesDamage(t *testing.T) {
	seat := events.SeatEstablished{Handle: "dev", Epoch: 1, Owner: alpha}
	claim := events.LeaseClaimed{Lease: events.SeatLease("dev"), Epoch: 1, Owner: alpha, TTL: 3000}
	renewal := events.LeaseRenewed{Lease: events.SeatLease("dev"), Epoch: 1, Owner: alpha}
	done := events.TurnCompleted{Handle: "dev", EventID: "x", Epoch: 1, Owner: alpha, Outcome: events.OutcomeDone}
	parked := examples[events.NameMailParked].full
	cursor := events.CursorOpened{CursorBody: cursorFull()}
	for name, c := range map[string]struct {
		event  events.Event
		damage func(*events.Message)
	}{
		"no JSON":                   {seat, func(m *events.Message) { m.Data = []byte("{") }},
		"no data":                   {seat, func(m *events.Message) { m.Data = nil }},
		"an array":                  {seat, func(m *events.Message) { m.Data = []byte("[]") }},
		"null":                      {seat, func(m *events.Message) { m.Data = []byte("null") }},
		"two objects":               {seat, func(m *events.Message) { m.Data = append(m.Data, "{}"...) }},
		"no epoch":                  {seat, func(m *events.Message) { m.Data = []byte(`{"owner":"node-0:0badcafe"}`) }},
		"a node for an incarnation": {seat, func(m *events.Message) { m.Data = []byte(`{"epoch":1,"owner":"node-0"}`) }},
		"text for a number":         {seat, func(m *events.Message) { m.Data = []byte(`{"epoch":"1","owner":"node-0:0badcafe"}`) }},
		"no id":                     {seat, func(m *events.Message) { delete(m.Header, events.HeaderID) }},
		"no time":                   {seat, func(m *events.Message) { delete(m.Header, events.HeaderTime) }},
		"an epoch of words":         {seat, func(m *events.Message) { m.Header.Set(events.HeaderEpoch, "seven") }},
		"another fleet":             {seat, func(m *events.Message) { m.Subject = strings.Replace(m.Subject, "crewlet", "other", 1) }},
		"another family":            {seat, func(m *events.Message) { m.Subject = fleet.MailboxRecord("dev") }},
		"a handle no seat can have": {seat, func(m *events.Message) { m.Subject = fleet.Host("Dev") }},
		"another kind of lease":     {claim, func(m *events.Message) { m.Subject = fleet.Tenure(events.NodeLease("dev")) }},
		"a claim as a renewal":      {claim, func(m *events.Message) { m.Subject = fleet.Renewal(events.SeatLease("dev")) }},
		"a renewal as an edge":      {renewal, func(m *events.Message) { m.Subject = fleet.Tenure(events.SeatLease("dev")) }},
		"no TTL":                    {claim, func(m *events.Message) { m.Data = []byte(`{"epoch":1,"owner":"node-0:0badcafe"}`) }},
		"evidence of nothing": {claim, func(m *events.Message) {
			m.Data = []byte(`{"epoch":2,"owner":"node-0:0badcafe","ttl_ms":3000,"over":{"epoch":1,"owner":"node-0:0badcafe"}}`)
		}},
		"another event's completion": {done, func(m *events.Message) { m.Subject = fleet.Work("dev", "y") }},
		"another mail's parking":     {parked, func(m *events.Message) { m.Subject = fleet.Dead("dev-2", "other") }},
		"an unknown mailbox":         {cursor, func(m *events.Message) { m.Subject = "crewlet.cursor.dev-2.outbox" }},
		"open mail beyond read":      {cursor, func(m *events.Message) { m.Data = bytes.Replace(m.Data, []byte(`"read":120`), []byte(`"read":119`), 1) }},
		"open mail out of order":     {cursor, func(m *events.Message) { m.Data = bytes.Replace(m.Data, []byte(`"seq":101`), []byte(`"seq":119`), 1) }},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			msg := stored(t, c.event)
			if _, err := events.Decode(fleet, msg); err != nil {
				t.Fatalf("undamaged: %v", err)
			}
			c.damage(&msg)
			rec, err := events.Decode(fleet, msg)
			var bad *events.DecodeError
			if !errors.As(err, &bad) || bad.Seq != 42 || bad.Subject != msg.Subject {
				t.Errorf("got %+v, %v; want a DecodeError at %s", rec.Event, err, msg.Subject)
			}
		})
	}
}

// TestDecodeRefusesBadRosters proves that a roster is bounded and names only
// seats that can exist.
func TestDecodeRefusesBadRosters(t *testing.T) {
	for name, roster := range map[string][]byte{
		"no gzip":      []byte("[]"),
		"no JSON":      gzipped(t, "["),
		"a bad handle": gzipped(t, `[{"handle":"No Such"}]`),
		"a bomb":       gzipped(t, `["`+strings.Repeat("a", 64<<20)+`"]`),
	} {
		msg := stored(t, events.CompanyApplied{Revision: 1, Name: "Acme", Digest: "d"})
		msg.Data = must(json.Marshal(map[string]any{"revision": 1, "name": "Acme", "digest": "d", "roster": roster}))
		if _, err := events.Decode(fleet, msg); err == nil || !strings.Contains(err.Error(), "roster") {
			t.Errorf("%s: got %v, want an error about the roster", name, err)
		}
	}
}

// TestEncodeRefusesWhatDecodeWould proves that no event is written that could
// not be read back.
func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	for name, e := range map[string]events.Event{
		"no epoch":        events.SeatEstablished{Handle: "dev", Owner: alpha},
		"no owner":        events.SeatEstablished{Handle: "dev", Epoch: 1},
		"no handle":       events.SeatEstablished{Epoch: 1, Owner: alpha},
		"a wild handle":   events.MailboxRegistered{Handle: "*", AgentID: "1"},
		"a split handle":  events.MailboxRegistered{Handle: "a.b", AgentID: "1"},
		"a negative TTL":  events.LeaseClaimed{Lease: events.SeatLease("dev"), Epoch: 1, Owner: alpha, TTL: -1},
		"an empty reason": events.LeaseReleased{Lease: events.SeatLease("dev"), Epoch: 1, Owner: alpha},
		"no such mailbox": events.CursorCreated{CursorBody: events.CursorBody{Handle: "dev", Mailbox: "outbox"}},
	} {
		if w, err := events.Encode(fleet, minMeta, e); err == nil {
			t.Errorf("%s: encoded to %s %s, want an error", name, w.Subject, w.Data)
		}
	}
}

// TestLapsesAfter proves the bound of design §3: the larger of 250 ms and a
// hundredth of the TTL.
func TestLapsesAfter(t *testing.T) {
	for _, c := range []struct{ ttl, want events.Millis }{{3000, 3250}, {15000, 15250}, {25000, 25250}, {45000, 45450}, {100000, 101000}} {
		if got := events.MillisOf(events.LapsesAfter(c.ttl.Duration())); got != c.want {
			t.Errorf("LapsesAfter(%v) = %v, want %v", c.ttl.Duration(), got.Duration(), c.want.Duration())
		}
	}
}
