package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// enough bounds what a test waits for; nothing that works comes near it.
const enough = 30 * time.Second

func await[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(enough):
		t.Fatalf("%s: did not happen", what)
		panic("unreachable")
	}
}

var errStopTest = errors.New("the test stops the bus")

// ops is a bus that runs until stop, or the test's end.
type ops struct {
	*broker.Bus
	stop func() // and waits
}

func runBus(t *testing.T, b *natstest.Brokers, i int, self string, handlers map[string]broker.CommandHandler) ops {
	t.Helper()
	bus, err := broker.NewBus(broker.BusConfig{
		Connect: broker.ConnectConfig{Name: self, URLs: []string{b.Server(i).NodeURL()}}, Prefix: natstest.Prefix, Self: events.Incarnation(self),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, fn := range handlers {
		bus.Handle(name, fn)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- bus.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel(errStopTest)
		select { // not await: stop may run on any goroutine
		case err := <-done:
			if !errors.Is(err, errStopTest) {
				t.Errorf("%s ended with %v", self, err)
			}
		case <-time.After(enough):
			t.Errorf("%s does not stop", self)
		}
	})
	t.Cleanup(stop)
	await(t, "start of "+self, bus.Running())
	return ops{bus, stop}
}

var commandIDs atomic.Int64

func request(args string) broker.Request {
	return broker.Request{ID: fmt.Sprintf("op-%d", commandIDs.Add(1)), Args: json.RawMessage(args)}
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	var refused *broker.CommandRefusedError
	if !errors.As(err, &refused) || refused.Code != code || refused.Message == "" {
		t.Errorf("%s: got %v, want code %s", what, err, code)
	}
}

// A command reaches its node whole, and every way in which it can end arrives
// as what it is: reply, coded refusal, busy, unavailable, unknown.
func TestBusAnswers(t *testing.T) {
	b := natstest.R1(t)
	var seen broker.Request
	fails := func(err error) broker.CommandHandler {
		return func(context.Context, broker.Request) (json.RawMessage, error) { return nil, err }
	}
	runBus(t, b, 0, "n2:00000002", map[string]broker.CommandHandler{
		"echo": func(_ context.Context, req broker.Request) (json.RawMessage, error) {
			seen = req
			return req.Args, nil
		},
		"refuse":  fails(fmt.Errorf("wrapped: %w", &broker.CommandRefusedError{Code: "SAGA_OPEN", Message: "a handoff is open"})),
		"busy":    fails(fmt.Errorf("append: %w", events.ErrBusy)),
		"blind":   fails(fmt.Errorf("read: %w", events.ErrUnavailable)),
		"unknown": fails(fmt.Errorf("append: %w", events.ErrUnknown)),
		"fail":    fails(errors.New("disk on fire")),
		"long":    fails(errors.New(strings.Repeat("x", 3<<20))),
		"panic":   func(context.Context, broker.Request) (json.RawMessage, error) { panic("poison") },
		"garble":  func(context.Context, broker.Request) (json.RawMessage, error) { return json.RawMessage("{"), nil },
		"flood": func(context.Context, broker.Request) (json.RawMessage, error) {
			return json.RawMessage(`"` + strings.Repeat("x", broker.MaxBusPayload) + `"`), nil
		},
	})
	asker := runBus(t, b, 0, "n1:00000001", nil)
	ask := func(name string, req broker.Request) (json.RawMessage, error) {
		return asker.Ask(t.Context(), "n2", name, req)
	}
	req := broker.Request{ID: "a", For: "n2:00000002", Actor: "ada", Reason: "two words", Args: json.RawMessage(`{"seat":"dev"}`)}
	reply, err := ask("echo", req)
	if err != nil || string(reply) != `{"seat":"dev"}` {
		t.Fatalf("reply %s, %v", reply, err)
	}
	req.From = "n1:00000001"
	if fmt.Sprint(seen) != fmt.Sprint(req) {
		t.Errorf("the handler saw %+v, want %+v", seen, req)
	}
	for name, want := range map[string]error{"busy": events.ErrBusy, "blind": events.ErrUnavailable, "unknown": events.ErrUnknown} {
		_, err := ask(name, request(""))
		for _, kind := range []error{events.ErrBusy, events.ErrUnavailable, events.ErrUnknown} {
			if errors.Is(err, kind) != errors.Is(want, kind) {
				t.Errorf("%s: got %v, want %v alone", name, err, want)
			}
		}
	}
	for name, code := range map[string]string{
		"refuse": "SAGA_OPEN", "fail": broker.CodeFailed, "long": broker.CodeFailed, "panic": broker.CodePanicked,
		"garble": broker.CodeReplyUnusable, "flood": broker.CodeReplyUnusable, "nothing": broker.CodeUnknownCommand,
	} {
		_, err := ask(name, request(""))
		wantCode(t, name, err, code)
		if !strings.Contains(err.Error(), "n2:00000002") {
			t.Errorf("%s: %v does not say who", name, err)
		}
	}
	_, err = ask("echo", broker.Request{ID: "b", For: "n2:0000000f"})
	wantCode(t, "for its predecessor", err, broker.CodeOtherIncarnation)
}

// What cannot arrive is told at once, with nothing done: nobody there, a bus
// that does not run, a caller that has left, a malformed command.
func TestBusNothingSent(t *testing.T) {
	b := natstest.R1(t)
	asker := runBus(t, b, 0, "n1:00000001", nil)
	start := time.Now()
	_, err := asker.Ask(t.Context(), "n9", "echo", request(""))
	wantErr(t, "nobody there", err, events.ErrUnavailable)
	if took := time.Since(start); took > broker.MaxAsk/3 {
		t.Errorf("nobody there: told after %v", took)
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = asker.Ask(left, "n1", "echo", request(""))
	wantErr(t, "left", err, events.ErrUnavailable)
	asker.stop()
	_, err = asker.Ask(t.Context(), "n1", "echo", request(""))
	wantErr(t, "stopped", err, events.ErrUnavailable)
	if err := asker.Run(t.Context()); err == nil {
		t.Error("it ran twice")
	}
	large := request(`"` + strings.Repeat("x", broker.MaxBusPayload) + `"`)
	for what, ask := range map[string]func() (json.RawMessage, error){
		"wildcard node": func() (json.RawMessage, error) { return asker.Ask(t.Context(), "*", "echo", request("")) },
		"no name":       func() (json.RawMessage, error) { return asker.Ask(t.Context(), "n1", "", request("")) },
		"no id":         func() (json.RawMessage, error) { return asker.Ask(t.Context(), "n1", "echo", broker.Request{}) },
		"no JSON":       func() (json.RawMessage, error) { return asker.Ask(t.Context(), "n1", "echo", request("{")) },
		"too large":     func() (json.RawMessage, error) { return asker.Ask(t.Context(), "n1", "echo", large) },
		"long reason": func() (json.RawMessage, error) {
			return asker.Ask(t.Context(), "n1", "echo", broker.Request{ID: "r", Reason: strings.Repeat("x", 5000)})
		},
	} {
		_, err := ask()
		wantRefused(t, what, err)
	}
	for _, cfg := range []broker.BusConfig{{Prefix: "a.b", Self: "n1:00000001"}, {Prefix: "crewlet", Self: "n1"}} {
		if _, err := broker.NewBus(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// A repeat with the same id is the same command: while the first is under way
// it waits for that, afterwards it gets the same answer, and only an answer
// that settles nothing lets the handler run again. The memory of it is bounded.
func TestBusRepeats(t *testing.T) {
	b := natstest.R1(t)
	var runs atomic.Int64
	entered, proceed := make(chan struct{}, 10), make(chan struct{})
	counted := func(err error) broker.CommandHandler {
		return func(context.Context, broker.Request) (json.RawMessage, error) {
			return json.RawMessage(fmt.Sprint(runs.Add(1))), err
		}
	}
	runBus(t, b, 0, "n2:00000002", map[string]broker.CommandHandler{
		"count":   counted(nil),
		"refuse":  counted(&broker.CommandRefusedError{Code: "NO", Message: "no"}),
		"unknown": counted(events.ErrUnknown),
		"slow": func(context.Context, broker.Request) (json.RawMessage, error) {
			entered <- struct{}{}
			<-proceed
			return json.RawMessage(fmt.Sprint(runs.Add(1))), nil
		},
	})
	asker := runBus(t, b, 0, "n1:00000001", nil)
	ask := func(name string, req broker.Request) (string, error) {
		reply, err := asker.Ask(t.Context(), "n2", name, req)
		return string(reply), err
	}
	first := request("")
	for range 3 {
		if reply, err := ask("count", first); reply != "1" || err != nil {
			t.Fatalf("got %s, %v", reply, err)
		}
	}
	_, err := ask("count", broker.Request{ID: first.ID, Args: json.RawMessage("1")})
	wantCode(t, "other arguments", err, broker.CodeIDReused)
	_, err = ask("refuse", broker.Request{ID: first.ID})
	wantCode(t, "another command", err, broker.CodeIDReused)

	for name, want := range map[string]int64{"refuse": 1, "unknown": 3} {
		runs.Store(0)
		again := request("")
		for range 3 {
			_, _ = ask(name, again)
		}
		if runs.Load() != want {
			t.Errorf("%s ran %d times in 3, want %d", name, runs.Load(), want)
		}
	}

	runs.Store(0)
	slow := request("")
	replies := make(chan string, 3)
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			reply, err := ask("slow", slow)
			replies <- fmt.Sprint(reply, err)
		})
	}
	await(t, "the slow command", entered)
	close(proceed)
	asking.Wait()
	for range 3 {
		if got := <-replies; got != "1<nil>" {
			t.Errorf("together: got %s", got)
		}
	}

	for range 1001 {
		if _, err := ask("count", request("")); err != nil {
			t.Fatal(err)
		}
	}
	if reply, _ := ask("count", first); reply == "1" {
		t.Error("after a thousand others the first command is still remembered")
	}
}

// Time and number are bounded on the node's side too: a handler's context ends
// with its asker's patience, and at most 32 commands are under way at once.
func TestBusBounds(t *testing.T) {
	b := natstest.R1(t)
	entered, ended, proceed := make(chan struct{}, 100), make(chan error, 1), make(chan struct{})
	runBus(t, b, 0, "n2:00000002", map[string]broker.CommandHandler{
		"stuck": func(ctx context.Context, _ broker.Request) (json.RawMessage, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
		"slow": func(context.Context, broker.Request) (json.RawMessage, error) {
			entered <- struct{}{}
			<-proceed
			return nil, nil
		},
	})
	asker := runBus(t, b, 0, "n1:00000001", nil)
	patient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := asker.Ask(patient, "n2", "stuck", request(""))
	wantErr(t, "no answer in time", err, events.ErrUnknown)
	await(t, "the end of the handler's context", ended)

	const most = 32
	var asking sync.WaitGroup
	for range most {
		asking.Go(func() {
			// The stuck command may hold its place for a moment longer.
			for {
				_, err := asker.Ask(t.Context(), "n2", "slow", request(""))
				if !errors.Is(err, events.ErrBusy) {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	for range most {
		await(t, "a slow command", entered)
	}
	_, err = asker.Ask(t.Context(), "n2", "slow", request(""))
	wantErr(t, "one too many", err, events.ErrBusy)
	close(proceed)
	asking.Wait()
	if _, err := asker.Ask(t.Context(), "n2", "slow", request("")); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// A node that stops answers what is under way, takes nothing new, and is gone
// when Run returns. A command that ignores its context is cut off.
func TestBusStops(t *testing.T) {
	t.Parallel()
	b := natstest.R1(t)
	entered, proceed := make(chan struct{}, 2), make(chan struct{})
	node := runBus(t, b, 0, "n2:00000002", map[string]broker.CommandHandler{
		"slow": func(context.Context, broker.Request) (json.RawMessage, error) {
			entered <- struct{}{}
			<-proceed
			return json.RawMessage("1"), nil
		},
		"stuck": func(ctx context.Context, _ broker.Request) (json.RawMessage, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	asker := runBus(t, b, 0, "n1:00000001", nil)
	var asking sync.WaitGroup
	asking.Go(func() {
		if reply, err := asker.Ask(t.Context(), "n2", "slow", request("")); string(reply) != "1" {
			t.Errorf("under way: got %s, %v", reply, err)
		}
	})
	asking.Go(func() {
		_, err := asker.Ask(t.Context(), "n2", "stuck", request(""))
		if !errors.Is(err, events.ErrUnknown) {
			t.Errorf("cut off: got %v", err)
		}
	})
	await(t, "a command", entered)
	await(t, "another", entered)
	stopped := make(chan struct{})
	go func() { defer close(stopped); node.stop() }()
	refused := askStopped(t, asker)
	for errors.Is(refused, events.ErrUnknown) {
		refused = askStopped(t, asker)
	}
	wantErr(t, "while it stops", refused, events.ErrUnavailable)
	close(proceed)
	await(t, "the stop", stopped)
	asking.Wait()
	_, err := asker.Ask(t.Context(), "n2", "slow", request(""))
	wantErr(t, "stopped", err, events.ErrUnavailable)
}

// askStopped asks with little patience: until the node has begun to stop the
// command is carried out, and hangs.
func askStopped(t *testing.T, asker ops) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := asker.Ask(ctx, "n2", "stuck", broker.Request{ID: "probe"})
	return err
}

// Stopping in the middle of commands leaves no asker without an answer, and ends
// no process: pkg/nats closes a channel that its callback may be sending on, see
// gate.
func TestBusStopsUnderFire(t *testing.T) {
	b := natstest.R1(t)
	asker := runBus(t, b, 0, "n1:00000001", nil)
	for range rounds(10, 200) {
		node := runBus(t, b, 0, "n2:00000002", map[string]broker.CommandHandler{
			"echo": func(_ context.Context, req broker.Request) (json.RawMessage, error) { return req.Args, nil },
		})
		var asking sync.WaitGroup
		var enoughAsked atomic.Bool
		answered := make(chan struct{}, 1)
		for range 16 {
			asking.Go(func() {
				for !enoughAsked.Load() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					_, err := asker.Ask(ctx, "n2", "echo", request("1"))
					cancel()
					if errors.Is(err, events.ErrUnknown) {
						t.Errorf("a command got no answer: %v", err)
					}
					if err == nil {
						select {
						case answered <- struct{}{}:
						default:
						}
					}
				}
			})
		}
		await(t, "an answer", answered)
		node.stop()
		enoughAsked.Store(true)
		asking.Wait()
	}
}
