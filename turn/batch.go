package turn

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// Bounds of a batch: waiting mail of one conversation becomes one turn, see
// ADR 0016.
const (
	// maxBatch is how many messages one turn takes at most.
	maxBatch = 32
	// maxBatchBytes bounds their data together: a turn is one line to a program.
	maxBatchBytes = 512 << 10
	// maxLook is how many messages are looked at for those that belong together.
	maxLook = 128
	// singlyAfter is after how many attempts a message runs alone: two of a batch
	// that failed, so that one bad message does not take the others along.
	singlyAfter = 2
	// yieldFor bounds how long a message that failed waits behind newer mail once
	// its backoff is over: under a steady flow it must come, too.
	yieldFor = time.Minute
)

// batch is what one turn is about: messages of one conversation, or one alone.
type batch struct {
	msgs []events.Message // ascending, at least one
	seen []uint64         // read on the way to the last of them, and not part of it
}

func (b batch) seqs() []uint64 {
	seqs := make([]uint64, len(b.msgs))
	for i, msg := range b.msgs {
		seqs[i] = msg.Seq
	}
	return seqs
}

// next returns what to work on: open mail that is due, or unread mail, with what
// else waits in its conversation. With errNothing comes how long until open mail
// is due, 0: none is.
func (b *inbox) next(ctx context.Context) (batch, time.Duration, error) {
	due, soonest := b.dueNow()
	// Mail that failed comes behind newer mail (D1).
	if len(due) == 0 || b.failed(due[0]) && time.Since(b.due[due[0].Seq]) < yieldFor {
		msg, err := b.unread(ctx)
		switch {
		case err == nil:
			found, err := b.gather(ctx, msg, due)
			return found, 0, err
		case !errors.Is(err, errNothing):
			return batch{}, 0, err
		case len(due) == 0:
			return batch{}, soonest, errNothing
		}
	}
	msg, pause, err := b.open(ctx, due[0].Seq)
	if err != nil {
		return batch{}, pause, err
	}
	found, err := b.gather(ctx, msg, due[1:])
	return found, 0, err
}

// failed says whether the message is one that came back.
func (b *inbox) failed(o events.OpenMail) bool { return o.Attempts > 0 && !o.Running }

// dueNow lists the open mail that is due, the longest due first, and says when the
// next one is.
func (b *inbox) dueNow() (due []events.OpenMail, soonest time.Duration) {
	now := time.Now()
	for _, o := range b.cursor().Open {
		if o.Run != "" {
			continue // it waits for its run
		}
		wait := b.due[o.Seq].Sub(now)
		switch {
		case wait <= 0:
			due = append(due, o)
		case soonest == 0 || wait < soonest:
			soonest = wait
		}
	}
	slices.SortStableFunc(due, func(x, y events.OpenMail) int {
		return cmp.Or(b.due[x.Seq].Compare(b.due[y.Seq]), cmp.Compare(x.Seq, y.Seq))
	})
	return due, soonest
}

// unread returns the first message that was not seen yet.
func (b *inbox) unread(ctx context.Context) (events.Message, error) {
	if b.caught || b.atBound() {
		return events.Message{}, errNothing
	}
	msg, err := b.mail.Next(ctx, b.m.Tenure.Lease.ID, b.box, b.cursor().Read+1)
	if errors.Is(err, events.ErrNotFound) {
		b.caught = true
		return events.Message{}, errNothing
	}
	return msg, err
}

// gather adds to a message what waits with it in its conversation: open mail that
// is due, then unread mail. Mail without a conversation, unreadable mail and mail
// that failed often enough runs alone.
func (b *inbox) gather(ctx context.Context, first events.Message, due []events.OpenMail) (batch, error) {
	found := batch{msgs: []events.Message{first}}
	mail, err := events.DecodeMail(b.worker.Subjects, first)
	if err != nil || !events.Ledgered(mail.Type) || mail.Conversation == "" || b.attempts(first.Seq) >= singlyAfter {
		return found, nil
	}
	before, _ := openMail(b.cursor().Open, first.Seq)
	g := gathering{batch: found, mail: mail, ids: map[string]bool{mail.ID: true}, bytes: len(mail.Data), subjects: b.worker.Subjects}
	looked := 0
	for _, o := range due {
		// An attempt that never finished is run again as it was: under the same work
		// key, so that what it sent is not sent under another id (W1).
		if o.Attempts >= singlyAfter || o.Running != before.Running || o.Running && o.RanAt != before.RanAt {
			continue
		}
		if looked++; looked > maxLook || g.full() {
			break
		}
		msg, err := b.mail.Next(ctx, b.m.Tenure.Lease.ID, b.box, o.Seq)
		if errors.Is(err, events.ErrNotFound) || err == nil && msg.Seq != o.Seq {
			continue // it is gone; it is looked after when its own turn comes
		}
		if err != nil {
			return found, err
		}
		g.take(msg)
	}
	if before.Running {
		return g.ordered(), nil
	}
	if err := b.ahead(ctx, &g, max(first.Seq, b.cursor().Read), maxLook-looked); err != nil {
		return found, err
	}
	return g.ordered(), nil
}

// ahead looks at unread mail behind from.
func (b *inbox) ahead(ctx context.Context, g *gathering, from uint64, most int) error {
	room := aggregates.MaxOpenMail - len(b.cursor().Open) - 1
	for range min(most, room) {
		if b.caught || g.full() {
			return nil
		}
		msg, err := b.mail.Next(ctx, b.m.Tenure.Lease.ID, b.box, from+1)
		if errors.Is(err, events.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		from = msg.Seq
		if !g.take(msg) {
			g.seen = append(g.seen, msg.Seq)
		}
	}
	return nil
}

func (b *inbox) attempts(seq uint64) int {
	o, _ := openMail(b.cursor().Open, seq)
	return o.Attempts
}

// gathering is a batch on its way.
type gathering struct {
	batch
	mail     events.Mail     // the first
	ids      map[string]bool // of the events in it: one of them twice is one too many
	bytes    int
	shut     bool // something of the conversation did not fit: what follows it must not overtake
	subjects events.Subjects
}

// ordered is the batch in the stream's order, with what was seen on the way to its
// last message and not what lies behind.
func (g *gathering) ordered() batch {
	slices.SortFunc(g.msgs, func(x, y events.Message) int { return cmp.Compare(x.Seq, y.Seq) })
	g.seen = upTo(g.msgs[len(g.msgs)-1].Seq, g.seen)
	return g.batch
}

func (g *gathering) full() bool { return g.shut || len(g.msgs) >= maxBatch }

// take adds the message if it belongs to the batch and fits.
func (g *gathering) take(msg events.Message) bool {
	mail, err := events.DecodeMail(g.subjects, msg)
	if err != nil || mail.Conversation != g.mail.Conversation || !events.Ledgered(mail.Type) || g.ids[mail.ID] {
		return false
	}
	if g.bytes += len(mail.Data); g.bytes > maxBatchBytes {
		g.shut = true
		return false
	}
	g.ids[mail.ID] = true
	g.msgs = append(g.msgs, msg)
	return true
}
