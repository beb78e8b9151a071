package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// Park sets mail aside in DEAD with its reason, write-once. The caller settles
// it on the cursor afterwards, so a crash between parks it twice under one
// subject, which is once.
func (s *Shell) Park(ctx context.Context, t Tenure, p events.MailParked) error {
	p.ByMail = true
	w, err := s.write(s.outside(t), p, nil)
	if err != nil {
		return err
	}
	w.Check = &events.Check{Subject: w.Subject}
	if _, err = s.log.Append(ctx, events.StreamDead, w); err != nil && !recorded(err) {
		return fmt.Errorf("park mail %d of %s: %w", p.MailSeq, p.Handle, err)
	}
	return nil
}

// Replay sends parked mail to its seat again and returns the position of the
// event that says so. Asked again it sends nothing: what came of the first time
// stands in the log. dead is the record as DEAD has it.
//
// The event stands before the mail is sent, so that a drop and a replay exclude
// each other; another notes that it was sent. A caller that dies between the two
// leaves the sending to whoever asks again: within the broker's dedupe window
// that stores nothing twice, and past it a second message of the same event id,
// which the completion ledger collapses (K1).
//
// Refusals are *aggregates.DecidedError and *aggregates.ClippedError.
func (s *Shell) Replay(ctx context.Context, dead events.Recorded, reason, by string) (uint64, error) {
	p, body, err := parkedBody(dead, reason, by)
	if err != nil {
		return 0, err
	}
	now, err := s.decideParked(ctx, body, aggregates.ReplayMail{Body: body, Clipped: p.Clipped})
	if err != nil {
		return 0, err
	}
	position := now.Last
	if _, done := now.Now.(events.MailReturned); done {
		return position, nil
	}
	r, err := s.log.Append(ctx, events.StreamMail, s.again(p, dead.Seq))
	if err != nil {
		return 0, fmt.Errorf("send the mail parked at %d to %s again: %w", dead.Seq, p.Handle, err)
	}
	_, err = s.decideParked(ctx, body, aggregates.ReturnMail{Body: body, MailSeq: r.Seq})
	return position, err
}

// Drop gives parked mail up and returns the position of the event that says so.
// The record stays readable for as long as DEAD keeps it. Its refusal is
// *aggregates.DecidedError.
func (s *Shell) Drop(ctx context.Context, dead events.Recorded, reason, by string) (uint64, error) {
	_, body, err := parkedBody(dead, reason, by)
	if err != nil {
		return 0, err
	}
	now, err := s.decideParked(ctx, body, aggregates.DropMail{Body: body})
	return now.Last, err
}

// MayReplay says whether Replay would be refused as things stand.
func (s *Shell) MayReplay(ctx context.Context, dead events.Recorded) error {
	p, body, err := parkedBody(dead, "", "")
	if err != nil {
		return err
	}
	return s.mayDecide(ctx, body, aggregates.ReplayMail{Body: body, Clipped: p.Clipped})
}

// MayDrop says whether Drop would be refused as things stand.
func (s *Shell) MayDrop(ctx context.Context, dead events.Recorded) error {
	_, body, err := parkedBody(dead, "", "")
	if err != nil {
		return err
	}
	return s.mayDecide(ctx, body, aggregates.DropMail{Body: body})
}

func (s *Shell) mayDecide(ctx context.Context, body events.ParkedBody, cmd aggregates.ParkedCommand) error {
	now, err := s.parked(ctx, body)
	if err != nil {
		return err
	}
	_, err = aggregates.DecideParked(now, cmd)
	return err
}

func parkedBody(dead events.Recorded, reason, by string) (events.MailParked, events.ParkedBody, error) {
	p, is := dead.Event.(events.MailParked)
	if !is {
		return p, events.ParkedBody{}, fmt.Errorf("%s sequence %d is no parked mail", dead.Stream, dead.Seq)
	}
	return p, events.ParkedBody{Handle: p.Handle, Key: p.Key(), DeadSeq: dead.Seq, EventID: p.EventID, By: by, Reason: reason}, nil
}

// again is the mail as its sender sent it. What steers the broker is left out: it
// was meant for the first time.
func (s *Shell) again(p events.MailParked, position uint64) events.Write {
	h := events.Header{}
	for key, values := range p.Header {
		if !strings.HasPrefix(strings.ToLower(key), "nats-") {
			h[key] = values
		}
	}
	of := strconv.FormatUint(position, 10)
	h.Set(events.HeaderReplayOf, of)
	h.Set(events.HeaderMsgID, events.MailMsgID(p.Handle, p.Mailbox, p.EventID, "replay-"+of))
	return events.Write{Subject: s.subjects.Mail(p.Handle, p.Mailbox), Header: h, Data: p.Data}
}

// parked reads what is known of the mail.
func (s *Shell) parked(ctx context.Context, body events.ParkedBody) (now aggregates.ParkedMail, err error) {
	r, ok, err := s.newest(ctx, events.StreamFleet, s.subjects.ParkedRecord(body.Handle, body.Key))
	if err != nil || !ok {
		return now, err
	}
	return aggregates.EvolveParked(now, r.Seq, r.Event.(events.ParkedEvent)), nil
}

// decideParked decides on what is known of the mail, appends, and returns what is
// known then.
func (s *Shell) decideParked(ctx context.Context, body events.ParkedBody, cmd aggregates.ParkedCommand) (aggregates.ParkedMail, error) {
	var now aggregates.ParkedMail
	subject := s.subjects.ParkedRecord(body.Handle, body.Key)
	err := tries(events.SeatLease(body.Handle), func() error {
		var err error
		if now, err = s.parked(ctx, body); err != nil {
			return err
		}
		decided, err := aggregates.DecideParked(now, cmd)
		if err != nil || len(decided) == 0 {
			return err
		}
		m := s.meta()
		m.Actor, m.Reason = body.By, body.Reason
		w, err := s.write(m, decided[0], &events.Check{Subject: subject, Last: now.Last})
		if err != nil {
			return err
		}
		receipt, err := s.log.Append(ctx, events.StreamFleet, w)
		if err == nil {
			now = aggregates.EvolveParked(now, receipt.Seq, decided[0].(events.ParkedEvent))
		}
		return err
	})
	return now, err
}

// recorded says that a write-once subject has its record: done is done.
func recorded(err error) bool {
	return errors.Is(err, events.ErrExists) || errors.Is(err, events.ErrConflict)
}
