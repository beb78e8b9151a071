package broker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/clock"
	"github.com/seat-tenure/tenure/events"
)

const ttl = 45 * time.Second

// lapsed is the rule by which a lease may be taken.
func lapsed(c *broker.LogClock, seq uint64) bool {
	age, ok := c.UnseenFor(seq)
	return ok && age >= events.LapsesAfter(ttl)
}

// naive is the log clock as one would write it first: every sample, for ever.
type naive []naiveSample

type naiveSample struct {
	pos uint64
	at  clock.Instant
}

// oldest is the most that any sample proves of the event at seq.
func (n naive) oldest(seq uint64, now clock.Instant) (age time.Duration, ok bool) {
	for _, s := range n {
		if s.pos >= seq {
			age, ok = max(age, clock.TakerElapsed(s.at, now)), true
		}
	}
	return age, ok
}

// Against the naive list, under any order of samples and steps of the two
// clocks: the log clock knows of an event when the list does, never calls it
// older, calls it younger by no more than its grain, and beyond the horizon
// tells no ages apart. What it would purge below is as old as it says.
func TestLogClockAgainstNaiveList(t *testing.T) {
	const (
		grain   = ttl / 512
		horizon = 4 * (ttl + 450*time.Millisecond)
	)
	rapid.Check(t, func(t *rapid.T) {
		now := clock.Instant{Raw: time.Hour, Monotonic: time.Hour, Boot: time.Hour}
		c := broker.NewLogClock(nil, func() clock.Instant { return now }, ttl)
		var list naive
		head := uint64(0)
		step := rapid.Int64Range(0, int64(ttl/10))
		t.Repeat(map[string]func(*rapid.T){
			"observe": func(t *rapid.T) {
				head += rapid.Uint64Range(0, 20).Draw(t, "written")
				pos := head - min(head, rapid.Uint64Range(0, 10).Draw(t, "stale by"))
				c.Observe(pos, now)
				if pos > 0 {
					list = append(list, naiveSample{pos, now})
				}
			},
			"time": func(t *rapid.T) {
				d := time.Duration(step.Draw(t, "by"))
				slew := time.Duration(rapid.Int64Range(-int64(d)/200, int64(d)/200).Draw(t, "slew"))
				now = clock.Instant{Raw: now.Raw + d, Monotonic: now.Monotonic + d + slew, Boot: now.Boot + d + slew}
			},
			"long time": func(t *rapid.T) { now = now.Add(horizon / 3) },
			"": func(t *rapid.T) {
				seq := rapid.Uint64Range(0, head+3).Draw(t, "seq")
				age, ok := c.UnseenFor(seq)
				want, known := list.oldest(seq, now)
				if ok != known {
					t.Fatalf("sequence %d known: %v, want %v", seq, ok, known)
				}
				if age > want {
					t.Fatalf("sequence %d is called %v old, and is proven %v", seq, age, want)
				}
				if least := min(want, horizon) - 2*grain; known && age < least {
					t.Fatalf("sequence %d is called %v old, want at least %v of %v", seq, age, least, want)
				}
				if below := c.Before(ttl); below > 0 {
					if old, _ := list.oldest(below, now); old < ttl {
						t.Fatalf("would purge below %d, which is %v old", below, old)
					}
				}
				if wait, ok := c.Earliest(seq, ttl); ok != known || (ok && wait == 0) != lapsed(c, seq) {
					t.Fatalf("earliest in %v, %v; lapsed %v", wait, ok, lapsed(c, seq))
				}
			},
		})
	})
}

// An hour of samples, ten a second, are kept in bounded memory.
func TestLogClockBounded(t *testing.T) {
	now := clock.Instant{Raw: 1}
	c := broker.NewLogClock(nil, func() clock.Instant { return now }, ttl)
	for pos := uint64(1); pos <= 10*3600; pos++ {
		now = now.Add(100 * time.Millisecond)
		c.Observe(pos, now)
	}
	if n := broker.Samples(c); n > 4*1024+256+2 {
		t.Errorf("%d samples kept", n)
	}
	if age, ok := c.UnseenFor(1); !ok || age < 4*ttl {
		t.Errorf("the oldest event is called %v old, %v", age, ok)
	}
}

// Schedule 1: the broker's clock steps by an hour, forth and back, while a
// holder is healthy and after it died. The lease lapses once TTL and bound have
// passed on the observer's clock since the last renewal became known, and not
// before.
func TestSchedule1BrokerClockSteps(t *testing.T) {
	bubble(t, func(t *testing.T, holder, taker node) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := broker.NewLogClock(taker.fleet(), clock.FromTime, ttl)
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()

		r, err := holder.log.Append(t.Context(), events.StreamFleet, claim("holder", 0))
		if err != nil {
			t.Fatal(err)
		}
		last := r.Seq
		for beat := range 12 {
			pass(ttl / 3)
			switch beat {
			case 3:
				taker.StepClock(time.Hour)
			case 7:
				taker.StepClock(-2 * time.Hour)
			}
			if lapsed(c, last) {
				t.Fatalf("beat %d: a healthy holder's lease counts as lapsed", beat)
			}
			r, err := holder.log.Append(t.Context(), events.StreamFleet, write(grammar.Renewal(ada), "", grammar.FamilyCheck(ada, last)))
			if err != nil {
				t.Fatal(err)
			}
			last = r.Seq
		}
		died := time.Now()
		taker.StepClock(3 * time.Hour)
		pass(ttl)
		if lapsed(c, last) {
			t.Errorf("lapsed after %v", time.Since(died))
		}
		wait, ok := c.Earliest(last, ttl)
		if !ok || wait > time.Second+events.LapsesAfter(ttl)-ttl {
			t.Errorf("to be taken in %v, %v", wait, ok)
		}
		pass(wait)
		if !lapsed(c, last) || time.Since(died) < events.LapsesAfter(ttl) {
			t.Errorf("lapsed %v after %v", lapsed(c, last), time.Since(died))
		}
		cancel(errEnough)
		wantErr(t, "Run", <-done, errEnough)
	})
}

// A node that has just booted knows of no event's age; cut off, it learns of
// none, and what it does know goes on ageing.
func TestLogClockBootAndCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, holder, taker node) {
		if _, err := holder.log.Append(t.Context(), events.StreamFleet, claim("holder", 0)); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		c := broker.NewLogClock(taker.fleet(), clock.FromTime, ttl)
		if _, ok := c.Earliest(1, ttl); ok || lapsed(c, 1) {
			t.Error("an event that was never seen has an age")
		}
		if err := c.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		if age, ok := c.UnseenFor(1); !ok || age != 0 {
			t.Errorf("just seen, and %v old, %v", age, ok)
		}
		taker.Faults.CutOff(true)
		wantErr(t, "cut off", c.Sample(t.Context()), events.ErrUnavailable)
		pass(events.LapsesAfter(ttl))
		if !lapsed(c, 1) {
			t.Error("what is known does not age")
		}
		if _, ok := c.UnseenFor(2); ok {
			t.Error("what is not known has an age")
		}
	})
}

// Schedule 16: a stream is restored to an older state and then grows past every
// position, so neither its creation nor its length tells. The markers do, where
// the restore took the marker away and where it left it.
func TestSchedule16RestoredAndGrown(t *testing.T) {
	for name, restoreTo := range map[string]uint64{"before the marker": 8, "behind the marker": 15} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := broker.NewMemory(broker.Config{Prefix: "crewlet", LeaseTTL: ttl})
				if err != nil {
					t.Fatal(err)
				}
				marks := broker.Marks{Store: m, Source: "n1:0123abcd"}
				f := fleet{p: "crewlet.", stores: [3]broker.Store{m, m, m}}
				mark := func() events.StreamIdentity {
					ids, err := marks.Mark(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return ids[events.StreamFleet]
				}
				mark() // 1 to 6: FLEET's own is the first
				fill(t, f, 3)
				id := mark() // 10 to 15
				fill(t, f, 5)
				const position = 20
				if err := broker.CheckIdentity(t.Context(), m, events.StreamFleet, id, position); err != nil {
					t.Fatal(err)
				}
				m.Restore(events.StreamFleet, restoreTo)
				mark() // the boot after the restore
				fill(t, f, 30)
				err = broker.CheckIdentity(t.Context(), m, events.StreamFleet, id, position)
				var identity *broker.IdentityError
				if !errors.As(err, &identity) || identity.Reason == broker.Recreated || identity.Reason == broker.Shorter {
					t.Errorf("got %v, want a marker that tells", err)
				}
			})
		})
	}
}

// TestSchedule10LogClockForgets proves that samples of a stream that was
// recreated, or set back, judge no event of the one that stands there now: a
// young lease would look lapsed.
func TestSchedule10LogClockForgets(t *testing.T) {
	for name, replace := range map[string]func(m *broker.Memory){
		"recreated": func(m *broker.Memory) { m.Recreate(events.StreamFleet) },
		"set back":  func(m *broker.Memory) { m.Restore(events.StreamFleet, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := broker.NewMemory(broker.Config{Prefix: "crewlet", LeaseTTL: ttl})
				if err != nil {
					t.Fatal(err)
				}
				f := fleet{p: "crewlet.", stores: [3]broker.Store{m, m, m}}
				fill(t, f, 10)
				c := broker.NewLogClock(m.Stream(events.StreamFleet), clock.FromTime, ttl)
				if err := c.Sample(t.Context()); err != nil {
					t.Fatal(err)
				}
				pass(2 * ttl)
				if age, known := c.UnseenFor(3); !known || age < 2*ttl {
					t.Fatalf("before: age %v, known %v", age, known)
				}
				replace(m)
				fill(t, f, 3)
				if err := c.Sample(t.Context()); err != nil {
					t.Fatal(err)
				}
				if age, known := c.UnseenFor(3); known && age >= ttl {
					t.Errorf("a new event at an old position is %v old", age)
				}
			})
		})
	}
}
