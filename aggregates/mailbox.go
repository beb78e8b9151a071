package aggregates

import (
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// Mailbox is a seat's mailbox as its record has it.
type Mailbox struct {
	Last    uint64
	State   MailboxState
	AgentID string
}

// MailboxState says whether a mailbox may be used.
type MailboxState int

// What a mailbox's newest record leaves it as.
const (
	MailboxUnknown    MailboxState = iota // never registered
	MailboxRegistered                     // usable
	MailboxRetiring                       // being deleted: who adds the seat back waits (R8)
	MailboxRetired                        // gone, until it is registered again
)

// EvolveMailbox applies the event at seq. It is total.
func EvolveMailbox(_ Mailbox, seq uint64, e events.Event) Mailbox {
	switch e := e.(type) {
	case events.MailboxRegistered:
		return Mailbox{seq, MailboxRegistered, e.AgentID}
	case events.MailboxRetiring:
		return Mailbox{seq, MailboxRetiring, e.AgentID}
	case events.MailboxRetired:
		return Mailbox{seq, MailboxRetired, e.AgentID}
	default:
		panic(fmt.Sprintf("aggregates: a mailbox cannot evolve by %T", e))
	}
}

// RetiringError: the mailbox is being deleted. Wait for the retirement to end,
// or take it over.
type RetiringError struct{ Handle string }

func (e *RetiringError) Error() string {
	return fmt.Sprintf("the mailbox of %s is being retired: it is registered again once that has ended", e.Handle)
}

// DecideRegister registers a mailbox before anything is told of it (R2). It
// refuses one that is being deleted, with *RetiringError.
func DecideRegister(s Mailbox, handle, agentID string) ([]events.Event, error) {
	if s.State == MailboxRetiring {
		return nil, &RetiringError{handle}
	}
	if s.State == MailboxRegistered && s.AgentID == agentID {
		return nil, nil
	}
	return []events.Event{events.MailboxRegistered{Handle: handle, AgentID: agentID}}, nil
}
