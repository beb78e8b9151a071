package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// Limits of what is written after a turn.
const (
	recordFor = 30 * time.Second // one write
	// lastFor is the same once the inbox was told to end: all that is written after
	// a turn together must take less than a detach waits (abandonFor), or a broker
	// that does not answer would look like a turn that does not end.
	lastFor = 2 * time.Second
	// electionFor outlasts the election of a leader (4 to 9 s), and completeAgain is
	// the pause between two tries to record a completion in it: who waits for the
	// completion would wait for ever if none were made.
	electionFor   = 12 * time.Second
	completeAgain = 250 * time.Millisecond
	// maxReply is what a completion keeps of a reply, in bytes: with its envelope
	// it must fit the broker's payload, 1 MiB unless set otherwise.
	maxReply = 768 << 10
)

// outlast returns a context for one write after a turn, which goes on for a
// little when the inbox is told to end: what the ledger says stands either way.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastFor, cancel) })
	return writing, func() { stop(); cancel() }
}

// panicked is a turn that ended in a panic: a defect, which a re-run would meet
// again (B1).
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("the turn panicked: %v", p.value) }

// ErrStoppedByPerson ends a turn that a person stopped: its trigger is recorded
// and settled, not handed to anybody (F4).
var ErrStoppedByPerson = errors.New("stopped by a person")

// fencedCalls does a turn's calls, each behind the fence (F2).
type fencedCalls struct {
	fence func() error
	tools *Tools
}

// Call checks the fence, then calls.
func (c fencedCalls) Call(ctx context.Context, id, tool string, args json.RawMessage) (json.RawMessage, error) {
	if err := c.fence(); err != nil {
		return nil, err
	}
	return c.tools.Call(ctx, tool, args)
}

// run does the turn that the attempt record admitted and decides by its own
// record what becomes of the triggers (B1).
func (w *Worker) run(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, agent Agent, todo []trigger, attempt int) verdictOf {
	log := w.log(m, todo)
	req := Request{Seat: m.Tenure.Lease.ID, AgentID: agent.ID, Epoch: m.Tenure.Epoch, WorkKey: WorkKey(idsOf(todo)), Attempt: attempt}
	for _, t := range todo {
		req.Events = append(req.Events, Event{ID: t.mail.ID, Type: t.mail.Type, Time: t.mail.Time, Data: t.mail.Data, Conversation: t.mail.Conversation})
	}
	start := time.Now()
	w.started(todo[0].mail, attempt)
	log.Info(logTurnStarted, "attempt", attempt, "type", todo[0].mail.Type)
	reply, reached, err := w.work(ctx, agent.Runner, req)
	v := verdictOf{}
	if errors.Is(err, ErrChildrenAlive) {
		v.alive = err
		log.Error(logChildrenAlive, keyErr, err, "do", "nothing yet: the seat is kept until they are gone")
	}
	c := events.TurnCompleted{
		Handle: req.Seat, EventIDs: idsOf(todo), WorkKey: req.WorkKey, Epoch: m.Tenure.Epoch,
		Owner: m.Tenure.Owner, Outcome: events.OutcomeDone, Attempts: attempt, Reply: reply.JSON,
	}
	settled := commands.Ended{Ack: seqsOf(todo)}
	var broke *panicked
	switch {
	case reply.JSON != nil:
		if len(reply.JSON) > maxReply {
			c.Reply, c.Why = nil, fmt.Sprintf("its reply of %d bytes is over the %d that are kept", len(reply.JSON), maxReply)
			log.Warn(logReplyDropped, "bytes", len(reply.JSON), "limit", maxReply)
		}
		w.complete(ctx, m, c)
		w.ended(EndCompleted, attempt, start)
		log.Info(logTurnCompleted, "attempts", attempt, "took", time.Since(start))
		v.then = acked
		return w.record(ctx, m, box, settled, v)
	case errors.Is(err, ErrStoppedByPerson): // the person does not want it to go on (F4)
		log.Warn(logTurnStopped, keyErr, err)
		w.ended(EndStopped, attempt, start)
		c.Outcome, c.Why = events.OutcomeStopped, ErrStoppedByPerson.Error()
		w.complete(ctx, m, c)
		v.then = acked
		return w.record(ctx, m, box, settled, v)
	case errors.As(err, &broke):
		log.Error(logPanicked, "panic", broke.value, "stack", string(broke.stack))
		w.ended(EndPanicked, attempt, start)
		return w.giveUp(ctx, m, box, todo, c, events.SkipPanicked, err, v)
	case reached:
		log.Error(logTurnBroke, keyErr, err)
		w.ended(EndBroke, attempt, start)
		return w.giveUp(ctx, m, box, todo, c, events.SkipBrokeOutside, err, v)
	case errors.Is(err, ErrFenced), ctx.Err() != nil:
		log.Warn(logTurnFenced, keyErr, err)
		w.ended(EndFenced, attempt, start)
		v.then = deferred // F5: the delivery is healthy, the successor is entitled to it
		return v
	default:
		log.Warn(logTurnFailed, keyErr, err, "again_in", backoff(attempt))
		w.ended(EndFailed, attempt, start)
		v.then = nakked
		return w.record(ctx, m, box, commands.Ended{Nak: seqsOf(todo), Why: err.Error()}, v)
	}
}

// work runs the agent. reached says whether a call reached outside, or may have.
func (w *Worker) work(ctx context.Context, runner Runner, req Request) (reply Reply, reached bool, err error) {
	tools, err := NewTools(req, uuid.NewString(), w.Sender, w.Status)
	if err != nil {
		return Reply{}, false, err
	}
	fence := func() error {
		err := w.Admission.Fence(req.Seat, req.Epoch)
		if stopped := (interface{ StoppedByPerson() })(nil); errors.As(err, &stopped) {
			return fmt.Errorf("%w: %w: %w", ErrFenced, ErrStoppedByPerson, err)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFenced, err)
		}
		return nil
	}
	defer func() {
		reached = tools.Reached()
		if p := recover(); p != nil {
			err = errors.Join(err, &panicked{p, debug.Stack()})
		}
	}()
	if err := fence(); err != nil { // the top of the round
		return Reply{}, false, err
	}
	reply, err = runner.Run(ctx, req, fencedCalls{fence, tools})
	return reply, false, err
}

// complete records the turn. A ledger that does not answer, as while its stream
// has no leader, is asked again for electionFor; when that fails the effects stand
// all the same, and it is reported (K3).
func (w *Worker) complete(ctx context.Context, m *commands.Mailboxes, c events.TurnCompleted) {
	ctx, cancel := outlast(ctx)
	defer cancel()
	err := w.Ledger.Complete(ctx, m.Tenure, c)
	mayPass := func() bool { return errors.Is(err, events.ErrUnavailable) || errors.Is(err, events.ErrUnknown) }
	for over := time.Now().Add(electionFor); mayPass() && time.Now().Before(over) && pause(ctx, completeAgain); {
		err = w.Ledger.Complete(ctx, m.Tenure, c) // write-once under its own id: what stands is no error
	}
	if err != nil {
		w.Log.Error(logCompletionUnwritten, keySeat, c.Handle, keyEpoch, c.Epoch, "events", c.EventIDs, keyErr, err,
			"do", "nothing: its effects stand; it may be run once more if this node dies before it settles the mail")
	}
}

// giveUp records a turn that broke after it acted, and settles its triggers: the
// writes cannot be undone, and a re-run would repeat them (B1, B3).
//
// The cursor is asked first, by ending the attempt on it: once a successor has
// taken it over, the triggers are the successor's to decide about, and a verdict
// of ours in the ledger would stand in the way of its own.
func (w *Worker) giveUp(ctx context.Context, m *commands.Mailboxes, box events.Mailbox, todo []trigger, c events.TurnCompleted, why events.SkipReason, cause error, v verdictOf) verdictOf {
	c.Outcome, c.Why, c.Reply = events.OutcomeFailed, clip(cause.Error(), maxWhy), nil
	ours := w.record(ctx, m, box, commands.Ended{Nak: seqsOf(todo), Why: c.Why}, v)
	if ours.then == ended || ours.then == postponed {
		v.then = ours.then
		return v
	}
	w.complete(ctx, m, c)
	for _, id := range c.EventIDs {
		w.report(ctx, m, id, why, c.Why)
	}
	v.then = w.record(ctx, m, box, commands.Ended{Ack: seqsOf(todo)}, verdictOf{then: acked}).then
	return v
}
