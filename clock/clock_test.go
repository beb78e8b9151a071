package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/clock"
)

// The holder counts the largest of the three clocks and the taker the smaller
// of the two that stand still in a suspend, whichever of them runs ahead.
func TestHolderCountsBigTakerSmall(t *testing.T) {
	since := clock.Instant{Raw: time.Hour, Monotonic: 2 * time.Hour, Boot: 3 * time.Hour}
	for _, c := range []struct {
		name            string
		raw, mono, boot time.Duration
		holder, taker   time.Duration
	}{
		{"all alike", 10, 10, 10, 10, 10},
		{"slewed slower", 10, 9, 9, 10, 9},
		{"slewed faster", 10, 11, 11, 11, 10},
		{"suspended", 10, 10, 100, 100, 10},
	} {
		now := clock.Instant{Raw: since.Raw + c.raw, Monotonic: since.Monotonic + c.mono, Boot: since.Boot + c.boot}
		if got := clock.HolderElapsed(since, now); got != c.holder {
			t.Errorf("%s: holder counts %d, want %d", c.name, got, c.holder)
		}
		if got := clock.TakerElapsed(since, now); got != c.taker {
			t.Errorf("%s: taker counts %d, want %d", c.name, got, c.taker)
		}
	}
}

// All three of the machine's clocks are read, and none goes back.
func TestSystemClocksAdvance(t *testing.T) {
	before := clock.System()
	deadline := time.Now().Add(10 * time.Second)
	for now := clock.System(); ; now = clock.System() {
		if now.Raw < before.Raw || now.Monotonic < before.Monotonic || now.Boot < before.Boot {
			t.Fatalf("a clock went back: %+v, then %+v", before, now)
		}
		if now.Raw > before.Raw && now.Monotonic > before.Monotonic && now.Boot > before.Boot {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a clock stands still: %+v, then %+v", before, now)
		}
	}
}

// Inside a bubble, FromTime is the bubble's time.
func TestFromTimeFollowsTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := clock.FromTime()
		time.Sleep(time.Hour)
		if got := clock.TakerElapsed(before, clock.FromTime()); got != time.Hour {
			t.Errorf("elapsed %v, want 1h", got)
		}
	})
}
