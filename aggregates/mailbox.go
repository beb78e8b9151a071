package aggregates

import (
	"github.com/seat-tenure/tenure/events"
)

// Mailbox is a seat's mailbox as the log has it.
type Mailbox struct {
	Last       uint64
	Registered bool
	AgentID    string
}

// EvolveMailbox applies the event at seq. It is total.
func EvolveMailbox(_ Mailbox, seq uint64, e events.MailboxRegistered) Mailbox {
	return Mailbox{Last: seq, Registered: true, AgentID: e.AgentID}
}

// DecideRegister registers a mailbox before anything is told of it (R2).
func DecideRegister(s Mailbox, handle, agentID string) []events.Event {
	if s.Registered && s.AgentID == agentID {
		return nil
	}
	return []events.Event{events.MailboxRegistered{Handle: handle, AgentID: agentID}}
}

// Company is the newest revision of the company, as far as deciding the next
// one needs it.
type Company struct {
	Last     uint64
	Revision uint64
	Digest   string
}

// EvolveCompany applies the event at seq. It is total.
func EvolveCompany(_ Company, seq uint64, e events.CompanyApplied) Company {
	return Company{Last: seq, Revision: e.Revision, Digest: e.Digest}
}

// DecideApply makes next the newest revision, unless it is that already.
func DecideApply(s Company, next events.CompanyApplied) []events.Event {
	if s.Digest == next.Digest {
		return nil
	}
	next.Revision = s.Revision + 1
	return []events.Event{next}
}
