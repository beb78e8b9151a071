package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seat-tenure/tenure/events"
)

// Limits of opening a store.
const (
	// openFor bounds it: a cluster that has just booted elects leaders first, and
	// a new replicated stream can time out until its peers are usable.
	openFor   = 45 * time.Second
	openRetry = 200 * time.Millisecond
)

// JetStream is the real Store.
type JetStream struct {
	conn     *Conn
	subjects events.Subjects
	streams  map[events.Stream]settings
	timeout  time.Duration
	ttl      time.Duration
}

var _ Store = (*JetStream)(nil)

// Open creates the streams of a fleet, or verifies those that exist: with other
// settings they are a *MismatchError, and neither used nor changed. It owns conn
// from then on, also when it fails.
//
// The lease TTL is in FLEET's metadata: whoever creates the fleet chooses it,
// everybody else adopts it, see LeaseTTL (L7).
func Open(ctx context.Context, conn *Conn, cfg Config) (*JetStream, error) {
	subjects, err := cfg.validate()
	if err != nil {
		conn.Close()
		return nil, err
	}
	j := &JetStream{conn: conn, subjects: subjects, streams: map[events.Stream]settings{}, timeout: cfg.Timeout}
	if j.timeout <= 0 {
		j.timeout = DefaultTimeout
	}
	if err := j.open(ctx, cfg); err != nil {
		conn.Close()
		return nil, err
	}
	return j, nil
}

func (j *JetStream) open(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, openFor)
	defer cancel()
	js, err := jetstream.New(j.conn.nc)
	if err != nil {
		return fmt.Errorf("open the broker's streams: %w", err)
	}
	all := streams(cfg.Prefix)
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		j.streams[s.stream] = s
		wg.Go(func() { errs[i] = j.openStream(ctx, js, s, cfg) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// openStream creates or verifies one stream, trying while that may help.
func (j *JetStream) openStream(ctx context.Context, js jetstream.JetStream, s settings, cfg Config) error {
	metadata := map[string]string{metaFormat: format}
	if s.stream == events.StreamFleet {
		metadata[metaTTL] = strconv.FormatInt(cfg.LeaseTTL.Milliseconds(), 10)
	}
	want := s.config(cfg.Replicas, metadata)
	for {
		err := j.ensure(ctx, js, s, want)
		if err == nil {
			return nil
		}
		if !passing(err) || !wait(ctx, openRetry) {
			return fmt.Errorf("open stream %s: %w", want.Name, err)
		}
	}
}

// ensure creates one stream or verifies it, then waits for its leader.
func (j *JetStream) ensure(ctx context.Context, js jetstream.JetStream, s settings, want jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	have, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		// Another node may be creating it: with the same settings that is no error,
		// with another TTL it is, and the next round reads what stands.
		have, err = js.CreateStream(ctx, want)
	}
	if err != nil {
		return err
	}
	if err := mismatch(have.CachedInfo().Config, want); err != nil {
		return err
	}
	if s.stream == events.StreamFleet {
		if j.ttl, err = metadataTTL(have.CachedInfo().Config.Metadata); err != nil {
			return err
		}
	}
	_, err = (&jsStream{settings: s, js: j}).Info(ctx)
	return err
}

// passing says whether an error of opening may go away by itself.
func passing(err error) bool {
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		switch int(api.ErrorCode) {
		case codeNotAvailable, codeNotLeader, codeNoPeers, codeInsufficient, codeStreamNameInUse, codeStreamNotFound:
			return true
		}
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, events.ErrUnavailable) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected)
}

// Stream implements Store.
func (j *JetStream) Stream(st events.Stream) Stream {
	s, ok := j.streams[st]
	if !ok {
		panic(fmt.Sprintf("broker: no stream %q", st))
	}
	return &jsStream{settings: s, js: j}
}

// LeaseTTL implements Store.
func (j *JetStream) LeaseTTL() time.Duration { return j.ttl }

// Subjects implements Store.
func (j *JetStream) Subjects() events.Subjects { return j.subjects }

// Connected says whether the store's connection stands at this moment.
func (j *JetStream) Connected() bool { return j.conn.Connected() }

// Received counts the messages that came over the store's connection: answers
// and what was subscribed to, not the client's own pings.
func (j *JetStream) Received() uint64 { return j.conn.Received() }

// Close implements Store.
func (j *JetStream) Close() error {
	j.conn.Close()
	return nil
}

// Subscribe implements Store.
func (j *JetStream) Subscribe(ctx context.Context, subject string, fn func(string)) (func(), error) {
	closed := make(chan struct{})
	sub, err := j.conn.nc.Subscribe(subject, func(m *nats.Msg) { fn(m.Subject) })
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, askError(err))
	}
	sub.SetClosedHandler(func(string) { close(closed) })
	stop := func() {
		// An error means that the connection is closed: the subscription is too.
		_ = sub.Unsubscribe()
		<-closed
	}
	ctx, cancel := j.conn.bound(ctx, j.timeout)
	defer cancel()
	if err := j.conn.nc.FlushWithContext(ctx); err != nil {
		stop()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, askError(err))
	}
	return stop, nil
}

// api is the prefix of JetStream's request subjects.
const api = "$JS.API."

// ask sends one request of JetStream's API and decodes the answer.
func (j *JetStream) ask(ctx context.Context, subject string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("ask the broker: %w", err)
	}
	ctx, cancel := j.conn.bound(ctx, j.timeout)
	defer cancel()
	msg, err := j.conn.nc.RequestWithContext(ctx, api+subject, body)
	if err != nil {
		return askError(err)
	}
	var failed struct {
		Error *apiError `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(msg.Data, &failed), json.Unmarshal(msg.Data, answer)); err != nil {
		return fmt.Errorf("%w: its answer cannot be read: %w", events.ErrUnavailable, err)
	}
	if failed.Error != nil {
		return readError(failed.Error)
	}
	return nil
}
