package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/components/requestreply"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/events"
)

// busLine is a running bus: watermill's router and command bus over pkg/nats.
// It is requestreply's backend too: theirs subscribes for every command, and
// leaks a goroutine when a second answer comes.
type busLine struct {
	bus    *Bus
	conn   *Conn
	router *message.Router
	out    message.Publisher
	send   *cqrs.CommandBus
	gate   *gate

	slots    chan struct{} // one for each command under way
	stopping atomic.Bool

	mu      sync.Mutex
	waiting map[string]chan requestreply.Reply[busAnswer] // by operation id
}

var _ requestreply.Backend[busAnswer] = (*busLine)(nil)

// newRouter returns a router that stops when its context ends, and waits for
// its handlers however long they take: by default it leaves them running.
func newRouter(logger watermill.LoggerAdapter) (*message.Router, error) {
	return message.NewRouter(message.RouterConfig{CloseTimeout: math.MaxInt64}, logger)
}

// newLine sets up a line whose handlers' contexts end with ctx.
func (b *Bus) newLine(ctx context.Context, conn *Conn) (*busLine, error) {
	l := &busLine{
		bus: b, conn: conn, gate: &gate{}, slots: make(chan struct{}, busInFlight),
		waiting: map[string]chan requestreply.Reply[busAnswer]{},
	}
	logger := watermillLog{log: b.log}
	codec := &busCodec{b.subjects, l.gate}
	plain := wmnats.JetStreamConfig{Disabled: true}
	var in *wmnats.Subscriber
	var errOut, errIn, errSend, errRoute error
	l.out, errOut = wmnats.NewPublisherWithNatsConn(conn.nc, wmnats.PublisherPublishConfig{
		Marshaler: codec, SubjectCalculator: wmnats.DefaultSubjectCalculator, JetStream: plain,
	}, logger)
	in, errIn = wmnats.NewSubscriberWithNatsConn(conn.nc, wmnats.SubscriberSubscriptionConfig{
		Unmarshaler: codec, SubjectCalculator: b.subjects.queue, JetStream: plain,
	}, logger)
	l.send, errSend = cqrs.NewCommandBusWithConfig(l.out, cqrs.CommandBusConfig{
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) {
			return b.subjects.node(p.Command.(*busCommand).node), nil
		},
		Marshaler: commandMarshaler{}, Logger: logger,
	})
	l.router, errRoute = newRouter(logger)
	if err := errors.Join(errOut, errIn, errSend, errRoute); err != nil {
		return nil, fmt.Errorf("the bus between nodes: %w", err)
	}
	return l, l.route(ctx, in, logger)
}

// queue makes processes with one node id share its commands. Answers are no
// queue's: the broker looks for a plain subscription to tell that nobody listens.
func (s busSubjects) queue(_, topic string) *wmnats.SubjectDetail {
	d := &wmnats.SubjectDetail{Primary: topic}
	if !strings.HasPrefix(topic, s.inbox) {
		d.QueueGroup = "ops"
	}
	return d
}

func (l *busLine) route(ctx context.Context, in message.Subscriber, logger watermill.LoggerAdapter) error {
	l.router.AddMiddleware(l.receive)
	commands, err := cqrs.NewCommandProcessorWithConfig(l.router, cqrs.CommandProcessorConfig{
		GenerateSubscribeTopic: func(cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) {
			return l.bus.subjects.node(l.bus.cfg.Self.NodeID()), nil
		},
		SubscriberConstructor: func(cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) { return in, nil },
		Marshaler:             commandMarshaler{}, Logger: logger,
	})
	if err != nil {
		return fmt.Errorf("the bus between nodes: %w", err)
	}
	handler, err := commands.AddHandler(requestreply.NewCommandHandlerWithResult(commandMessage, l,
		func(_ context.Context, cmd *busCommand) (busAnswer, error) { return l.serve(ctx, cmd), nil }))
	if err != nil {
		return fmt.Errorf("the bus between nodes: %w", err)
	}
	handler.AddMiddleware(l.admit)
	l.router.AddConsumerHandler("answers", l.bus.subjects.answer("*"), in, l.deliver)
	return nil
}

// known waits until the broker knows of the subscriptions. If the connection
// breaks meanwhile, the client tells the next broker before anything else.
func (l *busLine) known(ctx context.Context) {
	ctx, cancel := l.conn.bound(ctx, DefaultTimeout)
	defer cancel()
	_ = l.conn.nc.FlushWithContext(ctx)
}

// receive lets a message out of the gate: the router has it.
func (l *busLine) receive(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		l.gate.leave()
		return next(msg)
	}
}

// admit bounds how many commands are under way, from the first look at one
// until its answer is sent. What is not admitted is answered too, and so is
// what cannot be read: the router would drop it in silence.
//
// The ack frees the client's callback for the next command, and ends the
// message's context; it comes when stop waits for a slot, or the answer is sent,
// so that a drained connection has no answer to come.
func (l *busLine) admit(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) (out []*message.Message, err error) {
		if l.stopping.Load() {
			l.answer(msg, busAnswer{Outcome: busUnavailable, Message: "the node stops"})
			return nil, nil
		}
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		default:
			l.answer(msg, busAnswer{Outcome: busBusy, Message: fmt.Sprintf("the node is carrying out %d commands already", busInFlight)})
			return nil, nil
		}
		msg.Ack()
		if _, err := next(msg); err != nil {
			l.answer(msg, busAnswer{Outcome: busRefused, Code: CodeUnreadable, Message: clip(err.Error())})
		}
		return nil, nil
	}
}

// serve answers one command, from memory if it was answered before.
func (l *busLine) serve(ctx context.Context, cmd *busCommand) busAnswer {
	ctx, cancel := context.WithTimeout(ctx, min(time.Duration(cmd.Budget)*time.Millisecond, MaxAsk))
	defer cancel()
	fn := l.bus.handler(cmd.Name)
	switch self := l.bus.cfg.Self; {
	case fn == nil:
		return refusal(CodeUnknownCommand, "there is no command %q here; the node runs another version", cmd.Name)
	case cmd.For != "" && cmd.For != self:
		return refusal(CodeOtherIncarnation, "the command is for %s, this is %s; look again and ask anew", cmd.For, self)
	}
	e, first, ok := l.bus.answers.begin(cmd)
	switch {
	case !ok:
		return refusal(CodeIDReused, "command id %s was another command's; use a new id", cmd.ID)
	case first:
		l.bus.answers.finish(e, l.call(ctx, fn, cmd))
	}
	select {
	case <-e.done:
		return e.answer
	case <-ctx.Done():
		return busAnswer{Outcome: busUnknown, Message: "the same command is still being carried out"}
	}
}

func (l *busLine) call(ctx context.Context, fn CommandHandler, cmd *busCommand) (answer busAnswer) {
	defer func() {
		if p := recover(); p != nil {
			l.bus.log.Error("operator_command_panicked", "command", cmd.Name, "id", cmd.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			answer = refusal(CodePanicked, "the command broke off, perhaps half done: %v; the node's log has the stack", p)
		}
	}()
	reply, err := fn(ctx, Request{ID: cmd.ID, For: cmd.For, From: cmd.From, Actor: cmd.Actor, Reason: cmd.Reason, Args: cmd.Args})
	return answerOf(reply, err)
}

// OnCommandProcessed sends the answer back.
func (l *busLine) OnCommandProcessed(_ context.Context, p requestreply.BackendOnCommandProcessedParams[busAnswer]) error {
	l.answer(p.CommandMessage, p.HandlerResult)
	return nil
}

func (l *busLine) answer(to *message.Message, a busAnswer) {
	subject := to.Metadata.Get(busReplyTo)
	if subject == "" {
		return // a stranger, who waits for nothing
	}
	a.By = l.bus.cfg.Self
	body, err := json.Marshal(a)
	if err == nil {
		err = l.out.Publish(subject, message.NewMessage("", body))
	}
	if err != nil {
		l.bus.log.Warn("operator_answer_lost", "outcome", string(a.Outcome), "err", err)
	}
}

// deliver hands an answer to whoever waits for it.
func (l *busLine) deliver(msg *message.Message) error {
	reply := requestreply.Reply[busAnswer]{}
	if msg.Metadata.Get(busStatus) == "503" {
		reply.Error = nats.ErrNoResponders
	} else if err := json.Unmarshal(msg.Payload, &reply.HandlerResult); err != nil {
		reply.Error = requestreply.ReplyUnmarshalError{Err: err}
	}
	subject := msg.Metadata.Get(busSubject)
	if ch := l.forget(subject[strings.LastIndexByte(subject, '.')+1:]); ch != nil {
		ch <- reply // has room for the one answer that finds it
	}
	return nil
}

// ListenForNotifications implements requestreply's backend for the asker.
func (l *busLine) ListenForNotifications(ctx context.Context, p requestreply.BackendListenForNotificationsParams) (<-chan requestreply.Reply[busAnswer], error) {
	operation := string(p.OperationID)
	ch := make(chan requestreply.Reply[busAnswer], 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= busWaiting {
		return nil, fmt.Errorf("%w: %d commands are waiting for an answer", events.ErrBusy, busWaiting)
	}
	l.waiting[operation] = ch
	context.AfterFunc(ctx, func() { l.forget(operation) })
	return ch, nil
}

func (l *busLine) forget(operation string) chan requestreply.Reply[busAnswer] {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := l.waiting[operation]
	delete(l.waiting, operation)
	return ch
}

// stop ends the line in the one order that loses nothing and leaves nothing:
// no new commands, those under way answered, the connection drained and closed,
// and then, by the caller, the router's subscriptions. cut ends the handlers'
// contexts.
func (l *busLine) stop(cut func()) {
	l.stopping.Store(true)
	grace := time.AfterFunc(busStopGrace, cut)
	for range cap(l.slots) {
		l.slots <- struct{}{}
	}
	grace.Stop()
	if err := l.conn.nc.Drain(); err == nil {
		limit := time.NewTimer(busDrain)
		defer limit.Stop()
		select {
		case <-l.conn.closed:
		case <-limit.C:
		}
	}
	l.conn.Close()
	l.gate.shut()
}
