package aggregates

import (
	"slices"

	"github.com/seat-tenure/tenure/events"
)

// RetireMail moves the cursor to the mark of a retirement: what stands at or
// below it is settled, without a turn (R1). It rests on the tenure that the mark
// names, whoever gives it: the deletion is the same whoever finishes it.
type RetireMail struct {
	Epoch uint64
	Owner events.Incarnation
	Mail  events.StreamIdentity // with the newest marker at or below Mark
	Mark  uint64
	// Anew says that MAIL is not the stream which the cursor belonged to, and that an
	// operator gives up what was in that: the cursor begins at the mark of the new one.
	Anew bool
}

func (RetireMail) cursorCommand() {}

// decideRetire refuses with *FencedError once a later tenure has the mailbox:
// then the seat is back, and its mail is not the retirement's any more (Schedule9).
func decideRetire(body events.CursorBody, cmd RetireMail) ([]events.Event, error) {
	if body.Epoch > cmd.Epoch || body.Epoch == cmd.Epoch && body.Owner != cmd.Owner {
		return nil, &FencedError{body.Handle, cmd.Epoch, body.Epoch, body.Owner}
	}
	if cmd.Anew {
		body.Epoch, body.Owner, body.Mail, body.Read = cmd.Epoch, cmd.Owner, cmd.Mail, cmd.Mark
		body.Open, body.Tried = nil, nil
		return []events.Event{events.CursorRetired{CursorBody: body}}, nil
	}
	above := func(seq uint64) bool { return seq > cmd.Mark }
	done := body.Epoch == cmd.Epoch && body.Read >= cmd.Mark && (len(body.Open) == 0 || above(body.Open[0].Seq))
	if done {
		return nil, nil
	}
	body.Epoch, body.Owner = cmd.Epoch, cmd.Owner
	if cmd.Mark > body.Read {
		body.Read, body.Mail = cmd.Mark, cmd.Mail
	}
	body.Open = slices.DeleteFunc(slices.Clone(body.Open), func(o events.OpenMail) bool { return !above(o.Seq) })
	body.Tried = slices.DeleteFunc(slices.Clone(body.Tried), func(t events.Tried) bool { return !above(t.Seq) })
	if len(body.Open) == 0 {
		body.Open = nil
	}
	if len(body.Tried) == 0 {
		body.Tried = nil
	}
	return []events.Event{events.CursorRetired{CursorBody: body}}, nil
}
