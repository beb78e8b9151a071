package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// explain turns a request that got no answer into one sentence: what happened,
// with which node, and what to do.
func (cl *client) explain(ctx context.Context, err error) error {
	addr := cl.base.String()
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		rec  tls.RecordHeaderError
		wait interface{ Timeout() bool }
		op   *url.Error
	)
	if errors.As(err, &op) {
		err = op.Err // it repeats method and URL
	}
	switch {
	case errors.Is(context.Cause(ctx), errNoAnswer):
		return &lostError{fmt.Sprintf("the node at %s did not answer within %s; see whether it is well, or wait longer with --timeout", addr, cl.timeout)}
	case ctx.Err() != nil:
		return &lostError{"interrupted"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &absentError{fmt.Sprintf("no node listens at %s; start one with `tenure dev`, or name another with --addr", addr)}
	case errors.As(err, &dns):
		return fmt.Errorf("there is no host %q; correct --addr", dns.Name)
	case errors.As(err, &cert):
		return fmt.Errorf("the certificate of %s is not one that this machine trusts: %w", addr, cert.Err)
	case errors.As(err, &rec), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s does not speak TLS; write http:// instead of https://", addr)
	case errors.As(err, &wait) && wait.Timeout():
		return &absentError{fmt.Sprintf("the node at %s cannot be reached: no connection within %s", addr, cl.timeout)}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return &lostError{fmt.Sprintf("the node at %s broke off before its answer was complete; it may be restarting, try again", addr)}
	}
	return fmt.Errorf("asking the node at %s: %w", addr, err)
}

// lostError says that the answer to a request that was sent, or may have been,
// did not come: what it asked for may have happened.
type lostError struct{ text string }

func (e *lostError) Error() string { return e.text }

// absentError says that there was nobody to ask, so that nothing was asked.
type absentError struct{ text string }

func (e *absentError) Error() string { return e.text }

// refused is what an answer says that is an error of HTTP, and not one of the
// API's. body is the beginning of it.
func (cl *client) refused(resp *http.Response, body []byte) error {
	addr := cl.base.String()
	var coded answer[struct{}]
	if json.Unmarshal(body, &coded) == nil && coded.coded() {
		return cl.denied(resp, joined(coded.Errors))
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized:
		return cl.denied(resp, &apiError{})
	case code == http.StatusNotFound:
		return fmt.Errorf("%s answers, and has no %s: it is no node of tenure, or one of another version", addr, resp.Request.URL.Path)
	case code >= 300 && code < 400:
		return fmt.Errorf("%s sends requests on to %q; name the node itself with --addr", addr, resp.Header.Get("Location"))
	case strings.HasPrefix(string(body), "Client sent an HTTP request to an HTTPS server"):
		return fmt.Errorf("%s speaks TLS; write https:// instead of http://", addr)
	}
	return fmt.Errorf("the node at %s answered %s%s", addr, resp.Status, firstLine(body))
}

// denied adds to an error of the API what only this side knows: which token was
// shown.
func (cl *client) denied(resp *http.Response, err error) error {
	switch {
	case resp.StatusCode != http.StatusUnauthorized:
		return err
	case cl.token == "":
		return fmt.Errorf("the node at %s asks for a token; name its file with --token-file", cl.base)
	default:
		return fmt.Errorf("the node at %s does not know the token of --token-file", cl.base)
	}
}

// firstLine is what a body says, for the end of a sentence.
func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	const most = 300
	if len(line) > most {
		line = line[:most] + "…"
	}
	if line == "" {
		return ""
	}
	return ": " + plain(line)
}
