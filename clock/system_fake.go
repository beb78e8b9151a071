//go:build tenure_test_clock

package clock

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// FakeFileEnv names the environment variable that holds the path of the file
// from which a test build takes how its clocks deviate. No normal build
// contains any of this.
const FakeFileEnv = "TENURE_TEST_CLOCK_FILE"

// fakeRefresh bounds how often the file is looked at.
const fakeRefresh = 10 * time.Millisecond

// Deviation is the file's content, as JSON. A clock shows its offset plus what
// the real one shows, the latter times rate since the rate was first seen.
// Changing the file changes the running process; it must be replaced as a
// whole (write, then rename).
type Deviation struct {
	RawOffset       time.Duration `json:"raw_offset"`
	MonotonicOffset time.Duration `json:"monotonic_offset"`
	BootOffset      time.Duration `json:"boot_offset"`
	Rate            float64       `json:"rate"` // 0 means 1
}

// bender is the process's one bent clock; its lock guards all fields.
type bender struct {
	mu       sync.Mutex
	looked   time.Duration // when the file was last read, on the real raw clock
	dev      Deviation
	anchor   Instant // real reading when the rate last changed
	shown    Instant // what was shown, without offsets, at the anchor
	anchored bool
}

var fake bender

// System reads the machine's clocks, bent by the file named by FakeFileEnv.
func System() Instant {
	real := read()
	path := os.Getenv(FakeFileEnv)
	if path == "" {
		return real
	}
	return fake.read(path, real)
}

func (b *bender) read(path string, real Instant) Instant {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.anchored {
		b.anchor, b.shown, b.anchored = real, real, true
		b.look(path, real)
	} else if real.Raw-b.looked >= fakeRefresh {
		b.look(path, real)
	}
	shown := b.scaled(real)
	shown.Raw += b.dev.RawOffset
	shown.Monotonic += b.dev.MonotonicOffset
	shown.Boot += b.dev.BootOffset
	return shown
}

// look reads the file anew. A missing file changes nothing; one that cannot be
// read as a Deviation stops the test that wrote it.
func (b *bender) look(path string, real Instant) {
	b.looked = real.Raw
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return
	}
	var dev Deviation
	if err == nil {
		err = json.Unmarshal(data, &dev)
	}
	if err != nil {
		panic(fmt.Sprintf("clock: %s=%s: %v", FakeFileEnv, path, err))
	}
	if dev.Rate != b.dev.Rate {
		b.anchor, b.shown = real, b.scaled(real)
	}
	b.dev = dev
}

// scaled runs on from the anchor at the present rate.
func (b *bender) scaled(real Instant) Instant {
	rate := b.dev.Rate
	if rate == 0 {
		rate = 1
	}
	at := func(shown, anchor, now time.Duration) time.Duration {
		return shown + time.Duration(float64(now-anchor)*rate)
	}
	return Instant{
		Raw:       at(b.shown.Raw, b.anchor.Raw, real.Raw),
		Monotonic: at(b.shown.Monotonic, b.anchor.Monotonic, real.Monotonic),
		Boot:      at(b.shown.Boot, b.anchor.Boot, real.Boot),
	}
}
