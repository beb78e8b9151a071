package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	Attempt(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, seqs []uint64, seen ...uint64) error
	Settle(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, e commands.Ended) error
	Hold(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, run string, seqs []uint64) error
	Free(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, run string) error
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

// Runs tells of the detached runs that hold seats: while one does, the seat's mail
// waits behind it (S2).
type Runs interface {
	// Holding names the run that holds the seat; "" when none does. Once a run has
	// ended it is not named again, and then Inboxes.RunEnded is called.
	Holding(handle string) (run string)
}

// Worker turns messages into turns, each message into at most one.
type Worker struct {
	Subjects  events.Subjects
	Admission Admission
	Cursors   Cursors
	Ledger    Ledger
	Agents    Agents
	Sender    Sender
	Status    Status
	Runs      Runs // nil: nothing holds a seat
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
	held                  // kept behind a run without an attempt; read on
	deferred              // nothing settled; stop reading until a renewal succeeds
	agentless             // nothing settled; stop reading until the next renewal, there may be an agent then
	postponed             // nothing settled, the broker did not answer; try again soon
	ended                 // a successor has the cursor, or the inbox was told to end
)

type verdictOf struct {
	then  then
	alive error // ErrChildrenAlive, when the turn left processes
}

// trigger is one message of a batch, read.
type trigger struct {
	seq  uint64
	mail events.Mail
}

// handle takes a batch through the life of a turn (design §6): decoded, ledger
// asked for each, admitted, attempt recorded, run, completed, settled.
func (w *Worker) handle(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, b batch) verdictOf {
	all := make([]trigger, len(b.msgs))
	for i, msg := range b.msgs {
		mail, err := events.DecodeMail(w.Subjects, msg)
		switch {
		case err != nil: // alone: nobody gathers what cannot be read
			return w.park(ctx, m, box, msg, mail, fmt.Sprintf("it cannot be read: %v", err))
		case !events.Ledgered(mail.Type): // K4: told, settled, never recorded in the ledger
			return w.park(ctx, m, box, msg, mail, fmt.Sprintf("mail of type %q runs no turn", clip(mail.Type, maxTool)))
		}
		all[i] = trigger{msg.Seq, mail}
	}
	todo, v, going := w.without(ctx, m, box, all, b.seen)
	if !going {
		return v
	}
	if w.Runs != nil {
		if run := w.Runs.Holding(m.Tenure.Lease.ID); run != "" {
			return w.hold(ctx, m, box, run, b)
		}
	}
	agent, err := w.Agents.Agent(m.Tenure.Lease.ID)
	if err != nil { // the seat has just left the company, or the node cannot read its revision: no attempt is spent on that
		w.log(m, todo).Warn(logNoAgent, keyErr, err)
		return verdictOf{then: agentless}
	}
	epoch, err := w.Admission.MayStart(m.Tenure.Lease.ID)
	if err != nil || epoch != m.Tenure.Epoch {
		return verdictOf{then: deferred}
	}
	most, again := 0, false
	for _, t := range todo {
		before, _ := openMail(m.Cursors[box].Open, t.seq)
		if before.Attempts >= Budget { // alone: what failed so often runs singly
			return w.park(ctx, m, box, b.msgs[0], t.mail, fmt.Sprintf("%d turns were started on it and none completed", before.Attempts))
		}
		most = max(most, before.Attempts)
		again = again || before.Running
	}
	if err := w.Cursors.Attempt(ctx, m, box, seqsOf(todo), b.seen...); err != nil {
		return refused(w.log(m, todo), err)
	}
	if again {
		w.log(m, todo).Warn(logRerun, "attempt", most+1)
	}
	return w.run(ctx, m, box, agent, todo, most+1)
}

// without settles those of the triggers whose work is done already (K1, K2) and
// returns the rest; going is false when there is nothing to go on with.
func (w *Worker) without(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, all []trigger, seen []uint64) (todo []trigger, v verdictOf, going bool) {
	var done []uint64
	for _, t := range all {
		log := w.log(m, []trigger{t})
		c, ok, err := w.Ledger.Completed(ctx, t.mail.Handle, t.mail.ID)
		if err != nil {
			log.Warn(logLedgerUnread, keyErr, err) // fails open: run it (K3)
		}
		if !ok {
			todo = append(todo, t)
			continue
		}
		log.Info(logTriggerSkipped, "why", events.SkipCompleted)
		w.report(ctx, m, t.mail.ID, events.SkipCompleted, fmt.Sprintf("recorded at epoch %d by %s", c.Epoch, c.Owner))
		done = append(done, t.seq)
	}
	if len(done) == 0 {
		return todo, verdictOf{}, true
	}
	// What is still to run lies on the way to what is done, and stays open.
	v = w.record(ctx, m, box, commands.Ended{Ack: done, Seen: upTo(slices.Max(done), slices.Concat(seen, seqsOf(todo)))}, verdictOf{then: acked})
	return todo, v, v.then == acked && len(todo) > 0
}

// upTo are those of the sequences that do not lie behind last.
func upTo(last uint64, seqs []uint64) []uint64 {
	return slices.DeleteFunc(seqs, func(seq uint64) bool { return seq > last })
}

// hold keeps a batch behind the run that holds the seat, without an attempt. What
// was only seen on the way is kept with it: it would be held next.
func (w *Worker) hold(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, run string, b batch) verdictOf {
	if err := w.Cursors.Hold(ctx, m, box, run, slices.Concat(b.seqs(), b.seen)); err != nil {
		return refused(w.Log.With(keySeat, m.Tenure.Lease.ID, keyEpoch, m.Tenure.Epoch), err)
	}
	return verdictOf{then: held}
}

func seqsOf(all []trigger) []uint64 {
	seqs := make([]uint64, len(all))
	for i, t := range all {
		seqs[i] = t.seq
	}
	return seqs
}

func idsOf(all []trigger) []string {
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = t.mail.ID
	}
	return ids
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

// record writes how messages ended. The turn is over by now and its effects
// stand, so this is tried until it is answered: not to know that it is over
// would run it again. When the inbox is told to end, one more try is made.
func (w *Worker) record(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, e commands.Ended, v verdictOf) verdictOf {
	log := w.Log.With(keySeat, m.Tenure.Lease.ID, keyEpoch, m.Tenure.Epoch)
	for {
		trying, cancel := outlast(ctx)
		err := w.Cursors.Settle(trying, m, box, e)
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

// report records why no turn is run on the trigger any more.
func (w *Worker) report(ctx context.Context, m *commands.Mailboxes, eventID string, why events.SkipReason, detail string) {
	reporting, cancel := outlast(ctx)
	defer cancel()
	if err := w.Ledger.Skipped(reporting, m.Tenure, eventID, why, detail); err != nil {
		w.Log.Warn(logSkipUnrecorded, keySeat, m.Tenure.Lease.ID, "event", eventID, keyErr, err)
	}
	w.skipped(why)
}

func (w *Worker) log(m *commands.Mailboxes, all []trigger) *slog.Logger {
	log := w.Log.With(keySeat, m.Tenure.Lease.ID, keyEpoch, m.Tenure.Epoch, "event", all[0].mail.ID)
	if len(all) > 1 {
		log = log.With("events", len(all))
	}
	return log
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
