package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/events"
)

const fixtureDir = "../testdata/events"

// fixture is a stored event as the log would give it.
type fixture struct {
	Subject string          `json:"subject"`
	Headers events.Header   `json:"headers"`
	Data    json.RawMessage `json:"data"`
}

func (f fixture) message() events.Message {
	return events.Message{Seq: 1, Subject: f.Subject, Header: f.Headers, Data: f.Data}
}

// text renders a fixture: data stays on one line, byte for byte.
func (f fixture) text() []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"subject\": " + string(must(json.Marshal(f.Subject))) + ",\n  \"headers\": {")
	for i, key := range slices.Sorted(maps.Keys(f.Headers)) {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n    " + string(must(json.Marshal(key))) + ": " + string(must(json.Marshal(f.Headers[key]))))
	}
	b.WriteString("\n  },\n  \"data\": " + string(f.Data) + "\n}\n")
	return b.Bytes()
}

func readFixture(t testing.TB, file string) fixture {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fixtureDir, file))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var f fixture
	if err := decoder.Decode(&f); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return f
}

func fixtureFiles(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(fixtureDir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures in %s (%v)", fixtureDir, err)
	}
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	return paths
}

// TestFixturesOfEveryName proves that each wire name has both fixtures, and
// that no fixture is of a name that nobody reads. TENURE_FIXTURES=add writes
// the missing ones, and never one that exists.
func TestFixturesOfEveryName(t *testing.T) {
	wanted := map[string]bool{}
	for _, name := range events.Names() {
		e, known := examples[name]
		if !known {
			t.Errorf("wire name %s has no example", name)
			continue
		}
		for file, of := range map[string]struct {
			event events.Event
			meta  events.Meta
		}{name + ".v1.full.json": {e.full, fullMeta}, name + ".v1.min.json": {e.min, minMeta}} {
			wanted[file] = true
			path := filepath.Join(fixtureDir, file)
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if os.Getenv("TENURE_FIXTURES") != "add" {
				t.Errorf("%s is missing; TENURE_FIXTURES=add writes it", file)
				continue
			}
			w, err := events.Encode(fleet, of.meta, of.event)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if err := os.WriteFile(path, fixture{w.Subject, w.Header, w.Data}.text(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, file := range fixtureFiles(t) {
		if !wanted[file] {
			t.Errorf("%s is of no wire name and version that this build reads", file)
		}
	}
}

// TestFixturesDecodeForEver proves L9: everything ever written is read, says
// what it said, and is written back byte for byte.
func TestFixturesDecodeForEver(t *testing.T) {
	for _, file := range fixtureFiles(t) {
		t.Run(file, func(t *testing.T) {
			f := readFixture(t, file)
			rec, err := events.Decode(fleet, f.message())
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(file, ".")
			want, meta := examples[name].full, fullMeta
			if strings.HasSuffix(file, ".min.json") {
				want, meta = examples[name].min, minMeta
			}
			if got := withoutPacked(rec.Event); !reflect.DeepEqual(got, want) {
				t.Errorf("decoded %+v, want %+v", got, want)
			}
			if rec.Meta != meta {
				t.Errorf("envelope %+v, want %+v", rec.Meta, meta)
			}
			w, err := events.Encode(fleet, rec.Meta, rec.Event)
			if err != nil {
				t.Fatal(err)
			}
			if w.Subject != f.Subject || !reflect.DeepEqual(w.Header, f.Headers) || !bytes.Equal(w.Data, f.Data) {
				t.Errorf("encoded again:\n%s\nwant\n%s", fixture{w.Subject, w.Header, w.Data}.text(), f.text())
			}
		})
	}
}

// withoutPacked leaves out what only says Seats again.
func withoutPacked(e events.Event) events.Event {
	if c, ok := e.(events.CompanyApplied); ok {
		c.Roster = nil
		return c
	}
	return e
}

// TestUnknownFieldsAreKept proves L9 on every fixture: a field that a newer
// build added comes back out of this build's hands.
func TestUnknownFieldsAreKept(t *testing.T) {
	const added = `"zz_new":{"a":[1,"\u003c"],"b":1.50}`
	for _, file := range fixtureFiles(t) {
		f := readFixture(t, file)
		f.Data = append(append(bytes.Clone(f.Data[:len(f.Data)-1]), ","...), added+"}"...)
		rec, err := events.Decode(fleet, f.message())
		if err != nil {
			t.Errorf("%s with a new field: %v", file, err)
			continue
		}
		if got := events.UnknownOf(rec.Event); len(got) != 1 || got["zz_new"] == nil {
			t.Errorf("%s: unknown fields %v, want the new one alone", file, got)
		}
		w, err := events.Encode(fleet, rec.Meta, rec.Event)
		if err != nil || !bytes.Contains(w.Data, []byte(added)) {
			t.Errorf("%s: encoded again without the new field: %s (%v)", file, w.Data, err)
		}
		again, err := events.Decode(fleet, events.Message{Seq: 1, Subject: w.Subject, Header: w.Header, Data: w.Data})
		if err != nil || !reflect.DeepEqual(again, rec) {
			t.Errorf("%s: decoded again %+v (%v), want %+v", file, again, err, rec)
		}
	}
}

// TestRosterOfANewerBuildIsKept proves that the packed roster, which is a
// document of its own, also comes back untouched (L9).
func TestRosterOfANewerBuildIsKept(t *testing.T) {
	f := readFixture(t, events.NameCompanyApplied+".v1.full.json")
	rec := must(events.Decode(fleet, f.message()))
	company := rec.Event.(events.CompanyApplied)
	company.Roster = gzipped(t, `[{"handle":"dev","agent_id":"1","shift":"night"}]`)
	f.Data = must(json.Marshal(company))
	rec = must(events.Decode(fleet, f.message()))
	w := must(events.Encode(fleet, rec.Meta, rec.Event))
	if !bytes.Equal(w.Data, f.Data) {
		t.Errorf("the roster was packed anew:\n%s\nwant\n%s", w.Data, f.Data)
	}
}

// TestRosterFollowsItsSeats proves the other direction: who changes the seats
// gets a roster that says so.
func TestRosterFollowsItsSeats(t *testing.T) {
	rec := must(events.Decode(fleet, readFixture(t, events.NameCompanyApplied+".v1.full.json").message()))
	company := rec.Event.(events.CompanyApplied)
	company.Seats = company.Seats[:1]
	w := must(events.Encode(fleet, rec.Meta, company))
	rec = must(events.Decode(fleet, events.Message{Seq: 2, Subject: w.Subject, Header: w.Header, Data: w.Data}))
	if got := rec.Event.(events.CompanyApplied).Seats; !reflect.DeepEqual(got, company.Seats) {
		t.Errorf("roster says %+v, want %+v", got, company.Seats)
	}
}
