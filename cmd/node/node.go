package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/metrics"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/turn"
)

// lockWait is how long a start waits for a predecessor that is still stopping.
const lockWait = 10 * time.Second

// node is one running node: the parts, wired. It is made by boot, which leaves
// nothing behind when it fails, and lives in run.
type node struct {
	cfg  Config
	log  *slog.Logger
	self events.Incarnation

	dir      dataDir
	server   *broker.Server // nil on an external broker
	store    *broker.JetStream
	mail     *broker.Mailboxes
	logClock *broker.LogClock
	views    *badgerstore.Store

	shell    *commands.Shell
	cursors  *commands.Cursors
	roster   *roster
	inboxes  *turn.Inboxes
	host     *seat.Host
	watchdog *seat.Watchdog
	operator *operator
	duties   *duties
	pausing  sync.Mutex    // between a pause that comes and a seat that attaches
	api      net.Listener  // nil when the node has no role "api"
	tokens   *graph.Tokens // that the API asks for; nil for none
	metrics  *metrics.Set  // nil without it: nobody could ask for them
	// stay, unless nil, returns when the log may go: the seats are given back by
	// then, and everything else still serves.
	stay func()

	closers []func() // in the order in which they were opened
}

// boot opens everything in the order in which it depends on each other: the
// directory's lock before any store, the log before any claim. doc, when not
// nil, becomes the company's newest revision.
func boot(ctx context.Context, cfg Config, log *slog.Logger, doc *companyDoc) (n *node, err error) {
	n = &node{cfg: cfg, log: log}
	defer func() {
		if err != nil {
			n.close()
			n = nil
		}
	}()
	if n.self, err = mintIncarnation(cfg.Node.ID); err != nil {
		return n, err
	}
	if err = n.openDir(ctx); err != nil {
		return n, err
	}
	if err = n.listen(ctx); err != nil { // before anything is claimed: a port in use is the commonest failure
		return n, err
	}
	if err = n.openLog(ctx); err != nil {
		return n, err
	}
	if err = n.openViews(ctx); err != nil {
		return n, err
	}
	n.shell = commands.New(broker.NewLog(n.store), n.store.Subjects(), n.self)
	n.mail = broker.NewMailboxes(n.store)
	n.cursors = n.shell.Cursors(n.mail)
	n.roster = newRoster(turn.Mark{DataDir: n.dir.ID, Incarnation: string(n.self)}, log)
	if err = n.company(ctx, doc); err != nil {
		return n, err
	}
	n.wire(ctx)
	if n.duties, err = newDuties(n); err != nil {
		return n, err
	}
	if n.operator, err = newOperator(n); err != nil {
		return n, err
	}
	return n, n.handoffs(ctx)
}

// mintIncarnation names this run of this process (L1).
func mintIncarnation(nodeID string) (events.Incarnation, error) {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	i := events.Incarnation(nodeID + ":" + hex.EncodeToString(b[:]))
	return i, i.Valid()
}

func (n *node) openDir(ctx context.Context) error {
	dir, err := openDataDir(ctx, n.cfg.DataDir, lockWait)
	if err != nil {
		return err
	}
	n.dir = dir
	n.closers = append(n.closers, func() { _ = dir.lock.Release() })
	ended, err := turn.SweepLeftovers(ctx, dir.ID)
	if ended > 0 {
		n.log.Warn("leftover_children_ended", "processes", ended)
	}
	if err != nil {
		return fmt.Errorf("processes of this node's predecessor are still running: %w", err)
	}
	return nil
}

func (n *node) listen(ctx context.Context) error {
	if !slices.Contains(n.cfg.Node.Roles, "api") {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", n.cfg.API.Listen)
	if err != nil {
		return fmt.Errorf("api.listen %s: %w; stop what uses it, or choose another address", n.cfg.API.Listen, plainNetError(err))
	}
	n.api = l
	n.closers = append(n.closers, func() { _ = l.Close() })
	return n.secure()
}

// plainNetError drops what net adds around the system's own words.
func plainNetError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		var call *os.SyscallError
		if errors.As(op.Err, &call) {
			return call.Err
		}
		return op.Err
	}
	return err
}

// openLog starts or reaches the broker, opens the streams and marks them.
func (n *node) openLog(ctx context.Context) error {
	conn := broker.ConnectConfig{Name: n.cfg.Node.ID, URLs: n.cfg.Stream.URLs, Credentials: n.cfg.Stream.Credentials, Log: n.log}
	if n.cfg.Stream.Type == streamEmbedded {
		if k := n.cfg.Stream.Cluster; n.cfg.Clustered() {
			n.log.Info("broker_cluster_joining", "cluster", k.Name, "listen", k.Listen, "servers", len(k.Routes), "needed", len(k.Routes)/2+1)
		}
		server, err := broker.StartServer(ctx, n.serverConfig())
		if err != nil {
			return err
		}
		n.server, conn.Server = server, server
		n.closers = append(n.closers, server.Shutdown)
	}
	dialing, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	c, err := broker.Connect(dialing, conn)
	if err != nil {
		return err
	}
	n.store, err = broker.Open(ctx, c, broker.Config{Prefix: n.cfg.Stream.Prefix, Replicas: n.cfg.Stream.Replicas, LeaseTTL: n.cfg.TTL()})
	if err != nil {
		return n.withoutQuorum(err)
	}
	n.closers = append(n.closers, func() { _ = n.store.Close() })
	if ttl := n.store.LeaseTTL(); ttl != n.cfg.TTL() { // L7
		n.log.Warn("lease_ttl_adopted", "fleet", ttl, "file", n.cfg.TTL(),
			"do", "set coordination.lease_ttl_seconds to the fleet's value; only a new fleet can have another")
	}
	n.logClock = broker.NewLogClock(n.store.Stream(events.StreamFleet), clock.System, n.store.LeaseTTL())
	_, err = n.marks().Mark(ctx)
	return err
}

// dialFor bounds how long a start waits for an external broker.
const dialFor = 30 * time.Second

func (n *node) marks() broker.Marks { return broker.Marks{Store: n.store, Source: n.self} }

func (n *node) serverConfig() broker.ServerConfig {
	s := broker.ServerConfig{
		Name: n.cfg.Node.ID, StoreDir: filepath.Join(n.cfg.DataDir, "jetstream"),
		Prefix: n.cfg.Stream.Prefix, Listen: n.cfg.Stream.Listen, Log: n.log,
	}
	if n.cfg.Clustered() {
		s.Cluster, s.Secret = clusterServer(n.cfg.Stream.Cluster)
	}
	return s
}

// run works until ctx ends, then gives everything back: seats first, while the
// log, the views and the API still serve, then the rest.
func (n *node) run(ctx context.Context) error {
	defer n.close()
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	g, serving := errgroup.WithContext(serving)
	// A part that fails takes the seats along in an orderly way.
	hosting, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	defer context.AfterFunc(serving, func() { leave(context.Cause(serving)) })()
	g.Go(func() error { // disarmed from the first moment of a shutdown (X2)
		_ = n.watchdog.Run(hosting)
		return nil
	})
	for _, part := range n.parts() {
		g.Go(func() error { return part(serving) })
	}
	g.Go(func() error {
		err := n.host.Run(hosting)
		if n.stay != nil && ctx.Err() != nil {
			n.log.Info("node_seats_returned", "node", n.cfg.Node.ID)
			n.stay()
		}
		stop(err)
		return err
	})
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// close closes what was opened, the newest first; the directory's lock last.
func (n *node) close() {
	for _, closer := range slices.Backward(n.closers) {
		closer()
	}
	n.closers = nil
}

// url is where the API answers.
func (n *node) url() string {
	if n.api == nil {
		return ""
	}
	host := n.api.Addr().String()
	if strings.HasPrefix(host, "[::]:") {
		host = "127.0.0.1" + strings.TrimPrefix(host, "[::]")
	}
	if _, is := n.api.(secured); is {
		return "https://" + host
	}
	return "http://" + host
}
