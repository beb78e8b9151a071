package broker

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// memoryLog is the content of one stream of the twin. Its hub's lock guards it.
type memoryLog struct {
	settings
	wall      func() time.Time // the broker's
	createdAt time.Time
	last      uint64
	msgs      []events.Message               // ascending; a removed one has no subject
	removed   int                            // how many of msgs are
	bySubject map[string][]uint64            // sequences kept, ascending
	siblings  map[string]map[string]struct{} // subjects kept, by all but their last token
	ids       map[string]seen                // Nats-Msg-Id, for the dedupe window
	changed   chan struct{}                  // closed, and replaced, at every change
}

type seen struct {
	seq uint64
	at  time.Time
}

func newMemoryLog(s settings, wall func() time.Time) *memoryLog {
	return &memoryLog{
		settings: s, wall: wall, createdAt: wall(), bySubject: map[string][]uint64{}, siblings: map[string]map[string]struct{}{},
		ids: map[string]seen{}, changed: make(chan struct{}),
	}
}

// wake tells who follows that something changed.
func (l *memoryLog) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// upTo is a copy of the log as it was when seq was its last.
func (l *memoryLog) upTo(seq uint64) *memoryLog {
	c := newMemoryLog(l.settings, l.wall)
	c.createdAt = l.createdAt
	for _, m := range l.msgs {
		if m.Seq <= seq && m.Subject != "" {
			c.insert(m)
		}
	}
	c.last = min(seq, l.last)
	return c
}

// store stores all of ws or none.
func (l *memoryLog) store(ws []events.Write) (uint64, error) {
	l.expire()
	if len(ws) == 1 {
		if d, ok := l.ids[ws[0].Header.Get(headerMsgID)]; ok {
			return d.seq, nil
		}
	}
	if err := l.check(ws); err != nil {
		return 0, err
	}
	for _, w := range ws {
		l.add(w)
	}
	l.wake()
	return l.last, nil
}

// check runs the conditions of all members against the log as it is, as the
// broker does: a member's check may not look at a subject that the same batch
// has written to before it.
func (l *memoryLog) check(ws []events.Write) error {
	written := map[string]bool{}
	for _, w := range ws {
		if size := messageSize(w); size > maxMessage {
			return &RefusedError{Code: codeTooLarge, Why: "message size exceeds maximum allowed"}
		}
		if c := w.Check; c != nil {
			if written[c.Subject] {
				return writeError(&apiError{ErrCode: codeWrongLastSequenceBusy, Description: "wrong last sequence"}, nil)
			}
			if stands := l.lastOf(c.Subject); stands != c.Last {
				if len(ws) > 1 {
					return &events.ConflictError{Actual: stands}
				}
				return &events.ConflictError{Subject: c.Subject, Actual: stands}
			}
		}
		if l.once && (written[w.Subject] || len(l.bySubject[w.Subject]) > 0) {
			return events.ErrExists
		}
		written[w.Subject] = true
	}
	return nil
}

func messageSize(w events.Write) int {
	size := len(w.Data)
	for key, values := range w.Header {
		for _, v := range values {
			size += len(key) + len(v) + 4
		}
	}
	return size
}

func (l *memoryLog) add(w events.Write) {
	l.last++
	if l.perSubj == 1 {
		for _, seq := range slices.Clone(l.bySubject[w.Subject]) {
			l.remove(seq)
		}
	}
	h := maps.Clone(w.Header)
	for key, values := range h {
		h[key] = slices.Clone(values)
	}
	l.insert(events.Message{
		Stream: l.stream, Seq: l.last, Subject: w.Subject, At: l.wall().UTC(), Header: h, Data: slices.Clone(w.Data),
	})
	if id := w.Header.Get(headerMsgID); id != "" {
		l.ids[id] = seen{l.last, l.wall()}
	}
}

func (l *memoryLog) insert(m events.Message) {
	l.msgs = append(l.msgs, m)
	l.bySubject[m.Subject] = append(l.bySubject[m.Subject], m.Seq)
	parent := parentOf(m.Subject)
	if l.siblings[parent] == nil {
		l.siblings[parent] = map[string]struct{}{}
	}
	l.siblings[parent][m.Subject] = struct{}{}
}

// parentOf is a subject without its last token.
func parentOf(subject string) string { return subject[:max(0, strings.LastIndexByte(subject, '.'))] }

// expire forgets what has aged: messages of streams with an age, message ids.
func (l *memoryLog) expire() {
	now := l.wall()
	for id, d := range l.ids {
		if now.Sub(d.at) >= dedupeWindow {
			delete(l.ids, id)
		}
	}
	for i := 0; l.maxAge > 0 && i < len(l.msgs) && now.Sub(l.msgs[i].At) >= l.maxAge; i++ {
		l.drop(i)
	}
	l.compact()
}

// at is the index of the first message at or after seq.
func (l *memoryLog) at(seq uint64) int {
	return sort.Search(len(l.msgs), func(i int) bool { return l.msgs[i].Seq >= seq })
}

func (l *memoryLog) remove(seq uint64) bool {
	i := l.at(seq)
	if i == len(l.msgs) || l.msgs[i].Seq != seq || l.msgs[i].Subject == "" {
		return false
	}
	l.drop(i)
	l.compact()
	return true
}

// drop removes the message at index i, and leaves its place.
func (l *memoryLog) drop(i int) {
	seq, subject := l.msgs[i].Seq, l.msgs[i].Subject
	if subject == "" {
		return
	}
	l.msgs[i] = events.Message{Seq: seq}
	l.removed++
	kept := slices.DeleteFunc(l.bySubject[subject], func(s uint64) bool { return s == seq })
	if l.bySubject[subject] = kept; len(kept) > 0 {
		return
	}
	delete(l.bySubject, subject)
	parent := parentOf(subject)
	if delete(l.siblings[parent], subject); len(l.siblings[parent]) == 0 {
		delete(l.siblings, parent)
	}
}

// compact gives back the places of removed messages once they are the most.
func (l *memoryLog) compact() {
	if l.removed > len(l.msgs)/2 {
		l.msgs = slices.DeleteFunc(l.msgs, func(m events.Message) bool { return m.Subject == "" })
		l.removed = 0
	}
}

// matching calls fn for each subject that filter covers.
func (l *memoryLog) matching(filter string, fn func(subject string, seqs []uint64)) {
	parent := parentOf(filter)
	switch {
	case !strings.ContainsAny(filter, "*>"):
		if seqs, ok := l.bySubject[filter]; ok {
			fn(filter, seqs)
		}
	case filter == parent+".*" && !strings.ContainsAny(parent, "*>"):
		for subject := range l.siblings[parent] { // a lease family: no walk over all
			fn(subject, l.bySubject[subject])
		}
	default:
		for subject, seqs := range l.bySubject {
			if covered(filter, subject) {
				fn(subject, seqs)
			}
		}
	}
}

// lastOf is the newest sequence under filter, 0 when there is none.
func (l *memoryLog) lastOf(filter string) uint64 {
	var last uint64
	l.matching(filter, func(_ string, seqs []uint64) { last = max(last, seqs[len(seqs)-1]) })
	return last
}

// nextOf is the first sequence under filter at or after from, 0 for none.
func (l *memoryLog) nextOf(filter string, from uint64) uint64 {
	var next uint64
	l.matching(filter, func(_ string, seqs []uint64) {
		i, _ := slices.BinarySearch(seqs, from)
		if i < len(seqs) && (next == 0 || seqs[i] < next) {
			next = seqs[i]
		}
	})
	return next
}

// get returns a copy of the message at seq.
func (l *memoryLog) get(seq uint64) (events.Message, error) {
	i := l.at(seq)
	if seq == 0 || i == len(l.msgs) || l.msgs[i].Seq != seq || l.msgs[i].Subject == "" {
		return events.Message{}, events.ErrNotFound
	}
	return l.msgs[i], nil
}

func (l *memoryLog) info() StreamInfo {
	info := StreamInfo{
		Stream: l.stream, CreatedAt: l.createdAt.UTC(), First: l.last + 1, Last: l.last,
		Messages: uint64(len(l.msgs) - l.removed), Metadata: map[string]string{metaFormat: format},
	}
	for i := len(l.msgs) - 1; i >= 0; i-- {
		if m := l.msgs[i]; m.Subject != "" {
			info.First = m.Seq
			info.Bytes += uint64(len(m.Data))
		}
	}
	return info
}

// batch returns up to MaxFollow messages that filters select from a sequence
// on, and whether there are more.
func (l *memoryLog) batch(from uint64, filters []string) (msgs []events.Message, more bool) {
	for _, m := range l.msgs[l.at(from):] {
		if m.Subject == "" || !selected(filters, m.Subject) {
			continue
		}
		if len(msgs) == MaxFollow {
			return msgs, true
		}
		msgs = append(msgs, m)
	}
	return msgs, false
}

func selected(filters []string, subject string) bool {
	if len(filters) == 0 {
		return true
	}
	return slices.ContainsFunc(filters, func(f string) bool { return covered(f, subject) })
}

// identity is what a reader without a marker knows of the log.
func identityOf(createdAt time.Time) events.StreamIdentity {
	return events.StreamIdentity{CreatedAt: createdAt.UTC().Format(time.RFC3339Nano)}
}

// metadataTTL reads the lease TTL from a stream's metadata.
func metadataTTL(metadata map[string]string) (time.Duration, error) {
	ms, err := strconv.ParseInt(metadata[metaTTL], 10, 64)
	if err != nil || ms <= 0 {
		return 0, refuse("FLEET's metadata has no lease TTL under %s (found %q)", metaTTL, metadata[metaTTL])
	}
	return time.Duration(ms) * time.Millisecond, nil
}
