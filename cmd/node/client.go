package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	defaultAddr    = "http://127.0.0.1:8420"
	addrVariable   = "TENURE_ADDR"
	defaultTimeout = 30 * time.Second

	maxTokenFile = 4 << 10  // bytes
	maxAnswer    = 32 << 20 // bytes of an answer that is held whole; a page of 500 seats is far below
	maxComplaint = 4 << 10  // bytes that are read of an answer that is an error
)

func (c *cli) addGlobalFlags(flags *pflag.FlagSet) {
	c.format = formatText
	flags.StringVar(&c.addr, "addr", "", "node to ask (default $"+addrVariable+", else "+defaultAddr+")")
	flags.StringVar(&c.tokenFile, "token-file", "", "file that holds the token for the node's API")
	flags.VarP(&c.format, "output", "o", "text, json (one document) or jsonl (an object a line)")
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long to wait for an answer, or for the next part of a long one")
}

// client asks one node. It is safe for concurrent use.
type client struct {
	base    *url.URL
	token   string
	timeout time.Duration
	http    *http.Client
	warn    func(string) // tells the user; the command goes on
}

// client is the client that the global flags ask for.
func (c *cli) client(cmd *cobra.Command) (*client, error) {
	if c.timeout <= 0 {
		return nil, usagef("--timeout: %s is no time to wait; write for example 30s", c.timeout)
	}
	from, addr := "--addr", c.addr
	if addr == "" {
		from, addr = addrVariable, os.Getenv(addrVariable)
	}
	if addr == "" {
		addr = defaultAddr
	}
	base, err := parseAddr(addr)
	if err != nil {
		return nil, usagef("%s: %w", from, err)
	}
	token, err := readToken(c.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	warn := func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "tenure: %s\n", text) }
	return &client{base: base, token: token, timeout: c.timeout, warn: warn, http: &http.Client{
		// Ours alone: what was asked of a node is not to be sent elsewhere,
		// its token least of all.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: c.timeout, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: c.timeout,
			ForceAttemptHTTP2:   true,
		},
	}}, nil
}

// close lets go of connections that are kept for a next request.
func (cl *client) close() { cl.http.CloseIdleConnections() }

// parseAddr takes http://host:port, https://host:port and host:port.
func parseAddr(addr string) (*url.URL, error) {
	full := addr
	if !strings.Contains(addr, "://") {
		full = "http://" + addr
	}
	u, err := url.Parse(full)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is no address of a node; write for example %s", addr, defaultAddr)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// Not shown: this is where a password or a token would stand.
		return nil, fmt.Errorf("the address has more than scheme, host and port; a token goes into a file, see --token-file")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", fmt.Errorf("%s is empty", path)
	case len(text) > maxTokenFile:
		return "", fmt.Errorf("%s is longer than the %d bytes that a token may have", path, maxTokenFile)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s holds more than one token: write nothing else into it", path)
	}
	return token, nil
}

// errNoAnswer: the node did not answer in time.
var errNoAnswer = errors.New("no answer in time")

// send sends a request and returns an answer that is no error. The caller
// closes its body.
func (cl *client) send(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Response, error) {
	u := *cl.base
	u.Path += path
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "tenure/"+buildVersion())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if cl.token != "" {
		req.Header.Set("Authorization", "Bearer "+cl.token)
	}
	resp, err := cl.http.Do(req)
	if err != nil {
		return nil, cl.explain(ctx, err)
	}
	return resp, nil
}
