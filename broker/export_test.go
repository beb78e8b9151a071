package broker

// Samples is how many samples a log clock keeps: its memory is bounded, and
// nothing of the interface shows it.
func Samples(c *LogClock) int { return len(c.kept) }
