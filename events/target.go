package events

import (
	"fmt"
	"strings"
)

// target is what a subject says about the event under it.
type target struct {
	family  string // which part of the grammar: see the constants
	lease   Lease
	renewal bool
	handle  string
	mailbox Mailbox
	digest  string
}

// Parts of the subject grammar that events stand under.
const (
	famLease      = "lease"
	famHost       = "host"
	famMailbox    = "mailbox"
	famCompany    = "company"
	famLog        = "log"
	famCursor     = "cursor"
	famWork       = "work"
	famDead       = "dead"
	famHandoff    = "handoff"
	famParked     = "parked"
	famRetirement = "retirement"
)

// parse reads a subject back into what it names, or says why it cannot.
func (s Subjects) parse(subject string) (target, error) {
	t, ok := s.target(subject)
	if !ok {
		return target{}, fmt.Errorf("subject %q is not one that events of the fleet %q stand under", subject, s.prefix)
	}
	return t, nil
}

// maxTokens is how many tokens a subject has below the prefix, and one more.
const maxTokens = 6

// target is parse without the words: it is asked for every event that is written
// or read.
func (s Subjects) target(subject string) (target, bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix)
	if !ok || rest == "" || rest[0] != '.' {
		return target{}, false
	}
	var tok [maxTokens]string
	n := 0
	for token := range strings.SplitSeq(rest[1:], ".") {
		if n == maxTokens {
			break // no event stands that deep
		}
		tok[n], n = token, n+1
	}
	switch {
	case n == 2 && tok[0] == "fleet" && tok[1] == "log", n >= 2 && tok[1] == "_log":
		return target{family: famLog}, true
	case n == 2 && tok[0] == "fleet" && tok[1] == "company":
		return target{family: famCompany}, true
	case n == 5 && tok[0] == "fleet" && tok[1] == "lease":
		t := target{family: famLease, lease: Lease{LeaseKind(tok[2]), tok[3]}, renewal: tok[4] == "renewal"}
		_, known := leaseNames[t.lease.Kind]
		if !known || !validToken(tok[3]) || (tok[4] != "tenure" && !t.renewal) {
			return target{}, false
		}
		return t, true
	case n == 3 && tok[0] == "fleet" && (tok[1] == famHost || tok[1] == famMailbox) && validToken(tok[2]):
		return target{family: tok[1], handle: tok[2]}, true
	case n == 4 && tok[0] == "fleet" && tok[1] == "saga" && (tok[2] == famHandoff || tok[2] == famRetirement) && validToken(tok[3]):
		return target{family: tok[2], handle: tok[3]}, true
	case n == 4 && tok[0] == "fleet" && tok[1] == famParked && validToken(tok[2]):
		return target{family: famParked, handle: tok[2], digest: tok[3]}, true
	case n == 3 && tok[0] == "cursor" && validToken(tok[1]):
		t := target{family: famCursor, handle: tok[1], mailbox: Mailbox(tok[2])}
		if t.mailbox != Inbox && t.mailbox != Control && t.mailbox != Reflect {
			return target{}, false
		}
		return t, true
	case n == 3 && (tok[0] == famWork || tok[0] == famDead) && validToken(tok[1]):
		return target{family: tok[0], handle: tok[1], digest: tok[2]}, true
	}
	return target{}, false
}

// subjectOf is the subject that e stands under.
func (s Subjects) subjectOf(e Event) string {
	switch e := e.(type) {
	case LeaseClaimed:
		return s.Tenure(e.Lease)
	case LeaseRenewed:
		return s.Renewal(e.Lease)
	case LeaseReleased:
		return s.Tenure(e.Lease)
	case LeaseFenced:
		return s.Tenure(e.Lease)
	case NodeReported:
		return s.Tenure(e.Lease)
	case SeatEstablished:
		return s.Host(e.Handle)
	case SeatPaused:
		return s.Host(e.Handle)
	case SeatResumed:
		return s.Host(e.Handle)
	case SeatUnproven:
		return s.Host(e.Handle)
	case SeatProven:
		return s.Host(e.Handle)
	case TriggerSkipped:
		return s.Host(e.Handle)
	case MailboxRegistered:
		return s.MailboxRecord(e.Handle)
	case MailboxRetiring:
		return s.MailboxRecord(e.Handle)
	case MailboxRetired:
		return s.MailboxRecord(e.Handle)
	case RetirementEvent:
		return s.Retirement(e.Retirement().Handle)
	case StreamMarked:
		return s.Marker(e.Stream, e.Marker)
	case CompanyApplied:
		return s.Company()
	case CursorEvent:
		handle, mailbox, _ := e.Cursor()
		return s.Cursor(handle, mailbox)
	case TurnCompleted:
		return s.Work(e.Handle, e.EventID)
	case MailParked:
		return s.Dead(e.Handle, e.deadDigest())
	case ParkedEvent:
		body := e.Parked()
		return s.ParkedRecord(body.Handle, body.Key)
	case LeaseDeclined:
		return s.Tenure(e.Lease)
	case HandoffEvent:
		_, body := e.Handoff()
		return s.Handoff(body.Handle)
	default:
		panic(fmt.Sprintf("events: no subject for %T", e))
	}
}

// Marker is where a stream's marker with that id stands. Write-once streams
// need a subject for each.
func (s Subjects) Marker(st Stream, id string) string {
	switch st {
	case StreamFleet:
		return s.FleetLog()
	case StreamMail:
		return s.prefix + ".agent._log"
	case StreamWork, StreamDead:
		return s.prefix + "." + strings.ToLower(string(st)) + "._log." + id
	default:
		return s.prefix + "." + strings.ToLower(string(st)) + "._log"
	}
}

// String tells one life of a stream from another.
func (i StreamIdentity) String() string {
	return fmt.Sprintf("%s/%d/%s", i.CreatedAt, i.MarkerSeq, i.MarkerID)
}
