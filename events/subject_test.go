package events_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/events"
)

// matches is a broker's rule of subjects, written down a second time.
func matches(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return len(s) > i
		case i >= len(s), token != "*" && token != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}

// subjectsOf lists every subject that belongs to one seat.
func subjectsOf(handle string) []string {
	l := events.SeatLease(handle)
	all := []string{fleet.Tenure(l), fleet.Renewal(l), fleet.Host(handle), fleet.MailboxRecord(handle),
		fleet.Work(handle, "x"), fleet.Dead(handle, events.Digest("x")), fleet.ParkedRecord(handle, events.Digest("x"))}
	for _, box := range events.Mailboxes {
		all = append(all, fleet.Mail(handle, box), fleet.Wake(handle, box), fleet.Cursor(handle, box))
	}
	return all
}

// TestHandles proves which handles there are: one subject token, never mangled.
func TestHandles(t *testing.T) {
	for _, good := range []string{"a", "0", "dev", "dev-2", "dev_2", "a-", "a_", strings.Repeat("a", 63)} {
		if err := events.ValidHandle(good); err != nil {
			t.Errorf("%q: %v, want none", good, err)
		}
	}
	for _, bad := range []string{"", "-a", "_log", "Dev", "dev.2", "*", ">", "a b", "dév", "a\n", "a\x00", "$js", strings.Repeat("a", 64)} {
		if err := events.ValidHandle(bad); err == nil {
			t.Errorf("%q is taken for a handle", bad)
		}
	}
}

// TestSeatsNeverShareASubject proves that no seat's subject, family or check is
// matched by another's, not even when one handle begins with the other.
func TestSeatsNeverShareASubject(t *testing.T) {
	handles := []string{"dev", "dev-2", "dev-", "dev_2", "de", "inbox", "control", "tenure", "renewal", "seat", "lease"}
	for _, a := range handles {
		for _, b := range handles {
			if a == b {
				continue
			}
			patterns := append(subjectsOf(a), fleet.Family(events.SeatLease(a)))
			for _, pattern := range patterns {
				for _, subject := range subjectsOf(b) {
					if matches(pattern, subject) {
						t.Errorf("%s of %s covers %s of %s", pattern, a, subject, b)
					}
				}
			}
		}
	}
}

// TestFamilyCoversItsLeaseAndNoOther proves the one wildcard of the log (form b):
// both subjects of the lease, and of the same id under no other kind.
func TestFamilyCoversItsLeaseAndNoOther(t *testing.T) {
	kinds := []events.LeaseKind{events.KindSeat, events.KindNode, events.KindWorker}
	for _, kind := range kinds {
		l := events.Lease{Kind: kind, ID: "x"}
		check := fleet.FamilyCheck(l, 7)
		for _, other := range kinds {
			o := events.Lease{Kind: other, ID: "x"}
			for _, subject := range []string{fleet.Tenure(o), fleet.Renewal(o)} {
				if got, want := matches(check.Subject, subject), other == kind; got != want {
					t.Errorf("%s matches %s: %t, want %t", check.Subject, subject, got, want)
				}
				if got, want := matches(fleet.Families(kind), subject), other == kind; got != want {
					t.Errorf("%s matches %s: %t, want %t", fleet.Families(kind), subject, got, want)
				}
			}
		}
		if check.Last != 7 {
			t.Errorf("family check at %d, want 7", check.Last)
		}
		if tenure := fleet.TenureCheck(l, 9); strings.Contains(tenure.Subject, "*") || tenure.Last != 9 {
			t.Errorf("the tenure check is %+v, want a literal subject at 9 (form a)", tenure)
		}
	}
}

// TestEdgesLeaveOutRenewals proves that readers of ownership follow every FLEET
// subject but the renewals (design §7).
func TestEdgesLeaveOutRenewals(t *testing.T) {
	followed := func(subject string) bool {
		for _, edge := range fleet.FleetEdges() {
			if matches(edge, subject) {
				return true
			}
		}
		return false
	}
	for name, e := range examples {
		subject := must(events.Encode(fleet, minMeta, e.min)).Subject
		if !strings.HasPrefix(subject, "crewlet.fleet.") {
			continue
		}
		if got, want := followed(subject), !strings.HasSuffix(name, "-renewed"); got != want {
			t.Errorf("%s under %s is followed: %t, want %t", name, subject, got, want)
		}
	}
}

// TestPrefixIsOneToken proves that two fleets on one broker cannot see each
// other, whatever their prefixes.
func TestPrefixIsOneToken(t *testing.T) {
	for _, bad := range []string{"", "a.b", "*", ">", "A", "_a"} {
		if _, err := events.NewSubjects(bad); err == nil {
			t.Errorf("%q is taken for a prefix", bad)
		}
	}
	if got := fleet.StreamName(events.StreamFleet); got != "CREWLET_FLEET" {
		t.Errorf("stream name %q, want CREWLET_FLEET", got)
	}
}

// TestEventsDecodeUnderTheirSubjectOnly proves that the grammar reads back what
// it writes: moved to another seat's or another event's subject, an event is
// either refused or says that it is the other's.
func TestEventsDecodeUnderTheirSubjectOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := must(events.Encode(fleet, minMeta, anyEvent().Draw(t, "event")))
		other := must(events.Encode(fleet, minMeta, anyEvent().Draw(t, "other")))
		rec, err := events.Decode(fleet, events.Message{Subject: other.Subject, Header: w.Header, Data: w.Data})
		if err != nil {
			return
		}
		if again := must(events.Encode(fleet, minMeta, rec.Event)); again.Subject != other.Subject {
			t.Fatalf("read under %s, it is written under %s", other.Subject, again.Subject)
		}
	})
}

// TestDeadTellsLivesOfMailApart proves that parked mail of a recreated stream,
// whose sequences start anew, gets a record of its own (design §2).
func TestDeadTellsLivesOfMailApart(t *testing.T) {
	parked := examples[events.NameMailParked].full.(events.MailParked)
	subject := func(change func(*events.MailParked)) string {
		p := parked
		change(&p)
		return must(events.Encode(fleet, minMeta, p)).Subject
	}
	same := subject(func(*events.MailParked) {})
	seen := map[string]string{same: "the same mail"}
	for name, change := range map[string]func(*events.MailParked){
		"another id":                func(p *events.MailParked) { p.EventID = "mail/18" },
		"another life by marker":    func(p *events.MailParked) { p.Mail.MarkerID = "m-4" },
		"another life by creation":  func(p *events.MailParked) { p.Mail.CreatedAt = "2026-04-01T08:00:00Z" },
		"unreadable":                func(p *events.MailParked) { p.EventID = "" },
		"unreadable somewhere else": func(p *events.MailParked) { p.EventID, p.MailSeq = "", 18 },
		"another seat":              func(p *events.MailParked) { p.Handle = "dev" },
	} {
		got := subject(change)
		if before, taken := seen[got]; taken {
			t.Errorf("%s has the subject of %s", name, before)
		}
		seen[got] = name
	}
	if got := subject(func(p *events.MailParked) { p.Reason, p.Epoch = "again", 9 }); got != same {
		t.Errorf("parked again by a successor under %s, want %s: DEAD is write-once per mail", got, same)
	}
}

// TestDeadTellsMessagesOfOneIDApart proves that a message that was replayed, or
// sent twice, and is parked again has a record of its own, and that one parked
// twice by a crash in between has not, also when MAIL's mark has moved on.
func TestDeadTellsMessagesOfOneIDApart(t *testing.T) {
	parked := examples[events.NameMailParked].full.(events.MailParked)
	parked.ByMail = true
	subject := func(change func(*events.MailParked)) string {
		p := parked
		change(&p)
		return must(events.Encode(fleet, minMeta, p)).Subject
	}
	same := subject(func(*events.MailParked) {})
	if got := subject(func(p *events.MailParked) { p.Mail.MarkerSeq, p.Mail.MarkerID, p.Epoch = 99, "m-9", 9 }); got != same {
		t.Errorf("the same message under %s after a mark, want %s", got, same)
	}
	for name, change := range map[string]func(*events.MailParked){
		"a second message of the id": func(p *events.MailParked) { p.MailSeq = 18 },
		"a recreated stream":         func(p *events.MailParked) { p.Mail.CreatedAt = "2026-04-01T08:00:00Z" },
		"a record of old":            func(p *events.MailParked) { p.ByMail = false },
		"another seat":               func(p *events.MailParked) { p.Handle = "dev" },
	} {
		if subject(change) == same {
			t.Errorf("%s has the same subject", name)
		}
	}
}

// TestMarkersStandInTheirStream proves that every stream's markers have a place
// there, of their own in the write-once streams.
func TestMarkersStandInTheirStream(t *testing.T) {
	for stream, onceEach := range map[events.Stream]bool{
		events.StreamFleet: false, events.StreamMail: false, events.StreamCursor: false,
		events.StreamMemory: false, events.StreamWork: true, events.StreamDead: true,
	} {
		a, b := fleet.Marker(stream, "m1"), fleet.Marker(stream, "m2")
		if (a != b) != onceEach {
			t.Errorf("%s: markers under %s and %s", stream, a, b)
		}
		e := events.StreamMarked{Stream: stream, Marker: "m1", CreatedAt: "2026-03-01T08:00:00Z"}
		w := must(events.Encode(fleet, minMeta, e))
		if _, err := events.Decode(fleet, events.Message{Subject: w.Subject, Header: w.Header, Data: w.Data}); err != nil || w.Subject != a {
			t.Errorf("%s: marker under %s (%v), want %s", stream, w.Subject, err, a)
		}
	}
}
