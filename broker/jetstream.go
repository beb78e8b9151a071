package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/seat-tenure/tenure/events"
)

// jsStream is one stream of a real broker.
type jsStream struct {
	settings
	js *JetStream
}

// pubAck is the broker's answer to a write.
type pubAck struct {
	Error  *apiError `json:"error"`
	Stream string    `json:"stream"`
	Seq    uint64    `json:"seq"`
}

// Append implements Stream.
func (s *jsStream) Append(ctx context.Context, w events.Write) (uint64, error) {
	if err := checkWrite(s.settings, w); err != nil {
		return 0, err
	}
	return s.request(ctx, s.message(w), w.Check)
}

// AppendBatch implements Stream. The members go out without waiting; the
// broker keeps them aside until the last one commits them, so whatever goes
// wrong before that has stored nothing. Only the last asks for an answer.
func (s *jsStream) AppendBatch(ctx context.Context, ws []events.Write) (uint64, error) {
	if err := checkBatch(s.settings, ws); err != nil {
		return 0, err
	}
	if len(ws) == 1 {
		return s.Append(ctx, ws[0]) // spares the broker a batch
	}
	id := nuid.Next()
	for i, w := range ws {
		m := s.message(w)
		m.Header[headerBatchID] = []string{id}
		m.Header[headerBatchSeq] = []string{strconv.Itoa(i + 1)}
		if i == len(ws)-1 {
			m.Header[headerBatchCommit] = []string{"1"}
			return s.request(ctx, m, nil)
		}
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("%w: %w", events.ErrUnavailable, err)
		}
		if err := s.js.conn.nc.PublishMsg(m); err != nil {
			if err = sendError(err); isUnknown(err) {
				// Whether this member got there does not matter: the commit did not.
				err = fmt.Errorf("%w: %v", events.ErrUnavailable, err) //nolint:errorlint // it must not be found as unknown
			}
			return 0, err
		}
	}
	panic("unreachable: the last member returns")
}

// message renders a write with its condition.
func (s *jsStream) message(w events.Write) *nats.Msg {
	h := make(nats.Header, len(w.Header)+5)
	maps.Copy(h, nats.Header(w.Header))
	if w.Check != nil {
		h[headerExpectSeq] = []string{strconv.FormatUint(w.Check.Last, 10)}
		if w.Check.Subject != w.Subject {
			h[headerExpectSubj] = []string{w.Check.Subject}
		}
	}
	return &nats.Msg{Subject: w.Subject, Header: h, Data: w.Data}
}

// request sends m and reads the acknowledgement.
func (s *jsStream) request(ctx context.Context, m *nats.Msg, check *events.Check) (uint64, error) {
	ctx, cancel := s.js.conn.bound(ctx, s.js.timeout)
	defer cancel()
	answer, err := s.js.conn.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, sendError(err)
	}
	var ack pubAck
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("%w: the acknowledgement cannot be read: %w", events.ErrUnknown, err)
	}
	switch {
	case ack.Error != nil:
		return 0, writeError(ack.Error, check)
	case ack.Stream != s.name() || ack.Seq == 0:
		return 0, fmt.Errorf("%w: acknowledged by %q, not by stream %s", events.ErrUnknown, ack.Stream, s.name())
	}
	return ack.Seq, nil
}
