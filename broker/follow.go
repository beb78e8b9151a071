package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/seat-tenure/tenure/events"
)

// Limits of one follower.
const (
	pullExpires    = time.Minute      // of one pull request
	consumerUnused = 30 * time.Second // then the broker removes a consumer we lost
	followPauseMin = 50 * time.Millisecond
	followPauseMax = 2 * time.Second // between attempts, so that a blip makes no heap of consumers
	// catchUp is from how many messages on a reader of several filters reads all of
	// them and drops what they leave out. To find its next message among several
	// filters the broker looks at every subject of a block, unless the block ends
	// sooner than that: far from the end this costs it 1 ms a message (measured,
	// 10,000 subjects), near to it nothing.
	catchUp = 1024
)

// vital is how often the broker gives a sign of life while nothing comes, and
// after how long without one the consumer is made anew. Each sign is a message
// to a node that has nothing to do, so only the stream that tells who holds what
// is watched closely; a connection that breaks is noticed at once either way.
func vital(st events.Stream) (heartbeat, silence time.Duration) {
	if st == events.StreamFleet {
		return 2500 * time.Millisecond, 6 * time.Second
	}
	return 5 * time.Second, 11 * time.Second
}

var (
	// errAgain: this consumer is of no use any more, make another from the position.
	errAgain = errors.New("the reader starts again")
	// errFarther: it did its work, and the next one goes on with or without filters.
	errFarther = errors.New("the reader changes its way of reading")
)

// Follow implements Stream. It reads through a consumer of its own, made anew
// from the last position whenever anything may have been lost: the connection
// broke, the broker fell silent, or the consumer's own numbering has a gap. The
// stream's creation time is looked at before and after each making, so one that
// was swapped underneath is never read on.
func (s *jsStream) Follow(ctx context.Context, from uint64, filters []string, fn func([]events.Message, bool) error) error {
	f := &follower{s: s, next: max(from, 1), filters: filters, fn: fn}
	for _, filter := range filters {
		if err := checkFilter(s.settings, filter); err != nil {
			return err
		}
	}
	for pause := followPauseMin; ; {
		before := f.next
		err := f.round(ctx)
		switch {
		case errors.Is(err, errFarther) && ctx.Err() == nil:
			pause = followPauseMin
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, events.ErrUnavailable) && s.js.conn.nc.IsClosed():
			return err
		case !errors.Is(err, errAgain) && !errors.Is(err, events.ErrUnavailable):
			return err
		}
		if f.next > before {
			pause = followPauseMin
		}
		wait(ctx, pause)
		pause = min(2*pause, followPauseMax)
	}
}

// follower is one Follow on its way.
type follower struct {
	s       *jsStream
	next    uint64 // position to read from
	filters []string
	fn      func([]events.Message, bool) error
	created time.Time // of the stream, once known
	last    uint64    // of the stream, when it was looked at

	// Up to this position the present consumer reads without the filters, see
	// catchUp; 0: it has them.
	until uint64
	name  string             // of the present consumer
	inbox string             // where its messages come
	sub   *nats.Subscription // to inbox
	seen  uint64             // consumer's number of the last message received
	asked int                // messages still to come of the present pull
	batch []events.Message   // received, not handed over
}

// round reads through one consumer until it is of no use.
func (f *follower) round(ctx context.Context) error {
	reconnects := f.s.js.conn.watch()
	defer f.s.js.conn.unwatch(reconnects)
	if err := f.same(ctx); err != nil {
		return err
	}
	f.until = 0
	if len(f.filters) > 1 && f.last >= f.next+catchUp {
		f.until = f.last
	}
	nc := f.s.js.conn.nc
	f.inbox, f.seen, f.asked, f.batch = nc.NewInbox(), 0, 0, nil
	var err error
	if f.sub, err = nc.SubscribeSync(f.inbox); err != nil {
		return askError(err)
	}
	defer func() { _ = f.sub.Unsubscribe() }()
	pending, err := f.create(ctx)
	if err != nil {
		return err
	}
	defer f.remove(ctx)
	if err := f.same(ctx); err != nil {
		return err
	}
	switch {
	case pending == 0 && f.until > 0: // pruned meanwhile
		f.next = f.until + 1
		return errFarther
	case pending == 0:
		if err := f.fn(nil, true); err != nil {
			return err
		}
	}
	return f.read(ctx, reconnects)
}

// same verifies that the stream is the one that was read so far.
func (f *follower) same(ctx context.Context) error {
	info, err := f.s.Info(ctx)
	if err != nil {
		return err
	}
	want, have := identityOf(f.created), identityOf(info.CreatedAt)
	switch {
	case !f.created.IsZero() && !f.created.Equal(info.CreatedAt):
		return &IdentityError{Stream: f.s.stream, Reason: Recreated, Want: want, Have: have}
	case f.next > info.Last+1:
		return &IdentityError{Stream: f.s.stream, Reason: Shorter, Want: want, Have: have}
	}
	f.created, f.last = info.CreatedAt, info.Last
	return nil
}

type consumerConfig struct {
	Name          string   `json:"name"`
	DeliverPolicy string   `json:"deliver_policy"`
	StartSeq      uint64   `json:"opt_start_seq"`
	AckPolicy     string   `json:"ack_policy"`
	ReplayPolicy  string   `json:"replay_policy"`
	Filters       []string `json:"filter_subjects,omitempty"`
	Replicas      int      `json:"num_replicas"`
	Memory        bool     `json:"mem_storage"`
	Inactive      int64    `json:"inactive_threshold"`
}

// create makes the consumer and returns how much it has to deliver.
func (f *follower) create(ctx context.Context) (pending uint64, err error) {
	f.name = "follow-" + nuid.Next()
	filters := f.filters
	if f.until > 0 {
		filters = nil
	}
	req := map[string]any{"stream_name": f.s.name(), "action": "create", "config": consumerConfig{
		Name: f.name, DeliverPolicy: "by_start_sequence", StartSeq: f.next, AckPolicy: "none", ReplayPolicy: "instant",
		Filters: filters, Replicas: 1, Memory: true, Inactive: consumerUnused.Nanoseconds(),
	}}
	var answer struct {
		Pending uint64 `json:"num_pending"`
	}
	if err := f.s.js.ask(ctx, "CONSUMER.CREATE."+f.s.name()+"."+f.name, req, &answer); err != nil {
		return 0, err
	}
	return answer.Pending, nil
}

// remove deletes the consumer; if that fails, the broker does it by itself.
func (f *follower) remove(ctx context.Context) {
	if f.s.js.conn.Connected() {
		_ = f.s.js.ask(context.WithoutCancel(ctx), "CONSUMER.DELETE."+f.s.name()+"."+f.name, struct{}{}, &struct{}{})
	}
}

// pull asks for the next messages, once the last request is used up.
func (f *follower) pull() error {
	if f.asked > 0 {
		return nil
	}
	heartbeat, _ := vital(f.s.stream)
	body := fmt.Sprintf(`{"batch":%d,"expires":%d,"idle_heartbeat":%d}`, MaxFollow, pullExpires.Nanoseconds(), heartbeat.Nanoseconds())
	if err := f.s.js.conn.nc.PublishRequest(api+"CONSUMER.MSG.NEXT."+f.s.name()+"."+f.name, f.inbox, []byte(body)); err != nil {
		return askError(err)
	}
	f.asked = MaxFollow
	return nil
}

func (f *follower) read(ctx context.Context, reconnects <-chan struct{}) error {
	// A reconnect ends the wait for a message: what was on its way is lost.
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-reconnects:
			cancel(errAgain)
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(nil); <-done }()
	for {
		if err := f.pull(); err != nil {
			return err
		}
		m, err := f.receive(ctx)
		if err != nil {
			if flushed := f.flush(false); flushed != nil {
				return flushed
			}
			return err
		}
		pending, err := f.take(m)
		if err != nil {
			if flushed := f.flush(false); flushed != nil {
				return flushed
			}
			if errors.Is(err, errFarther) {
				f.next = max(f.next, f.until+1) // what is left out up to there was seen
			}
			return err
		}
		if caughtUp := pending == 0; len(f.batch) > 0 && (caughtUp || len(f.batch) == MaxFollow) {
			if err := f.flush(caughtUp); err != nil {
				return err
			}
		}
	}
}

func (f *follower) receive(ctx context.Context) (*nats.Msg, error) {
	_, silence := vital(f.s.stream)
	quiet, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	m, err := f.sub.NextMsgWithContext(quiet)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(context.Cause(ctx), errAgain), ctx.Err() == nil && quiet.Err() != nil:
		return nil, errAgain
	}
	return nil, askError(err)
}

// flush hands over what was received.
func (f *follower) flush(caughtUp bool) error {
	if len(f.batch) == 0 {
		return nil
	}
	batch := f.batch
	f.batch = nil
	f.next = batch[len(batch)-1].Seq + 1
	return f.fn(batch, caughtUp)
}

// take looks at what came: a message, or a sign of life or of death. It returns
// how many messages are pending behind it; a sign counts as one.
func (f *follower) take(m *nats.Msg) (pending uint64, err error) {
	switch m.Header.Get("Status") {
	case "":
	case "100":
		// The heartbeat says how far the consumer has got: a message that was lost
		// on the way is noticed also when none follows it.
		if sent, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64); err == nil && sent > f.seen {
			return 1, errAgain
		}
		return 1, nil
	case "408":
		f.asked = 0 // the pull expired
		return 1, nil
	default:
		return 1, errAgain // the consumer, its leader or the stream is gone
	}
	meta, err := m.Metadata()
	if err != nil || meta.Sequence.Consumer != f.seen+1 {
		return 1, errAgain
	}
	f.seen++
	f.asked--
	if f.until == 0 || f.wanted(m.Subject) {
		f.batch = append(f.batch, events.Message{
			Stream: f.s.stream, Seq: meta.Sequence.Stream, Subject: m.Subject, At: meta.Timestamp.UTC(), Header: ownHeader(m.Header), Data: m.Data,
		})
	}
	switch {
	case f.until == 0 && len(f.filters) > 1 && meta.NumPending > catchUp:
		return 1, errFarther // it fell behind
	case f.until == 0:
		return meta.NumPending, nil
	case meta.Sequence.Stream >= f.until || meta.NumPending == 0:
		return 1, errFarther
	default:
		return 1, nil // it is not the end that the reader asked for
	}
}

// wanted says whether a message is one of those that were asked for.
func (f *follower) wanted(subject string) bool {
	return slices.ContainsFunc(f.filters, func(filter string) bool { return covered(filter, subject) })
}
