package turn_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/seat-tenure/tenure/turn"
)

// Every form a line may take, and what stands in for what is left out.
func TestDecodeLine(t *testing.T) {
	for text, want := range map[string]turn.Line{
		`{"type":"call","id":"7","tool":"send","args":{"to":"cto"}}`:    {Type: turn.LineCall, ID: "7", Tool: "send", Args: json.RawMessage(`{"to":"cto"}`)},
		`{"type":"call","id":"7","tool":"send"}`:                        {Type: turn.LineCall, ID: "7", Tool: "send", Args: json.RawMessage(`{}`)},
		`{"type":"call","id":"7","tool":"send","args":null}`:            {Type: turn.LineCall, ID: "7", Tool: "send", Args: json.RawMessage(`{}`)},
		`{"type":"done","reply":{"a":[1]}}`:                             {Type: turn.LineDone, Reply: json.RawMessage(`{"a":[1]}`)},
		`{"type":"done"}`:                                               {Type: turn.LineDone, Reply: json.RawMessage(`null`)},
		`{"type":"failed","why":"tired","since":1}` + "\r":              {Type: turn.LineFailed, Why: "tired"},
		`{"type":"failed"}`:                                             {Type: turn.LineFailed},
		`{"type":"failed","why":"` + strings.Repeat("é", 3000) + `"}`:   {Type: turn.LineFailed, Why: strings.Repeat("é", 2048) + "…"},
		` {"type":"done","reply":"` + strings.Repeat("x", 5000) + `"} `: {Type: turn.LineDone, Reply: json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)},
	} {
		got, err := turn.DecodeLine([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.80s\ngot  %+v, %v\nwant %+v", text, got, err, want)
		}
	}
}

// What is no line of the protocol is refused: nothing is guessed.
func TestDecodeLineRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "null", "[]", `"done"`, "{", `{"type":"done"} {"type":"done"}`, `{"type":"done"}x`,
		"{}", `{"type":""}`, `{"type":7}`, `{"type":"turn"}`, `{"type":"result"}`, `{"type":"fenced"}`,
		`{"type":"call","id":"","tool":"send"}`, `{"type":"call","id":"1","tool":""}`, `{"type":"call","id":1,"tool":"send"}`,
		`{"type":"call","id":"` + strings.Repeat("i", 257) + `","tool":"send"}`,
		`{"type":"call","id":"1","tool":"` + strings.Repeat("t", 129) + `"}`,
		`{"type":"done","reply":"` + strings.Repeat("x", turn.MaxLine) + `"}`,
	} {
		if got, err := turn.DecodeLine([]byte(text)); err == nil {
			t.Errorf("%.80q passed as %+v", text, got)
		}
	}
}

// No input panics, and what is accepted is complete and says the same when it is
// written and read again.
func FuzzDecodeLine(f *testing.F) {
	for _, seed := range []string{
		`{"type":"call","id":"1","tool":"send","args":{"to":"cto","data":[1,"é",null]}}`,
		`{"type":"done","reply":{"a":1}}`, `{"type":"failed","why":"\ud800 broken"}`,
		`{"TYPE":"done","type":"failed"}`, `{"type":"call","id":"\u0000","tool":"x","args":null}`, "null", "{", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := turn.DecodeLine(text)
		if err != nil {
			return
		}
		switch l.Type {
		case turn.LineCall:
			if l.ID == "" || l.Tool == "" || !json.Valid(l.Args) {
				t.Fatalf("an incomplete call passed: %+v", l)
			}
		case turn.LineDone:
			if !json.Valid(l.Reply) {
				t.Fatalf("a reply that is no JSON passed: %+v", l)
			}
		case turn.LineFailed:
			if len(l.Why) > 5<<10 {
				t.Fatalf("%d bytes of why passed", len(l.Why))
			}
			return // a why at its limit is marked as cut, once
		default:
			t.Fatalf("type %q passed", l.Type)
		}
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > turn.MaxLine {
			return // escapes made it longer
		}
		l2, err := turn.DecodeLine(again)
		if err != nil || l2.Type != l.Type || l2.ID != l.ID || l2.Tool != l.Tool {
			t.Fatalf("%s\nread again: %+v, %v\nwant %+v", again, l2, err, l)
		}
	})
}
