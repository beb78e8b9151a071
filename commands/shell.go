package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/seat-tenure/tenure/events"
)

// Log is what the shell needs of the event log. Append and AppendBatch settle
// an unknown outcome by writing, within the context and limits of their own.
type Log interface {
	Append(ctx context.Context, st events.Stream, w events.Write) (events.Receipt, error)
	AppendBatch(ctx context.Context, st events.Stream, ws []events.Write) (events.Receipt, error)
	// AppendEach appends in atomic batches and drops refused members: the
	// answer to each write stands at its place.
	AppendEach(ctx context.Context, st events.Stream, ws []events.Write) []events.Result
	// Last asks the stream's leader for the newest message under subject,
	// which may be a wildcard. events.ErrNotFound: there is none.
	Last(ctx context.Context, st events.Stream, subject string) (events.Message, error)
}

// maxTries bounds how often one command is decided anew because the log moved
// on between its read and its append.
const maxTries = 5

// Shell writes events on behalf of one process. The zero value is not usable.
type Shell struct {
	log      Log
	subjects events.Subjects
	self     events.Incarnation
}

// New returns a shell that writes as self.
func New(log Log, subjects events.Subjects, self events.Incarnation) *Shell {
	return &Shell{log, subjects, self}
}

// Self returns the incarnation that the shell writes as.
func (s *Shell) Self() events.Incarnation { return s.self }

// meta is an envelope for one attempt chain: a fresh event and command id.
func (s *Shell) meta() events.Meta {
	id := uuid.NewString()
	return events.Meta{ID: id, Command: id, Source: s.self, Time: time.Now()}
}

// of rests an envelope on a tenure.
func (s *Shell) of(t Tenure) events.Meta {
	m := s.meta()
	m.Epoch = t.Epoch
	return m
}

// outside is of, for streams other than FLEET, where the tenure's position is
// needed to tell which tenure an epoch belongs to.
func (s *Shell) outside(t Tenure) events.Meta {
	m := s.of(t)
	m.FleetSeq = t.Claimed
	return m
}

func (s *Shell) write(m events.Meta, e events.Event, check *events.Check) (events.Write, error) {
	w, err := events.Encode(s.subjects, m, e)
	w.Check = check
	return w, err
}

// newest reads the newest event under subject; ok is false when there is none.
func (s *Shell) newest(ctx context.Context, st events.Stream, subject string) (r events.Recorded, ok bool, err error) {
	msg, err := s.log.Last(ctx, st, subject)
	if errors.Is(err, events.ErrNotFound) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	r, err = events.Decode(s.subjects, msg)
	return r, err == nil, err
}

// tries runs attempt until it does anything but run into a conflict.
func tries(what fmt.Stringer, attempt func() error) error {
	var err error
	for range maxTries {
		if err = attempt(); !errors.Is(err, events.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("%s: others wrote first %d times: %w", what, maxTries, err)
}
