//go:build tenure_test_clock

package clock_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/clock"
)

// In a test build the file bends each clock by itself: offsets at once, the
// rate from when it is seen. (go test -tags tenure_test_clock ./clock/)
func TestFakeClockBends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock.json")
	t.Setenv(clock.FakeFileEnv, path)
	before := clock.System()
	bend := func(d clock.Deviation) {
		t.Helper()
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, done func(now clock.Instant) bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !done(clock.System()); {
			if time.Now().After(deadline) {
				t.Fatalf("%s never showed", what)
			}
		}
	}
	bend(clock.Deviation{BootOffset: time.Hour})
	until("the offset", func(now clock.Instant) bool {
		return now.Boot-before.Boot >= time.Hour && now.Raw-before.Raw < time.Minute && now.Monotonic-before.Monotonic < time.Minute
	})
	bend(clock.Deviation{Rate: 1e6})
	until("the rate", func(now clock.Instant) bool { return clock.TakerElapsed(before, now) > 24*time.Hour })
}
