package audit_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/seat-tenure/tenure/audit"
)

// FuzzReader proves that no file makes the reader or the auditor panic or loop,
// that every refusal names a line, and that what is read is the only spelling
// of what it says.
func FuzzReader(f *testing.F) {
	file := ordinary().export()
	f.Add(file)
	f.Add(newHistory().export())
	f.Add(file[:len(file)/2])
	f.Add(bytes.ReplaceAll(file, []byte(`"seq":2`), []byte(`"seq":1`)))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := audit.Check(bytes.NewReader(file)); err != nil {
			var bad *audit.LineError
			if !errors.As(err, &bad) || bad.Line != 1 {
				t.Fatalf("refused with %T: %v", err, err)
			}
			return
		}
		in, err := audit.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("checked, but not read: %v", err)
		}
		for line := 2; ; line++ {
			entry, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if entry.Line != line {
				t.Fatalf("line %d after line %d", entry.Line, line-1)
			}
			var bad *audit.LineError
			if err != nil && (!errors.As(err, &bad) || bad.Line != line) {
				t.Fatalf("line %d: %v", line, err)
			}
		}
	})
}

// FuzzMessage proves that a line which can be read is written the same again.
func FuzzMessage(f *testing.F) {
	for _, m := range ordinary().all() {
		f.Add(audit.AppendMessage(nil, m))
	}
	f.Add([]byte(`{"stream":"DEAD","seq":1,"at":"2026-03-01T08:00:00Z","subject":"x","headers":{"a":null},"data_base64":""}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := audit.ParseMessage(line)
		if err != nil {
			return
		}
		if again := audit.AppendMessage(nil, m); !bytes.Equal(again, line) {
			t.Fatalf("read\n%s\nwritten\n%s", line, again)
		}
	})
}
