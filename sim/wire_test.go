package sim_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

// gate is shut while a process stands still.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // guarded by mu; nil: it is open
}

// wait returns once the process runs.
func (g *gate) wait() {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return
		}
		<-shut
	}
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

// wire is what a process sees of the broker. While it stands still it sends
// nothing and takes in no answer: what was on its way arrives, and is answered
// when it wakes. Its replicas may lag, and its wall clock may be wrong.
type wire struct {
	broker.Store
	gate *gate

	mu    sync.Mutex
	lags  bool                        // guarded by mu
	old   map[string][]events.Message // what replicas answered when they began to lag; guarded by mu
	wrong time.Duration               // of the wall clock; guarded by mu
	late  time.Duration               // by which answers come; guarded by mu
}

// lag makes replicas answer what they did at that time (true), or the truth.
func (w *wire) lag(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lags, w.old = on, map[string][]events.Message{}
}

// jump moves the process's wall clock.
func (w *wire) jump(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong += d
}

func (w *wire) Stream(st events.Stream) broker.Stream { return &lane{w.Store.Stream(st), w} }

func (w *wire) Subscribe(ctx context.Context, subject string, fn func(string)) (func(), error) {
	w.gate.wait()
	return w.Store.Subscribe(ctx, subject, func(s string) { w.gate.wait(); fn(s) })
}

// tarry makes answers come that much later than what they answer.
func (w *wire) tarry(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = d
}

func (w *wire) lateness() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late
}

// stamped shows a write as the process's wall clock has it.
func (w *wire) stamped(x events.Write) events.Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, err := time.Parse(time.RFC3339Nano, x.Header.Get(events.HeaderTime))
	if w.wrong == 0 || err != nil {
		return x
	}
	x.Header = maps.Clone(x.Header)
	x.Header.Set(events.HeaderTime, at.Add(w.wrong).UTC().Format(time.RFC3339Nano))
	return x
}

// lane is one stream as a process sees it.
type lane struct {
	broker.Stream
	w *wire
}

// through does one request: sent while the process runs, answered when it does. If
// the answer takes longer than ctx, nobody knows what it was.
func through[T any](ctx context.Context, l *lane, ask func() (T, error)) (T, error) {
	l.w.gate.wait()
	defer l.w.gate.wait()
	got, err := ask()
	if late := l.w.lateness(); late > 0 && pass(ctx, late) != nil {
		var none T
		return none, fmt.Errorf("%w: the answer took too long", events.ErrUnknown)
	}
	return got, err
}

func (l *lane) Append(ctx context.Context, w events.Write) (uint64, error) {
	return through(ctx, l, func() (uint64, error) { return l.Stream.Append(ctx, l.w.stamped(w)) })
}

func (l *lane) AppendBatch(ctx context.Context, ws []events.Write) (uint64, error) {
	stamped := make([]events.Write, len(ws))
	for i, w := range ws {
		stamped[i] = l.w.stamped(w)
	}
	return through(ctx, l, func() (uint64, error) { return l.Stream.AppendBatch(ctx, stamped) })
}

func (l *lane) Get(ctx context.Context, seq uint64) (events.Message, error) {
	return through(ctx, l, func() (events.Message, error) { return l.Stream.Get(ctx, seq) })
}

func (l *lane) Last(ctx context.Context, filter string) (events.Message, error) {
	return through(ctx, l, func() (events.Message, error) { return l.Stream.Last(ctx, filter) })
}

func (l *lane) Next(ctx context.Context, filter string, from uint64) (events.Message, error) {
	return through(ctx, l, func() (events.Message, error) { return l.Stream.Next(ctx, filter, from) })
}

func (l *lane) LastPerSubject(ctx context.Context, filter string) ([]events.Message, error) {
	return through(ctx, l, func() ([]events.Message, error) {
		msgs, err := l.Stream.LastPerSubject(ctx, filter)
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		if err != nil || !l.w.lags {
			return msgs, err
		}
		if old, known := l.w.old[filter]; known {
			return old, nil
		}
		l.w.old[filter] = msgs
		return msgs, nil
	})
}

func (l *lane) Subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	return through(ctx, l, func() (map[string]uint64, error) { return l.Stream.Subjects(ctx, filter) })
}

func (l *lane) Info(ctx context.Context) (broker.StreamInfo, error) {
	return through(ctx, l, func() (broker.StreamInfo, error) { return l.Stream.Info(ctx) })
}

func (l *lane) Purge(ctx context.Context, filter string, below uint64) error {
	_, err := through(ctx, l, func() (struct{}, error) { return struct{}{}, l.Stream.Purge(ctx, filter, below) })
	return err
}

func (l *lane) Follow(ctx context.Context, from uint64, filters []string, fn func([]events.Message, bool) error) error {
	return l.Stream.Follow(ctx, from, filters, func(batch []events.Message, caughtUp bool) error {
		l.w.gate.wait()
		return fn(batch, caughtUp)
	})
}
