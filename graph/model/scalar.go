package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// Position is a sequence of a stream. JSON numbers lose digits above 2^53, so
// it travels as a string.
type Position uint64

// Epoch is a fencing token, a string for the same reason.
type Epoch uint64

// MarshalGQL writes the position as a decimal string.
func (p Position) MarshalGQL(w io.Writer) { writeUint(w, uint64(p)) }

// UnmarshalGQL reads a decimal string.
func (p *Position) UnmarshalGQL(v any) error {
	n, err := readUint("a position", v)
	*p = Position(n)
	return err
}

// MarshalGQL writes the epoch as a decimal string.
func (e Epoch) MarshalGQL(w io.Writer) { writeUint(w, uint64(e)) }

// UnmarshalGQL reads a decimal string.
func (e *Epoch) UnmarshalGQL(v any) error {
	n, err := readUint("an epoch", v)
	*e = Epoch(n)
	return err
}

// A writer of gqlgen's is a buffer in memory, which cannot fail; this holds for
// every write of this file.
func writeUint(w io.Writer, n uint64) {
	_, _ = io.WriteString(w, `"`+strconv.FormatUint(n, 10)+`"`)
}

func readUint(what string, v any) (uint64, error) {
	s, ok := v.(string)
	if !ok {
		return 0, badScalar("%s is a string of digits, not a %s", what, kindOf(v))
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, badScalar("%s is a string of digits up to %d", what, uint64(1<<64-1))
	}
	return n, nil
}

// MarshalTime writes t as RFC 3339 in UTC.
func MarshalTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, `"`+t.UTC().Format(time.RFC3339Nano)+`"`)
	})
}

// UnmarshalTime reads RFC 3339.
func UnmarshalTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, badScalar("a time is a string such as 2030-01-02T03:04:05Z, not a %s", kindOf(v))
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, badScalar("a time is written as 2030-01-02T03:04:05Z")
	}
	return t, nil
}

// MarshalDuration writes d as ISO 8601.
func MarshalDuration(d time.Duration) graphql.Marshaler { return graphql.MarshalDuration(d) }

// UnmarshalDuration reads ISO 8601; a day has 24 hours.
func UnmarshalDuration(v any) (time.Duration, error) {
	if _, ok := v.(string); !ok {
		return 0, badScalar("a duration is a string such as PT30S, not a %s", kindOf(v))
	}
	d, err := graphql.UnmarshalDuration(v)
	if err != nil {
		return 0, badScalar("a duration is written as ISO 8601 has it: PT30S, PT10M")
	}
	return d, nil
}

// JSON is a JSON value as text.
type JSON json.RawMessage

// MarshalGQL writes the value as it is.
func (j JSON) MarshalGQL(w io.Writer) { _, _ = w.Write(j) }

// UnmarshalGQL takes any value and keeps its numbers as they were written.
func (j *JSON) UnmarshalGQL(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return badScalar("this is no JSON value: %v", err)
	}
	*j = JSON(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	return nil
}

// kindOf names a value as JSON does, for people.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number, int, int64, float64:
		return "number"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}
