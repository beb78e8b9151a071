package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/events"
)

// getRequest asks a stream's leader for one message. nats.go would ask any
// replica, as AllowDirect is on, so the request is built here.
type getRequest struct {
	Seq  uint64 `json:"seq,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
}

func (s *jsStream) leaderRead(ctx context.Context, req getRequest) (events.Message, error) {
	var answer struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := s.js.ask(ctx, "STREAM.MSG.GET."+s.name(), req, &answer); err != nil {
		return events.Message{}, err
	}
	m := answer.Message
	msg := events.Message{Stream: s.stream, Seq: m.Seq, Subject: m.Subject, At: m.Time.UTC(), Header: events.Header{}, Data: m.Data}
	if len(m.Header) > 0 {
		h, err := nats.DecodeHeadersMsg(m.Header)
		if err != nil {
			return events.Message{}, fmt.Errorf("read %s sequence %d: its header is damaged: %w", s.name(), m.Seq, err)
		}
		msg.Header = ownHeader(h)
	}
	return msg, nil
}

// Get implements Stream.
func (s *jsStream) Get(ctx context.Context, seq uint64) (events.Message, error) {
	if seq == 0 {
		return events.Message{}, events.ErrNotFound
	}
	return s.leaderRead(ctx, getRequest{Seq: seq})
}

// Last implements Stream.
func (s *jsStream) Last(ctx context.Context, filter string) (events.Message, error) {
	if err := checkFilter(s.settings, filter); err != nil {
		return events.Message{}, err
	}
	return s.leaderRead(ctx, getRequest{Last: filter})
}

// Next implements Stream.
func (s *jsStream) Next(ctx context.Context, filter string, from uint64) (events.Message, error) {
	if err := checkFilter(s.settings, filter); err != nil {
		return events.Message{}, err
	}
	return s.leaderRead(ctx, getRequest{Seq: max(from, 1), Next: filter})
}

type streamInfo struct {
	Created time.Time `json:"created"`
	Config  struct {
		Metadata map[string]string `json:"metadata"`
	} `json:"config"`
	State struct {
		Messages uint64            `json:"messages"`
		Bytes    uint64            `json:"bytes"`
		First    uint64            `json:"first_seq"`
		Last     uint64            `json:"last_seq"`
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
	Total int `json:"total"`
	// Cluster is what a clustered server says of who keeps the stream.
	Cluster *struct {
		Leader   string `json:"leader"`
		Replicas []struct {
			Active time.Duration `json:"active"` // since the leader last heard of it
		} `json:"replicas"`
	} `json:"cluster"`
}

// deposedAfter is for how long a leader that hears from no majority can still be
// the only one: another is elected after 4 s at the earliest.
const deposedAfter = 3 * time.Second

// doubt says why the answer is none, or nothing. While a replicated stream has no
// leader, any of its servers answers with what it has; and one that was cut off
// believes for 10 s that it leads. Either may have less than was read long ago, and
// would pass for a stream that was swapped for an older one.
func (i streamInfo) doubt() string {
	if i.Cluster == nil {
		return ""
	}
	if i.Cluster.Leader == "" {
		return "it has no leader just now"
	}
	heard := 1
	for _, r := range i.Cluster.Replicas {
		if r.Active < deposedAfter {
			heard++
		}
	}
	if 2*heard <= 1+len(i.Cluster.Replicas) {
		return "its leader hears from no majority"
	}
	return ""
}

// info asks for the stream's state.
func (s *jsStream) info(ctx context.Context, req any) (streamInfo, error) {
	var i streamInfo
	if err := s.js.ask(ctx, "STREAM.INFO."+s.name(), req, &i); err != nil {
		return i, err
	}
	if why := i.doubt(); why != "" {
		return i, fmt.Errorf("%w: stream %s: %s", events.ErrUnavailable, s.name(), why)
	}
	return i, nil
}

// Info implements Stream.
func (s *jsStream) Info(ctx context.Context) (StreamInfo, error) {
	i, err := s.info(ctx, struct{}{})
	if err != nil {
		return StreamInfo{}, err
	}
	info := StreamInfo{
		Stream: s.stream, CreatedAt: i.Created.UTC(), First: i.State.First, Last: i.State.Last,
		Messages: i.State.Messages, Bytes: i.State.Bytes, Metadata: i.Config.Metadata,
	}
	if info.Messages == 0 {
		info.First = info.Last + 1 // the broker says 0, 1 or this, depending on the stream's past
	}
	return info, nil
}

// Subjects implements Stream. The broker lists 100,000 subjects at a time.
func (s *jsStream) Subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	if err := checkFilter(s.settings, filter); err != nil {
		return nil, err
	}
	counts := map[string]uint64{}
	for offset := 0; ; {
		i, err := s.info(ctx, map[string]any{"subjects_filter": filter, "offset": offset})
		if err != nil {
			return nil, err
		}
		for subject, n := range i.State.Subjects {
			counts[subject] = n
		}
		offset += len(i.State.Subjects)
		if len(i.State.Subjects) == 0 || offset >= i.Total {
			return counts, nil
		}
	}
}

// Purge implements Stream. It is the only place where a purge is built.
func (s *jsStream) Purge(ctx context.Context, filter string, below uint64) error {
	if err := checkPurge(s.settings, filter, below); err != nil {
		return err
	}
	req := struct {
		Filter string `json:"filter"`
		Seq    uint64 `json:"seq"`
	}{filter, below}
	return s.js.ask(ctx, "STREAM.PURGE."+s.name(), req, &struct{}{})
}

// Delete implements Stream.
func (s *jsStream) Delete(ctx context.Context, seq uint64) error {
	if seq == 0 {
		return events.ErrNotFound
	}
	// Without overwriting the bytes: nothing here is a secret, and it is faster.
	req := struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, true}
	err := s.js.ask(ctx, "STREAM.MSG.DELETE."+s.name(), req, &struct{}{})
	if refused := (*RefusedError)(nil); errors.As(err, &refused) && refused.Code == codeDeleteFailed {
		// One code for "not permitted" and "not there".
		if _, gone := s.Get(ctx, seq); errors.Is(gone, events.ErrNotFound) && !s.noDel {
			return events.ErrNotFound
		}
	}
	return err
}

// LastPerSubject implements Stream. One request answers for up to 1,024
// subjects; where there are more, they are listed and asked for in portions.
func (s *jsStream) LastPerSubject(ctx context.Context, filter string) ([]events.Message, error) {
	if err := checkFilter(s.settings, filter); err != nil {
		return nil, err
	}
	msgs, err := s.multiLast(ctx, []string{filter})
	if !errors.Is(err, errTooMany) {
		return msgs, err
	}
	counts, err := s.Subjects(ctx, filter)
	if err != nil {
		return nil, err
	}
	portion := make([]string, 0, maxRequestSubjects)
	flush := func() error {
		got, err := s.multiLast(ctx, portion)
		msgs, portion = append(msgs, got...), portion[:0]
		return err
	}
	for subject := range counts {
		if portion = append(portion, subject); len(portion) == maxRequestSubjects {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if len(portion) > 0 {
		if err := flush(); err != nil {
			return nil, err
		}
	}
	return bySeq(msgs), nil
}

var errTooMany = errors.New("more subjects than one answer holds")

// multiLast is one direct get for the newest message of each subject, repeated
// while the broker cuts its answers short at its size limit.
func (s *jsStream) multiLast(ctx context.Context, filters []string) ([]events.Message, error) {
	ctx, cancel := s.js.conn.bound(ctx, s.js.timeout)
	defer cancel()
	var msgs []events.Message
	var upTo, from uint64
	for {
		got, eob, err := s.multiLastOnce(ctx, map[string]any{"multi_last": filters, "up_to_seq": upTo, "seq": from})
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, got...)
		if eob.pending == 0 || len(got) == 0 {
			return bySeq(msgs), nil
		}
		upTo, from = eob.upTo, bySeq(got)[len(got)-1].Seq+1
	}
}

type endOfBatch struct{ pending, upTo uint64 }

func (s *jsStream) multiLastOnce(ctx context.Context, request map[string]any) (msgs []events.Message, eob endOfBatch, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, eob, fmt.Errorf("ask the broker: %w", err)
	}
	nc := s.js.conn.nc
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, eob, askError(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest(api+"DIRECT.GET."+s.name(), inbox, body); err != nil {
		return nil, eob, askError(err)
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, eob, askError(err)
		}
		switch m.Header.Get("Status") {
		case "":
			msg, err := s.direct(m)
			if err != nil {
				return nil, eob, err
			}
			msgs = append(msgs, msg)
		case "204":
			eob.pending, _ = strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
			eob.upTo, _ = strconv.ParseUint(m.Header.Get("Nats-UpTo-Sequence"), 10, 64)
			return msgs, eob, nil
		case "404":
			return msgs, eob, nil
		case "413":
			return nil, eob, errTooMany
		default:
			return nil, eob, fmt.Errorf("%w: %s %s", events.ErrUnavailable, m.Header.Get("Status"), m.Header.Get("Description"))
		}
	}
}

// direct reads a message of a direct get, which stands in headers.
func (s *jsStream) direct(m *nats.Msg) (events.Message, error) {
	seq, err1 := strconv.ParseUint(m.Header.Get(headerDirectSeq), 10, 64)
	at, err2 := time.Parse(time.RFC3339Nano, m.Header.Get(headerDirectTime))
	if err := errors.Join(err1, err2); err != nil {
		return events.Message{}, fmt.Errorf("%w: an answer without position or time: %w", events.ErrUnavailable, err)
	}
	return events.Message{
		Stream: s.stream, Seq: seq, Subject: m.Header.Get(headerDirectSubj), At: at.UTC(), Header: ownHeader(m.Header), Data: m.Data,
	}, nil
}
