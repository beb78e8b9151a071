package seat

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/clock"
)

// ExitWedged is the exit code of a process that its watchdog ended: distinct
// from every ordinary failure, so that whoever restarts it can say why.
const ExitWedged = 75

// Watchdog ends the process when a duty in it has stalled for longer than the
// lease TTL: past that it is provably not the owner any more, and still able to
// act. It has no threshold of its own to drift from the TTL (X1).
//
// It counts only time in which it ran itself: a gap that it slept through (a
// stopped process, a suspended machine) is no stall of anybody (X3). A duty
// that has ended is not a duty that is wedged, and it watches only those that
// live (X2).
type Watchdog struct {
	threshold time.Duration
	now       clock.Source
	stderr    io.Writer // the process's own, not the logger: X3
	exit      func(code int)

	mu     sync.Mutex
	duties map[*Duty]struct{}
}

// Duty is one loop that the watchdog watches.
type Duty struct {
	name  string
	dog   *Watchdog
	beat  clock.Instant // guarded by Watchdog.mu
	limit time.Duration // of what it has been waiting for since; guarded by Watchdog.mu
}

// NewWatchdog returns a watchdog for leases of that TTL. It writes its one line
// to stderr, which must be the process's, and ends the process with os.Exit,
// which runs nothing deferred: the duty that stalled is the one that would have
// to run an orderly shutdown.
func NewWatchdog(ttl time.Duration, now clock.Source, stderr io.Writer) *Watchdog {
	return &Watchdog{threshold: ttl, now: now, stderr: stderr, exit: os.Exit, duties: map[*Duty]struct{}{}}
}

// Watch starts watching a duty, which beats at least every Cadence and calls
// Done when it ends. A nil Watchdog watches nothing.
func (w *Watchdog) Watch(name string) *Duty {
	d := &Duty{name: name, dog: w}
	if w == nil {
		return d
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d.beat = w.now()
	w.duties[d] = struct{}{}
	return d
}

// Beat says that the duty still turns.
func (d *Duty) Beat() { d.Waits(0) }

// Waits is Beat before a wait that ends by itself within the limit: a broker that
// is away answers late, and that is no stall. A stall counts from its end.
func (d *Duty) Waits(limit time.Duration) {
	if d.dog == nil {
		return
	}
	d.dog.mu.Lock()
	defer d.dog.mu.Unlock()
	d.beat, d.limit = d.dog.now(), limit
}

// Cadence is how often a duty beats that has nothing to do. It is derived from the
// threshold: a beat slower than that would end a healthy process (X1).
func (d *Duty) Cadence() time.Duration {
	if d.dog == nil {
		return time.Hour
	}
	return d.dog.threshold / polls
}

// Done says that the duty has ended: there is nothing left to wedge.
func (d *Duty) Done() {
	if d.dog == nil {
		return
	}
	d.dog.mu.Lock()
	defer d.dog.mu.Unlock()
	delete(d.dog.duties, d)
}

// polls is how many looks fall into one threshold.
const polls = 10

// Run watches until ctx ends, which is when a normal shutdown begins: teardown
// may block for long, and ending in the middle of it would cost every peer a
// TTL of dark seats (X2).
func (w *Watchdog) Run(ctx context.Context) error {
	every := w.threshold / polls
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := w.now()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now := w.now()
		if gap := clock.HolderElapsed(last, now); gap > 3*every {
			w.forgive(now) // it did not run itself: nobody was seen to stall
		}
		last = now
		if name, lag := w.stalled(now); name != "" {
			fmt.Fprintf(w.stderr, "tenure: the %s has not turned for %v, longer than the lease TTL of %v: this process may hold work it does not own any more, and ends (exit code %d); restart it\n",
				name, lag.Round(time.Millisecond), w.threshold, ExitWedged)
			w.exit(ExitWedged)
			return nil
		}
	}
}

// forgive counts every duty from now. What it waits for keeps its bound: a process
// that was stopped in the middle of a tick has not lost the rest of it.
func (w *Watchdog) forgive(now clock.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for d := range w.duties {
		d.beat = now
	}
}

// stalled returns the duty that has not beaten for longest past the threshold.
func (w *Watchdog) stalled(now clock.Instant) (name string, lag time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for d := range w.duties {
		if age := clock.HolderElapsed(d.beat, now) - d.limit; age > w.threshold && age > lag {
			name, lag = d.name, age
		}
	}
	return name, lag
}
