package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// read returns the kernel's three clocks. The calls cannot fail on a kernel
// that Go itself runs on; if one does, no lease time can be told and going on
// would be a guess.
func read() Instant {
	return Instant{
		Raw:       reading(unix.CLOCK_MONOTONIC_RAW),
		Monotonic: reading(unix.CLOCK_MONOTONIC),
		Boot:      reading(unix.CLOCK_BOOTTIME),
	}
}

func reading(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("clock: the kernel has no clock " + err.Error())
	}
	return time.Duration(ts.Nano())
}
