// Package clock is the only place where a lease's time is read (design §3).
//
// It guarantees that the two sides of a lease never both err towards
// themselves: a holder counts the largest of three clocks, a taker the smaller
// of two, so a clock that stands still or runs on during a suspend makes the
// holder stop early and the taker start late. It does not see a virtual
// machine that was paused and resumed by its host: no clock in the machine
// shows that. What such a pause may do is limited by the log (design §4).
//
// Wall time is not here on purpose: it can be set.
//
// All functions may be called from any goroutine.
package clock

import "time"

// Instant is one reading of the machine's clocks, each counted from a start of
// its own. Readings of different processes, or of different boots, cannot be
// compared.
type Instant struct {
	Raw       time.Duration // CLOCK_MONOTONIC_RAW: not slewed, stands still in suspend
	Monotonic time.Duration // CLOCK_MONOTONIC: slewed by NTP, stands still in suspend
	Boot      time.Duration // CLOCK_BOOTTIME: slewed by NTP, counts suspend
}

// IsZero reports whether i was never read.
func (i Instant) IsZero() bool { return i == Instant{} }

// Add returns the instant d later on every clock.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Raw: i.Raw + d, Monotonic: i.Monotonic + d, Boot: i.Boot + d}
}

// Source reads the clocks. A process uses one Source for all its leases.
type Source func() Instant

// HolderElapsed is the time since an instant as the holder of a lease must
// count it: the largest of the three clocks.
func HolderElapsed(since, now Instant) time.Duration {
	return max(now.Raw-since.Raw, now.Monotonic-since.Monotonic, now.Boot-since.Boot)
}

// TakerElapsed is the time since an instant as whoever waits for a lapse must
// count it: the smaller of the two clocks that stand still in a suspend. What
// happened during the suspend was not observed.
func TakerElapsed(since, now Instant) time.Duration {
	return min(now.Raw-since.Raw, now.Monotonic-since.Monotonic)
}

// start anchors FromTime; only differences to it are ever used.
var start = time.Now()

// FromTime reads package time's monotonic clock alone. Inside a
// testing/synctest bubble that is the bubble's time.
func FromTime() Instant {
	d := time.Since(start)
	return Instant{Raw: d, Monotonic: d, Boot: d}
}
