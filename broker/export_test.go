package broker

import "encoding/json"

// Samples is how many samples a log clock keeps: its memory is bounded, and
// nothing of the interface shows it.
func Samples(c *LogClock) int { return len(c.kept) }

// Doubt says what speaks against a broker's words about a stream.
func Doubt(answer string) (string, error) {
	var i streamInfo
	err := json.Unmarshal([]byte(answer), &i)
	return i.doubt(), err
}
