package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Limits of the embedded server.
const (
	serverReady = 20 * time.Second
	readyPoll   = 100 * time.Millisecond
	// 50 batches open at once would block every further batch of a stream for
	// 10 s (design §2): allow more, and give up abandoned ones sooner.
	maxOpenBatches    = 1000
	maxOpenBatchesAll = 5000
	batchTimeout      = 2 * time.Second
	// A server of the cluster that is down is tried again each second, over several
	// connections; even at the debug level once in so many attempts is enough.
	reportRoutes = 600

	// nodeUser may do everything. Its password is this process's secret, or the
	// operator's when other nodes connect as clients.
	nodeUser = "node"
	// clientUser is anybody on the loopback listener: it may send mail.
	clientUser = "client"
)

// ServerConfig describes an embedded server.
type ServerConfig struct {
	// Name is the server's raft identity and must stay the same for ever: servers
	// restarted under new names never find a leader again (nats-facts 1.8).
	Name     string
	StoreDir string // locked by the caller, see LockDir
	// Prefix is the fleet's; it bounds what clients of Listen may publish.
	Prefix string
	// Listen is host:port for clients, "" for none. Anybody there may send mail
	// and nothing else; user "node" with Secret may do everything.
	Listen string
	Secret string // "" for a random one that only this process knows
	// Cluster is nil for a single server.
	Cluster *ClusterConfig
	Log     *slog.Logger
}

// ClusterConfig makes a server one of 3 or 5. A user and a password in the
// routes' URLs are asked for on this server's own listener too.
type ClusterConfig struct {
	Name   string
	Listen string   // host:port for the other servers
	Routes []string // nats-route://host:port of all, itself may be among them
}

// Server is a NATS server in this process. It flushes every acknowledged write
// (SyncAlways): by default two minutes of them are lost with the power.
type Server struct {
	ns     *server.Server
	secret string
}

// StartServer starts a server and waits until it takes connections. It does not
// wait for a cluster to elect leaders: Open does.
func StartServer(ctx context.Context, cfg ServerConfig) (*Server, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("start the embedded broker: %w", err)
	}
	log := &serverLog{log: cfg.Log, failed: make(chan struct{})}
	if log.log == nil {
		log.log = slog.New(slog.DiscardHandler)
	}
	ns.SetLoggerV2(log, false, false, false)
	s := &Server{ns: ns, secret: opts.Users[0].Password}

	ctx, cancel := context.WithTimeout(ctx, serverReady)
	defer cancel()
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		ns.Start()
		for !ns.ReadyForConnections(readyPoll) && ctx.Err() == nil && log.failure() == nil {
		}
	}()
	select {
	case <-ready:
	case <-log.failed:
	case <-ctx.Done():
	}
	if err := errors.Join(log.failure(), ctx.Err()); err != nil || !ns.Running() || ns.JetStreamConfig() == nil {
		s.Shutdown()
		<-ready
		return nil, cfg.explain(err)
	}
	return s, nil
}

// explain says in one sentence what an operator can do.
func (c ServerConfig) explain(err error) error {
	text := fmt.Sprint(err)
	if !strings.Contains(text, "address already in use") {
		return fmt.Errorf("the embedded broker did not start: %w", err)
	}
	addrs := []string{c.Listen}
	if c.Cluster != nil {
		addrs = append(addrs, c.Cluster.Listen)
	}
	return fmt.Errorf("the embedded broker cannot listen on %s: another process uses the port; stop it or choose another: %w",
		strings.Join(slices.DeleteFunc(addrs, func(a string) bool { return a == "" }), " and "), err)
}

func (c ServerConfig) options() (*server.Options, error) {
	if c.Name == "" || c.StoreDir == "" || c.Prefix == "" {
		return nil, errors.New("the embedded broker needs a name, a store directory and the stream prefix")
	}
	secret := c.Secret
	if secret == "" {
		secret = rand.Text()
	}
	opts := &server.Options{
		ServerName:             c.Name,
		DontListen:             c.Listen == "" && c.Cluster == nil,
		JetStream:              true,
		StoreDir:               c.StoreDir,
		SyncAlways:             true,
		NoSigs:                 true, // or it takes the node's signals
		DisableJetStreamBanner: true,
		MaxPayload:             maxMessage,
		ConnectErrorReports:    reportRoutes,
		ReconnectErrorReports:  reportRoutes,
		JetStreamLimits: server.JSLimitOpts{
			MaxBatchInflightPerStream: maxOpenBatches,
			MaxBatchInflightTotal:     maxOpenBatchesAll,
			MaxBatchTimeout:           batchTimeout,
			DefaultMaxConsumers:       maxConsumers,
		},
		Users: []*server.User{
			{Username: nodeUser, Password: secret},
			{Username: clientUser, Permissions: clientPermissions(c.Prefix)},
		},
	}
	switch c.Listen {
	case "":
		// A server of a cluster starts its routes only behind a client listener, and
		// without one never stops either: it gets one that only the node can use.
		opts.Host, opts.Port = "127.0.0.1", server.RANDOM_PORT
	default:
		opts.NoAuthUser = clientUser
		var err error
		if opts.Host, opts.Port, err = hostPort(c.Listen); err != nil {
			return nil, fmt.Errorf("stream.listen: %w", err)
		}
	}
	if c.Cluster != nil {
		if err := c.Cluster.apply(opts); err != nil {
			return nil, err
		}
	}
	return opts, nil
}

// clientPermissions: mail to the three mailboxes of any seat, and the answer to
// it. Not {p}.agent.>, since markers stand under {p}.agent._log.
func clientPermissions(prefix string) *server.Permissions {
	agent := prefix + ".agent.*."
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{agent + "inbox", agent + "control", agent + "reflect"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
	}
}

func (c *ClusterConfig) apply(opts *server.Options) error {
	host, port, err := hostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("stream.cluster.listen: %w", err)
	}
	if len(c.Routes) == 0 {
		return errors.New("stream.cluster.routes: name the other servers, at least one")
	}
	opts.Cluster = server.ClusterOpts{Name: c.Name, Host: host, Port: port}
	for _, route := range c.Routes {
		u, err := url.Parse(route)
		if err != nil || u.Host == "" {
			return fmt.Errorf("stream.cluster.routes: %q is not nats-route://host:port", route)
		}
		opts.Routes = append(opts.Routes, u)
		if u.User != nil {
			opts.Cluster.Username = u.User.Username()
			opts.Cluster.Password, _ = u.User.Password()
		}
	}
	return nil
}

func hostPort(addr string) (string, int, error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not host:port", addr)
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not a port", p)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(port), nil
}

// Name is the server's stable name.
func (s *Server) Name() string { return s.ns.Name() }

// ClientURL is where clients connect; "" when the server does not listen.
func (s *Server) ClientURL() string {
	if addr, ok := s.ns.Addr().(*net.TCPAddr); ok {
		return "nats://" + addr.String()
	}
	return ""
}

// NodeURL is ClientURL with the secret: for other nodes of the fleet.
func (s *Server) NodeURL() string {
	return strings.Replace(s.ClientURL(), "//", "//"+nodeUser+":"+s.secret+"@", 1)
}

// Shutdown stops the server and waits for it. Connections in this process are
// to be closed before. Not the lame-duck way: without a listener that does
// nothing (nats-facts 9).
func (s *Server) Shutdown() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
}

// serverLog hands the server's log to slog and notices that it gave up.
type serverLog struct {
	log *slog.Logger

	mu     sync.Mutex
	fatal  error
	failed chan struct{} // closed at the first fatal error
}

func (l *serverLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

// routine is what the server calls a warning or an error and is neither here: a
// cluster's other servers start after this one and are stopped before it, each
// node's password is its own or the operator's choice, and a snapshot at the end
// is how it stops. What a lost server means is said by those who wait for it.
var routine = []string{
	"Error trying to connect to route", "Plaintext passwords detected", "Waiting for routing to be established",
	"JetStream has not established contact with a meta leader",
	// What a server finds after a kill -9, and mends by itself.
	"Stream state outdated", "Recovering stream state from index errored", "Metalayer blocking snapshot",
}

func (l *serverLog) say(log func(msg string, args ...any), format string, v []any) {
	text := fmt.Sprintf(format, v...)
	if slices.ContainsFunc(routine, func(part string) bool { return strings.Contains(text, part) }) {
		log = l.log.Debug
	}
	log("broker_server", "text", text)
}

// The server's notices are its start and its raft elections: details to us.

func (l *serverLog) Noticef(format string, v ...any) { l.say(l.log.Debug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.say(l.log.Warn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.say(l.log.Error, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.say(l.log.Debug, format, v) }
func (l *serverLog) Tracef(format string, v ...any)  { l.say(l.log.Debug, format, v) }

func (l *serverLog) Fatalf(format string, v ...any) {
	l.say(l.log.Error, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == nil {
		l.fatal = fmt.Errorf(format, v...)
		close(l.failed)
	}
}
