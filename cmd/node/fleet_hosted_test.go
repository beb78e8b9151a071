package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
)

// fullCounts says that field cases run their full counts.
var fullCounts = os.Getenv("TENURE_CASES") == "full"

// times is n, or full for the full counts of a field case.
func times(n, full int) int {
	if fullCounts {
		return full
	}
	return n
}

// onlyInFull leaves a test to `make cases` that the stage of `make ci` has no time
// for; a shorter form of its case is elsewhere.
func onlyInFull(t *testing.T) {
	t.Helper()
	if !fullCounts {
		t.Skip("run make cases")
	}
}

// hosted is a whole node of the product, booted and run in this process: what it
// holds can be asked for without a client, and twenty of them need no twenty
// processes. Only a kill -9 and a SIGSTOP need a real one.
type hosted struct {
	*node
	logs *logLines
	end  context.CancelFunc // SIGTERM
	done chan struct{}      // closed when it has ended
}

// hostedConfig is a node of a fleet on these brokers.
func hostedConfig(tb testing.TB, id string, urls ...string) Config {
	cfg := DefaultConfig()
	cfg.Node.ID, cfg.DataDir = id, tb.TempDir()
	cfg.Stream.Type, cfg.Stream.URLs = streamExternal, urls
	cfg.Coordination.Type, cfg.Coordination.LeaseTTLSeconds = coordinationEmbeddedKV, minTTLSeconds
	cfg.Seat.SweepInterval = time.Second
	cfg.API.Listen = "127.0.0.1:0"
	return cfg
}

// hostNode boots a node and runs it until the test ends.
func hostNode(tb testing.TB, cfg Config, doc []byte) *hosted {
	tb.Helper()
	h := &hosted{logs: newLogLines(), done: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(&lineWriter{to: h.logs}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var given *companyDoc
	if doc != nil {
		given = &companyDoc{name: "company.yaml", doc: doc}
	}
	n, err := boot(tb.Context(), cfg, log, given)
	if err != nil {
		tb.Fatal(err)
	}
	h.node = n
	ctx, end := context.WithCancel(context.WithoutCancel(tb.Context()))
	h.end = end
	go func() {
		defer close(h.done)
		if err := n.run(ctx); err != nil {
			tb.Errorf("node %s ended: %v", cfg.Node.ID, err)
		}
	}()
	tb.Cleanup(func() {
		h.stop()
		if tb.Failed() {
			all, _ := h.logs.from(0)
			tb.Logf("log of %s:\n%s", cfg.Node.ID, strings.Join(all[max(0, len(all)-200):], "\n"))
		}
	})
	return h
}

// stop tells the node to stop and waits until it has.
func (h *hosted) stop() {
	h.end()
	<-h.done
}

// held counts the seats that the node admits turns on.
func (h *hosted) held() (n int) {
	for _, handle := range h.host.Held() {
		if _, err := h.host.MayStart(handle); err == nil {
			n++
		}
	}
	return n
}

// lineWriter splits what a log handler writes into lines.
type lineWriter struct {
	mu   sync.Mutex
	rest []byte
	to   *logLines
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.to.add(string(line))
		w.rest = rest
	}
}

// eventually waits until ok holds, looking each 20 ms: hosts tell of no edge
// from outside, and what they hold is asked for.
func eventually(tb testing.TB, limit time.Duration, what string, ok func() bool) time.Duration {
	tb.Helper()
	began, tick := time.Now(), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Since(began) > limit {
			tb.Fatalf("within %v it did not come to this: %s", limit, what)
		}
		<-tick.C
	}
	return time.Since(began)
}

// awaitShares waits until the nodes hold that many seats, all admitted.
func awaitShares(tb testing.TB, limit time.Duration, nodes []*hosted, want ...int) time.Duration {
	tb.Helper()
	return eventually(tb, limit, fmt.Sprintf("the nodes hold %v", want), func() bool {
		got := make([]int, len(nodes))
		for i, n := range nodes {
			got[i] = n.held()
		}
		return slices.Equal(got, want)
	})
}

// echoes is a company of n seats that echo, named s000 and on; label, unless
// empty, is what a node must have to run them.
func echoes(n int, label string) []byte {
	var b strings.Builder
	b.WriteString("company: {name: Acme}\nroles:\n")
	for i := range n {
		where := ""
		if label != "" {
			where = fmt.Sprintf(", placement: {labels: {%s}}", label)
		}
		fmt.Fprintf(&b, "  - {handle: s%03d, title: Clerk, kind: agent%s, runner: {echo: {}}}\n", i, where)
	}
	return []byte(b.String())
}

// seatName is the handle of seat i of echoes.
func seatName(i int) string { return fmt.Sprintf("s%03d", i) }

// history is historyOf, through the node's own connection.
func (h *hosted) history(tb testing.TB, streams ...events.Stream) []events.Recorded {
	tb.Helper()
	return historyOf(tb, h.store, streams...)
}

// historyOf reads the streams that count from the beginning, in the order of each
// stream.
func historyOf(tb testing.TB, store broker.Store, streams ...events.Stream) []events.Recorded {
	tb.Helper()
	var all []events.Recorded
	for _, st := range streams {
		stream := store.Stream(st)
		info, err := stream.Info(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		if info.Messages == 0 {
			continue
		}
		err = stream.Follow(tb.Context(), info.First, nil, func(msgs []events.Message, caughtUp bool) error {
			for _, msg := range msgs {
				r, err := events.Decode(store.Subjects(), msg)
				if err != nil {
					return err
				}
				all = append(all, r)
			}
			if caughtUp {
				return io.EOF
			}
			return nil
		})
		if !errors.Is(err, io.EOF) {
			tb.Fatalf("read %s: %v", st, err)
		}
	}
	return all
}

// audited requires that the history is legal.
func audited(tb testing.TB, url string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"--addr", url, "audit"}, strings.NewReader(""), &out, &errs); code != 0 {
		tb.Errorf("audit: exit %d\n%s%s", code, out.String(), errs.String())
	}
}

// outsider writes as somebody who is no node.
func outsider(store broker.Store) *commands.Shell {
	return commands.New(broker.NewLog(store), store.Subjects(), "op:00000000")
}

// post sends mail to the seat.
func post(ctx context.Context, shell *commands.Shell, handle, id string) error {
	_, err := shell.Send(ctx, events.Mail{
		Handle: handle, Mailbox: events.Inbox, ID: id, Type: events.TaskAssigned, Time: time.Now().UTC(), Data: []byte(`{}`),
	})
	return err
}

// mailFlow posts mail to seats in turn, one each so often, until it is stopped.
type mailFlow struct {
	stop func()            // waits
	sent map[string]string // seat by event id
	took []time.Duration   // of each post: how fast this machine and its broker are
}

// flow starts mail to n seats; the node it is posted through must live on.
func (h *hosted) flow(tb testing.TB, n int, every time.Duration) *mailFlow {
	tb.Helper()
	handles := make([]string, n)
	for i := range handles {
		handles[i] = seatName(i)
	}
	return h.flowTo(tb, every, handles...)
}

// flowTo is flow to these seats.
func (h *hosted) flowTo(tb testing.TB, every time.Duration, handles ...string) *mailFlow {
	tb.Helper()
	f := &mailFlow{sent: map[string]string{}}
	ctx, cancel := context.WithCancel(tb.Context())
	var posting sync.WaitGroup
	posting.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			id, handle := fmt.Sprintf("m-%05d", i), handles[i%len(handles)]
			began := time.Now()
			if err := post(context.WithoutCancel(ctx), h.shell, handle, id); err != nil {
				tb.Errorf("post %s: %v", id, err)
				return
			}
			f.sent[id], f.took = handle, append(f.took, time.Since(began))
		}
	})
	f.stop = sync.OnceFunc(func() { cancel(); posting.Wait() })
	tb.Cleanup(f.stop)
	return f
}

// answered stops the flow, waits until each piece of mail is completed, and
// returns the completions by event id. More than one for an id fails the test.
func (f *mailFlow) answered(tb testing.TB, h *hosted, limit time.Duration) map[string]events.TurnCompleted {
	tb.Helper()
	f.stop()
	done := map[string]events.TurnCompleted{}
	eventually(tb, limit, "all mail is answered", func() bool {
		for id, handle := range f.sent {
			if _, ok := done[id]; ok {
				continue
			}
			c, ok, err := h.shell.Completed(tb.Context(), handle, id)
			if err != nil || !ok {
				return false
			}
			done[id] = c
		}
		return true
	})
	count := map[string]int{}
	for _, r := range h.history(tb, events.StreamWork, events.StreamDead) {
		switch e := r.Event.(type) {
		case events.TurnCompleted:
			count[e.EventID]++
		case events.MailParked:
			tb.Errorf("mail %s to %s was parked: %s", e.EventID, e.Handle, e.Reason)
		}
	}
	for id := range f.sent {
		if count[id] != 1 {
			tb.Errorf("%s has %d completions", id, count[id])
		}
	}
	if len(f.sent) == 0 {
		tb.Error("no mail was sent")
	}
	return done
}

// logTime reads when a line was logged.
func logTime(tb testing.TB, line string) time.Time {
	tb.Helper()
	at, err := time.Parse(time.RFC3339Nano, regexp.MustCompile(`time=(\S+)`).FindStringSubmatch(line)[1])
	if err != nil {
		tb.Fatal(err)
	}
	return at
}

// percentile is the p-th of durations, by rank.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, (len(sorted)*p+99)/100)]
}

// swallower is a network between a node and its broker that a test may make
// lose everything: nothing is refused, and no connection breaks.
type swallower struct {
	l    net.Listener
	to   string
	work sync.WaitGroup

	mu    sync.Mutex
	lost  bool              // swallow
	conns map[net.Conn]bool // guarded by mu
}

// newSwallower listens for a node and connects it to the broker at that URL.
func newSwallower(tb testing.TB, url string) (s *swallower, through string) {
	tb.Helper()
	at := strings.LastIndex(url, "@") + 1
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s = &swallower{l: l, to: url[at:], conns: map[net.Conn]bool{}}
	s.work.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", s.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			s.mu.Lock()
			s.conns[in], s.conns[out] = true, true
			s.mu.Unlock()
			s.work.Go(func() { s.carry(in, out) })
			s.work.Go(func() { s.carry(out, in) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		s.breakAll()
		s.work.Wait()
	})
	return s, url[:at] + l.Addr().String()
}

// carry copies one direction; what comes while the network loses everything is
// read and dropped. A stream that lost bytes is of no use any more, as TCP's is
// not: whoever is at its ends finds out by himself.
func (s *swallower) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for lost := false; ; {
		n, err := from.Read(buf)
		s.mu.Lock()
		lost = lost || s.lost
		s.mu.Unlock()
		if err == nil && !lost {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// lose makes the network swallow everything, or carry new connections again.
func (s *swallower) lose(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = on
}

// breakAll closes all connections.
func (s *swallower) breakAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
	clear(s.conns)
}
