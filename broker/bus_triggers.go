package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/seat-tenure/tenure/events"
)

// TriggerHandler acts on one event. It must be idempotent and obey ctx. An error
// brings the event again; a panic is logged and does not, since it would come
// again too.
type TriggerHandler func(ctx context.Context, r events.Recorded) error

// RunTriggers calls the handlers, by the wire names of events, with what is
// appended to FLEET at or after from, one event after another, until ctx ends;
// then it returns ctx's cause, with no handler left running. It fails like
// Source.Follow when FLEET cannot be read on: nothing is skipped.
//
// What a boot finds drives nothing (design §5): from is the head seen at boot,
// plus one. 0, which would bring all of history, is refused.
func RunTriggers(ctx context.Context, store Store, from uint64, handlers map[string]TriggerHandler, log *slog.Logger) error {
	if from == 0 || len(handlers) == 0 {
		return errors.New("triggers need a position above 0 and a handler")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	router, err := newRouter(watermillLog{log: log})
	if err != nil {
		return fmt.Errorf("triggers: %w", err)
	}
	sub := NewTriggerSubscriber(NewSource(store), from, slices.Collect(maps.Keys(handlers)), log)
	router.AddConsumerHandler("saga_triggers", string(events.StreamFleet), sub, dispatch(ctx, handlers, log))
	err = router.Run(ctx)
	err = errors.Join(err, sub.Close(), sub.Err())
	if err == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("triggers: %w", err)
}

// dispatch gives a message's event to its handler, for a bounded time.
func dispatch(ctx context.Context, handlers map[string]TriggerHandler, log *slog.Logger) message.NoPublishHandlerFunc {
	return func(msg *message.Message) error {
		r, ok := RecordedOf(msg)
		if !ok {
			return fmt.Errorf("message %s carries no event", msg.UUID)
		}
		ctx, cancel := context.WithTimeout(ctx, triggerLimit)
		defer cancel()
		return trigger(ctx, handlers[events.Name(r.Event)], r, log)
	}
}

func trigger(ctx context.Context, fn TriggerHandler, r events.Recorded, log *slog.Logger) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("saga_trigger_panicked", "stream_seq", r.Seq, "event", events.Name(r.Event), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = nil
		}
	}()
	return fn(ctx, r)
}
