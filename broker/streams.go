package broker

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/seat-tenure/tenure/events"
)

// What every stream of a fleet has in common.
const (
	// maxConsumers is positive on purpose: 0 and -1 mean the server's default of
	// 1,000 a stream, after which it refuses (nats-facts 1.5). A node has at most
	// a handful of readers.
	maxConsumers = 10_000
	// maxMessage bounds one message; the company document and a parked mail are
	// the largest. It is the server's default payload limit.
	maxMessage = 1 << 20
	// dedupeWindow is the server's default, stated.
	dedupeWindow = 2 * time.Minute

	metaTTL    = "tenure_lease_ttl" // in FLEET's metadata (L7)
	metaFormat = "tenure_format"
	format     = "1"
)

// settings are what design §2 fixes for one stream.
type settings struct {
	stream  events.Stream
	prefix  string
	token   string        // second token of its subjects
	marker  string        // where its markers stand below that, %s for the id
	wake    string        // token under which it republishes headers, "" for none
	perSubj int64         // messages kept per subject, -1 for all
	once    bool          // a subject's first message stays, a second is refused
	maxAge  time.Duration // 0 for ever
	batches bool          // takes atomic batches
	noDel   bool          // single messages cannot be deleted
}

// streams lists the settings of a fleet's streams.
//
// Where a stream keeps one message per subject, each marker needs a subject of
// its own: a newer one must not remove the one that a checkpoint rests on. In
// CURSOR it has a token more than cursors have, so that no filter takes it for one.
func streams(prefix string) []settings {
	all := []settings{
		{stream: events.StreamFleet, token: "fleet", marker: "log", perSubj: -1, batches: true, noDel: true},
		{stream: events.StreamMail, token: "agent", marker: "_log", wake: "wake", perSubj: -1},
		{stream: events.StreamCursor, token: "cursor", marker: "_log.%s.marker", perSubj: 1, batches: true, noDel: true},
		{stream: events.StreamWork, token: "work", marker: "_log.%s", perSubj: 1, once: true, maxAge: 7 * 24 * time.Hour, batches: true, noDel: true},
		{stream: events.StreamMemory, token: "memory", marker: "_log.%s", perSubj: 1, batches: true, noDel: true},
		{stream: events.StreamDead, token: "dead", marker: "_log.%s", perSubj: 1, once: true, maxAge: 90 * 24 * time.Hour},
	}
	for i := range all {
		all[i].prefix = prefix
	}
	return all
}

// filter covers all of the stream's subjects.
func (s settings) filter() string { return s.prefix + "." + s.token + ".>" }

// covers says whether a subject or filter lies within the stream.
func (s settings) covers(subject string) bool {
	return strings.HasPrefix(subject, s.prefix+"."+s.token+".")
}

// wakeSubject is where a message of the stream is announced, "" for nowhere.
func (s settings) wakeSubject(subject string) string {
	if s.wake == "" {
		return ""
	}
	return s.prefix + "." + s.wake + strings.TrimPrefix(subject, s.prefix+"."+s.token)
}

// name is the broker's name of the stream, as events.Subjects.StreamName.
func (s settings) name() string { return strings.ToUpper(s.prefix) + "_" + string(s.stream) }

// config renders the settings for the broker. Everything that decides about
// data is stated, also where it is the default.
func (s settings) config(replicas int, metadata map[string]string) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:               s.name(),
		Subjects:           []string{s.filter()},
		Retention:          jetstream.LimitsPolicy,
		Discard:            jetstream.DiscardOld,
		MaxConsumers:       maxConsumers,
		MaxMsgs:            -1,
		MaxBytes:           -1,
		MaxMsgsPerSubject:  s.perSubj,
		MaxMsgSize:         maxMessage,
		MaxAge:             s.maxAge,
		Storage:            jetstream.FileStorage,
		Compression:        jetstream.NoCompression, // a kill can corrupt a compressed block: ADR 0015
		Replicas:           replicas,
		Duplicates:         dedupeWindow,
		DenyDelete:         s.noDel,
		AllowAtomicPublish: s.batches,
		AllowDirect:        true, // for LastPerSubject alone; leader reads are built by hand
		Metadata:           metadata,
	}
	if s.once {
		// Both flags: without the second one DiscardNew replaces silently.
		c.Discard, c.DiscardNewPerSubject = jetstream.DiscardNew, true
	}
	if s.wake != "" {
		c.RePublish = &jetstream.RePublish{
			Source: s.filter(), Destination: s.prefix + "." + s.wake + ".>", HeadersOnly: true,
		}
	}
	return c
}

// mismatch compares what stands at the broker with what is needed. Metadata is
// compared by the caller: the TTL in force is the stored one (L7), and the
// server adds keys of its own.
func mismatch(have, want jetstream.StreamConfig) error {
	republish := func(r *jetstream.RePublish) string {
		if r == nil {
			return "none"
		}
		return fmt.Sprintf("%s to %s, headers only: %t", r.Source, r.Destination, r.HeadersOnly)
	}
	for _, f := range []struct {
		name       string
		have, want any
	}{
		{"subjects", strings.Join(have.Subjects, " "), strings.Join(want.Subjects, " ")},
		{"retention", have.Retention, want.Retention},
		{"discard", have.Discard, want.Discard},
		{"discard_new_per_subject", have.DiscardNewPerSubject, want.DiscardNewPerSubject},
		{"max_consumers", have.MaxConsumers, want.MaxConsumers},
		{"max_msgs", have.MaxMsgs, want.MaxMsgs},
		{"max_bytes", have.MaxBytes, want.MaxBytes},
		{"max_msgs_per_subject", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject},
		{"max_msg_size", have.MaxMsgSize, want.MaxMsgSize},
		{"max_age", have.MaxAge, want.MaxAge},
		{"storage", have.Storage, want.Storage},
		{"compression", have.Compression, want.Compression},
		{"num_replicas", have.Replicas, want.Replicas},
		{"duplicate_window", have.Duplicates, want.Duplicates},
		{"no_ack", have.NoAck, want.NoAck},
		{"sealed", have.Sealed, want.Sealed},
		{"deny_delete", have.DenyDelete, want.DenyDelete},
		{"deny_purge", have.DenyPurge, want.DenyPurge},
		{"allow_rollup_hdrs", have.AllowRollup, want.AllowRollup},
		{"allow_direct", have.AllowDirect, want.AllowDirect},
		{"allow_atomic", have.AllowAtomicPublish, want.AllowAtomicPublish},
		{"allow_batched", have.AllowBatchPublish, want.AllowBatchPublish},
		{"allow_msg_ttl", have.AllowMsgTTL, want.AllowMsgTTL},
		{"allow_msg_counter", have.AllowMsgCounter, want.AllowMsgCounter},
		{"allow_msg_schedules", have.AllowMsgSchedules, want.AllowMsgSchedules},
		{"subject_delete_marker_ttl", have.SubjectDeleteMarkerTTL, want.SubjectDeleteMarkerTTL},
		{"persist_mode", have.PersistMode, want.PersistMode},
		{"republish", republish(have.RePublish), republish(want.RePublish)},
		{"mirror", have.Mirror != nil, want.Mirror != nil},
		{"sources", len(have.Sources), len(want.Sources)},
		{"subject_transform", have.SubjectTransform != nil, want.SubjectTransform != nil},
		{"format", have.Metadata[metaFormat], want.Metadata[metaFormat]},
	} {
		if f.have != f.want {
			return &MismatchError{Stream: want.Name, Field: f.name, Have: fmt.Sprint(f.have), Want: fmt.Sprint(f.want)}
		}
	}
	return nil
}
