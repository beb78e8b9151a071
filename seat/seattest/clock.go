package seattest

import (
	"sync"
	"time"

	"github.com/seat-tenure/tenure/clock"
)

// Clock is one node's clocks, which a test may stop and set.
type Clock struct {
	mu      sync.Mutex
	behind  time.Duration // by how much they show less than the bubble's time
	stopped clock.Instant // what they show while they stand still
}

// Now reads the clocks; it is a clock.Source.
func (c *Clock) Now() clock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped
	}
	return clock.FromTime().Add(-c.behind)
}

// Pause stops the clocks: a pause that no clock of the machine shows.
func (c *Clock) Pause() {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = now
}

// Resume lets them run on from where they stopped, if they did.
func (c *Clock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped.IsZero() {
		return
	}
	c.behind = clock.FromTime().Raw - c.stopped.Raw
	c.stopped = clock.Instant{}
}

// Wake lets them run on with what they have missed, if they stood still: a pause
// that they show only once it is over.
func (c *Clock) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = clock.Instant{}
}

// Ahead makes the clocks show d more from now on.
func (c *Clock) Ahead(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind -= d
}
