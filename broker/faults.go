package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Faults makes one connection to the in-memory broker misbehave as networks
// and brokers do. A fault on writes strikes the next writes to its stream that
// its filter covers, as often as it was told to, then is used up.
//
// All methods may be called from any goroutine; they affect requests that
// start afterwards.
type Faults struct {
	mu      sync.Mutex
	cut     bool
	delay   time.Duration
	faults  []*fault
	changed chan struct{} // closed, and replaced, when cut changes
	late    sync.WaitGroup
}

type fault struct {
	stream events.Stream
	filter string // the batch's first subject must match; ">" for any
	times  int
	strike func(ctx context.Context, store func() (uint64, error)) (uint64, error)
}

func newFaults() *Faults { return &Faults{changed: make(chan struct{})} }

// CutOff breaks the connection (true) or heals it (false). While it is broken
// nothing is sent, so every request fails with ErrUnavailable at once.
func (f *Faults) CutOff(cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut != cut {
		f.cut = cut
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// Delay makes each request take that much longer on the way to the broker. A
// context that ends meanwhile leaves a write unknown: it still arrives.
func (f *Faults) Delay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

// DropAnswer stores the next n writes under filter and loses the answers:
// ErrUnknown.
func (f *Faults) DropAnswer(st events.Stream, filter string, n int) {
	f.add(&fault{stream: st, filter: filter, times: n, strike: func(_ context.Context, store func() (uint64, error)) (uint64, error) {
		_, _ = store() // whatever it was, nobody hears of it
		return 0, errAnswerLost
	}})
}

// DropWrite loses the next n writes under filter on their way: ErrUnknown, and
// nothing is stored.
func (f *Faults) DropWrite(st events.Stream, filter string, n int) {
	f.add(&fault{stream: st, filter: filter, times: n, strike: func(context.Context, func() (uint64, error)) (uint64, error) {
		return 0, errAnswerLost
	}})
}

// LandLate answers the next n writes under filter with ErrUnknown at once and
// hands them to the broker d later (design §10, schedule 2).
func (f *Faults) LandLate(st events.Stream, filter string, n int, d time.Duration) {
	f.add(&fault{stream: st, filter: filter, times: n, strike: func(ctx context.Context, store func() (uint64, error)) (uint64, error) {
		f.late.Go(func() {
			wait(context.WithoutCancel(ctx), d)
			_, _ = store()
		})
		return 0, errAnswerLost
	}})
}

// Refuse answers the next n writes under filter with err and stores nothing.
func (f *Faults) Refuse(st events.Stream, filter string, n int, err error) {
	f.add(&fault{stream: st, filter: filter, times: n, strike: func(context.Context, func() (uint64, error)) (uint64, error) {
		return 0, err
	}})
}

// Settle waits until every write that LandLate or Delay holds has arrived.
func (f *Faults) Settle() { f.late.Wait() }

var errAnswerLost = fmt.Errorf("%w: the answer was lost", events.ErrUnknown)

func (f *Faults) add(x *fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, x)
}

// pass lets a request through, or says why not.
func (f *Faults) pass(ctx context.Context) error {
	if f.isCut() {
		return fmt.Errorf("%w: not connected", events.ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
	}
	return nil
}

func (f *Faults) isCut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut
}

// watch returns whether the connection is broken and a channel that is closed
// when that changes.
func (f *Faults) watch() (<-chan struct{}, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed, f.cut
}

// write passes a write on, through the first fault that it meets.
func (f *Faults) write(ctx context.Context, st events.Stream, ws []events.Write, store func() (uint64, error)) (uint64, error) {
	x, delay := f.take(st, ws[0].Subject)
	if delay > 0 {
		if !wait(ctx, delay) {
			// It is on the wire already: it arrives, and the caller cannot know.
			f.late.Go(func() { _, _ = store() })
			return 0, errAnswerLost
		}
	}
	if x != nil {
		return x.strike(ctx, store)
	}
	return store()
}

func (f *Faults) take(st events.Stream, subject string) (*fault, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.faults {
		if x.times > 0 && x.stream == st && covered(x.filter, subject) {
			x.times--
			return x, f.delay
		}
	}
	return nil, f.delay
}
