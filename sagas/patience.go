package sagas

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

const (
	// warmFor bounds the warming: the memory of a large seat over a slow link.
	warmFor = time.Minute
	// flushFor is above what a host gives one attempt of a teardown.
	flushFor = 90 * time.Second
	// establishFor bounds the hydration of the rest and the children's start.
	establishFor = time.Minute
	// minReserved is above the log clock's sampling interval, of a second, so
	// that a reservation is not over before anybody could have seen its age.
	minReserved = 2 * time.Second
	// reservedPart of the TTL a seat stays dark for a target that died right
	// after the release: it claims on the event, within milliseconds.
	reservedPart = 9
)

// DefaultPatience are the bounds of a handoff in a fleet with that TTL, whose
// turns are left as long to end.
func DefaultPatience(ttl, turn time.Duration) events.Patience {
	return events.Patience{
		Warm:      events.MillisOf(warmFor),
		Quiesce:   events.MillisOf(turn + ttl),
		Flush:     events.MillisOf(flushFor),
		Release:   events.MillisOf(ttl),
		Claim:     events.MillisOf(max(minReserved, ttl/reservedPart)),
		Establish: events.MillisOf(establishFor),
	}
}
