package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// happen appends one event to FLEET and returns its sequence.
func happen(t *testing.T, store broker.Store, e events.Event) uint64 {
	t.Helper()
	n := commands.Add(1)
	meta := events.Meta{ID: fmt.Sprintf("e%d", n), Source: "n1:00000001", Time: time.Now(), Command: fmt.Sprintf("cmd-%d", n)}
	w, err := events.Encode(store.Subjects(), meta, e)
	if err != nil {
		t.Fatal(err)
	}
	return mustAppend(t, store.Stream(events.StreamFleet), w)
}

func registered(handle string) events.MailboxRegistered {
	return events.MailboxRegistered{Handle: handle, AgentID: "agent-" + handle}
}

var marked = events.StreamMarked{Stream: events.StreamFleet, Marker: "0123abcd", CreatedAt: "2026-01-01T00:00:00Z"}

func memory(t *testing.T) *broker.Memory {
	t.Helper()
	m, err := broker.NewMemory(broker.Config{Prefix: "crewlet", LeaseTTL: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func subscribe(ctx context.Context, t *testing.T, sub message.Subscriber) <-chan *message.Message {
	t.Helper()
	out, err := sub.Subscribe(ctx, string(events.StreamFleet))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Triggers come in the log's order, from the position on and not before, only
// those asked for, one at a time, with event, sequence and delivery count; a
// message's context ends when it is settled.
func TestTriggersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory(t)
		happen(t, store, registered("old"))
		head := happen(t, store, marked)
		happen(t, store, marked)
		var want []uint64
		for i := range 3 {
			want = append(want, happen(t, store, registered(fmt.Sprintf("s%d", i))))
		}
		sub := broker.NewTriggerSubscriber(broker.NewSource(store), head+1, []string{events.NameMailboxRegistered}, nil)
		out := subscribe(t.Context(), t, sub)
		want = append(want, happen(t, store, registered("s3")))
		for i, seq := range want {
			msg := <-out
			r, ok := broker.RecordedOf(msg)
			if !ok || r.Seq != seq || r.Event.(events.MailboxRegistered).Handle != fmt.Sprintf("s%d", i) {
				t.Fatalf("got %+v, want sequence %d", r, seq)
			}
			meta := message.Metadata{
				broker.TriggerStream: "FLEET", broker.TriggerSeq: fmt.Sprint(seq), broker.TriggerEvent: events.NameMailboxRegistered, broker.TriggerDelivery: "1",
			}
			if fmt.Sprint(msg.Metadata) != fmt.Sprint(meta) || msg.UUID != r.Meta.ID || len(msg.Payload) != 0 {
				t.Errorf("message %s: %v, want %v", msg.UUID, msg.Metadata, meta)
			}
			synctest.Wait()
			select {
			case early := <-out:
				t.Fatalf("%v came before %v was settled", early.Metadata, msg.Metadata)
			default:
			}
			if err := msg.Context().Err(); err != nil {
				t.Errorf("the context of an open message: %v", err)
			}
			msg.Ack()
			<-msg.Context().Done()
		}
		if _, ok := broker.RecordedOf(message.NewMessage("", nil)); ok {
			t.Error("an event in a message of somebody else's")
		}
		if err := sub.Close(); err != nil || sub.Err() != nil {
			t.Errorf("closed with %v, %v", err, sub.Err())
		}
	})
}

// After a Nack the same event comes again, each time after a longer pause; when
// its tries are used up that is reported and the next event comes. The tries
// outlast a broker's fail-over of 7 s.
func TestTriggersNacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory(t)
		bad, good := happen(t, store, registered("bad")), happen(t, store, registered("good"))
		var told bytes.Buffer
		sub := broker.NewTriggerSubscriber(broker.NewSource(store), 1, nil, slog.New(slog.NewTextHandler(&told, nil)))
		out := subscribe(t.Context(), t, sub)
		var pauses []time.Duration
		seen := map[*message.Message]bool{}
		first := time.Now()
		for last, try := first, 1; try <= broker.TriggerTries; try++ {
			msg := <-out
			if r, _ := broker.RecordedOf(msg); r.Seq != bad || msg.Metadata.Get(broker.TriggerDelivery) != fmt.Sprint(try) || seen[msg] {
				t.Fatalf("try %d: %v", try, msg.Metadata)
			}
			seen[msg] = true
			if try > 1 {
				pauses = append(pauses, time.Since(last))
			}
			last = time.Now()
			msg.Nack()
		}
		if took := time.Since(first); took < 7*time.Second || took > time.Minute {
			t.Errorf("the tries took %v", took)
		}
		if !slices.IsSorted(pauses) || pauses[0] <= 0 || pauses[0] == pauses[3] {
			t.Errorf("pauses %v", pauses)
		}
		msg := <-out
		if r, _ := broker.RecordedOf(msg); r.Seq != good {
			t.Errorf("then came %v", msg.Metadata)
		}
		if report := told.String(); !strings.Contains(report, "saga_trigger_given_up") || !strings.Contains(report, fmt.Sprintf("stream_seq=%d", bad)) {
			t.Errorf("reported: %s", report)
		}
		_ = sub.Close()
	})
}

// However a subscription ends, its channel is closed, also while a message is
// out, to be taken, or waiting for its next try; Close waits for that, and
// afterwards there is no subscribing.
func TestTriggersClose(t *testing.T) {
	for what, leave := range map[string]func(out <-chan *message.Message){
		"out":     func(out <-chan *message.Message) { <-out },
		"waiting": func(<-chan *message.Message) {},
		"pausing": func(out <-chan *message.Message) { (<-out).Nack() },
		"idle":    func(out <-chan *message.Message) { (<-out).Ack() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory(t)
				happen(t, store, marked)
				sub := broker.NewTriggerSubscriber(broker.NewSource(store), 1, nil, nil)
				ctx, cancel := context.WithCancel(t.Context())
				byContext, byClose := subscribe(ctx, t, sub), subscribe(t.Context(), t, sub)
				leave(byContext)
				leave(byClose)
				synctest.Wait()
				cancel()
				if _, open := <-byContext; open {
					t.Error("a message after the context's end")
				}
				for range 2 {
					if err := sub.Close(); err != nil {
						t.Error(err)
					}
				}
				select {
				case _, open := <-byClose:
					if open {
						t.Error("a message after Close")
					}
				default:
					t.Error("Close did not wait")
				}
				if _, err := sub.Subscribe(t.Context(), "FLEET"); err == nil {
					t.Error("subscribed after Close")
				}
				if sub.Err() != nil {
					t.Errorf("an end that was asked for is reported: %v", sub.Err())
				}
			})
		})
	}
}

// A topic is a stream's name, and nothing else.
func TestTriggersTopic(t *testing.T) {
	sub := broker.NewTriggerSubscriber(broker.NewSource(memory(t)), 1, nil, nil)
	if _, err := sub.Subscribe(t.Context(), "fleet"); err == nil {
		t.Error("subscribed to a stream that is not there")
	}
}

// handled collects what the handlers of a run were called with.
type handled struct {
	mu   sync.Mutex
	seqs []uint64
}

func (h *handled) add(r events.Recorded) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seqs = append(h.seqs, r.Seq)
	return len(h.seqs)
}

// A handler that fails gets its event again until it succeeds; one that panics
// is recorded and does not, for the router alone would bring a poisoned event
// for ever. The handlers' context ends with the run, which waits for them.
func TestTriggersFailAndPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory(t)
		var told bytes.Buffer
		var calls handled
		ctx, cancel := context.WithCancelCause(t.Context())
		leaving := make(chan struct{})
		handlers := map[string]broker.TriggerHandler{
			events.NameStreamMarked: func(context.Context, events.Recorded) error { panic("poison") },
			events.NameMailboxRegistered: func(ctx context.Context, r events.Recorded) error {
				switch n := calls.add(r); {
				case r.Event.(events.MailboxRegistered).Handle == "last":
					<-ctx.Done()
					time.Sleep(time.Minute) // the router by itself waits for half of it
					close(leaving)
					return ctx.Err()
				case n < 4:
					return fmt.Errorf("provider: %w", events.ErrUnavailable)
				}
				return nil
			},
		}
		failing := happen(t, store, registered("failing"))
		happen(t, store, marked)
		last := happen(t, store, registered("last"))
		done := make(chan error)
		go func() {
			done <- broker.RunTriggers(ctx, store, 1, handlers, slog.New(slog.NewTextHandler(&told, nil)))
		}()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		calls.mu.Lock()
		if want := []uint64{failing, failing, failing, failing, last}; !slices.Equal(calls.seqs, want) {
			t.Errorf("handled %v, want %v", calls.seqs, want)
		}
		calls.mu.Unlock()
		cancel(errEnough)
		if err := <-done; !errors.Is(err, errEnough) {
			t.Errorf("ended with %v", err)
		}
		select {
		case <-leaving:
		default:
			t.Error("a handler was left running")
		}
		if n := strings.Count(told.String(), "saga_trigger_panicked"); n != 1 {
			t.Errorf("the panic was told %d times: %s", n, &told)
		}
	})
}

// A handler's time is bounded: one that hangs is ended, and gets its event
// again.
func TestTriggersHandlerBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory(t)
		happen(t, store, marked)
		ctx, cancel := context.WithCancelCause(t.Context())
		var calls handled
		err := broker.RunTriggers(ctx, store, 1, map[string]broker.TriggerHandler{
			events.NameStreamMarked: func(ctx context.Context, r events.Recorded) error {
				if calls.add(r) == 2 {
					cancel(errEnough)
				}
				<-ctx.Done()
				return ctx.Err()
			},
		}, nil)
		wantErr(t, "ended", err, errEnough)
	})
}

// An event that this build cannot read ends the run, after what stands before
// it: nothing is skipped. So do a position beyond the end, and one that would
// replay history.
func TestTriggersStopAtTheUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory(t)
		happen(t, store, marked)
		unknown := write(store.Subjects().FleetLog(), "{}", nil)
		unknown.Header.Set(events.HeaderType, "stream-blessed")
		unknown.Header.Set(events.HeaderVersion, "1")
		at := mustAppend(t, store.Stream(events.StreamFleet), unknown)
		happen(t, store, marked)
		var calls handled
		handlers := map[string]broker.TriggerHandler{
			events.NameStreamMarked: func(_ context.Context, r events.Recorded) error { calls.add(r); return nil },
		}
		err := broker.RunTriggers(t.Context(), store, 1, handlers, nil)
		var unread *events.UnknownError
		if !errors.As(err, &unread) || unread.Seq != at || len(calls.seqs) != 1 {
			t.Errorf("ended with %v after %v", err, calls.seqs)
		}
		var identity *broker.IdentityError
		if err := broker.RunTriggers(t.Context(), store, 99, handlers, nil); !errors.As(err, &identity) {
			t.Errorf("beyond the end: %v", err)
		}
		if err := broker.RunTriggers(t.Context(), store, 0, handlers, nil); err == nil {
			t.Error("history was replayed")
		}
		if len(calls.seqs) != 1 {
			t.Errorf("handled %v", calls.seqs)
		}
	})
}

// A broker that restarts costs triggers time, and neither a gap nor a second
// call.
func TestTriggersBrokerRestarts(t *testing.T) {
	b := natstest.R1(t)
	store := b.Store(0)
	happen(t, store, marked)
	head := happen(t, store, marked)
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan uint64, 100)
	done := make(chan error, 1)
	go func() {
		done <- broker.RunTriggers(ctx, store, head+1, map[string]broker.TriggerHandler{
			events.NameStreamMarked: func(_ context.Context, r events.Recorded) error { got <- r.Seq; return nil },
		}, nil)
	}()
	next := head
	for range 2 {
		for range 3 {
			happen(t, b.Store(0), marked)
		}
		for range 3 {
			next++
			if seq := await(t, "a trigger", got); seq != next {
				t.Fatalf("triggered by %d, want %d", seq, next)
			}
		}
		b.Stop(0)
		b.Start(0)
	}
	happen(t, b.Store(0), marked)
	if seq := await(t, "a trigger", got); seq != next+1 {
		t.Fatalf("triggered by %d, want %d", seq, next+1)
	}
	cancel(errEnough)
	wantErr(t, "ended", await(t, "the end", done), errEnough)
	if len(got) != 0 {
		t.Errorf("triggered again by %d", <-got)
	}
}
