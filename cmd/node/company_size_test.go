package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// TestCompanyThatNoEventHolds proves that a company which is too large for an event
// once its list of seats stands beside the document is refused by whoever judges it
// first, not only by the apply itself after a dry run that was fine.
func TestCompanyThatNoEventHolds(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteString("company: {name: Acme}\nroles:\n")
	for i := range 10_000 { // titles that nothing packs
		fmt.Fprintf(&doc, "  - {handle: s%05d, title: t%x, runner: {echo: {}}}\n", i, sha256.Sum256(fmt.Append(nil, i)))
	}
	for _, args := range [][]string{{"validate", "-"}, {"diff", "-"}, {"apply", "-", "--dry-run"}, {"apply", "-", "--reason", "larger"}} {
		var out, errs strings.Builder
		code := run(t.Context(), append([]string{"company"}, args...), bytes.NewReader(doc.Bytes()), &out, &errs)
		if want := "packed with its list of seats"; code != exitBadConfig || !strings.Contains(errs.String(), want) {
			t.Errorf("%v ended with %d and does not say %q: %.300s", args, code, want, errs.String())
		}
	}
}
