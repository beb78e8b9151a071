package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Echo answers {"echo": D}, D being the data of the last event as it came, or
// null without one. It makes no calls and reads nothing out of the data: it is
// for first steps and for tests of everything around a runner.
type Echo struct {
	Delay time.Duration // how long a turn takes; 0 answers at once
}

// Run waits for Delay and answers. It returns the cause of ctx when that ends
// first.
func (e Echo) Run(ctx context.Context, req Request, _ Calls) (Reply, error) {
	if e.Delay > 0 {
		timer := time.NewTimer(e.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return Reply{}, fmt.Errorf("echo for seat %s stopped: %w", req.Seat, context.Cause(ctx))
	}
	var answer struct {
		Echo json.RawMessage `json:"echo"`
	}
	if n := len(req.Events); n > 0 {
		answer.Echo = req.Events[n-1].Data
	}
	reply, err := json.Marshal(answer)
	if err != nil {
		return Reply{}, fmt.Errorf("echo for seat %s: the data of its last event is not JSON: %w", req.Seat, err)
	}
	return Reply{JSON: reply}, nil
}
