package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestConfirm: a person at a terminal is asked, and only a yes goes on; with
// --yes, in a dry run, and where nobody sits there, nobody is asked.
func TestConfirm(t *testing.T) {
	const accepted = `{"data":{"done":{"__typename":"Accepted","position":"7","sagaId":null}}}`
	for name, tc := range map[string]struct {
		attended bool
		says     string
		flags    []string
		asked    bool
		done     bool
	}{
		"yes":             {true, "y\n", nil, true, true},
		"Yes, written":    {true, "Yes\n", nil, true, true},
		"no":              {true, "n\n", nil, true, false},
		"only return":     {true, "\n", nil, true, false},
		"end of input":    {true, "", nil, true, false},
		"--yes":           {true, "", []string{"--yes"}, false, true},
		"nobody is there": {false, "", nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			node := newRecordedNode(t)
			node.replies = []reply{{200, accepted, false}}
			c := program()
			c.terminal = func() bool { return tc.attended }
			var out, errs bytes.Buffer
			args := append([]string{"--addr", node.server.URL, "seat", "fence", "dev", "--reason", "stuck"}, tc.flags...)
			code := c.run(t.Context(), args, strings.NewReader(tc.says), &out, &errs)
			if asked := strings.Contains(errs.String(), "fence seat dev? [y/N] "); asked != tc.asked {
				t.Errorf("asked back: %v, want %v: %s", asked, tc.asked, errs.String())
			}
			if done := len(node.asked) == 1; done != tc.done || (code == exitFine) != tc.done {
				t.Errorf("done: %v with exit %d, want %v: %s", done, code, tc.done, errs.String())
			}
		})
	}
}
