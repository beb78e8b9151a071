package broker

import (
	"context"
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// memoryStream is one stream of the twin, as seen over one connection.
type memoryStream struct {
	conn *Memory
	name events.Stream
}

func (s *memoryStream) settings() settings {
	s.conn.hub.mu.Lock()
	defer s.conn.hub.mu.Unlock()
	return s.conn.hub.streams[s.name].settings
}

func (s *memoryStream) Append(ctx context.Context, w events.Write) (uint64, error) {
	if err := checkWrite(s.settings(), w); err != nil {
		return 0, err
	}
	return s.write(ctx, []events.Write{w})
}

func (s *memoryStream) AppendBatch(ctx context.Context, ws []events.Write) (uint64, error) {
	if err := checkBatch(s.settings(), ws); err != nil {
		return 0, err
	}
	return s.write(ctx, ws)
}

func (s *memoryStream) write(ctx context.Context, ws []events.Write) (uint64, error) {
	if err := s.pass(ctx); err != nil {
		return 0, err
	}
	store := func() (uint64, error) { return s.conn.hub.store(s.name, ws) }
	return s.conn.Faults.write(ctx, s.name, ws, store)
}

// within refuses filters that the stream cannot have anything under.
func (s *memoryStream) within(filters ...string) error {
	for _, filter := range filters {
		if err := checkFilter(s.settings(), filter); err != nil {
			return err
		}
	}
	return nil
}

// pass is what every request meets first.
func (s *memoryStream) pass(ctx context.Context) error {
	if s.conn.isClosed() {
		return fmt.Errorf("%w: the connection is closed", events.ErrUnavailable)
	}
	return s.conn.Faults.pass(ctx)
}

func (s *memoryStream) read(ctx context.Context, fn func(*memoryLog) error) error {
	if err := s.pass(ctx); err != nil {
		return err
	}
	return s.conn.hub.read(s.name, func(l *memoryLog) error {
		l.expire()
		return fn(l)
	})
}

func (s *memoryStream) Get(ctx context.Context, seq uint64) (m events.Message, err error) {
	err = s.read(ctx, func(l *memoryLog) error {
		m, err = l.get(seq)
		return err
	})
	return m, err
}

func (s *memoryStream) Last(ctx context.Context, filter string) (m events.Message, err error) {
	if err := s.within(filter); err != nil {
		return m, err
	}
	err = s.read(ctx, func(l *memoryLog) error {
		m, err = l.get(l.lastOf(filter))
		return err
	})
	return m, err
}

func (s *memoryStream) Next(ctx context.Context, filter string, from uint64) (m events.Message, err error) {
	if err := s.within(filter); err != nil {
		return m, err
	}
	err = s.read(ctx, func(l *memoryLog) error {
		m, err = l.get(l.nextOf(filter, from))
		return err
	})
	return m, err
}

func (s *memoryStream) LastPerSubject(ctx context.Context, filter string) (msgs []events.Message, err error) {
	if err := s.within(filter); err != nil {
		return nil, err
	}
	err = s.read(ctx, func(l *memoryLog) error {
		l.matching(filter, func(_ string, seqs []uint64) {
			if m, err := l.get(seqs[len(seqs)-1]); err == nil {
				msgs = append(msgs, m)
			}
		})
		return nil
	})
	return bySeq(msgs), err
}

func (s *memoryStream) Subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	if err := s.within(filter); err != nil {
		return nil, err
	}
	counts := map[string]uint64{}
	err := s.read(ctx, func(l *memoryLog) error {
		l.matching(filter, func(subject string, seqs []uint64) { counts[subject] = uint64(len(seqs)) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

func (s *memoryStream) Info(ctx context.Context) (info StreamInfo, err error) {
	err = s.read(ctx, func(l *memoryLog) error {
		info = l.info()
		if s.name == events.StreamFleet {
			info.Metadata[metaTTL] = fmt.Sprint(s.conn.hub.ttl.Milliseconds())
		}
		return nil
	})
	return info, err
}

func (s *memoryStream) Purge(ctx context.Context, filter string, below uint64) error {
	if err := checkPurge(s.settings(), filter, below); err != nil {
		return err
	}
	return s.read(ctx, func(l *memoryLog) error {
		var gone []uint64
		l.matching(filter, func(_ string, seqs []uint64) {
			for _, seq := range seqs {
				if seq < below {
					gone = append(gone, seq)
				}
			}
		})
		for _, seq := range gone {
			l.remove(seq)
		}
		return nil
	})
}

func (s *memoryStream) Delete(ctx context.Context, seq uint64) error {
	return s.read(ctx, func(l *memoryLog) error {
		if l.noDel {
			return &RefusedError{Code: codeDeleteFailed, Why: "message delete not permitted"}
		}
		if !l.remove(seq) {
			return events.ErrNotFound
		}
		return nil
	})
}

func (s *memoryStream) Follow(ctx context.Context, from uint64, filters []string, fn func([]events.Message, bool) error) error {
	if err := s.within(filters...); err != nil {
		return err
	}
	from = max(from, 1)
	var life *memoryLog
	toldEmpty := false
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.conn.isClosed() {
			return fmt.Errorf("%w: the connection is closed", events.ErrUnavailable)
		}
		var msgs []events.Message
		var more bool
		var changed <-chan struct{}
		faults, cut := s.conn.Faults.watch()
		err := s.conn.hub.read(s.name, func(l *memoryLog) error {
			changed = l.changed
			if cut {
				return nil
			}
			if err := follows(life, l, from); err != nil {
				return err
			}
			life = l
			l.expire()
			msgs, more = l.batch(from, filters)
			return nil
		})
		if err != nil {
			return err
		}
		if len(msgs) > 0 || (!toldEmpty && !cut) {
			toldEmpty = true
			if err := fn(msgs, !more); err != nil {
				return err
			}
		}
		if len(msgs) > 0 {
			from = msgs[len(msgs)-1].Seq + 1
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-faults:
			toldEmpty = false // as after a broken connection
		}
	}
}

// follows refuses to go on in a log that is not the one read before. Identity
// of a restored stream is the markers' business, see CheckIdentity; here only
// what the broker itself would show counts.
func follows(life, now *memoryLog, from uint64) error {
	switch {
	case life != nil && !life.createdAt.Equal(now.createdAt):
		return &IdentityError{Stream: now.stream, Reason: Recreated, Want: identityOf(life.createdAt), Have: identityOf(now.createdAt)}
	case from > now.last+1:
		return &IdentityError{Stream: now.stream, Reason: Shorter, Want: identityOf(now.createdAt), Have: identityOf(now.createdAt)}
	}
	return nil
}
