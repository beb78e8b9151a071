package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// lines splits an export; each line keeps its line break.
func lines(file []byte) [][]byte { return slices.Collect(bytes.Lines(file)) }

// checked audits a file that is expected to have a readable header.
func checked(t *testing.T, file []byte) audit.Report {
	t.Helper()
	r, err := audit.Check(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantRules fails unless the report has exactly these rules at these lines.
func wantRules(t *testing.T, r audit.Report, want ...string) {
	t.Helper()
	var got []string
	for _, v := range r.Violations {
		got = append(got, fmt.Sprintf("%s@%d", v.Rule, v.Line))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v:\n%s", got, want, found(r))
	}
}

// TestFileRoundTrip proves that an export gives back every message byte for
// byte, also data that is no JSON, no UTF-8, or JSON in a shape of its own.
func TestFileRoundTrip(t *testing.T) {
	h := ordinary()
	for i, data := range []string{
		"", "null", "1", "not JSON", "\x00\xff", "{\"a\":\xff}", "{\"a\":\n1}", " {}", "{} ", `{ "b" : [1, 2], "a":"\u003c<" }`,
		`{"chain":"00","x":"\",\"chain\":\""}`, strings.Repeat("[", 10000) + strings.Repeat("]", 10000), "\"\u2028\"",
	} {
		h.seq[events.StreamDead]++
		h.raw(events.Message{
			Stream: events.StreamDead, Seq: h.seq[events.StreamDead], Subject: fmt.Sprintf("any.thing.%d", i), Data: []byte(data),
			Header: events.Header{"X-Mixed": {"a", "", "ü <b>"}, "": {"empty key"}},
		})
	}
	in := must(audit.NewReader(bytes.NewReader(h.export())))
	for i, want := range h.all() {
		entry, err := in.Next()
		if err != nil || entry.Broken || entry.Line != i+2 {
			t.Fatalf("message %d: %v, broken %t, line %d", i, err, entry.Broken, entry.Line)
		}
		got := entry.Message
		if len(got.Data) == 0 && len(want.Data) == 0 {
			got.Data, want.Data = nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, want %+v", got, want)
		}
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last line: %v, want io.EOF", err)
	}
}

// TestBytesThatAreNoUTF8 proves what the package doc says of headers that are
// not UTF-8: the export can be read, and shows U+FFFD in their place.
func TestBytesThatAreNoUTF8(t *testing.T) {
	h := newHistory()
	h.raw(events.Message{Stream: events.StreamDead, Seq: 1, Subject: "a\xffb", Header: events.Header{"k\xff": {"v\xfe\xff"}}, Data: []byte("{}")})
	in := must(audit.NewReader(bytes.NewReader(h.export())))
	entry, err := in.Next()
	if err != nil || entry.Message.Subject != "a\uFFFDb" || entry.Message.Header.Get("k\uFFFD") != "v\uFFFD" {
		t.Errorf("read %+v (%v)", entry.Message, err)
	}
}

// TestLineRemoved proves that every line that goes missing is found at the line
// that then follows, and by the count when it was the last.
func TestLineRemoved(t *testing.T) {
	file := lines(ordinary().export())
	for i := 1; i < len(file); i++ {
		r := checked(t, bytes.Join(slices.Delete(slices.Clone(file), i, i+1), nil))
		at := audit.Finding{}
		for _, v := range r.Violations {
			if v.Rule == audit.RuleChain {
				at = v
			}
		}
		header := slices.ContainsFunc(r.Violations, func(v audit.Finding) bool { return v.Rule == audit.RuleHeader && v.Line == 1 })
		last := i == len(file)-1
		if !header || (at.Line == i+1) == last {
			t.Errorf("without line %d: broken at line %d, header disagrees: %t\n%s", i+1, at.Line, header, found(r))
		}
	}
}

// TestLineAdded proves that a line put in, a copy or one made up and chained
// right, is found: the chain breaks there, or at what follows it.
func TestLineAdded(t *testing.T) {
	file := lines(ordinary().export())
	for i := 1; i < len(file); i++ {
		r := checked(t, bytes.Join(slices.Insert(slices.Clone(file), i, file[i]), nil))
		if !slices.ContainsFunc(r.Violations, func(v audit.Finding) bool { return v.Rule == audit.RuleChain && v.Line == i+2 }) {
			t.Errorf("line %d twice: no broken chain at line %d:\n%s", i+1, i+2, found(r))
		}
	}
	// Made up and chained right: a file of its own, up to and with the line.
	h := ordinary()
	all := h.all()
	forged := all[len(all)-1]
	forged.Seq++
	var b bytes.Buffer
	in := must(audit.NewReader(bytes.NewReader(h.export())))
	w := must(audit.NewWriter(&b, in.Header()))
	for _, m := range append(all, forged) {
		if err := w.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err == nil {
		t.Error("the writer closed a file that its header does not announce")
	}
	wantRules(t, checked(t, b.Bytes()), "header@1")
}

// TestLinesSwapped proves that the order of lines is part of the history.
func TestLinesSwapped(t *testing.T) {
	file := lines(ordinary().export())
	for i := 1; i < len(file)-1; i++ {
		swapped := slices.Clone(file)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		if r := checked(t, bytes.Join(swapped, nil)); r.OK() || r.Violations[0].Line != i+1 {
			t.Errorf("lines %d and %d swapped: want line %d found first:\n%s", i+1, i+2, i+1, found(r))
		}
	}
}

// stride is how many bytes apart a file is harmed: each of them in the long runs.
func stride() int {
	if os.Getenv("TENURE_CASES") == "full" {
		return 1
	}
	return 61
}

// TestLineAltered proves that a change of any byte is found on its very line,
// and on that line alone when what it says can still be read.
func TestLineAltered(t *testing.T) {
	file := brief().export()
	for at := 0; at < len(file); at += stride() {
		altered := bytes.Clone(file)
		altered[at] ^= []byte{0x01, 0x20}[at%2] // the other case of a letter too
		line := 1 + bytes.Count(file[:at], []byte("\n"))
		r, err := audit.Check(bytes.NewReader(altered))
		var bad *audit.LineError
		switch {
		case errors.As(err, &bad):
			if line != 1 || bad.Line != 1 {
				t.Fatalf("byte %d of line %d: unreadable at line %d", at, line, bad.Line)
			}
		case err != nil || r.OK():
			t.Fatalf("byte %d of line %d is altered and not found (%v)", at, line, err)
		case !slices.ContainsFunc(r.Violations, func(v audit.Finding) bool { return v.Line == line }):
			t.Fatalf("byte %d: nothing found at its line %d:\n%s", at, line, found(r))
		}
	}
}

// TestChainHasOneSpelling proves that not even the chain itself can be spelled
// another way: a line whose chain is lost is found, and so is the next one,
// which nothing leads to.
func TestChainHasOneSpelling(t *testing.T) {
	file := lines(ordinary().export())
	at := bytes.LastIndex(file[1], []byte(`"chain":"`)) + len(`"chain":"`)
	file[1] = append(bytes.Clone(file[1][:at]), bytes.ToUpper(file[1][at:])...)
	wantRules(t, checked(t, bytes.Join(file, nil)), "line@2", "chain@3", "header@1")
}

// TestFileTruncated proves that a file that ends early, at any byte, is found.
func TestFileTruncated(t *testing.T) {
	file := brief().export()
	for n := 0; n < len(file); n += stride() {
		r, err := audit.Check(bytes.NewReader(file[:n]))
		var bad *audit.LineError
		if errors.As(err, &bad) && n <= bytes.IndexByte(file, '\n') {
			continue
		}
		if err != nil || r.OK() {
			t.Fatalf("cut to %d bytes of %d: %v\n%s", n, len(file), err, found(r))
		}
	}
}

// TestHeaderDisagrees proves that a header which is chained right and still
// says something else than the lines is found.
func TestHeaderDisagrees(t *testing.T) {
	h := ordinary()
	right := must(audit.NewReader(bytes.NewReader(h.export()))).Header()
	for name, c := range map[string]struct {
		change func(*audit.Header)
		want   []string
	}{
		"count":      {func(h *audit.Header) { h.Streams[0].Count++ }, []string{"header@1"}},
		"first":      {func(h *audit.Header) { h.Streams[0].First++ }, []string{"header@1"}},
		"last":       {func(h *audit.Header) { h.Streams[2].Last-- }, []string{"header@1"}},
		"generation": {func(h *audit.Header) { h.Streams[1].Generation = "another" }, []string{"header@1"}},
		"a stream too much": {func(h *audit.Header) {
			h.Streams = append(h.Streams, audit.StreamHeader{Stream: events.StreamMail, Count: 3, First: 1, Last: 3})
		}, []string{"header@1"}},
		"a stream too few": {func(h *audit.Header) { h.Streams = h.Streams[:3] }, []string{"header@1"}},
	} {
		t.Run(name, func(t *testing.T) {
			header := right
			header.Streams = slices.Clone(right.Streams)
			c.change(&header)
			var b bytes.Buffer
			w := must(audit.NewWriter(&b, header))
			for _, m := range h.all() {
				if err := w.Add(m); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.Close(); err == nil || !strings.Contains(err.Error(), "export it again") {
				t.Errorf("the writer closed it: %v", err)
			}
			wantRules(t, checked(t, b.Bytes()), c.want...)
		})
	}
}

// TestNoExport proves that what is no export of a version this build reads is
// told from one that is illegal, with a sentence a person can act on.
func TestNoExport(t *testing.T) {
	chained := func(header string) string {
		var b bytes.Buffer
		w := must(audit.NewWriter(&b, audit.Header{Prefix: "p", Streams: []audit.StreamHeader{}}))
		must(w.Close())
		return header + b.String()[strings.Index(b.String(), `,"chain"`):]
	}
	for name, c := range map[string]struct{ file, want string }{
		"empty":                    {"", "line 1: the file is empty"},
		"text":                     {"hello\n", "line 1: the line does not end in its chain"},
		"a newer format":           {chained(`{"format_version":2,"prefix":"p","streams":[]`), "format version 2"},
		"a prefix that is no name": {chained(`{"format_version":1,"prefix":"P","streams":[]`), "stream prefix"},
		"an unknown stream":        {chained(`{"format_version":1,"prefix":"p","streams":[{"stream":"X","created_at":"","generation":"","first":0,"last":0,"count":0}]`), `stream "X"`},
		"another spelling":         {chained(`{"prefix":"p","format_version":1,"streams":[]`), "not spelled"},
	} {
		_, err := audit.Check(strings.NewReader(c.file))
		var bad *audit.LineError
		if !errors.As(err, &bad) || bad.Line != 1 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a LineError with %q", name, err, c.want)
		}
	}
	broken := errors.New("disk on fire")
	if _, err := audit.Check(io.MultiReader(bytes.NewReader(ordinary().export()[:600]), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v, want its error", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestWriterRefuses proves that a writer takes messages in their order only,
// none that a reader would refuse, and reports what is below it.
func TestWriterRefuses(t *testing.T) {
	m := func(s events.Stream, seq uint64) events.Message {
		return events.Message{Stream: s, Seq: seq, Subject: "x", Data: []byte("{}")}
	}
	for name, second := range map[string]events.Message{
		"an older sequence": m(events.StreamCursor, 6),
		"the same sequence": m(events.StreamCursor, 7),
		"an earlier stream": m(events.StreamFleet, 9),
		"no stream":         m("", 9),
		"a line too long":   {Stream: events.StreamCursor, Seq: 8, Data: make([]byte, audit.MaxLine)},
	} {
		var b bytes.Buffer
		w := must(audit.NewWriter(&b, audit.Header{Prefix: "p"}))
		if err := w.Add(m(events.StreamCursor, 7)); err != nil {
			t.Fatal(err)
		}
		err := w.Add(second)
		if err == nil || w.Add(m(events.StreamWork, 1)) == nil {
			t.Errorf("%s: taken (%v), or the writer went on after it", name, err)
		}
		if _, closed := w.Close(); !errors.Is(closed, err) {
			t.Errorf("%s: closed with %v, want %v", name, closed, err)
		}
	}
	if _, err := audit.NewWriter(io.Discard, audit.Header{Prefix: "p", Streams: []audit.StreamHeader{{Stream: events.StreamWork}, {Stream: events.StreamFleet}}}); err == nil {
		t.Error("a header out of order is taken")
	}
}

// TestLongLineIsSkipped proves that a line without end takes bounded memory,
// is found at its place, and that the lines behind it are read.
func TestLongLineIsSkipped(t *testing.T) {
	file := lines(ordinary().export())
	long := slices.Concat([]byte(`{"x":"`), bytes.Repeat([]byte("a"), audit.MaxLine), []byte("\"}\n"))
	r := checked(t, bytes.Join(slices.Insert(slices.Clone(file), 3, long), nil))
	wantRules(t, r, "line@4")
	if got := found(r); !strings.Contains(got, "longer than") {
		t.Errorf("not found to be too long:\n%s", got)
	}
	if r.Events != uint64(len(file)-1) {
		t.Errorf("%d events read, want the other %d", r.Events, len(file)-1)
	}
}

// TestChainIsOneValue proves that the chain of a whole file is one value that
// depends on all of it: kept elsewhere, it shows that a file was made anew.
func TestChainIsOneValue(t *testing.T) {
	h := ordinary()
	if a, b := h.check().Chain, h.check().Chain; a != b || len(a) != 64 {
		t.Errorf("chain %q, then %q", a, b)
	}
	before := h.check().Chain
	h.edit(events.StreamFleet, 2, func(m *events.Message) { m.Header.Set("x", "y") })
	if r := h.check(); !r.OK() || r.Chain == before {
		t.Errorf("made anew with another header value: chain %s, before %s\n%s", r.Chain, before, found(r))
	}
}
