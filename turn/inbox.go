package turn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// Mail reads a seat's mail from the stream's leader. Nothing it does settles
// anything: the cursor alone does.
type Mail interface {
	// Next returns the first message of the mailbox at or after from;
	// events.ErrNotFound when there is none yet.
	Next(ctx context.Context, handle string, box events.Mailbox, from uint64) (events.Message, error)
	// Subscribe calls wake after mail was stored, from now on; a wake may be
	// lost. When it returns, the broker knows of it.
	Subscribe(ctx context.Context, handle string, box events.Mailbox, wake func()) (stop func(), err error)
	// Purge removes the mailbox's messages up to the watermark, all of them settled.
	Purge(ctx context.Context, handle string, box events.Mailbox, watermark uint64) error
	// Waiting counts what the broker keeps of each seat's mailbox: a hint.
	Waiting(ctx context.Context, box events.Mailbox) (map[string]uint64, error)
}

// Limits of an inbox.
const (
	// purgeEvery bounds how much settled mail is kept while more keeps coming.
	purgeEvery = 256
	// readAgain is the pause after a read that was not answered.
	readAgain = 250 * time.Millisecond
)

// errDetached ends an inbox's work when the seat lets go of it.
var errDetached = errors.New("the seat lets go of its inbox")

// inbox reads one seat's mail, alone and serially, for one tenure. Its loop
// owns every field but the gate and the channels.
//
// wake and quiesce carry no data, have one slot and are never closed; done is
// closed by the loop when it ends.
type inbox struct {
	worker *Worker
	mail   Mail
	m      *commands.Mailboxes
	box    events.Mailbox
	log    *slog.Logger

	gate          *gate
	wake, quiesce chan struct{}
	done          chan struct{}
	end           context.CancelCauseFunc
	unsubscribe   func()

	over    overRuns
	due     map[uint64]time.Time // open messages and when they are tried (again)
	caught  bool                 // the last read found nothing newer
	woken   bool                 // by a wake-up, since caught
	full    bool                 // said already that the cursor is full
	purged  uint64
	settled int // since the last purge
	alive   error
}

// run reads and works until ctx ends or a successor has the cursor.
func (b *inbox) run(ctx context.Context) {
	defer close(b.done)
	b.restart()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.quiesce:
			return
		default:
		}
		shut, change := b.gate.shut()
		if shut { // deferred, or held: nothing is read (D1)
			if !b.wait(ctx, 0, change) {
				return
			}
			continue
		}
		// What happens to the gate meanwhile is seen by the next step: change is
		// closed by now, for the step itself went through the gate.
		pause, on := b.step(ctx)
		if !on || pause != noPause && !b.wait(ctx, pause, nil) {
			return
		}
	}
}

// noPause says that the next step follows at once.
const noPause = -1

// step does one thing and says how long to wait before the next, 0 for as long
// as nothing happens, and whether the inbox may go on.
func (b *inbox) step(ctx context.Context) (pause time.Duration, on bool) {
	if pause, on := b.free(ctx); pause != noPause || !on {
		return pause, on
	}
	found, pause, err := b.next(ctx)
	var fenced *aggregates.FencedError
	switch {
	case errors.As(err, &fenced):
		b.log.Warn(logFenced, keyErr, err)
		return noPause, false
	case err == nil:
		b.woken = false
		return b.process(ctx, found)
	case errors.Is(err, errNothing):
		return pause, b.idle(ctx)
	default:
		b.log.Warn(logMailUnread, keyErr, err)
		return readAgain, b.sameMail(ctx)
	}
}

// restart schedules what the tenure found open: a turn that never ended is
// tried at once, as is what was only seen, a Nak's backoff begins anew (design §6).
func (b *inbox) restart() {
	b.due = map[uint64]time.Time{}
	now := time.Now()
	for _, o := range b.cursor().Open {
		b.due[o.Seq] = now
		if !o.Running && o.Attempts > 0 {
			b.due[o.Seq] = now.Add(backoff(o.Attempts))
		}
	}
}

// errNothing: no message is due.
var errNothing = errors.New("nothing to do")

// open reads a message that was seen before. One that is gone is settled: only
// its removal by an operator or by the retirement of the mailbox takes it.
func (b *inbox) open(ctx context.Context, seq uint64) (events.Message, time.Duration, error) {
	msg, err := b.mail.Next(ctx, b.m.Tenure.Lease.ID, b.box, seq)
	if err == nil && msg.Seq == seq {
		return msg, 0, nil
	}
	if err == nil || errors.Is(err, events.ErrNotFound) {
		if err := b.worker.Cursors.Check(ctx, b.m, b.box); err != nil {
			return msg, 0, err // not gone: another stream, or not answered
		}
		b.log.Warn(logMailGone, "mail_seq", seq)
		if err := b.worker.Cursors.Settle(ctx, b.m, b.box, commands.Ended{Ack: []uint64{seq}}); err != nil {
			return msg, 0, err
		}
		return msg, time.Millisecond, errNothing
	}
	return msg, 0, err
}

// process works on one batch; it answers as step does.
func (b *inbox) process(ctx context.Context, found batch) (pause time.Duration, on bool) {
	if !b.gate.enter() {
		return noPause, true // held since it was read; it is read again
	}
	defer b.gate.leave()
	v := b.worker.handle(ctx, b.m, b.box, found)
	if errors.Is(v.alive, ErrChildrenAlive) {
		b.alive = v.alive
	}
	b.reschedule(found, v.then)
	switch v.then {
	case acked:
		if b.settled += len(found.msgs); b.settled >= purgeEvery {
			b.purge(ctx)
		}
	case deferred:
		b.hold()
	case agentless:
		b.gate.take(sagas.HoldAdmission)
	case postponed:
		return readAgain, b.sameMail(ctx) // what could not be recorded may come from another stream
	case ended:
		return noPause, false
	case nakked, held:
	}
	return noPause, true
}

// reschedule follows what became of a batch: the cursor says what is open now.
func (b *inbox) reschedule(found batch, then then) {
	now, open := time.Now(), b.cursor().Open
	due := make(map[uint64]time.Time, len(open))
	for _, o := range open {
		var known bool
		if due[o.Seq], known = b.due[o.Seq]; !known {
			due[o.Seq] = now // seen on the way
		}
	}
	if then == nakked {
		for _, msg := range found.msgs {
			if o, is := openMail(open, msg.Seq); is {
				due[o.Seq] = now.Add(backoff(o.Attempts))
			}
		}
	}
	b.due = due
}

// free makes unread what runs that have ended held back; it answers as step does.
func (b *inbox) free(ctx context.Context) (pause time.Duration, on bool) {
	for _, run := range b.over.all() {
		err := b.worker.Cursors.Free(ctx, b.m, b.box, run)
		if err != nil {
			v := refused(b.log, err)
			return readAgain, v.then != ended
		}
		b.over.done(run)
	}
	return noPause, true
}

// idle runs once nothing is due and nothing newer was found: the time to purge,
// and to look whether a wake-up that led to nothing means another stream.
func (b *inbox) idle(ctx context.Context) bool {
	if b.woken {
		b.woken = false
		if !b.sameMail(ctx) {
			return false
		}
		b.settled = max(b.settled, 1) // what woke it may be settled mail that a predecessor left
	}
	b.purge(ctx)
	return true
}

// sameMail raises the alarm and says false when MAIL is not the stream that this
// cursor belongs to (design §10, schedule 10). Where that cannot be told now it
// says true: nothing is settled or purged on the strength of it.
func (b *inbox) sameMail(ctx context.Context) bool {
	err := b.worker.Cursors.Check(ctx, b.m, b.box)
	if err == nil || errors.Is(err, events.ErrUnavailable) || ctx.Err() != nil {
		return true
	}
	b.log.Error(logMailSwapped, keyErr, err,
		"do", "nothing was skipped or purged: put the old MAIL stream back; if it is lost, remove the seat from the company, `tenure mailbox retire HANDLE --now`, and add the seat again")
	b.worker.Swapped(b.m.Tenure.Lease.ID, err)
	return false
}

// purge removes settled mail while it is fresh: late and scattered it would
// stall every publish (design §6). Never on another stream's sequences.
func (b *inbox) purge(ctx context.Context) {
	mark := b.cursor().Watermark()
	if b.settled == 0 || mark <= b.purged {
		return
	}
	err := b.worker.Cursors.Check(ctx, b.m, b.box)
	if err == nil {
		err = b.mail.Purge(ctx, b.m.Tenure.Lease.ID, b.box, mark)
	}
	if err != nil {
		b.log.Debug(logMailKept, keyErr, err) // tried again with the next settled message
		return
	}
	b.purged, b.settled = mark, 0
}

// atBound says whether the cursor has as much open mail as it may keep, once in
// the log.
func (b *inbox) atBound() bool {
	full := len(b.cursor().Open) >= aggregates.MaxOpenMail
	if full && !b.full {
		b.log.Error(logMailboxFull, "open", aggregates.MaxOpenMail, "do", "find out why this seat's turns keep failing, or what run it waits for; its newer mail waits")
	}
	b.full = full
	return full
}

// wait blocks until something can have changed, or change was closed, or for that
// long; 0 is for as long as it takes. It reports false when the inbox is to stop.
func (b *inbox) wait(ctx context.Context, pause time.Duration, change <-chan struct{}) bool {
	var timer <-chan time.Time
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-b.quiesce:
		return false
	case <-b.wake:
		b.caught, b.woken = false, true
	case <-change:
	case <-timer:
	}
	return true
}

// hold stops reading until a renewal succeeds. One may have, between the refusal
// and the hold: then its edge is past, and nobody would lift it before the next.
func (b *inbox) hold() {
	b.gate.take(sagas.HoldAdmission)
	if epoch, err := b.worker.Admission.MayStart(b.m.Tenure.Lease.ID); err == nil && epoch == b.m.Tenure.Epoch {
		b.gate.lift(sagas.HoldAdmission)
	}
}

func (b *inbox) cursor() events.CursorSnapshot { return b.m.Cursors[b.box].CursorSnapshot }

// poke fills a one-slot channel without blocking.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// backoff is the pause before a failed message comes again, so that a failing
// provider does not use up a budget in seconds (design §6).
func backoff(attempts int) time.Duration {
	const first, most = 500 * time.Millisecond, time.Minute
	d := first
	for range attempts - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return d
}
