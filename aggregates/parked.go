package aggregates

import (
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// ParkedMail is what became of one parked mail; Now is nil while nobody has
// decided about it.
type ParkedMail struct {
	Last uint64 // sequence of the newest event about it, 0: there is none
	Now  events.ParkedEvent
}

// EvolveParked applies the event at seq.
func EvolveParked(_ ParkedMail, seq uint64, e events.ParkedEvent) ParkedMail {
	return ParkedMail{Last: seq, Now: e}
}

// ParkedCommand is what can be asked of parked mail.
type ParkedCommand interface{ parkedCommand() }

// ReplayMail sends the mail to its seat again.
type ReplayMail struct {
	Body    events.ParkedBody
	Clipped bool // the record lacks a part of the mail
}

// ReturnMail notes that it was sent.
type ReturnMail struct {
	Body    events.ParkedBody
	MailSeq uint64
}

// DropMail gives it up.
type DropMail struct{ Body events.ParkedBody }

func (ReplayMail) parkedCommand() {}
func (ReturnMail) parkedCommand() {}
func (DropMail) parkedCommand()   {}

// ClippedError refuses a replay of mail that DEAD does not have whole.
type ClippedError struct{ DeadSeq uint64 }

func (e *ClippedError) Error() string {
	return fmt.Sprintf("the mail parked at %d was too large to be kept whole, so it cannot be sent again; have its sender send it smaller", e.DeadSeq)
}

// DecidedError refuses to decide about parked mail in another way than before.
type DecidedError struct {
	DeadSeq uint64
	Now     events.ParkedEvent
}

func (e *DecidedError) Error() string {
	what := "replayed"
	if _, dropped := e.Now.(events.MailDropped); dropped {
		what = "dropped"
	}
	body := e.Now.Parked()
	return fmt.Sprintf("the mail parked at %d was %s already by %s (%s)", e.DeadSeq, what, body.By, body.Reason)
}

// DecideParked says what cmd makes happen. No event means that it has happened
// already; a refusal is *ClippedError or *DecidedError.
func DecideParked(s ParkedMail, cmd ParkedCommand) ([]events.Event, error) {
	switch cmd := cmd.(type) {
	case ReplayMail:
		switch s.Now.(type) {
		case events.MailReplayed, events.MailReturned:
			return nil, nil
		case events.MailDropped:
			return nil, &DecidedError{cmd.Body.DeadSeq, s.Now}
		}
		if cmd.Clipped {
			return nil, &ClippedError{cmd.Body.DeadSeq}
		}
		return []events.Event{events.MailReplayed{ParkedBody: cmd.Body}}, nil
	case ReturnMail:
		if _, replayed := s.Now.(events.MailReplayed); !replayed {
			return nil, nil // somebody has noted it
		}
		return []events.Event{events.MailReturned{ParkedBody: cmd.Body, MailSeq: cmd.MailSeq}}, nil
	case DropMail:
		switch s.Now.(type) {
		case events.MailDropped:
			return nil, nil
		case events.MailReplayed, events.MailReturned:
			return nil, &DecidedError{cmd.Body.DeadSeq, s.Now}
		}
		return []events.Event{events.MailDropped{ParkedBody: cmd.Body}}, nil
	default:
		panic(fmt.Sprintf("aggregates: no command %T for parked mail", cmd))
	}
}
