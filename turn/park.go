package turn

import (
	"context"
	"encoding/json"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// maxParkedHeader is how many bytes the headers of parked mail may take, as they
// are written: with the data they must fit one message of the broker.
const maxParkedHeader = 64 << 10

// park sets mail aside in DEAD with its reason, then settles it: one bad
// message never blocks a seat. Only a seat that may start turns may park.
func (w *Worker) park(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, msg events.Message, mail events.Mail, reason string) verdictOf {
	if epoch, err := w.Admission.MayStart(m.Tenure.Lease.ID); err != nil || epoch != m.Tenure.Epoch {
		return verdictOf{then: deferred}
	}
	before, _ := openMail(m.Cursors[box].Open, msg.Seq)
	p := events.MailParked{
		Handle: m.Tenure.Lease.ID, Mailbox: box, EventID: mail.ID, MailSeq: msg.Seq, Mail: m.Cursors[box].Mail,
		Epoch: m.Tenure.Epoch, Owner: m.Tenure.Owner, Attempts: before.Attempts, Reason: clip(reason, maxWhy),
		Header: msg.Header, Data: msg.Data, Bytes: len(msg.Data), History: history(m.Cursors[box].CursorSnapshot, before),
	}
	fit(&p)
	log := w.Log.With(keySeat, p.Handle, keyEpoch, p.Epoch, "mail_seq", msg.Seq, "event", mail.ID)
	if err := w.Ledger.Park(ctx, m.Tenure, p); err != nil {
		log.Warn(logParkFailed, keyErr, err)
		return verdictOf{then: postponed}
	}
	w.parked()
	log.Error(logParked, keyReason, p.Reason, "do", "tenure inbox parked "+p.Handle+" shows it; mend what sent it or what runs it, then replay or drop it")
	if mail.ID != "" {
		w.report(ctx, m, mail.ID, events.SkipParked, p.Reason)
	}
	return w.record(ctx, m, box, commands.Ended{Ack: []uint64{msg.Seq}}, verdictOf{then: acked})
}

// history is how the attempts on a message ended, the last one that never did
// included.
func history(c events.CursorSnapshot, o events.OpenMail) []events.Tried {
	var all []events.Tried
	for _, t := range c.Tried {
		if t.Seq == o.Seq {
			t.Seq = 0
			all = append(all, t)
		}
	}
	if o.Running {
		all = append(all, events.Tried{Epoch: o.RanAt, End: events.AttemptUnfinished, Count: 1})
	}
	return all
}

// fit leaves out what of the mail is too large for a record in DEAD: what somebody
// put into the stream past every limit must be set aside all the same.
func fit(p *events.MailParked) {
	if len(p.Data) > events.MaxMailData {
		p.Data, p.Clipped = nil, true
	}
	if written, err := json.Marshal(p.Header); err == nil && len(written) <= maxParkedHeader {
		return
	}
	kept := events.Header{}
	for _, key := range []string{events.HeaderID, events.HeaderType, events.HeaderSource, events.HeaderTime, events.HeaderConversation} {
		if value := p.Header.Get(key); value != "" {
			kept.Set(key, clip(value, maxExcerpt))
		}
	}
	p.Header, p.Clipped = kept, true
}
