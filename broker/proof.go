package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// proofKind is how a write that may stand can be recognised.
type proofKind int

const (
	proofNone   proofKind = iota // it cannot: it is sent once
	proofDedupe                  // the broker does, by Nats-Msg-Id
	proofBeside                  // its check is on another subject: look for the command id
	proofNext                    // exact: it is the first message after its check's position
	proofOnce                    // exact: it is the one message under its subject
)

// proof says how a batch, or a single write, is recognised in the log: by its
// best member, since all stand or none.
type proof struct {
	kind    proofKind
	members []member
}

type member struct {
	events.Write
	kind  proofKind
	after uint64 // how many members follow it in the batch
}

// errUndecided: the reads that should decide did not; repeat the write.
var errUndecided = errors.New("not decided")

// proofOf chooses how ws is recognised and refuses what could not be.
func proofOf(st events.Stream, ws []events.Write) (proof, error) {
	once := st == events.StreamWork || st == events.StreamDead
	var p proof
	for i, w := range ws {
		m := member{Write: w, after: uint64(len(ws) - 1 - i)}
		switch {
		case w.Check != nil && w.Header.Get(events.HeaderCommand) == "":
			return proof{}, refuse("the write to %s has a check and no %s header to be recognised by", w.Subject, events.HeaderCommand)
		case once && w.Header.Get(events.HeaderCommand) != "":
			m.kind = proofOnce
		case w.Check != nil && covered(w.Check.Subject, w.Subject):
			m.kind = proofNext
		case w.Check != nil:
			m.kind = proofBeside
		case len(ws) == 1 && w.Header.Get(headerMsgID) != "":
			m.kind = proofDedupe
		}
		p.kind = max(p.kind, m.kind)
		p.members = append(p.members, m)
	}
	return p, nil
}

// verdict decides what a refusal means: nil and the last sequence when the
// write stands after all, errUndecided when that could not be read, else the
// refusal itself.
func (p proof) verdict(ctx context.Context, s Stream, refusal error, unknown bool) (uint64, error) {
	if !unknown {
		return 0, p.confirm(ctx, s, refusal)
	}
	final := false
	for _, m := range p.members {
		found, err := m.look(ctx, s)
		switch {
		case errors.Is(err, events.ErrNotFound):
		case err != nil:
			return 0, errUndecided
		case m.kind >= proofNext && ours(found, m.Write):
			return found.Seq + m.after, nil
		default:
			final = true // another write stands: no send of ours can succeed any more
		}
	}
	switch {
	case !final:
		return 0, errUndecided
	case p.kind > proofBeside:
		return 0, refusal
	}
	seq, err := p.walk(ctx, s)
	if errors.Is(err, events.ErrNotFound) {
		return 0, refusal
	}
	return seq, err
}

// confirm looks into ErrExists also when nothing is unknown: on a replicated
// stream it may rest on a write in flight that never commits, and whoever gets
// it takes its work for recorded.
func (p proof) confirm(ctx context.Context, s Stream, refusal error) error {
	if !errors.Is(refusal, events.ErrExists) || len(p.members) > 1 {
		return refusal
	}
	if _, err := s.Last(ctx, p.members[0].Subject); err != nil {
		return errUndecided
	}
	return refusal
}

// look reads the message that decides about m: for an exact proof the one that
// is m if m stands, for a check beside it the one that ended the check.
func (m member) look(ctx context.Context, s Stream) (events.Message, error) {
	switch m.kind {
	case proofNext, proofBeside:
		return s.Next(ctx, m.Check.Subject, m.Check.Last+1)
	case proofOnce:
		return s.Last(ctx, m.Subject)
	default:
		return events.Message{}, events.ErrNotFound
	}
}

// walk looks for the command id of the first member with a check beside it in
// what came to its subject since the checked position, and returns the batch's
// last sequence.
func (p proof) walk(ctx context.Context, s Stream) (uint64, error) {
	for _, m := range p.members {
		if m.kind != proofBeside {
			continue
		}
		from := m.Check.Last + 1
		for range settleWalk {
			found, err := s.Next(ctx, m.Subject, from)
			if err != nil {
				return 0, err
			}
			if ours(found, m.Write) {
				return found.Seq + m.after, nil
			}
			from = found.Seq + 1
		}
		return 0, fmt.Errorf("%w: %d messages under %s were looked at", errUndecided, settleWalk, m.Subject)
	}
	return 0, events.ErrNotFound
}

// ours says whether m is the write w, by the command id.
func ours(m events.Message, w events.Write) bool {
	id := w.Header.Get(events.HeaderCommand)
	return id != "" && m.Subject == w.Subject && m.Header.Get(events.HeaderCommand) == id
}
