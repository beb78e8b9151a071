package seattest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Records keeps what was logged, for a test to read.
type Records struct {
	mu   sync.Mutex
	kept []Record // guarded by mu
}

// Record is one log event, its attributes as text.
type Record struct {
	At    time.Time
	Level slog.Level
	Name  string
	Attrs map[string]string
}

// Logger returns a logger that writes into r at every level.
func (r *Records) Logger() *slog.Logger { return slog.New(recorder{into: r}) }

// All returns what was logged under a name so far, in order; "" is for any.
func (r *Records) All(name string) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Record
	for _, rec := range r.kept {
		if name == "" || rec.Name == name {
			out = append(out, rec)
		}
	}
	return out
}

// Count is how often a name was logged, with those attributes ("key=value").
func (r *Records) Count(name string, attrs ...string) int {
	n := 0
	for _, rec := range r.All(name) {
		matches := true
		for _, attr := range attrs {
			key, value, _ := strings.Cut(attr, "=")
			matches = matches && rec.Attrs[key] == value
		}
		if matches {
			n++
		}
	}
	return n
}

// String renders all of it, for the message of a test that failed.
func (r *Records) String() string {
	var b strings.Builder
	for _, rec := range r.All("") {
		fmt.Fprintf(&b, "%-5v %s", rec.Level, rec.Name)
		for _, key := range rec.Keys() {
			fmt.Fprintf(&b, " %s=%q", key, rec.Attrs[key])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Merge adds what others kept.
func (r *Records) Merge(others ...*Records) {
	for _, other := range others {
		kept := other.All("")
		r.mu.Lock()
		r.kept = append(r.kept, kept...)
		r.mu.Unlock()
	}
}

// Shape lists every form in which something was logged, once and sorted: level,
// name and attribute keys.
func (r *Records) Shape() string {
	forms := map[string]bool{}
	for _, rec := range r.All("") {
		forms[fmt.Sprintf("%-5v %s %s\n", rec.Level, rec.Name, strings.Join(rec.Keys(), " "))] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(forms)), "")
}

// Keys lists the record's attribute keys, sorted.
func (r Record) Keys() []string {
	keys := make([]string, 0, len(r.Attrs))
	for key := range r.Attrs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// recorder is a slog.Handler; groups are not used by the product.
type recorder struct {
	into *Records
	with []slog.Attr
}

func (recorder) Enabled(context.Context, slog.Level) bool { return true }

func (h recorder) Handle(_ context.Context, r slog.Record) error {
	rec := Record{At: r.Time, Level: r.Level, Name: r.Message, Attrs: map[string]string{}}
	add := func(a slog.Attr) bool {
		rec.Attrs[a.Key] = a.Value.String()
		return true
	}
	for _, a := range h.with {
		add(a)
	}
	r.Attrs(add)
	h.into.mu.Lock()
	defer h.into.mu.Unlock()
	h.into.kept = append(h.into.kept, rec)
	return nil
}

func (h recorder) WithAttrs(attrs []slog.Attr) slog.Handler {
	return recorder{h.into, append(slices.Clone(h.with), attrs...)}
}

func (h recorder) WithGroup(string) slog.Handler { return h }
