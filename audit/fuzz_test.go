package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// chain chains lines as the package doc says, written down a second time.
func chain(plain []byte) []byte {
	var file []byte
	before := make([]byte, sha256.Size)
	for line := range bytes.Lines(plain) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		sum := sha256.Sum256(append(bytes.Clone(before), line...))
		before = sum[:]
		file = append(file, bytes.TrimSuffix(line, []byte("}"))...)
		file = append(file, `,"chain":"`+hex.EncodeToString(before)+"\"}\n"...)
	}
	return file
}

// unchained takes the chain off every line of an export.
func unchained(file []byte) []byte {
	var plain []byte
	for line := range bytes.Lines(file) {
		plain = append(plain, line[:bytes.LastIndex(line, []byte(`,"chain":`))]...)
		plain = append(plain, "}\n"...)
	}
	return plain
}

// TestChainIsAsDocumented proves that the chain of an export is the one that
// the package doc defines, so that anybody can compute it.
func TestChainIsAsDocumented(t *testing.T) {
	file := ordinary().export()
	if got := chain(unchained(file)); !bytes.Equal(got, file) {
		t.Errorf("chained by the documented rule:\n%s\nwant\n%s", got, file)
	}
}

// FuzzReader proves that no file, its lines chained right so that their content
// is looked at, makes the reader or the auditor panic or loop; that a refusal
// names the header's line and nothing else; and that every line is accounted
// for: as a message, or as a line that is none.
func FuzzReader(f *testing.F) {
	// Short ones: the fuzzer shrinks what it keeps, and long lines take it long.
	for _, facts := range [][]events.Event{
		{},
		{claimed(dev, 1, alpha), renewed(dev, 1, alpha), released(dev, 1, alpha)},
		{claimed(dev, 1, alpha), completed("dev", "x", 1, alpha), parked("dev", "y", 1, 1, alpha)},
		{events.StreamMarked{Stream: events.StreamWork, Marker: "m"}, events.CursorCreated{CursorBody: cursorBody("dev", events.Inbox, 0, "", 0)}},
	} {
		h := newHistory()
		for _, e := range facts {
			h.put(e)
		}
		file := unchained(h.export())
		f.Add(file)
		f.Add(bytes.ReplaceAll(file, []byte(`"seq":2`), []byte(`"seq":1`)))
		f.Add(file[:len(file)*2/3])
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		file := chain(plain)
		r, err := audit.Check(bytes.NewReader(file))
		if err != nil {
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
		read, none := uint64(0), 0
		for {
			entry, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			var bad *audit.LineError
			switch {
			case err == nil:
				read++
			case errors.As(err, &bad) && bad.Line == entry.Line:
				none++
			default:
				t.Fatalf("line %d: %v", entry.Line, err)
			}
		}
		if lines := bytes.Count(file, []byte("\n")) - 1; r.Events != read || int(read)+none != lines {
			t.Fatalf("%d lines: %d read and %d none, %d audited", lines, read, none, r.Events)
		}
		if none > 0 && r.OK() {
			t.Fatal("a line that is none is no violation")
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
