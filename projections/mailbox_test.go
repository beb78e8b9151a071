package projections_test

import (
	"testing"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// TestMailboxStates proves the view of U1 and R1 to R8: a mailbox is what its
// newest record and its newest retirement say, whatever order a batch of the two
// stands in, and one that is being deleted, or is gone, is not for use.
func TestMailboxStates(t *testing.T) {
	registered := events.MailboxRegistered{Handle: "dev", AgentID: "x"}
	retiring := events.MailboxRetiring{Handle: "dev", AgentID: "x", Saga: "dev.retirement-1"}
	retired := events.MailboxRetired{Handle: "dev", AgentID: "x", Saga: "dev.retirement-1"}
	absent := events.MailboxAbsent{RetirementBody: absence("dev", events.RetireAbsent)}
	marked := events.RetirementMarked{RetirementBody: absence("dev", events.RetireMarked)}
	completed := events.RetirementCompleted{RetirementBody: absence("dev", events.RetireCompleted)}
	for _, c := range []struct {
		name   string
		log    []events.Event
		state  projections.MailboxState
		usable bool
	}{
		{"registered", []events.Event{registered}, projections.MailboxActive, true},
		{"absent", []events.Event{registered, absent}, projections.MailboxAbsent, true},
		{"returned", []events.Event{registered, absent, events.MailboxReturned{RetirementBody: absence("dev", events.RetireReturned)}}, projections.MailboxActive, true},
		{"marked", []events.Event{registered, absent, marked, retiring}, projections.MailboxRetiring, false},
		{"unmarked", []events.Event{registered, absent, marked, retiring, events.RetirementUnmarked{RetirementBody: absence("dev", events.RetireAbsent)}, registered}, projections.MailboxAbsent, true},
		{"taken over", []events.Event{registered, absent, marked, retiring, events.RetirementTakenOver{RetirementBody: absence("dev", events.RetireTakenOver)}, registered}, projections.MailboxActive, true},
		{"retired", []events.Event{registered, absent, marked, retiring, completed, retired}, projections.MailboxRetired, false},
		{"registered again", []events.Event{registered, absent, marked, retiring, completed, retired, registered}, projections.MailboxActive, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, found, err := given(t, fleet(c.log...)...).Mailbox("dev")
			if err != nil || !found {
				t.Fatalf("found %v, %v", found, err)
			}
			if m.State() != c.state || m.Usable() != c.usable {
				t.Errorf("got %s, usable %v; want %s, usable %v", m.State(), m.Usable(), c.state, c.usable)
			}
		})
	}
}
