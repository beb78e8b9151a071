// Package brokers runs the NATS servers that the benchmarks write to: one, or
// three that keep three copies, with the product's streams, and with or without
// the fsync that the product always has.
//
// With fsync a server is configured as the product's embedded one (package
// broker); without, it differs in SyncAlways alone. Servers run in this process
// and are reached over TCP, as every contender's is.
package brokers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seat-tenure/tenure/broker"
)

// Prefix is the subject prefix of the fleet that is measured.
const Prefix = "acme"

const ready = 20 * time.Second

// Fleet is the servers of one run.
type Fleet struct {
	Replicas int
	Fsync    bool
	servers  []*server.Server
	dir      string
	closers  []func()
}

// Start starts one server, or three.
func Start(ctx context.Context, replicas int, fsync bool) (*Fleet, error) {
	dir, err := os.MkdirTemp("", "tenure-bench-")
	if err != nil {
		return nil, err
	}
	f := &Fleet{Replicas: replicas, Fsync: fsync, dir: dir}
	routes, err := freePorts(ctx, replicas)
	if err != nil {
		f.Close()
		return nil, err
	}
	for i := range replicas {
		if err := f.start(i, routes); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

func (f *Fleet) start(i int, routes []*net.TCPAddr) error {
	name := fmt.Sprintf("n%d", i+1)
	opts := &server.Options{
		ServerName: name, StoreDir: filepath.Join(f.dir, name), JetStream: true, SyncAlways: f.Fsync,
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, DisableJetStreamBanner: true,
		MaxPayload: 1 << 20,
		// The same as in package broker.
		JetStreamLimits: server.JSLimitOpts{
			MaxBatchInflightPerStream: 1000, MaxBatchInflightTotal: 5000, MaxBatchTimeout: 2 * time.Second, DefaultMaxConsumers: 10_000,
		},
	}
	if len(routes) > 1 {
		opts.Cluster = server.ClusterOpts{Name: "acme", Host: "127.0.0.1", Port: routes[i].Port}
		for _, route := range routes {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: route.String()})
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	f.servers = append(f.servers, s)
	s.Start()
	if !s.ReadyForConnections(ready) {
		return errors.New("the broker did not start")
	}
	return nil
}

// freePorts reserves addresses for a moment: a cluster must know them all before
// the first server starts.
func freePorts(ctx context.Context, n int) ([]*net.TCPAddr, error) {
	var addrs []*net.TCPAddr
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().(*net.TCPAddr))
	}
	return addrs, nil
}

// Conditions name the fleet in figures.
func (f *Fleet) Conditions() string { return Conditions(f.Replicas, f.Fsync) }

// Conditions name a fleet in figures.
func Conditions(replicas int, fsync bool) string {
	if fsync {
		return fmt.Sprintf("R%d-fsync", replicas)
	}
	return fmt.Sprintf("R%d", replicas)
}

// URL is where clients of the first server connect.
func (f *Fleet) URL() string { return f.servers[0].ClientURL() }

// Server is the first server, to be asked what its clients did.
func (f *Fleet) Server() *server.Server { return f.servers[0] }

// Store opens a connection of the product's, with its streams.
func (f *Fleet) Store(ctx context.Context) (*broker.JetStream, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := broker.Connect(ctx, broker.ConnectConfig{Name: "bench", URLs: []string{f.URL()}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	store, err := broker.Open(ctx, conn, broker.Config{Prefix: Prefix, Replicas: f.Replicas, LeaseTTL: 45 * time.Second})
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, func() { _ = store.Close() })
	return store, nil
}

// Client opens a connection as any user of NATS would.
func (f *Fleet) Client() (jetstream.JetStream, error) {
	nc, err := nats.Connect(f.URL())
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, nc.Close)
	return jetstream.New(nc)
}

// Close ends the connections and the servers, and removes what they stored.
func (f *Fleet) Close() {
	for _, closer := range f.closers {
		closer()
	}
	for _, s := range f.servers {
		s.Shutdown()
		s.WaitForShutdown()
	}
	_ = os.RemoveAll(f.dir)
}
