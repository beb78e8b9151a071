package broker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Limits of markers.
const (
	// MarkEvery is how often a running node marks the streams; a boot does too.
	MarkEvery = time.Hour
	// markTries bounds how often one marker is tried for.
	markTries = 5
	// markerWalk bounds how many entries of a marker subject one check reads.
	markerWalk = 10_000
)

// Marks writes marker events with random ids into the streams of a fleet, and
// records the other streams' in FLEET.
type Marks struct {
	Store  Store
	Source events.Incarnation // who writes them
}

// Mark marks every stream once: at boot, before anything is read or written.
// FLEET comes first: the sooner after a restore its marker stands, the fewer
// positions it stands above. It returns the new identities.
func (k Marks) Mark(ctx context.Context) (map[events.Stream]events.StreamIdentity, error) {
	identities := map[events.Stream]events.StreamIdentity{}
	for _, s := range streams(k.Store.Subjects().Prefix()) { // FLEET first
		id, marked, err := k.mark(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("mark stream %s: %w", s.stream, err)
		}
		identities[s.stream] = id
		if s.stream == events.StreamFleet {
			continue
		}
		if err := k.record(ctx, marked); err != nil {
			return nil, fmt.Errorf("record the marker of %s: %w", s.stream, err)
		}
	}
	return identities, nil
}

// Run marks the streams every MarkEvery until ctx ends. One that fails is
// reported to failed and made up for by the next.
func (k Marks) Run(ctx context.Context, failed func(error)) error {
	tick := time.NewTicker(MarkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if _, err := k.Mark(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		}
	}
}

// mark puts one marker into one stream. A try of unknown outcome is followed by
// another marker: two are as good as one.
func (k Marks) mark(ctx context.Context, s settings) (id events.StreamIdentity, marked events.StreamMarked, err error) {
	for range markTries {
		if id, marked, err = k.markOnce(ctx, s); err == nil || !wait(ctx, settlePauseMax) {
			break
		}
	}
	return id, marked, err
}

func (k Marks) markOnce(ctx context.Context, s settings) (events.StreamIdentity, events.StreamMarked, error) {
	info, err := k.Store.Stream(s.stream).Info(ctx)
	if err != nil {
		return events.StreamIdentity{}, events.StreamMarked{}, err
	}
	id := identityOf(info.CreatedAt)
	id.MarkerID = token()
	marked := events.StreamMarked{Stream: s.stream, Marker: id.MarkerID, CreatedAt: id.CreatedAt}
	id.MarkerSeq, err = k.append(ctx, s.stream, s.markers(id.MarkerID), marked)
	return id, marked, err
}

// append encodes a marker for the subject it is to stand under, and stores it.
func (k Marks) append(ctx context.Context, st events.Stream, subject string, marked events.StreamMarked) (uint64, error) {
	meta := events.Meta{ID: token(), Source: k.Source, Time: time.Now(), Command: token()}
	w, err := events.Encode(k.Store.Subjects(), meta, marked)
	if err != nil {
		return 0, err
	}
	w.Subject = subject
	return k.Store.Stream(st).Append(ctx, w)
}

// record tells FLEET of another stream's marker.
func (k Marks) record(ctx context.Context, marked events.StreamMarked) (err error) {
	for range markTries {
		if _, err = k.append(ctx, events.StreamFleet, k.Store.Subjects().FleetLog(), marked); err == nil || !wait(ctx, settlePauseMax) {
			break
		}
	}
	return err
}

// markers is where the marker with that id stands; "*" for the filter of all.
func (s settings) markers(id string) string {
	return s.prefix + "." + s.token + "." + strings.Replace(s.marker, "%s", id, 1)
}

func token() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, by its documentation
	return hex.EncodeToString(b)
}

// MarkerOf returns the id of the marker that m is for its own stream, and false
// for every other message: also for FLEET's records of other streams' markers.
func MarkerOf(m events.Message) (id string, ok bool) {
	if m.Header.Get(events.HeaderType) != events.NameStreamMarked {
		return "", false
	}
	var marked struct {
		Stream events.Stream `json:"stream"`
		Marker string        `json:"marker"`
	}
	if err := json.Unmarshal(m.Data, &marked); err != nil || marked.Stream != m.Stream || marked.Marker == "" {
		return "", false
	}
	return marked.Marker, true
}

// NewestMarker returns the identity of a stream for a reader at position upTo:
// its creation and the newest marker at or below. Without a marker there, only
// the creation is set.
func NewestMarker(ctx context.Context, store Store, st events.Stream, upTo uint64) (events.StreamIdentity, error) {
	s, filter := store.Stream(st), markerFilterOf(store, st)
	info, err := s.Info(ctx)
	if err != nil {
		return events.StreamIdentity{}, err
	}
	id := identityOf(info.CreatedAt)
	for range markerWalk {
		m, err := lastAtOrBelow(ctx, s, filter, upTo)
		if errors.Is(err, events.ErrNotFound) {
			return id, nil
		}
		if err != nil {
			return events.StreamIdentity{}, err
		}
		if marker, ok := MarkerOf(m); ok {
			id.MarkerSeq, id.MarkerID = m.Seq, marker
			return id, nil
		}
		upTo = m.Seq - 1
	}
	return events.StreamIdentity{}, fmt.Errorf("stream %s has no marker among the last %d entries of %s", st, markerWalk, filter)
}

// lastAtOrBelow finds the newest message under filter at or below upTo. The
// broker reads forwards only, so it is searched for by halves.
func lastAtOrBelow(ctx context.Context, s Stream, filter string, upTo uint64) (events.Message, error) {
	m, err := s.Last(ctx, filter)
	if err != nil || m.Seq <= upTo {
		return m, err
	}
	found := events.Message{}
	for low, high := uint64(1), upTo; low <= high; {
		middle := low + (high-low)/2
		m, err := s.Next(ctx, filter, middle)
		switch {
		case errors.Is(err, events.ErrNotFound), err == nil && m.Seq > upTo:
			high = middle - 1
		case err != nil:
			return events.Message{}, err
		default:
			found, low = m, m.Seq+1
		}
	}
	if found.Seq == 0 {
		return found, events.ErrNotFound
	}
	return found, nil
}

// CheckIdentity verifies that a stream is the one in which a reader at position
// upTo knew want: created at the same time, the marker at its place, and no
// marker between it and the position that the reader did not see. The last
// catches a stream that was restored to an older state and has grown past every
// position since (design §10, schedule 16). It returns an *IdentityError, or
// why the stream could not be asked.
func CheckIdentity(ctx context.Context, store Store, st events.Stream, want events.StreamIdentity, upTo uint64) error {
	s, filter := store.Stream(st), markerFilterOf(store, st)
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	have := identityOf(info.CreatedAt)
	wrong := func(reason IdentityReason) error {
		return &IdentityError{Stream: st, Reason: reason, Want: want, Have: have}
	}
	switch {
	case want.CreatedAt != have.CreatedAt:
		return wrong(Recreated)
	case upTo > info.Last:
		return wrong(Shorter)
	}
	if want.MarkerSeq > 0 {
		m, err := s.Get(ctx, want.MarkerSeq)
		switch {
		case errors.Is(err, events.ErrNotFound) && want.MarkerSeq < info.First:
			return wrong(MarkerAged)
		case errors.Is(err, events.ErrNotFound):
			return wrong(MarkerGone)
		case err != nil:
			return err
		}
		have.MarkerSeq = m.Seq
		if have.MarkerID, _ = MarkerOf(m); have.MarkerID != want.MarkerID {
			return wrong(MarkerGone)
		}
	}
	return noForeign(ctx, s, filter, want.MarkerSeq+1, upTo, func(m events.Message, id string) error {
		have.MarkerSeq, have.MarkerID = m.Seq, id
		return wrong(MarkerForeign)
	})
}

// noForeign looks for a marker in [from, upTo].
func noForeign(ctx context.Context, s Stream, filter string, from, upTo uint64, found func(events.Message, string) error) error {
	for range markerWalk {
		m, err := s.Next(ctx, filter, from)
		if errors.Is(err, events.ErrNotFound) || err == nil && m.Seq > upTo {
			return nil
		}
		if err != nil {
			return err
		}
		if id, ok := MarkerOf(m); ok {
			return found(m, id)
		}
		from = m.Seq + 1
	}
	return fmt.Errorf("more than %d entries under %s between a marker and the position that rests on it", markerWalk, filter)
}

func markerFilterOf(store Store, st events.Stream) string {
	for _, s := range streams(store.Subjects().Prefix()) {
		if s.stream == st {
			return s.markers("*")
		}
	}
	panic(fmt.Sprintf("broker: no stream %q", st))
}
