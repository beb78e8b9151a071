package badgerstore

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/seat-tenure/tenure/events"
)

// Bounds of one store.
const (
	memTable    = 8 << 20  // bytes; Badger bounds a transaction by 15 % of it
	blockCache  = 16 << 20 // bytes
	valueLog    = 1 << 20  // bytes, the least there is: no row is large enough to go there
	maxRebuilds = 3        // in one process; a disk that damages more is not to be trusted
	maxWaiters  = 10_000   // calls of AwaitCompletion at once
	trimStep    = 500      // rows dropped in one step after their stream dropped them
	trimSteps   = 20       // steps after one batch
)

// Options configure a store. The zero value of a field takes its default.
type Options struct {
	// Fleet is the fleet's stream prefix. A store of another fleet is rebuilt.
	Fleet string
	// Streams are those that will be followed: FLEET, WORK and DEAD by default.
	// Ready waits for all of them; rows of others are not served.
	Streams []events.Stream
	Logger  *slog.Logger
	// LockWait is how long Open waits for a predecessor to let go of the
	// directory (default 10 s).
	LockWait time.Duration
	// MinFree is how many bytes of disk must be left for the store to write
	// (default 256 MiB).
	MinFree uint64
	// RetryMin and RetryMax bound the pauses after a log that does not answer
	// (default 100 ms, doubled up to 5 s).
	RetryMin, RetryMax time.Duration
	// Recheck is the pause after which a copy that went out of service is tried
	// again (default 15 s). Its alarm is raised again every realarm times.
	Recheck time.Duration
}

// realarm is after how many checks an alarm that stays true is raised again.
const realarm = 20

func (o *Options) defaults() {
	if o.Streams == nil {
		o.Streams = []events.Stream{events.StreamFleet, events.StreamWork, events.StreamDead}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.LockWait, 10 * time.Second}, {&o.RetryMin, 100 * time.Millisecond}, {&o.RetryMax, 5 * time.Second}, {&o.Recheck, 15 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.MinFree == 0 {
		o.MinFree = 256 << 20
	}
}

// badgerOptions are small everywhere: the rows of a large fleet are tens of
// megabytes, and everything can be rebuilt.
func badgerOptions(dir string, log *slog.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithLogger(badgerLog{log}).
		WithMemTableSize(memTable).WithNumMemtables(3).
		WithValueLogFileSize(valueLog).
		WithBlockCacheSize(blockCache).WithNumCompactors(2).
		WithMetricsEnabled(false).
		// There is one writer, so there is nothing to conflict with.
		WithDetectConflicts(false).
		WithVerifyValueChecksum(true).
		// Open reads every row after this. The modes that check whole tables
		// dereference nil when a block is damaged (v4.9.6).
		WithChecksumVerificationMode(options.OnBlockRead).
		// Open holds the same lock on the directory already.
		WithBypassLockGuard(true)
}

// badgerLog passes on what Badger has to say.
type badgerLog struct{ log *slog.Logger }

func (b badgerLog) Errorf(f string, args ...any)   { b.log.Warn(logBadger, keyDetail, line(f, args)) }
func (b badgerLog) Warningf(f string, args ...any) { b.log.Warn(logBadger, keyDetail, line(f, args)) }
func (b badgerLog) Infof(f string, args ...any)    { b.log.Debug(logBadger, keyDetail, line(f, args)) }
func (b badgerLog) Debugf(string, ...any)          {}

func line(f string, args []any) string { return strings.TrimSpace(fmt.Sprintf(f, args...)) }
