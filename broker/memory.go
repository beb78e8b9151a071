package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Memory is a connection to a broker in this process's memory, with the same
// streams, limits and answers as the real one. It uses no network and blocks on
// channels only, so it runs inside testing/synctest bubbles.
//
// Peer opens further connections to the same broker; each has faults of its
// own, so one node of several can be cut off.
type Memory struct {
	// Faults makes this connection lose, refuse or delay what passes over it.
	Faults *Faults

	hub *memoryHub

	mu     sync.Mutex
	closed bool
	subs   map[*memorySub]struct{}
}

var _ Store = (*Memory)(nil)

// memoryHub is the broker behind the connections.
type memoryHub struct {
	subjects events.Subjects
	ttl      time.Duration

	mu      sync.Mutex // guards all below, the streams' content included
	streams map[events.Stream]*memoryLog
	subs    map[*memorySub]struct{}
	skew    time.Duration // of the broker's wall clock
	lives   time.Duration // nanoseconds that tell streams made at the same moment apart
}

// NewMemory starts an empty broker with the streams of a fleet and returns a
// first connection to it. Of cfg, Prefix and LeaseTTL count.
func NewMemory(cfg Config) (*Memory, error) {
	subjects, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	hub := &memoryHub{
		subjects: subjects, ttl: cfg.LeaseTTL,
		streams: map[events.Stream]*memoryLog{}, subs: map[*memorySub]struct{}{},
	}
	for _, s := range streams(cfg.Prefix) {
		hub.streams[s.stream] = newMemoryLog(s, hub.wall)
	}
	return hub.connect(), nil
}

func (h *memoryHub) connect() *Memory {
	return &Memory{hub: h, Faults: newFaults(), subs: map[*memorySub]struct{}{}}
}

// Peer opens another connection to the same broker.
func (m *Memory) Peer() *Memory { return m.hub.connect() }

// StepClock moves the broker's wall clock by d: the stamps of messages, the
// ageing of streams and nothing else hang on it.
func (m *Memory) StepClock(d time.Duration) {
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	m.hub.skew += d
}

func (h *memoryHub) wall() time.Time { return time.Now().Add(h.skew) }

// Recreate replaces a stream by an empty one, as an operator might by mistake.
func (m *Memory) Recreate(st events.Stream) {
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	old := m.hub.streams[st]
	m.hub.streams[st] = newMemoryLog(old.settings, m.hub.wall)
	m.hub.lives++
	m.hub.streams[st].createdAt = m.hub.wall().Add(m.hub.lives)
	old.wake()
}

// Restore sets a stream back to what it held at sequence upTo, creation time
// included, as a backup does.
func (m *Memory) Restore(st events.Stream, upTo uint64) {
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	old := m.hub.streams[st]
	m.hub.streams[st] = old.upTo(upTo)
	old.wake()
}

// Stream implements Store.
func (m *Memory) Stream(st events.Stream) Stream {
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	if m.hub.streams[st] == nil {
		panic(fmt.Sprintf("broker: no stream %q", st))
	}
	return &memoryStream{conn: m, name: st}
}

// LeaseTTL implements Store.
func (m *Memory) LeaseTTL() time.Duration { return m.hub.ttl }

// Subjects implements Store.
func (m *Memory) Subjects() events.Subjects { return m.hub.subjects }

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	subs := make([]*memorySub, 0, len(m.subs))
	for s := range m.subs {
		subs = append(subs, s)
	}
	m.mu.Unlock()
	for _, s := range subs {
		s.stop()
	}
	return nil
}

func (m *Memory) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// memoryQueue bounds the wake-ups a slow subscriber has waiting; beyond it they
// are lost, as the real client drops them for a slow consumer.
const memoryQueue = 4096

type memorySub struct {
	conn   *Memory
	filter string
	queue  chan string
	ended  chan struct{}
	once   sync.Once
	done   chan struct{}
}

// Subscribe implements Store.
func (m *Memory) Subscribe(ctx context.Context, subject string, fn func(string)) (func(), error) {
	if err := m.Faults.pass(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fmt.Errorf("%w: the connection is closed", events.ErrUnavailable)
	}
	s := &memorySub{
		conn: m, filter: subject, queue: make(chan string, memoryQueue),
		ended: make(chan struct{}), done: make(chan struct{}),
	}
	m.subs[s] = struct{}{}
	m.hub.mu.Lock()
	m.hub.subs[s] = struct{}{}
	m.hub.mu.Unlock()
	go s.run(fn)
	return s.stop, nil
}

func (s *memorySub) run(fn func(string)) {
	defer close(s.done)
	for {
		select {
		case <-s.ended:
			return
		case subject := <-s.queue:
			fn(subject)
		}
	}
}

// stop ends the subscription and waits for its goroutine, the owner's duty.
func (s *memorySub) stop() {
	s.once.Do(func() {
		s.conn.hub.mu.Lock()
		delete(s.conn.hub.subs, s)
		s.conn.hub.mu.Unlock()
		s.conn.mu.Lock()
		delete(s.conn.subs, s)
		s.conn.mu.Unlock()
		close(s.ended)
	})
	<-s.done
}

// announce hands a subject to whoever subscribed to it. The hub is locked.
func (h *memoryHub) announce(subject string) {
	for s := range h.subs {
		if covered(s.filter, subject) && !s.conn.Faults.isCut() {
			select {
			case s.queue <- subject:
			default:
			}
		}
	}
}

// store checks and stores a batch, or a single write, and wakes who waits.
// memoryHub.mu is not held.
func (h *memoryHub) store(st events.Stream, ws []events.Write) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	log := h.streams[st]
	last, err := log.store(ws)
	if err != nil {
		return 0, err
	}
	for _, w := range ws {
		h.announce(w.Subject)
		if wake := log.wakeSubject(w.Subject); wake != "" {
			h.announce(wake)
		}
	}
	return last, nil
}

// read runs fn on the stream's content.
func (h *memoryHub) read(st events.Stream, fn func(*memoryLog) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fn(h.streams[st])
}

// bySeq orders messages.
func bySeq(msgs []events.Message) []events.Message {
	slices.SortFunc(msgs, func(a, b events.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return msgs
}
