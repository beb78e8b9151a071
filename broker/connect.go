package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/events"
)

// Limits of a connection.
const (
	dialTimeout   = 2 * time.Second
	dialRetry     = 250 * time.Millisecond
	pingEvery     = 5 * time.Second // with pingsLost: a blackholed connection is given up after 15 s
	pingsLost     = 2
	reconnectWait = 200 * time.Millisecond
)

// ConnectConfig says which broker to speak to.
type ConnectConfig struct {
	Name        string   // shown by the broker, the node's id
	Server      *Server  // an embedded server in this process; else URLs
	URLs        []string // nats://[user:password@]host:port
	Credentials string   // path of a credentials file, "" for none
	Log         *slog.Logger
}

// Conn is one connection to a broker. It reconnects for ever and keeps no
// buffer meanwhile: what is sent while it is broken fails at once, so that
// nothing arrives late without its sender knowing (design §2).
type Conn struct {
	nc     *nats.Conn
	closed chan struct{} // closed by the client when it has given up everything

	mu       sync.Mutex
	watchers map[chan struct{}]struct{} // told about each reconnect
	line     context.Context            // ends when the present line to a server breaks
	hangUp   context.CancelCauseFunc
}

// errLineBroken ends requests whose answer can no longer come.
var errLineBroken = errors.New("the connection broke")

// Connect opens a connection, trying until ctx ends.
func Connect(ctx context.Context, cfg ConnectConfig) (*Conn, error) {
	c := &Conn{closed: make(chan struct{}), watchers: map[chan struct{}]struct{}{}}
	c.line, c.hangUp = context.WithCancelCause(context.WithoutCancel(ctx)) // outlives the dialling
	urls, opts := c.options(cfg)
	for {
		nc, err := nats.Connect(urls, opts...)
		if err == nil {
			c.nc = nc
			return c, nil
		}
		if errors.Is(err, nats.ErrAuthorization) || !wait(ctx, dialRetry) {
			return nil, fmt.Errorf("connect to the broker at %s: %w: %w", where(cfg), events.ErrUnavailable, err)
		}
	}
}

func where(cfg ConnectConfig) string {
	if cfg.Server != nil {
		return "this process"
	}
	shown := make([]string, len(cfg.URLs))
	for i, url := range cfg.URLs {
		if scheme, host, ok := strings.Cut(url, "//"); ok {
			shown[i] = scheme + "//" + host[strings.LastIndex(host, "@")+1:] // no password in a log
		}
	}
	return strings.Join(shown, ", ")
}

func (c *Conn) options(cfg ConnectConfig) (string, []nats.Option) {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	opts := []nats.Option{
		nats.Name(cfg.Name),
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1), // the default gives up, and the connection is closed for ever
		nats.ReconnectBufSize(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait/2, reconnectWait),
		nats.IgnoreAuthErrorAbort(), // else two refusals in a row close it for ever too
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsLost),
		// A refused permission is told here only; the request itself times out.
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Warn("broker_error", "subject", subject, "err", err)
		}),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			c.disconnected()
			if !nc.IsClosed() {
				log.Warn("broker_disconnected", "err", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("broker_reconnected", "server", nc.ConnectedServerName())
			c.reconnected()
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(cfg.Credentials))
	}
	if cfg.Server != nil {
		// Clients of a loopback listener may subscribe to _INBOX.>: the node's
		// answers go elsewhere.
		opts = append(opts, nats.InProcessServer(cfg.Server.ns), nats.UserInfo(nodeUser, cfg.Server.secret),
			nats.CustomInboxPrefix("_NODE"))
		return "", opts
	}
	return strings.Join(cfg.URLs, ","), opts
}

// Received counts the messages that came over this connection; see JetStream.
func (c *Conn) Received() uint64 { return c.nc.Stats().InMsgs }

// Connected says whether the connection stands at this moment.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// Close ends the connection and waits until the client has let go of it.
func (c *Conn) Close() {
	c.nc.Close()
	<-c.closed
	c.disconnected()
}

// watch returns a channel that gets a value after each reconnect, until
// unwatch: what was on the way while the connection broke is lost.
func (c *Conn) watch() chan struct{} {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers[ch] = struct{}{}
	return ch
}

func (c *Conn) unwatch(ch chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, ch)
}

// bound limits one request in time, and to the line it is sent over: the client
// itself would wait for an answer that was lost with it.
func (c *Conn) bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	line := c.line
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(line, cancel)
	return ctx, func() { stop(); cancel() }
}

func (c *Conn) disconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hangUp(errLineBroken)
	c.line, c.hangUp = context.WithCancelCause(context.WithoutCancel(c.line))
}

func (c *Conn) reconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
