package turn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxLine is the longest line either side may write, in bytes and without its
// newline.
const MaxLine = 1 << 20

const (
	maxCallID  = 256 // bytes
	maxTool    = 128
	maxWhy     = 4 << 10 // of a program's or a tool's explanation that is kept
	maxExcerpt = 200     // of an offending line that is shown
)

// What a program may write.
const (
	LineCall   = "call"
	LineDone   = "done"
	LineFailed = "failed"
)

// Line is one decoded line of a program's output.
type Line struct {
	Type  string          `json:"type"`           // LineCall, LineDone or LineFailed
	ID    string          `json:"id,omitempty"`   // call: the program's own name for it
	Tool  string          `json:"tool,omitempty"` // call
	Args  json.RawMessage `json:"args,omitempty"` // call: {} when it gave none
	Reply json.RawMessage `json:"reply,omitempty"`
	Why   string          `json:"why,omitempty"`
}

// DecodeLine reads one line of a program's output. Fields it does not know are
// passed over, so that a program may say more than this version reads; a type
// it does not know is an error, because it may ask for something.
func DecodeLine(line []byte) (Line, error) {
	if len(line) > MaxLine {
		return Line{}, fmt.Errorf("a line of more than %d bytes", MaxLine)
	}
	var l Line
	if err := json.Unmarshal(line, &l); err != nil {
		return Line{}, fmt.Errorf("not a JSON object: %w", err)
	}
	switch l.Type {
	case LineCall:
		return decodeCall(l)
	case LineDone:
		if l.Reply == nil {
			l.Reply = json.RawMessage("null")
		}
		return Line{Type: LineDone, Reply: l.Reply}, nil
	case LineFailed:
		return Line{Type: LineFailed, Why: clip(l.Why, maxWhy)}, nil
	case "":
		return Line{}, errors.New(`no "type"`)
	default:
		return Line{}, fmt.Errorf("unknown type %q", clip(l.Type, maxTool))
	}
}

func decodeCall(l Line) (Line, error) {
	switch {
	case l.ID == "" || len(l.ID) > maxCallID:
		return Line{}, fmt.Errorf(`a call needs an "id" of 1 to %d bytes`, maxCallID)
	case l.Tool == "" || len(l.Tool) > maxTool:
		return Line{}, fmt.Errorf(`a call needs a "tool" of 1 to %d bytes`, maxTool)
	}
	if l.Args == nil || bytes.Equal(l.Args, []byte("null")) {
		l.Args = json.RawMessage("{}")
	}
	return Line{Type: LineCall, ID: l.ID, Tool: l.Tool, Args: l.Args}, nil
}

// encodeTurn is the first line a program reads.
func encodeTurn(req Request) ([]byte, error) {
	events := req.Events
	if events == nil {
		events = []Event{} // a program iterates over it; null would break the plain ones
	}
	// Without escapes for HTML, which would make six bytes of one: what mail may
	// say is bounded so that it fits.
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Type    string  `json:"type"`
		Seat    string  `json:"seat"`
		AgentID string  `json:"agent_id"`
		Epoch   uint64  `json:"epoch"`
		WorkKey string  `json:"work_key"`
		Attempt int     `json:"attempt"`
		Events  []Event `json:"events"`
	}{"turn", req.Seat, req.AgentID, req.Epoch, req.WorkKey, req.Attempt, events})
	if err != nil {
		return nil, fmt.Errorf("the turn of seat %s cannot be written as JSON: %w", req.Seat, err)
	}
	if n := line.Len() - 1; n > MaxLine {
		return nil, fmt.Errorf("the turn of seat %s is a line of %d bytes and a program reads at most %d: "+
			"coalesce fewer events into one turn, or send less data in one", req.Seat, n, MaxLine)
	}
	return line.Bytes(), nil // Encode ends the line
}

// encodeResult answers a call. A value that is no JSON, or that would make the
// line too long, becomes an error the program can read: the call was done.
func encodeResult(id string, value json.RawMessage, callErr error) []byte {
	if callErr == nil {
		line, err := json.Marshal(struct {
			Type  string          `json:"type"`
			ID    string          `json:"id"`
			OK    bool            `json:"ok"`
			Value json.RawMessage `json:"value"`
		}{"result", id, true, value})
		if err == nil && len(line) <= MaxLine {
			return append(line, '\n')
		}
		if callErr = err; err == nil {
			callErr = fmt.Errorf("the call was done, but its result is a line of %d bytes and the limit is %d", len(line), MaxLine)
		}
	}
	line, err := json.Marshal(struct {
		Type  string `json:"type"`
		ID    string `json:"id"`
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}{"result", id, false, clip(callErr.Error(), maxWhy)})
	if err != nil {
		panic(fmt.Sprintf("turn: two strings and a bool do not encode: %v", err))
	}
	return append(line, '\n')
}

// fencedLine is the last line a program reads when its seat moved.
var fencedLine = []byte(`{"type":"fenced"}` + "\n")

// clip shortens s to at most limit bytes, at a rune boundary.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
