package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

var echo = map[string]broker.CommandHandler{
	"echo": func(_ context.Context, req broker.Request) (json.RawMessage, error) { return req.Args, nil },
}

// askUntil repeats a command until it is answered: brokers and nodes find each
// other in their own time.
func askUntil(t *testing.T, asker ops, node string, req broker.Request) string {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(enough); ; <-tick.C {
		reply, err := asker.Ask(t.Context(), node, "echo", req)
		if err == nil {
			return string(reply)
		}
		if time.Now().After(deadline) {
			t.Fatalf("node %s does not answer: %v", node, err)
		}
	}
}

// Commands fail while the broker is away, those under way at once and as
// unknown, and work again when it is back, over the same buses.
func TestBusBrokerRestarts(t *testing.T) {
	b := natstest.R1(t)
	entered, proceed := make(chan struct{}, 1), make(chan struct{})
	runBus(t, b, 0, "n2:00000002", map[string]broker.CommandHandler{
		"echo": echo["echo"],
		"slow": func(ctx context.Context, _ broker.Request) (json.RawMessage, error) {
			entered <- struct{}{}
			<-proceed
			return json.RawMessage(`"late"`), nil
		},
	})
	asker := runBus(t, b, 0, "n1:00000001", nil)
	slow := request("")
	under := make(chan error, 1)
	go func() {
		_, err := asker.Ask(t.Context(), "n2", "slow", slow)
		under <- err
	}()
	await(t, "the slow command", entered)
	start := time.Now()
	b.Stop(0)
	wantErr(t, "under way", await(t, "its end", under), events.ErrUnknown)
	if took := time.Since(start); took > broker.MaxAsk/2 {
		t.Errorf("under way: told after %v", took)
	}
	_, err := asker.Ask(t.Context(), "n2", "echo", request("1"))
	wantErr(t, "without a broker", err, events.ErrUnavailable)
	close(proceed)
	b.Start(0)
	if got := askUntil(t, asker, "n2", request("1")); got != "1" {
		t.Errorf("after the restart: %s", got)
	}
	// The unknown is settled by the same id: it had been carried out.
	if reply, err := asker.Ask(t.Context(), "n2", "slow", slow); string(reply) != `"late"` {
		t.Errorf("settled: %s, %v", reply, err)
	}
}

// A bus that is stopped while its broker is away stops all the same.
func TestBusStopsWithoutBroker(t *testing.T) {
	b := natstest.R1(t)
	node := runBus(t, b, 0, "n2:00000002", echo)
	b.Stop(0)
	node.stop()
}

// Nodes on different servers of a cluster reach each other.
func TestBusAcrossServers(t *testing.T) {
	t.Parallel()
	b := natstest.R3(t)
	runBus(t, b, 2, "n3:00000003", echo)
	asker := runBus(t, b, 0, "n1:00000001", nil)
	for i := range 10 {
		if got := askUntil(t, asker, "n3", request(fmt.Sprint(i))); got != fmt.Sprint(i) {
			t.Errorf("got %s, want %d", got, i)
		}
	}
	_, err := asker.Ask(t.Context(), "n9", "echo", request(""))
	wantErr(t, "nobody there", err, events.ErrUnavailable)
}

// Of two processes with one node id (L1) one carries a command out, never both.
func TestBusSharedNodeID(t *testing.T) {
	b := natstest.R1(t)
	var runs atomic.Int64
	count := map[string]broker.CommandHandler{
		"count": func(context.Context, broker.Request) (json.RawMessage, error) { runs.Add(1); return nil, nil },
	}
	runBus(t, b, 0, "n2:00000002", count)
	runBus(t, b, 0, "n2:0000000f", count)
	asker := runBus(t, b, 0, "n1:00000001", nil)
	const n = 50
	for range n {
		if _, err := asker.Ask(t.Context(), "n2", "count", request("")); err != nil {
			t.Fatal(err)
		}
	}
	// A second copy would have come with the first: stopping waits for it.
	asker.stop()
	if runs.Load() != n {
		t.Errorf("%d commands were carried out %d times", n, runs.Load())
	}
}

// A client of the loopback listener can neither send commands nor read them or
// their answers.
func TestBusOutOfClientsReach(t *testing.T) {
	s := single(t, "127.0.0.1:0")
	denied := make(chan error, 10)
	nc, err := nats.Connect(s.ClientURL(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish("crewlet.ops.n1", []byte(`{"name":"echo","id":"a"}`)); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the refusal to send", denied); !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "crewlet.ops.n1") {
		t.Errorf("got %v", err)
	}
	for _, subject := range []string{"crewlet.ops.>", "crewlet.ops.n1"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := await(t, "the refusal to listen", denied); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("got %v", err)
		}
	}
}

// With JetStream disabled pkg/nats leaves streams alone: it asks JetStream for
// nothing, makes no consumer, and nothing that passes is stored.
func TestBusTouchesNoStream(t *testing.T) {
	b := natstest.R1(t)
	store := b.Store(0)
	nc, err := nats.Connect(b.Server(0).NodeURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	api, err := nc.SubscribeSync("$JS.API.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	node := runBus(t, b, 0, "n1:00000001", echo)
	for range 10 {
		if _, err := node.Ask(t.Context(), "n1", "echo", request("1")); err != nil {
			t.Fatal(err)
		}
	}
	node.stop()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := api.Pending(); n != 0 {
		t.Errorf("%d requests to JetStream", n)
	}
	for _, st := range []events.Stream{events.StreamFleet, events.StreamMail, events.StreamCursor, events.StreamWork, events.StreamMemory, events.StreamDead} {
		info, err := store.Stream(st).Info(t.Context())
		if consumers := b.Consumers(t, b.Config(), st); err != nil || info.Last != 0 || consumers != 0 {
			t.Errorf("%s: %+v, %d consumers, %v", st, info, consumers, err)
		}
	}
	// That the requests above are seen shows that none before could hide.
	if _, err := api.NextMsg(enough); err != nil {
		t.Errorf("no request is seen at all: %v", err)
	}
}

// What of pkg/nats the bus has to live with: acking a message with a reply
// subject sends "+ACK" there, and closing either end takes the connection along.
func TestWatermillNatsFacts(t *testing.T) {
	b := natstest.R1(t)
	connect := func() (*nats.Conn, <-chan struct{}) {
		closed := make(chan struct{})
		nc, err := nats.Connect(b.Server(0).NodeURL(), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
		if err != nil {
			t.Fatal(err)
		}
		return nc, closed
	}
	nc, closed := connect()
	sub, err := wmnats.NewSubscriberWithNatsConn(nc, wmnats.SubscriberSubscriptionConfig{
		JetStream: wmnats.JetStreamConfig{Disabled: true, AckAsync: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := sub.Subscribe(t.Context(), "facts")
	if err != nil {
		t.Fatal(err)
	}
	other, otherClosed := connect()
	go func() { (<-out).Ack() }()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	answer, err := other.Request("facts", nil, enough)
	if err != nil || string(answer.Data) != "+ACK" {
		t.Errorf("an acked request is answered with %v, %v", answer, err)
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
	if _, open := <-out; open {
		t.Error("a message after Close")
	}
	await(t, "the end of the subscriber's connection", closed)
	pub, err := wmnats.NewPublisherWithNatsConn(other, wmnats.PublisherPublishConfig{
		Marshaler: &wmnats.NATSMarshaler{}, SubjectCalculator: wmnats.DefaultSubjectCalculator, JetStream: wmnats.JetStreamConfig{Disabled: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pub.Close(); err != nil {
		t.Error(err)
	}
	await(t, "the end of the publisher's connection", otherClosed)
	if err := pub.Publish("facts", message.NewMessage("", nil)); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("publish after Close: %v", err)
	}
}
