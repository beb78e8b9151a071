// Package natstest gives tests real brokers in this process: one server (R1) or
// a cluster of three (R3), in temporary directories.
//
// Servers stop when the test ends. Stopping one is a clean shutdown; what a
// kill -9 does needs a process of its own.
package natstest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

// Leaks are goroutines that nats-server itself leaves behind now and then, when
// a cluster's server is shut down while its streams still come up. Everything
// else that outlives a test is the test's.
func Leaks() []goleak.Option {
	const server = "github.com/nats-io/nats-server/v2/server"
	return []goleak.Option{
		goleak.IgnoreTopFunction(server + ".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(server + "/ats.Register.func1"),
	}
}

// Prefix is the subject prefix of every test fleet.
const Prefix = "crewlet"

// ready bounds how long a test waits for its brokers.
const ready = 60 * time.Second

// Brokers are the servers of one test.
type Brokers struct {
	tb       testing.TB
	replicas int
	configs  []broker.ServerConfig
	servers  []*broker.Server // nil where stopped
}

// R1 starts one server that keeps a single copy.
func R1(tb testing.TB) *Brokers {
	tb.Helper()
	b := &Brokers{tb: tb, replicas: 1, servers: make([]*broker.Server, 1), configs: []broker.ServerConfig{{
		Name: "n1", StoreDir: filepath.Join(tb.TempDir(), "n1"), Prefix: Prefix, Listen: "127.0.0.1:0", Secret: "s3cret",
	}}}
	b.startAll()
	return b
}

// R3 starts three servers that keep three copies.
func R3(tb testing.TB) *Brokers {
	tb.Helper()
	b := &Brokers{tb: tb, replicas: 3, servers: make([]*broker.Server, 3)}
	ports := freePorts(tb, 3)
	routes := make([]string, len(ports))
	for i, addr := range ports {
		routes[i] = "nats-route://" + addr
	}
	dir := tb.TempDir()
	for i, addr := range ports {
		name := fmt.Sprintf("n%d", i+1)
		b.configs = append(b.configs, broker.ServerConfig{
			Name: name, StoreDir: filepath.Join(dir, name), Prefix: Prefix, Listen: "127.0.0.1:0", Secret: "s3cret",
			Cluster: &broker.ClusterConfig{Name: "acme", Listen: addr, Routes: routes},
		})
	}
	b.startAll()
	return b
}

func (b *Brokers) startAll() {
	b.tb.Helper()
	b.tb.Cleanup(func() {
		for i := range b.servers {
			b.Stop(i)
		}
	})
	for i := range b.servers {
		b.Start(i)
	}
}

// freePorts reserves addresses for a moment: a cluster must know them all
// before the first server starts.
func freePorts(tb testing.TB, n int) []string {
	tb.Helper()
	addrs := make([]string, n)
	for i := range addrs {
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		defer l.Close()
		addrs[i] = l.Addr().String()
	}
	return addrs
}

// Start starts server i, again after Stop, on its old directory.
func (b *Brokers) Start(i int) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	s, err := broker.StartServer(ctx, b.configs[i])
	if err != nil {
		b.tb.Fatalf("start server %d: %v", i, err)
	}
	b.servers[i] = s
	// Clients of a server that stopped find it again under the same address.
	b.configs[i].Listen = s.ClientURL()[len("nats://"):]
}

// Stop shuts server i down; it does nothing where it is stopped.
func (b *Brokers) Stop(i int) {
	if s := b.servers[i]; s != nil {
		s.Shutdown()
		b.servers[i] = nil
	}
}

// Len is the number of servers.
func (b *Brokers) Len() int { return len(b.servers) }

// Server returns server i.
func (b *Brokers) Server(i int) *broker.Server { return b.servers[i] }

// Config is what Store opens with.
func (b *Brokers) Config() broker.Config {
	return broker.Config{Prefix: Prefix, Replicas: b.replicas, LeaseTTL: 3 * time.Second}
}

// Conn opens a node's connection to server i over TCP; it closes with the test
// unless it was handed to Open.
func (b *Brokers) Conn(i int) *broker.Conn {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	conn, err := broker.Connect(ctx, broker.ConnectConfig{Name: b.tb.Name(), URLs: []string{b.servers[i].NodeURL()}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.tb.Fatalf("connect to server %d: %v", i, err)
	}
	return conn
}

// Store opens the fleet's streams over a connection to server i, creating them
// the first time. It closes with the test.
func (b *Brokers) Store(i int) *broker.JetStream {
	b.tb.Helper()
	return b.StoreWith(i, b.Config())
}

// StoreWith is Store with a configuration of the test's own.
func (b *Brokers) StoreWith(i int, cfg broker.Config) *broker.JetStream {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	store, err := broker.Open(ctx, b.Conn(i), cfg)
	if err != nil {
		b.tb.Fatalf("open the store on server %d: %v", i, err)
	}
	b.tb.Cleanup(func() { _ = store.Close() })
	return store
}

// Recreate deletes a stream and makes it anew, empty, as an operator might by
// mistake.
func (b *Brokers) Recreate(tb testing.TB, cfg broker.Config, st events.Stream) {
	tb.Helper()
	subjects, err := events.NewSubjects(cfg.Prefix)
	if err != nil {
		tb.Fatal(err)
	}
	b.admin(tb, func(ctx context.Context, js jetstream.JetStream) error {
		name := subjects.StreamName(st)
		old, err := js.Stream(ctx, name)
		if err != nil {
			return err
		}
		if err := js.DeleteStream(ctx, name); err != nil {
			return err
		}
		_, err = js.CreateStream(ctx, old.CachedInfo().Config)
		return err
	})
}

// Reconfigure changes a stream's settings, as an operator might by mistake. Nodes
// that are connected go on with the stream as it is then; one that opens it
// compares.
func (b *Brokers) Reconfigure(tb testing.TB, cfg broker.Config, st events.Stream, change func(*jetstream.StreamConfig)) {
	tb.Helper()
	subjects, err := events.NewSubjects(cfg.Prefix)
	if err != nil {
		tb.Fatal(err)
	}
	b.admin(tb, func(ctx context.Context, js jetstream.JetStream) error {
		s, err := js.Stream(ctx, subjects.StreamName(st))
		if err != nil {
			return err
		}
		now := s.CachedInfo().Config
		change(&now)
		_, err = js.UpdateStream(ctx, now)
		return err
	})
}

// admin does what the product itself never does, over a connection of its own
// to the first server that runs.
func (b *Brokers) admin(tb testing.TB, do func(context.Context, jetstream.JetStream) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	for _, s := range b.servers {
		if s == nil {
			continue
		}
		nc, err := nats.Connect(s.NodeURL())
		if err != nil {
			tb.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err == nil {
			err = do(ctx, js)
		}
		if err != nil {
			tb.Fatal(err)
		}
		return
	}
}

// Consumers counts a stream's consumers.
func (b *Brokers) Consumers(tb testing.TB, cfg broker.Config, st events.Stream) (n int) {
	tb.Helper()
	subjects, err := events.NewSubjects(cfg.Prefix)
	if err != nil {
		tb.Fatal(err)
	}
	b.admin(tb, func(ctx context.Context, js jetstream.JetStream) error {
		s, err := js.Stream(ctx, subjects.StreamName(st))
		if err == nil {
			n = s.CachedInfo().State.Consumers
		}
		return err
	})
	return n
}
