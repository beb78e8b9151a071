package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Config describes a fleet's streams.
type Config struct {
	Prefix   string        // first token of every subject
	Replicas int           // 1, 3 or 5
	LeaseTTL time.Duration // written when FLEET is created; after that the stored one counts (L7)
	Timeout  time.Duration // of one request; DefaultTimeout when 0
}

// DefaultTimeout bounds one request to the broker. A leader's fail-over takes
// 4 to 7 seconds: waiting longer for one answer gains nothing, Log repeats.
const DefaultTimeout = 3 * time.Second

func (c Config) validate() (events.Subjects, error) {
	subjects, err := events.NewSubjects(c.Prefix)
	if c.LeaseTTL < time.Millisecond {
		err = errors.Join(err, fmt.Errorf("lease TTL %v is not a positive number of milliseconds", c.LeaseTTL))
	}
	return subjects, err
}
