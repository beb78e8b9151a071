package broker_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

func single(t *testing.T, listen string) *broker.Server {
	t.Helper()
	s, err := broker.StartServer(t.Context(), broker.ServerConfig{
		Name: "n1", StoreDir: filepath.Join(t.TempDir(), "jetstream"), Prefix: "crewlet", Listen: listen,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func inProcess(t *testing.T, s *broker.Server) *broker.JetStream {
	t.Helper()
	conn, err := broker.Connect(t.Context(), broker.ConnectConfig{Name: "n1", Server: s})
	if err != nil {
		t.Fatal(err)
	}
	store, err := broker.Open(t.Context(), conn, broker.Config{Prefix: "crewlet", Replicas: 1, LeaseTTL: 45 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// A server that listens nowhere serves the node it lives in.
func TestServerWithoutListener(t *testing.T) {
	s := single(t, "")
	if url := s.ClientURL(); url != "" {
		t.Errorf("listens on %s", url)
	}
	store := inProcess(t, s)
	mustAppend(t, store.Stream(events.StreamFleet), write("crewlet.fleet.company", "{}", nil))
}

// A port in use is told in one sentence, at once, and nothing is left running.
func TestServerPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := time.Now()
	_, err = broker.StartServer(t.Context(), broker.ServerConfig{Name: "n1", StoreDir: t.TempDir(), Prefix: "crewlet", Listen: l.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(err.Error(), "another process uses the port") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("told after %v", took)
	}
	_, err = broker.StartServer(t.Context(), broker.ServerConfig{
		Name: "n1", StoreDir: t.TempDir(), Prefix: "crewlet",
		Cluster: &broker.ClusterConfig{Name: "acme", Listen: l.Addr().String(), Routes: []string{"nats-route://127.0.0.1:1"}},
	})
	if err == nil || !strings.Contains(err.Error(), "another process uses the port") {
		t.Errorf("cluster port: got %v", err)
	}
}

// Impossible settings are named before anything starts.
func TestServerConfigRefused(t *testing.T) {
	good := broker.ServerConfig{Name: "n1", StoreDir: t.TempDir(), Prefix: "crewlet"}
	for want, change := range map[string]func(*broker.ServerConfig){
		"needs a name":          func(c *broker.ServerConfig) { c.Name = "" },
		"stream.listen":         func(c *broker.ServerConfig) { c.Listen = "4222" },
		"is not a port":         func(c *broker.ServerConfig) { c.Listen = "127.0.0.1:http" },
		"stream.cluster.listen": func(c *broker.ServerConfig) { c.Cluster = &broker.ClusterConfig{Name: "acme"} },
		"name the other servers": func(c *broker.ServerConfig) {
			c.Cluster = &broker.ClusterConfig{Name: "acme", Listen: "127.0.0.1:6222"}
		},
	} {
		c := good
		change(&c)
		if _, err := broker.StartServer(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

// A client of the loopback listener sends mail and gets its receipt; leases,
// cursors, markers, the streams' administration and other clients' answers are
// closed to it (design §3, local).
func TestLoopbackClientSendsMailOnly(t *testing.T) {
	s := single(t, "127.0.0.1:0")
	store := inProcess(t, s)
	denied := make(chan error, 100)
	nc, err := nats.Connect(s.ClientURL(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("crewlet.agent.ada.inbox", []byte("hello"), 5*time.Second); err != nil {
		t.Errorf("mail: %v", err)
	}
	if m, err := store.Stream(events.StreamMail).Last(t.Context(), "crewlet.agent.ada.inbox"); err != nil || string(m.Data) != "hello" {
		t.Errorf("stored %q, %v", m.Data, err)
	}
	for _, subject := range []string{
		"crewlet.fleet.lease.seat.ada.tenure", "crewlet.fleet.host.ada", "crewlet.cursor.ada.inbox", "crewlet.work.ada.1",
		"crewlet.agent._log", "$JS.API.STREAM.PURGE.CREWLET_FLEET", "$JS.API.STREAM.DELETE.CREWLET_MAIL", "$JS.API.STREAM.MSG.GET.CREWLET_FLEET",
	} {
		if err := nc.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-denied:
			if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), subject) {
				t.Errorf("%s: %v", subject, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: may be published to", subject)
		}
	}
	if _, err := nc.SubscribeSync("_NODE.>"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-denied:
	case <-time.After(10 * time.Second):
		t.Error("may listen to the node's answers")
	}
	for _, st := range []events.Stream{events.StreamFleet, events.StreamCursor, events.StreamWork} {
		if info, err := store.Stream(st).Info(t.Context()); err != nil || info.Last != 0 {
			t.Errorf("%s: %+v, %v", st, info, err)
		}
	}
}

// Streams outlive their server; a client finds them again by itself, and what
// it asks meanwhile fails instead of waiting somewhere.
func TestServerRestartKeepsStreams(t *testing.T) {
	b := natstest.R1(t)
	store := b.Store(0)
	s := store.Stream(events.StreamFleet)
	mustAppend(t, s, write("crewlet.fleet.host.ada", "1", nil))
	before, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Stop(0)
	_, err = s.Append(t.Context(), write("crewlet.fleet.host.ada", "lost", nil))
	if !errors.Is(err, events.ErrUnavailable) && !errors.Is(err, events.ErrUnknown) {
		t.Errorf("without a server: %v", err)
	}
	_, err = s.Last(t.Context(), "crewlet.fleet.host.ada")
	wantErr(t, "read without a server", err, events.ErrUnavailable)
	b.Start(0)
	again := b.Store(0).Stream(events.StreamFleet)
	after, err := again.Info(t.Context())
	if err != nil || !after.CreatedAt.Equal(before.CreatedAt) || after.Last != before.Last {
		t.Errorf("before %+v, after %+v, %v", before, after, err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		m, err := s.Last(t.Context(), "crewlet.fleet.host.ada")
		if err == nil {
			if string(m.Data) != "1" {
				t.Errorf("found %q", m.Data)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the old connection did not come back: %v", err)
		}
	}
}

// A broker that is not there is told within the caller's time, without its
// password.
func TestConnectNobodyThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := broker.Connect(ctx, broker.ConnectConfig{Name: "n1", URLs: []string{"nats://node:hidden@127.0.0.1:1"}})
	if !errors.Is(err, events.ErrUnavailable) || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

// A stream with other settings is reported by field, and neither used nor
// changed.
func TestOpenMismatch(t *testing.T) {
	b := natstest.R1(t)
	b.Store(0)
	nc, err := nats.Connect(b.Server(0).NodeURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "CREWLET_FLEET")
	if err != nil {
		t.Fatal(err)
	}
	changed := stream.CachedInfo().Config
	changed.AllowRollup, changed.DenyDelete = true, true
	if _, err := js.UpdateStream(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	_, err = broker.Open(t.Context(), b.Conn(0), b.Config())
	var mismatch *broker.MismatchError
	if !errors.As(err, &mismatch) || mismatch.Stream != "CREWLET_FLEET" || mismatch.Field != "allow_rollup_hdrs" || mismatch.Have != "true" || mismatch.Want != "false" {
		t.Fatalf("got %v", err)
	}
	if stream, err = js.Stream(t.Context(), "CREWLET_FLEET"); err != nil || !stream.CachedInfo().Config.AllowRollup {
		t.Errorf("it was changed: %+v, %v", stream.CachedInfo().Config, err)
	}
	// More copies than there are servers: a refusal, not a wait.
	start, cfg := time.Now(), b.Config()
	cfg.Prefix, cfg.Replicas = "other", 3
	if _, err := broker.Open(t.Context(), b.Conn(0), cfg); err == nil || time.Since(start) > 30*time.Second {
		t.Errorf("three replicas on one server: %v after %v", err, time.Since(start))
	}
}

// A server of a cluster that offers no listener lets no stranger in.
func TestClusteredServerWithoutListener(t *testing.T) {
	s, err := broker.StartServer(t.Context(), broker.ServerConfig{
		Name: "n1", StoreDir: t.TempDir(), Prefix: "crewlet",
		Cluster: &broker.ClusterConfig{Name: "acme", Listen: "127.0.0.1:0", Routes: []string{"nats-route://127.0.0.1:1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	if nc, err := nats.Connect(s.ClientURL()); err == nil {
		nc.Close()
		t.Error("a stranger was let in")
	}
	conn, err := broker.Connect(t.Context(), broker.ConnectConfig{Name: "n1", Server: s})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
