package graph_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/graph"
)

// pipes is a listener in memory, so that connections live on fake time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestWaitOutlivesDeadlines: the deadlines of a connection, for its header, its
// body and what is written, do not cut off somebody who waits for minutes.
func TestWaitOutlivesDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, listener := acme(t), newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- graph.Serve(ctx, listener, graph.New(w.deps(t))) }()
		time.AfterFunc(9*time.Minute, func() { w.complete("ada", "mail-7") })

		transport := &http.Transport{DialContext: listener.dial}
		r := request(send, message(vars{"wait": "PT10M"}))
		r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", "node"
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 1<<10)
		n, _ := answer.Body.Read(body)
		if !strings.Contains(string(body[:n]), `"outcome":"done"`) {
			t.Errorf("got %s", body[:n])
		}
		answer.Body.Close()
		transport.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// TestSlowBody: a body that does not arrive is not waited for.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- graph.Serve(ctx, listener, graph.New(acme(t).deps(t))) }()
		conn, err := listener.dial(ctx, "", "")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := conn.Write([]byte("POST /graphql HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 1<<10)
		n, err := conn.Read(answer)
		if err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 400 ") || time.Since(began) != 30*time.Second {
			t.Errorf("after %s: %v %s", time.Since(began), err, answer[:n])
		}
		conn.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
