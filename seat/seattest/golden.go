package seattest

import (
	"os"
	"testing"
)

// Golden compares text with a file under testdata; TENURE_GOLDEN=rewrite writes
// the file instead.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	if os.Getenv("TENURE_GOLDEN") == "rewrite" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has\n%s\ngot\n%s\nTENURE_GOLDEN=rewrite writes it anew; commit that only if you know why it changed", path, want, got)
	}
}
