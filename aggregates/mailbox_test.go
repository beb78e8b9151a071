package aggregates_test

import (
	"reflect"
	"testing"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// TestRegisterOnce proves R2 and U1: a mailbox is registered by one event,
// however many nodes do it at boot, and anew when another agent works there.
func TestRegisterOnce(t *testing.T) {
	var s aggregates.Mailbox
	for i, step := range []struct {
		agent string
		want  []events.Event
	}{
		{"a-1", []events.Event{events.MailboxRegistered{Handle: "dev", AgentID: "a-1"}}},
		{"a-1", nil},
		{"a-2", []events.Event{events.MailboxRegistered{Handle: "dev", AgentID: "a-2"}}},
		{"a-2", nil},
	} {
		got, err := aggregates.DecideRegister(s, "dev", step.agent)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, step.want) {
			t.Errorf("step %d: got %+v, want %+v", i, got, step.want)
		}
		for _, e := range got {
			s = aggregates.EvolveMailbox(s, uint64(i+1), e)
		}
	}
	if s.Last != 3 || s.State != aggregates.MailboxRegistered {
		t.Errorf("state %+v, want the registration at 3", s)
	}
}

// TestApplyOnce proves that a company is one revision per document: the same
// document again is no revision, an older one is a newer revision.
func TestApplyOnce(t *testing.T) {
	var s aggregates.Company
	for i, step := range []struct {
		digest   string
		revision uint64 // 0: nothing happens
	}{{"a", 1}, {"a", 0}, {"b", 2}, {"a", 3}} {
		next := events.CompanyApplied{Name: "Acme", Digest: step.digest, Revision: 99}
		got, err := aggregates.DecideApply(s, aggregates.ApplyCompany{Next: next})
		if err != nil {
			t.Fatal(err)
		}
		var want []events.Event
		if step.revision != 0 {
			want = []events.Event{events.CompanyApplied{Name: "Acme", Digest: step.digest, Revision: step.revision}}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("step %d: got %+v, want %+v", i, got, want)
		}
		for _, e := range got {
			s = aggregates.EvolveCompany(s, uint64(i+1), e.(events.CompanyApplied))
		}
	}
}
