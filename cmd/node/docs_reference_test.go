package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/events"
)

// tableRows reads the rows of a page whose first cell is one code span: what
// stands in it, and the other cells.
func tableRows(page string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if name := strings.Trim(cells[0], "`"); len(cells) > 1 && cells[0] == "`"+name+"`" {
			rows[name] = cells[1:]
		}
	}
	return rows
}

// TestNodeFileReference proves that the page has every key of the node file with
// its default, and no other.
func TestNodeFileReference(t *testing.T) {
	rows, defaults := tableRows(read(t, "../../docs/reference/node-file.md")), DefaultConfig()
	for _, f := range configFields {
		var shown string
		switch v := reflect.ValueOf(f.at(&defaults)).Elem().Interface().(type) {
		case []string:
			shown = "[" + strings.Join(v, ", ") + "]"
		case map[string]string:
			shown = "{}"
		case fmt.Stringer:
			shown = v.String()
		default:
			shown = fmt.Sprint(v)
		}
		if shown == "" {
			shown = `""`
		}
		if row := rows[f.path]; len(row) != 2 || row[0] != "`"+shown+"`" {
			t.Errorf("%s: got %q, want a row with the default `%s` and a meaning", f.path, row, shown)
		}
		delete(rows, f.path)
	}
	if len(rows) > 0 {
		t.Errorf("the page has keys that no node file has: %q", slices.Sorted(maps.Keys(rows)))
	}
}

// What a line of the log is named by, in the code: a constant in a package's list
// or a literal at the call.
var (
	logConstant = regexp.MustCompile(`(?m)^\s*(log[A-Z]\w*)\s*=\s*"([a-z_]+)"`)
	logLiteral  = regexp.MustCompile(`(\.(?:Debug|Info|Warn|Error)(?:Context)?|\blog)\((?:ctx, )?"([a-z_]+)"`)
	logAsError  = regexp.MustCompile(`\.Error(?:Context)?\((?:ctx, )?(?:"([a-z_]+)"|(log[A-Z]\w*))`)
	logNameSpan = regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`")
)

// logNames reads the names of all log lines from the code, and which of them are
// said as errors.
func logNames(t *testing.T) (names, errors map[string]bool) {
	t.Helper()
	names, errors = map[string]bool{}, map[string]bool{}
	for _, dir := range []string{"seat", "turn", "badgerstore", "broker", "graph", "cmd/node", "commands", "duty"} {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no code (%v)", dir, err)
		}
		constants, code := map[string]string{}, ""
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				code += read(t, file)
			}
		}
		for _, m := range logConstant.FindAllStringSubmatch(code, -1) {
			constants[m[1]] = m[2]
			names[m[2]] = true
		}
		for _, m := range logLiteral.FindAllStringSubmatch(code, -1) {
			names[m[2]] = true
		}
		for _, m := range logAsError.FindAllStringSubmatch(code, -1) {
			errors[m[1]+constants[m[2]]] = true
		}
	}
	// Said by what is wrong with a copy, see badgerstore; and as loud as the embedded
	// server says it, see broker.
	for _, name := range []string{"projection_stream_swapped", "projection_stopped", "broker_server"} {
		errors[name] = true
	}
	return names, errors
}

// TestLogReference proves that the log page has every name that the code logs and
// no other, and the page on alarms every one that is said as an error, and none
// that is not logged.
func TestLogReference(t *testing.T) {
	names, errors := logNames(t)
	rows := tableRows(read(t, "../../docs/reference/log.md"))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if row := rows[name]; len(row) != 2 {
			t.Errorf("log.md has no row for %s, with its level and what it says", name)
		} else if errors[name] != strings.Contains(row[0], "error") {
			t.Errorf("log.md says of %s that its level is %q; an error: %v", name, row[0], errors[name])
		}
		delete(rows, name)
	}
	if len(rows) > 0 {
		t.Errorf("log.md has names that nothing logs: %q", slices.Sorted(maps.Keys(rows)))
	}
	alarms := read(t, "../../docs/howto/alarms.md")
	for _, name := range slices.Sorted(maps.Keys(errors)) {
		if !strings.Contains(alarms, "`"+name+"`") {
			t.Errorf("alarms.md does not say what to do about %s", name)
		}
	}
	for _, m := range logNameSpan.FindAllStringSubmatch(alarms, -1) {
		if !names[m[1]] && m[1] != "node_id" {
			t.Errorf("alarms.md names %s, which nothing logs", m[1])
		}
	}
}

// payloadFields lists the fields of an event's payload in the order of its type,
// those that may be absent with a question mark.
func payloadFields(of reflect.Type) (fields []string) {
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fields = append(fields, payloadFields(f.Type)...)
		case name == "" || name == "-":
		case options == "":
			fields = append(fields, "`"+name+"`")
		default:
			fields = append(fields, "`"+name+"?`")
		}
	}
	return fields
}

// TestEventsReference proves that the page has every event that there is a
// fixture of, with its version, the subject it stands under and its fields, and
// no other. Each name has fixtures (events: TestFixturesOfEveryName).
func TestEventsReference(t *testing.T) {
	rows := tableRows(read(t, "../../docs/reference/events.md"))
	for name := range rows {
		if strings.Contains(name, "`") || strings.HasPrefix(name, "ce-") || slices.Contains([]string{
			events.HeaderVersion, events.HeaderCommand, events.HeaderEpoch, events.HeaderFleetSeq,
		}, name) {
			delete(rows, name) // the envelope's
		}
	}
	subjects, err := events.NewSubjects("crewlet")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../testdata/events/*.full.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures (%v)", err)
	}
	for _, file := range files {
		var fixture struct {
			Subject string
			Headers events.Header
			Data    json.RawMessage
		}
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &fixture)
		}
		if err != nil {
			t.Fatal(file, err)
		}
		name, version := fixture.Headers.Get(events.HeaderType), fixture.Headers.Get(events.HeaderVersion)
		r, err := events.Decode(subjects, events.Message{Subject: fixture.Subject, Header: fixture.Headers, Data: fixture.Data})
		if err != nil {
			t.Fatal(file, err)
		}
		fields := strings.Join(payloadFields(reflect.TypeOf(r.Event)), ", ")
		row := rows[name]
		if len(row) != 4 || row[0] != version || row[2] != fields {
			t.Errorf("events.md has for %s %q, want version %s and the payload\n%s", name, row, version, fields)
			delete(rows, name)
			continue
		}
		pattern := regexp.MustCompile(`\\\{[^}]+\\\}`).ReplaceAllString(regexp.QuoteMeta(strings.Trim(row[1], "`")), `[^.]+`)
		if subject := strings.TrimPrefix(fixture.Subject, "crewlet."); !regexp.MustCompile(`^` + pattern + `$`).MatchString(subject) {
			t.Errorf("events.md has %s under %s, and it stands under %s", name, row[1], subject)
		}
		delete(rows, name)
	}
	if len(rows) > 0 {
		t.Errorf("events.md has events that there are none of: %q", slices.Sorted(maps.Keys(rows)))
	}
}

// TestHTTPReference proves that the page has every path that the API serves.
func TestHTTPReference(t *testing.T) {
	page, code := read(t, "../../docs/reference/http.md"), read(t, "../../graph/http.go")+read(t, "measure.go")
	for _, m := range regexp.MustCompile(`mux\.Handle(?:Func)?\("(/[a-z/]+)"`).FindAllStringSubmatch(code, -1) {
		if !regexp.MustCompile(`(?m)^## (GET|POST) ` + m[1] + `$`).MatchString(page) {
			t.Errorf("http.md has no section for %s", m[1])
		}
	}
}

// TestDocsLinks proves that what a page points to in this repository is there.
func TestDocsLinks(t *testing.T) {
	links := 0
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(read(t, page), -1) {
				links++
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
					t.Errorf("%s points to %s, which is not there", page, m[1])
				}
			}
		}
	}
	if links == 0 {
		t.Error("no page points anywhere")
	}
}
