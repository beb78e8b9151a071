package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const eventsPath = "/events"

// exportPatience is how long a node may take to collect an export before its
// first line: its header says what the lines will be, so the node reads the log
// first. A collected export arrives at once, so then --timeout bounds a silence.
const exportPatience = 30 * time.Minute

// export opens the node's history: an export, see package audit. The caller
// closes it.
func (cl *client) export(ctx context.Context) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	alarm := time.AfterFunc(max(exportPatience, cl.timeout), func() { cancel(errNoAnswer) })
	body, err := cl.stream(ctx, nil)
	if err != nil {
		alarm.Stop()
		cancel(nil)
		return nil, err
	}
	return &guarded{cl: cl, ctx: ctx, body: body, alarm: alarm, cancel: cancel}, nil
}

// guarded is a body whose errors are sentences, and whose every part must come in
// time where it has an alarm.
type guarded struct {
	cl     *client
	ctx    context.Context // of the request that the body answers
	body   io.ReadCloser
	alarm  *time.Timer // nil: silence is no fault
	cancel context.CancelCauseFunc
}

func (g *guarded) Read(p []byte) (int, error) {
	n, err := g.body.Read(p)
	if n > 0 && g.alarm != nil {
		g.alarm.Reset(g.cl.timeout)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = g.cl.explain(g.ctx, err)
	}
	return n, err
}

func (g *guarded) Close() error {
	if g.alarm != nil {
		g.alarm.Stop()
	}
	g.cancel(nil)
	defer g.cl.close()
	return g.body.Close()
}

// follow opens the events of a stream from the one after a position on, without
// an end. Silence is no fault of it: nothing may be happening. A peer that is
// gone without a word is found by TCP's own keep-alives.
func (cl *client) follow(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	alarm := time.AfterFunc(cl.timeout, func() { cancel(errNoAnswer) }) // for the head of the answer
	body, err := cl.stream(ctx, query)
	if !alarm.Stop() && err == nil {
		err = errors.Join(cl.explain(ctx, errNoAnswer), body.Close())
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return &guarded{cl: cl, ctx: ctx, body: body, cancel: cancel}, nil
}

func (cl *client) stream(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	resp, err := cl.send(ctx, http.MethodGet, eventsPath, query, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint)) // what can be read of it
		return nil, cl.refused(resp, body)
	}
	return resp.Body, nil
}

// counted tells report about every megabyte or so that was read.
type counted struct {
	io.Reader
	report func(total int64)
	total  int64
	next   int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.total += int64(n)
	if c.total >= c.next || (err != nil && c.total > 0) {
		c.report(c.total)
		c.next = c.total + 1<<20
	}
	return n, err
}

// progress shows on a terminal how much of a long answer has come; elsewhere it
// says nothing. done ends its line.
func progress(stderr io.Writer, doing string) (report func(int64), done func()) {
	if !isTerminal(stderr) {
		return func(int64) {}, func() {}
	}
	fmt.Fprintf(stderr, "%s: the node collects it", doing)
	return func(total int64) { fmt.Fprintf(stderr, "\r\x1b[K%s: %.1f MB", doing, float64(total)/1e6) },
		func() { fmt.Fprintln(stderr) }
}
