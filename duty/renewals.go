package duty

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Renewals prunes old renewals from FLEET with one purge (design §3). Only leases
// that have lapsed can lose their last renewal that way: every message below the
// position was seen longer ago than a lapse takes, by clocks that err towards the
// holder. A lease's epoch stands with its claim, which is kept for ever.
type Renewals struct {
	TTL time.Duration
	// Before is the highest position that was received at least that long ago, 0
	// for none: broker.LogClock's.
	Before func(age time.Duration) uint64
	// Purge removes every renewal below that position, which is never 0.
	Purge func(ctx context.Context, below uint64) error
	Log   *slog.Logger
}

// Tick prunes once.
func (r *Renewals) Tick(ctx context.Context) error {
	below := r.Before(events.LapsesAfter(r.TTL))
	if below == 0 {
		return nil // this process has not watched for long enough
	}
	if err := r.Purge(ctx, below); err != nil {
		return fmt.Errorf("prune the renewals below %d: %w", below, err)
	}
	r.Log.Debug(logRenewalsPruned, "below", below)
	return nil
}
