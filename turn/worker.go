package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// Budget is how many turns may start on one message before it is parked (D3).
const Budget = 25

// Admission says whether turns may start and go on; the seat host does. An error
// of Fence with a method StoppedByPerson says that the seat is still held, and a
// person stopped its turn (F4).
type Admission interface {
	MayStart(handle string) (epoch uint64, err error)
	Fence(handle string, epoch uint64) error
}

// Cursors records attempts and how they ended.
type Cursors interface {
	Attempt(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, seqs []uint64) error
	Settle(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, ack, nak []uint64) error
	Check(ctx context.Context, m *commands.Mailboxes, box events.Mailbox) error
}

// Ledger keeps what is done with, one way or the other.
type Ledger interface {
	Completed(ctx context.Context, handle, eventID string) (done events.TurnCompleted, ok bool, err error)
	Complete(ctx context.Context, t commands.Tenure, c events.TurnCompleted) error
	Skipped(ctx context.Context, t commands.Tenure, eventID string, why events.SkipReason, detail string) error
	Park(ctx context.Context, t commands.Tenure, p events.MailParked) error
}

// Agent is who works on a seat.
type Agent struct {
	ID     string // agent id (G1)
	Runner Runner
}

// Agents finds the agent of a seat in the company, which every node has whole.
type Agents interface {
	Agent(handle string) (Agent, error)
}

// Worker turns a message into at most one turn.
type Worker struct {
	Subjects  events.Subjects
	Admission Admission
	Cursors   Cursors
	Ledger    Ledger
	Agents    Agents
	Sender    Sender
	Status    Status
	Log       *slog.Logger
	// Swapped is told that a seat's MAIL is not the stream its cursor was made
	// from; it must not block.
	Swapped func(handle string, err error)
	// Observe is told what there is to count; nil: nobody is.
	Observe Observer
}

// then says what the inbox does next.
type then int

const (
	acked     then = iota // settled for good
	nakked                // to come again after a backoff, behind newer mail
	deferred              // nothing settled; stop reading until a renewal succeeds
	postponed             // nothing settled, the broker did not answer; try again soon
	ended                 // a successor has the cursor, or the inbox was told to end
)

type verdictOf struct {
	then     then
	attempts int   // turns started on the message so far
	alive    error // ErrChildrenAlive, when the turn left processes
}

// handle takes one message through the life of a turn (design §6): decoded,
// ledger asked, admitted, attempt recorded, run, completed, settled.
func (w *Worker) handle(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, msg events.Message) verdictOf {
	mail, err := events.DecodeMail(w.Subjects, msg)
	if err != nil {
		return w.park(ctx, m, box, msg, mail, fmt.Sprintf("it cannot be read: %v", err))
	}
	log := w.log(m, mail)
	if !events.Ledgered(mail.Type) { // K4: logged, settled, never recorded
		log.Info(logMailDropped, "type", mail.Type)
		return w.settle(ctx, m, box, msg.Seq)
	}
	done, ok, err := w.Ledger.Completed(ctx, mail.Handle, mail.ID)
	if err != nil {
		log.Warn(logLedgerUnread, keyErr, err) // fails open: run it (K3)
	}
	if ok {
		log.Info(logTriggerSkipped, "why", events.SkipCompleted)
		return w.skip(ctx, m, box, msg.Seq, mail.ID, events.SkipCompleted, fmt.Sprintf("recorded at epoch %d by %s", done.Epoch, done.Owner))
	}
	epoch, err := w.Admission.MayStart(mail.Handle)
	if err != nil || epoch != m.Tenure.Epoch {
		return verdictOf{then: deferred}
	}
	before, seen := openMail(m.Cursors[box].Open, msg.Seq)
	if seen && before.Attempts >= Budget {
		return w.park(ctx, m, box, msg, mail, fmt.Sprintf("%d turns were started on it and none completed", before.Attempts))
	}
	if err := w.Cursors.Attempt(ctx, m, box, []uint64{msg.Seq}); err != nil {
		return refused(log, err)
	}
	if before.Running {
		log.Warn(logRerun, "attempt", before.Attempts+1)
	}
	return w.run(ctx, m, box, msg.Seq, mail, before.Attempts+1)
}

// refused says what a cursor's answer means for reading on.
func refused(log *slog.Logger, err error) verdictOf {
	var fenced *aggregates.FencedError
	if errors.As(err, &fenced) {
		log.Warn(logFenced, keyErr, err)
		return verdictOf{then: ended}
	}
	log.Warn(logAttemptUnrecorded, keyErr, err)
	return verdictOf{then: postponed}
}

// settle records that the message is done with.
func (w *Worker) settle(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, seq uint64) verdictOf {
	return w.record(ctx, m, box, []uint64{seq}, nil, verdictOf{then: acked})
}

// record writes how the message ended. The turn is over by now and its effects
// stand, so this is tried until it is answered: not to know that it is over
// would run it again. When the inbox is told to end, one more try is made.
func (w *Worker) record(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, ack, nak []uint64, v verdictOf) verdictOf {
	log := w.Log.With(keySeat, m.Tenure.Lease.ID, keyEpoch, m.Tenure.Epoch)
	for {
		trying, cancel := outlast(ctx)
		err := w.Cursors.Settle(trying, m, box, ack, nak)
		cancel()
		if err == nil {
			return v
		}
		if then := refused(log, err).then; !unanswered(err) || !pause(ctx, readAgain) {
			v.then = then // what the turn left behind is told on: it keeps the seat (H7)
			return v
		}
	}
}

// unanswered says whether trying again may be answered otherwise.
func unanswered(err error) bool {
	for _, kind := range []error{events.ErrUnknown, events.ErrUnavailable, events.ErrBusy, events.ErrConflict} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// pause lets d pass, and says false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// skip records why no turn is run on the message any more, then settles it.
func (w *Worker) skip(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, seq uint64, eventID string, why events.SkipReason, detail string) verdictOf {
	reporting, cancel := outlast(ctx)
	defer cancel()
	if err := w.Ledger.Skipped(reporting, m.Tenure, eventID, why, detail); err != nil {
		w.Log.Warn(logSkipUnrecorded, keySeat, m.Tenure.Lease.ID, "event", eventID, keyErr, err)
	}
	w.skipped(why)
	return w.settle(ctx, m, box, seq)
}

// park sets mail aside in DEAD with its reason, then settles it: one bad
// message never blocks a seat. Only a seat that may start turns may park.
func (w *Worker) park(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, msg events.Message, mail events.Mail, reason string) verdictOf {
	if epoch, err := w.Admission.MayStart(m.Tenure.Lease.ID); err != nil || epoch != m.Tenure.Epoch {
		return verdictOf{then: deferred}
	}
	before, _ := openMail(m.Cursors[box].Open, msg.Seq)
	p := events.MailParked{
		Handle: m.Tenure.Lease.ID, Mailbox: box, EventID: mail.ID, MailSeq: msg.Seq, Mail: m.Cursors[box].Mail,
		Epoch: m.Tenure.Epoch, Owner: m.Tenure.Owner, Attempts: before.Attempts, Reason: reason,
		Header: msg.Header, Data: msg.Data,
	}
	log := w.Log.With(keySeat, p.Handle, keyEpoch, p.Epoch, "mail_seq", msg.Seq, "event", mail.ID)
	if err := w.Ledger.Park(ctx, m.Tenure, p); err != nil {
		log.Warn(logParkFailed, keyErr, err)
		return verdictOf{then: postponed}
	}
	w.parked()
	log.Error(logParked, keyReason, reason, "do", "read it in the DEAD stream, mend what sent it or what runs it, and send it again")
	if mail.ID == "" {
		return w.settle(ctx, m, box, msg.Seq)
	}
	return w.skip(ctx, m, box, msg.Seq, mail.ID, events.SkipParked, reason)
}

func (w *Worker) log(m *commands.Mailboxes, mail events.Mail) *slog.Logger {
	return w.Log.With(keySeat, m.Tenure.Lease.ID, keyEpoch, m.Tenure.Epoch, "event", mail.ID)
}

// openMail finds a message among those seen and not settled.
func openMail(open []events.OpenMail, seq uint64) (events.OpenMail, bool) {
	for _, o := range open {
		if o.Seq == seq {
			return o, true
		}
	}
	return events.OpenMail{}, false
}
