package audit

import (
	"github.com/seat-tenure/tenure/events"
)

// Tally counts messages as the header of an export names them. An exporter
// needs it because the header comes first: a live log loses messages while it
// is read (renewals are pruned, a cursor's record replaces the one before), so
// read once into a spool and a Tally, then write header and spool.
type Tally struct {
	subjects events.Subjects
	streams  map[events.Stream]*StreamHeader
}

// NewTally returns an empty tally of a fleet's streams.
func NewTally(s events.Subjects) *Tally {
	return &Tally{subjects: s, streams: map[events.Stream]*StreamHeader{}}
}

// Add counts m. Messages of a stream come by ascending sequence.
func (t *Tally) Add(m events.Message) {
	var marker *events.StreamMarked
	if m.Header.Get(events.HeaderType) == events.NameStreamMarked {
		if rec, err := events.Decode(t.subjects, m); err == nil {
			marked := rec.Event.(events.StreamMarked)
			marker = &marked
		}
	}
	t.add(m, marker)
}

// add counts m, which is that marker or none.
func (t *Tally) add(m events.Message, marker *events.StreamMarked) {
	s := t.of(m.Stream)
	if s.Count == 0 {
		s.First = m.Seq
	}
	s.Count++
	s.Last = m.Seq
	if marker != nil && marker.Stream == m.Stream { // FLEET keeps the others' markers too
		s.Generation = marker.Marker
	}
}

func (t *Tally) of(stream events.Stream) *StreamHeader {
	s := t.streams[stream]
	if s == nil {
		s = &StreamHeader{Stream: stream}
		t.streams[stream] = s
	}
	return s
}

// Header is the header of what was counted. createdAt lists every stream that
// the export covers, also those without a message.
func (t *Tally) Header(createdAt map[events.Stream]string) Header {
	h := Header{FormatVersion: FormatVersion, Prefix: t.subjects.Prefix()}
	for _, stream := range order {
		created, covered := createdAt[stream]
		if counted := t.streams[stream]; counted != nil {
			s := *counted
			s.CreatedAt = created
			h.Streams = append(h.Streams, s)
		} else if covered {
			h.Streams = append(h.Streams, StreamHeader{Stream: stream, CreatedAt: created})
		}
	}
	return h
}
