package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seat-tenure/tenure/events"
)

// MaxLine bounds a line in bytes, its line break not counted: above what the
// largest payload a broker takes by default (8 MiB) becomes in base64.
const MaxLine = 16 << 20

// maxBrackets bounds how deep data may nest to stand in a line as it is.
// Decoders stop at 10,000 levels, and the line is one more.
const maxBrackets = 9000

// AppendMessage appends m as one JSON object without a line break: stream, seq,
// at, subject, headers, then data as it is when it is JSON that fits into a
// line, else its base64 under data_base64.
func AppendMessage(dst []byte, m events.Message) []byte {
	dst = append(dst, `{"stream":`...)
	dst = appendJSON(dst, string(m.Stream))
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendUint(dst, m.Seq, 10)
	dst = append(dst, `,"at":"`...)
	dst = m.At.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","subject":`...)
	dst = appendJSON(dst, strings.ToValidUTF8(m.Subject, "\uFFFD"))
	dst = append(dst, `,"headers":`...)
	dst = appendJSON(dst, validHeader(m.Header))
	if plain(m.Data) {
		dst = append(dst, `,"data":`...)
		dst = append(dst, m.Data...)
	} else {
		dst = append(dst, `,"data_base64":`...)
		dst = appendJSON(dst, append([]byte{}, m.Data...)) // never nil, which would be null
	}
	return append(dst, '}')
}

// ParseMessage reads back what AppendMessage wrote, and nothing else: a line
// that AppendMessage would have written otherwise is refused.
func ParseMessage(line []byte) (events.Message, error) {
	var l struct {
		Stream  events.Stream   `json:"stream"`
		Seq     uint64          `json:"seq"`
		At      time.Time       `json:"at"`
		Subject string          `json:"subject"`
		Headers events.Header   `json:"headers"`
		Data    json.RawMessage `json:"data"`
		Base64  *[]byte         `json:"data_base64"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return events.Message{}, err
	}
	m := events.Message{Stream: l.Stream, Seq: l.Seq, Subject: l.Subject, At: l.At, Header: l.Headers, Data: l.Data}
	if l.Base64 != nil {
		m.Data = *l.Base64
	}
	if want := AppendMessage(nil, m); !bytes.Equal(want, line) {
		return events.Message{}, fmt.Errorf("the line is not spelled as exports are, from byte %d on", firstDifference(want, line)+1)
	}
	return m, nil
}

// plain says whether data can stand in a line byte for byte.
func plain(data []byte) bool {
	if !json.Valid(data) || !utf8.Valid(data) || bytes.ContainsAny(data, "\r\n") {
		return false
	}
	first, last := data[0], data[len(data)-1]
	return first > ' ' && last > ' ' && bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) <= maxBrackets
}

func validHeader(h events.Header) events.Header {
	valid := make(events.Header, len(h))
	for key, values := range h {
		kept := make([]string, len(values))
		for i, v := range values {
			kept[i] = strings.ToValidUTF8(v, "\uFFFD")
		}
		valid[strings.ToValidUTF8(key, "\uFFFD")] = kept
	}
	return valid
}

// appendJSON appends the JSON of a string, bytes or header, which cannot fail.
func appendJSON(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("audit: %T has no JSON: %v", v, err))
	}
	return append(dst, text...)
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// StreamHeader is what the header says about one stream: about the lines of
// this export, which need not be all that the stream ever held.
type StreamHeader struct {
	Stream     events.Stream `json:"stream"`
	CreatedAt  string        `json:"created_at"`
	Generation string        `json:"generation"` // the newest marker's id; "" when it has none
	First      uint64        `json:"first"`      // sequence of the stream's first line; 0: no lines
	Last       uint64        `json:"last"`
	Count      uint64        `json:"count"`
}

// FormatVersion is the version of the format that this build writes and reads.
const FormatVersion = 1

// Header is the first line of an export.
type Header struct {
	FormatVersion int            `json:"format_version"`
	Prefix        string         `json:"prefix"`
	Streams       []StreamHeader `json:"streams"` // in the order of the lines
}

func (h Header) line() ([]byte, error) { return json.Marshal(h) }

func parseHeader(line []byte) (Header, error) {
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return Header{}, fmt.Errorf("not the header of an export: %w", err)
	}
	if h.FormatVersion != FormatVersion {
		return Header{}, fmt.Errorf("an export of format version %d; this build reads version %d, use the build that wrote it", h.FormatVersion, FormatVersion)
	}
	if want, err := h.line(); err != nil || !bytes.Equal(want, line) {
		return Header{}, errors.New("the header is not spelled as exports are")
	}
	_, err := events.NewSubjects(h.Prefix)
	return h, errors.Join(err, h.ordered())
}

// order is the order of streams in an export. FLEET comes first, so that every
// tenure is known before a record of another stream names it.
var order = []events.Stream{
	events.StreamFleet, events.StreamCursor, events.StreamWork, events.StreamDead, events.StreamMail, events.StreamMemory,
}

func (h Header) ordered() error {
	last := -1
	for _, s := range h.Streams {
		at := rank(s.Stream)
		if at <= last {
			return fmt.Errorf("stream %q of the header is unknown, repeated or out of order", s.Stream)
		}
		last = at
	}
	return nil
}

// rank is where a stream stands in an export; -1: in none.
func rank(s events.Stream) int {
	for i, known := range order {
		if s == known {
			return i
		}
	}
	return -1
}
