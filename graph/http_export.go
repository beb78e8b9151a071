package graph

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/graph/model"
)

// spool is the messages of one stream on disk. The header of an export comes
// first and counts its lines, and a live log loses messages while it is read,
// so all of them are collected before anything is sent.
type spool struct {
	file *os.File
	out  *bufio.Writer
	enc  *gob.Encoder
	room *int64 // bytes that the whole export may yet take
}

func newSpool(dir string, room *int64) (*spool, error) {
	file, err := os.CreateTemp(dir, "tenure-export-*")
	if err != nil {
		return nil, err
	}
	s := &spool{file: file, out: bufio.NewWriterSize(file, 64<<10), room: room}
	s.enc = gob.NewEncoder(s)
	// Without a name, so that nothing is left when this process is killed.
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// Write keeps what the encoder writes.
func (s *spool) Write(b []byte) (int, error) {
	if *s.room -= int64(len(b)); *s.room < 0 {
		return 0, model.Unavailablef("the export takes more than %d GiB; name one stream, or go on after a position", maxSpool>>30)
	}
	return s.out.Write(b)
}

// replay hands over the messages in their order.
func (s *spool) replay(fn func(events.Message) error) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	dec := gob.NewDecoder(bufio.NewReaderSize(s.file, 64<<10))
	for {
		var m events.Message
		if err := dec.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := fn(m); err != nil {
			return err
		}
	}
}

// export collects the streams, then sends them.
func (a *api) export(ctx context.Context, w http.ResponseWriter, r *http.Request, want wanted) {
	spools := map[events.Stream]*spool{}
	defer func() {
		for _, s := range spools {
			_ = s.file.Close() // read to its end, and gone
		}
	}()
	room := int64(maxSpool)
	tally := audit.NewTally(a.deps.Subjects)
	created := map[events.Stream]string{}
	// FLEET last: what the others rest on was then read after them.
	for _, st := range slices.Backward(want.streams) {
		s, err := newSpool(a.deps.SpoolDir, &room)
		if err == nil {
			spools[st] = s
			created[st], err = a.collect(ctx, st, want.after, func(m events.Message) error {
				tally.Add(m)
				return s.enc.Encode(m)
			})
		}
		if err != nil {
			a.fail(w, r, fmt.Errorf("export %s: %w", st, err))
			return
		}
	}
	out, err := newLines(w, tally.Header(created))
	for _, st := range want.streams {
		if err == nil {
			err = spools[st].replay(out.Add)
		}
	}
	if err == nil {
		_, err = out.Close()
	}
	if err != nil {
		a.breakOff(ctx, r, err)
	}
}

// errCollected ends the reading of a stream that has been read.
var errCollected = errors.New("collected")

// maxAgain bounds how often the end of a stream that replaces messages is read again.
const maxAgain = 100

// collect reads the stream as it is now. One that keeps the last message per
// subject is read until there is no more: a message that was replaced on the
// way stands beyond what was the end. While a replacement is under way the broker
// may say that nothing is pending and have it right behind, so the end is one only
// when a reader that is made anew finds nothing.
func (a *api) collect(ctx context.Context, st events.Stream, after uint64, keep func(events.Message) error) (createdAt string, err error) {
	bounds, err := a.deps.Events.Bounds(ctx, st)
	if err != nil {
		return "", err
	}
	from, err := bounds.from(after)
	if err != nil || from > bounds.Last {
		return bounds.createdAt(), err
	}
	if st != events.StreamCursor && st != events.StreamMemory {
		_, err = a.read(ctx, st, from, bounds.Last, keep)
		return bounds.createdAt(), err
	}
	for range maxAgain {
		next, err := a.read(ctx, st, from, math.MaxUint64, keep)
		if err != nil || next == from {
			return bounds.createdAt(), err
		}
		from = next
	}
	return bounds.createdAt(), nil
}

// read hands over what stands from there to last, or to the end as the broker has
// it, and returns the position behind.
func (a *api) read(ctx context.Context, st events.Stream, from, last uint64, keep func(events.Message) error) (next uint64, err error) {
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	idle := time.AfterFunc(maxIdle, func() { stop(fmt.Errorf("%w: %s gave nothing for %v", events.ErrUnavailable, st, maxIdle)) })
	defer idle.Stop()
	next = from
	err = a.deps.Events.Follow(reading, st, from, func(batch []events.Message, caughtUp bool) error {
		idle.Reset(maxIdle)
		for _, m := range batch {
			if m.Seq > last {
				return errCollected
			}
			if err := keep(m); err != nil {
				return err
			}
			if next = m.Seq + 1; m.Seq == last {
				return errCollected
			}
		}
		if caughtUp {
			return errCollected
		}
		return nil
	})
	if errors.Is(err, errCollected) {
		err = nil
	}
	return next, err
}
