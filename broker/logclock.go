package broker

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/events"
)

// Limits of a log clock.
const (
	// sampleEvery and samplePart bound how often Run reads the log's head, at
	// least once a second and the more often the shorter the TTL is: a taker waits
	// this much longer than needed at worst. Every read is a message that each
	// idle node gets.
	sampleEvery = time.Second
	samplePart  = 12
	// samplesPerTTL is how finely time is kept: samples closer together than
	// TTL/samplesPerTTL are merged, towards the later one.
	samplesPerTTL = 512
	// trimAt is how many samples beyond the horizon are dropped at once.
	trimAt = 256
	// keptTTLs is how far back ages are told apart; older ones read as that old.
	keptTTLs = 4
)

// LogClock tells how long ago an event of a stream was last news.
//
// It keeps samples (P, t): receiving the stream's position P and then reading
// the clock t proves that everything up to P happened before t. So an event at
// s ≤ P is at least now − t old, whatever any wall clock says. Nothing in here
// looks at Message.At (L6, design §3).
//
// It errs in one direction only: a stale position, a merged or a late sample
// make events look younger than they are.
//
// All methods may be called from any goroutine.
type LogClock struct {
	stream Stream
	now    clock.Source
	ttl    time.Duration

	mu sync.Mutex
	samples
	created time.Time // of the stream, when it was last read; guarded by mu
	last    uint64    // its end then
}

// NewLogClock returns a clock on stream for leases of that ttl.
func NewLogClock(stream Stream, now clock.Source, ttl time.Duration) *LogClock {
	return &LogClock{stream: stream, now: now, ttl: ttl, samples: newSamples(ttl)}
}

// Run reads the stream's head from its leader until ctx ends, and returns its
// cause. A head that cannot be read is no sample; UnseenFor then tells ages by
// the older ones, so nothing lapses for want of answers alone.
func (c *LogClock) Run(ctx context.Context) error {
	tick := time.NewTicker(min(sampleEvery, c.ttl/samplePart))
	defer tick.Stop()
	for {
		_ = c.Sample(ctx)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Sample reads the head once. The head first, then the clock: the other order
// would make events look older than they are.
func (c *LogClock) Sample(ctx context.Context) error {
	info, err := c.stream.Info(ctx)
	if err != nil {
		return err
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.created.Equal(info.CreatedAt) || info.Last < c.last {
		// Another stream, or the same one set back: what was seen of the one before
		// would make a young event of this one look old (design §2, §3).
		c.samples = newSamples(c.ttl)
	}
	c.created, c.last = info.CreatedAt, info.Last
	c.observe(info.Last, now)
	return nil
}

// Observe adds a sample: position pos was received before at was read. Readers
// of the stream feed it with the last message of each batch.
func (c *LogClock) Observe(pos uint64, at clock.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observe(pos, at)
}

// UnseenFor is how old the event at seq is at least, by the taker's clocks. It
// is false when no sample covers seq: nothing is known of its age.
func (c *LogClock) UnseenFor(seq uint64) (time.Duration, bool) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unseenFor(seq, now)
}

// Earliest is how long a taker waits until a lease whose family's last event is
// at seq can have lapsed: 0 when it has, and false when no sample covers seq yet.
func (c *LogClock) Earliest(seq uint64, ttl time.Duration) (time.Duration, bool) {
	age, ok := c.UnseenFor(seq)
	return max(0, events.LapsesAfter(ttl)-age), ok
}

// Before returns the highest position that was received at least age ago: every
// event up to it is that old. 0 when there is none. The retention of renewals
// purges below it.
func (c *LogClock) Before(age time.Duration) uint64 {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.before(age, now)
}

// Head is the highest position observed.
func (c *LogClock) Head() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) == 0 {
		return 0
	}
	return c.kept[len(c.kept)-1].pos
}

// samples is the log clock's arithmetic, without a clock.
type samples struct {
	kept    []sample // ascending in position and in time
	grain   time.Duration
	horizon time.Duration
}

type sample struct {
	pos uint64
	at  clock.Instant
}

func newSamples(ttl time.Duration) samples {
	return samples{grain: ttl / samplesPerTTL, horizon: keptTTLs * events.LapsesAfter(ttl)}
}

func (s *samples) observe(pos uint64, at clock.Instant) {
	n := len(s.kept)
	if pos == 0 || n > 0 && pos <= s.kept[n-1].pos {
		return // an earlier sample says more
	}
	// Merge forward: the last sample gives way when the new one, too, stands close
	// behind the one before it. What it covered is then told by the later one.
	if n > 1 && clock.TakerElapsed(s.kept[n-2].at, at) < s.grain {
		s.kept = s.kept[:n-1]
	}
	s.kept = append(s.kept, sample{pos, at})
	// Of the samples beyond the horizon one is enough.
	old := sort.Search(len(s.kept), func(i int) bool { return clock.TakerElapsed(s.kept[i].at, at) < s.horizon })
	if old > trimAt {
		s.kept = append(s.kept[:0], s.kept[old-1:]...)
	}
}

// unseenFor is the age by the earliest sample that covers seq.
func (s *samples) unseenFor(seq uint64, now clock.Instant) (time.Duration, bool) {
	i := sort.Search(len(s.kept), func(i int) bool { return s.kept[i].pos >= seq })
	if i == len(s.kept) {
		return 0, false
	}
	return max(0, clock.TakerElapsed(s.kept[i].at, now)), true
}

func (s *samples) before(age time.Duration, now clock.Instant) uint64 {
	i := sort.Search(len(s.kept), func(i int) bool { return clock.TakerElapsed(s.kept[i].at, now) < age })
	if i == 0 {
		return 0
	}
	return s.kept[i-1].pos
}
