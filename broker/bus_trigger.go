package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/seat-tenure/tenure/events"
)

// Limits of triggers. The tries of one trigger span some 11 seconds, longer
// than a broker's fail-over takes.
const (
	// TriggerTries is how often one trigger is delivered.
	TriggerTries    = 8
	triggerPauseMin = 100 * time.Millisecond // doubles with each try
	triggerPauseMax = 5 * time.Second
	triggerLimit    = 10 * time.Second // of one handler
)

// Metadata of a trigger's message, beside the event that RecordedOf returns.
const (
	TriggerStream   = "stream"
	TriggerSeq      = "stream_seq"
	TriggerEvent    = "event"    // wire name
	TriggerDelivery = "delivery" // 1 for the first
)

// TriggerSubscriber hands the events of a stream to watermill as they are
// appended (design §5). A topic is the name of a stream.
//
// A subscription starts at the position the subscriber was made with, follows
// the log through broken connections without gap or duplicate, and has one
// message out at a time: the next comes after an Ack. After a Nack the same
// event comes again in a new message, after a pause that grows, TriggerTries
// times at most; then that is logged and the next event comes. A trigger is a
// hint: who is to act anyway decides on the folded present, and ages out.
//
// A message has no payload. The event is decoded already and leaves the process
// nowhere.
type TriggerSubscriber struct {
	source *Source
	from   uint64
	names  []string // events that trigger; empty means all
	log    *slog.Logger

	mu     sync.Mutex
	closed bool
	subs   map[<-chan *message.Message]context.CancelCauseFunc
	failed error
	group  sync.WaitGroup
}

var _ message.Subscriber = (*TriggerSubscriber)(nil)

var errTriggersClosed = errors.New("the subscriber is closed")

// NewTriggerSubscriber returns a subscriber to the events with those wire names
// at or after from. Whoever must not act on what a boot finds gives the head
// seen then, plus one.
func NewTriggerSubscriber(source *Source, from uint64, names []string, log *slog.Logger) *TriggerSubscriber {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &TriggerSubscriber{
		source: source, from: from, names: names, log: log,
		subs: map[<-chan *message.Message]context.CancelCauseFunc{},
	}
}

// Subscribe implements message.Subscriber. The channel is closed when ctx ends,
// on Close, and when the stream cannot be read on; then Err says why.
func (t *TriggerSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	st := events.Stream(topic)
	known := streams(t.source.store.Subjects().Prefix())
	if !slices.ContainsFunc(known, func(s settings) bool { return s.stream == st }) {
		return nil, fmt.Errorf("subscribe to triggers: there is no stream %q", topic)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("subscribe to triggers: %w", errTriggersClosed)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	out := make(chan *message.Message)
	t.subs[out] = cancel
	t.group.Go(func() {
		defer close(out)
		err := t.source.Follow(ctx, st, t.from, func(batch []events.Recorded, _ bool) error {
			for _, r := range batch {
				if err := t.deliver(ctx, out, r); err != nil {
					return err
				}
			}
			return nil
		})
		t.ended(ctx, out, err)
	})
	return out, nil
}

func (t *TriggerSubscriber) ended(ctx context.Context, out <-chan *message.Message, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() == nil {
		t.failed = errors.Join(t.failed, err)
	}
	t.subs[out](nil)
	delete(t.subs, out)
}

// Err says why subscriptions ended by themselves: as Source.Follow does, with
// *events.UnknownError, *events.DecodeError or *IdentityError.
func (t *TriggerSubscriber) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// Close implements message.Subscriber: it ends all subscriptions and waits for
// them. A message that is out then counts as not delivered.
func (t *TriggerSubscriber) Close() error {
	t.mu.Lock()
	t.closed = true
	for _, cancel := range t.subs {
		cancel(errTriggersClosed)
	}
	t.mu.Unlock()
	t.group.Wait()
	return nil
}

// deliver brings one event through, or gives it up. It fails when ctx ends.
func (t *TriggerSubscriber) deliver(ctx context.Context, out chan<- *message.Message, r events.Recorded) error {
	name := events.Name(r.Event)
	if len(t.names) > 0 && !slices.Contains(t.names, name) {
		return nil
	}
	pause := triggerPauseMin
	for try := 1; ; try++ {
		acked, err := t.try(ctx, out, r, try)
		if acked || err != nil {
			return err
		}
		if try == TriggerTries {
			t.log.Error("saga_trigger_given_up", "stream", string(r.Stream), "stream_seq", r.Seq, "event", name, "tries", try)
			return nil
		}
		if !wait(ctx, pause) {
			return context.Cause(ctx)
		}
		pause = min(2*pause, triggerPauseMax)
	}
}

// try has one message out until it is settled, and with it ends its context.
func (t *TriggerSubscriber) try(ctx context.Context, out chan<- *message.Message, r events.Recorded, try int) (acked bool, err error) {
	settled, cancel := context.WithCancel(context.WithValue(ctx, recordedKey{}, r))
	defer cancel()
	msg := message.NewMessageWithContext(settled, r.Meta.ID, nil)
	msg.Metadata.Set(TriggerStream, string(r.Stream))
	msg.Metadata.Set(TriggerSeq, strconv.FormatUint(r.Seq, 10))
	msg.Metadata.Set(TriggerEvent, events.Name(r.Event))
	msg.Metadata.Set(TriggerDelivery, strconv.Itoa(try))
	select {
	case out <- msg:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	select {
	case <-msg.Acked():
		return true, nil
	case <-msg.Nacked():
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

type recordedKey struct{}

// RecordedOf returns the event of a trigger's message; false for a message of
// another subscriber.
func RecordedOf(msg *message.Message) (events.Recorded, bool) {
	r, ok := msg.Context().Value(recordedKey{}).(events.Recorded)
	return r, ok
}
