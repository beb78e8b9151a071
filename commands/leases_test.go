package commands_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestClaim proves who may claim when: a free lease at once and whoever asks, a
// held one only once the claimant's log clock has stood past it for the bought
// time, and then over the evidence (L3, L6).
func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		before func(a *process, held commands.Tenure)
		want   string
		epoch  uint64
	}{
		"held":            {func(*process, commands.Tenure) {}, "held", 1},
		"just not lapsed": {func(a *process, _ commands.Tenure) { a.fleet.Advance(lapses - time.Millisecond) }, "held", 1},
		"lapsed":          {func(a *process, _ commands.Tenure) { a.lapse() }, "", 2},
		"renewed late": {func(a *process, held commands.Tenure) {
			a.fleet.Advance(ttl)
			a.Renew(a.t.Context(), []commands.Tenure{held})
			a.fleet.Advance(ttl)
		}, "held", 1},
		"released": {func(a *process, held commands.Tenure) { _ = a.Release(a.t.Context(), held, events.ReasonDrain) }, "", 2},
		"released and reclaimed": {func(a *process, held commands.Tenure) {
			_ = a.Release(a.t.Context(), held, events.ReasonDrain)
			a.claim("dev")
		}, "held", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				a, b := boot(t, f, "a"), boot(t, f, "b")
				c.before(a, a.claim("dev"))
				got, err := b.try(t.Context(), "dev")
				if kind(err) != c.want {
					t.Fatalf("b's claim: got %v, want %q", err, c.want)
				}
				if err == nil && (got.Epoch != c.epoch || got.Owner != b.Self() || got.Last != got.Claimed) {
					t.Errorf("b's tenure is %+v, want epoch %d", got, c.epoch)
				}
				if l := a.standing("dev"); l.Epoch != c.epoch {
					t.Errorf("the log has epoch %d, want %d", l.Epoch, c.epoch)
				}
			})
		})
	}
}

// TestClaimOnAHint proves that what a claimant has seen of a lease decides
// nothing: the append checks it, and where the log has moved on since, or the hint
// would refuse, the claim is decided on what the leader has (Schedule 3's rule).
func TestClaimOnAHint(t *testing.T) {
	for name, c := range map[string]struct {
		before func(a *process)
		hint   func(now aggregates.Lease) aggregates.Lease
		want   string
		epoch  uint64
		reads  int
	}{
		"never claimed":  {func(*process) {}, same, "", 1, 0},
		"released":       {func(a *process) { a.giveBack("dev") }, same, "", 2, 0},
		"claimed since":  {func(a *process) { a.claim("dev") }, never, "held", 1, 1},
		"released since": {func(a *process) { a.giveBack("dev"); a.giveBack("dev") }, never, "", 3, 1},
		"not free":       {func(a *process) { a.claim("dev"); a.lapse() }, same, "", 2, 1},
		"reserved for another, in the hint alone": {func(a *process) { a.giveBack("dev") }, func(now aggregates.Lease) aggregates.Lease {
			now.Successor, now.ReservedFor = "c:00000000", time.Hour
			return now
		}, "", 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				a, b := boot(t, f, "a"), boot(t, f, "b")
				c.before(a)
				hint := c.hint(a.standing("dev"))
				reads, claim := 0, b.ask()
				claim.Seen = &hint
				shell := commands.New(readsCounted{seattest.NewLog(b.conn), &reads}, f.Subjects, b.Self())
				got, err := shell.Claim(t.Context(), events.SeatLease("dev"), claim, b.clock.UnseenFor)
				if kind(err) != c.want || err == nil && got.Epoch != c.epoch {
					t.Fatalf("b's claim: got epoch %d, %v, want epoch %d, %q", got.Epoch, err, c.epoch, c.want)
				}
				if reads != c.reads {
					t.Errorf("the claim read the lease %d times, want %d", reads, c.reads)
				}
			})
		})
	}
}

// readsCounted counts what is asked of the log's leader.
type readsCounted struct {
	commands.Log
	reads *int
}

func (c readsCounted) Last(ctx context.Context, st events.Stream, subject string) (events.Message, error) {
	*c.reads++
	return c.Log.Last(ctx, st, subject)
}

// giveBack claims a seat and releases it.
func (p *process) giveBack(handle string) {
	p.t.Helper()
	if err := p.Release(p.t.Context(), p.claim(handle), events.ReasonDrain); err != nil {
		p.t.Fatalf("release %s: %v", handle, err)
	}
}

func same(now aggregates.Lease) aggregates.Lease { return now }

func never(aggregates.Lease) aggregates.Lease { return aggregates.Lease{} }

// TestClaimUnseenIsNotLapsed proves that a claimant that has sampled nothing
// takes nothing, however old the lease is: unknown is not lapsed (L6).
func TestClaimUnseenIsNotLapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		a.claim("dev")
		a.fleet.Advance(time.Hour)
		blind := func(uint64) (time.Duration, bool) { return time.Hour, false }
		if _, err := b.Claim(t.Context(), events.SeatLease("dev"), b.ask(), blind); kind(err) != "held" {
			t.Errorf("a claim without a sample: got %v, want held", err)
		}
	})
}

// TestSchedule3EpochComesFromTheLog proves that the next claim is 9 after epoch
// 8 was claimed and released, whatever a projection still shows: the shell
// reads the family's last event alone.
func TestSchedule3EpochComesFromTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		for range 8 {
			if err := a.Release(t.Context(), a.claim("dev"), events.ReasonDrain); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.claim("dev"); got.Epoch != 9 {
			t.Errorf("the next claim is epoch %d, want 9", got.Epoch)
		}
		f.Tenures("dev")
	})
}

// TestRelease proves that a release ends exactly the tenure it names, succeeds
// when repeated, and tells a tenure that ended otherwise.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		first := a.claim("dev")
		a.Renew(t.Context(), []commands.Tenure{first}) // its Last is old now
		for range 2 {
			if err := a.Release(t.Context(), first, events.ReasonDrain); err != nil {
				t.Errorf("release: %v", err)
			}
		}
		b.claim("dev")
		if err := a.Release(t.Context(), first, events.ReasonDrain); kind(err) != "ended" {
			t.Errorf("releasing under a successor: got %v, want ended", err)
		}
		if l := a.standing("dev"); l.Owner != b.Self() {
			t.Errorf("%s holds the seat, want %s", l.Owner, b.Self())
		}
		if got := f.Reasons("dev"); len(got) != 1 {
			t.Errorf("released %d times, want once", len(got))
		}
	})
}

// TestRenew proves that one round renews what it can, refuses what moved and
// leaves the rest unknown, each for itself (L3, L8).
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		handles := []string{"s0", "s1", "s2", "s3", "s4", "s5"}
		var ts []commands.Tenure
		for _, h := range handles {
			ts = append(ts, a.claim(h))
		}
		if err := a.Release(t.Context(), ts[1], events.ReasonDrain); err != nil {
			t.Fatal(err)
		}
		b.claim("s1") // taken over
		if err := a.Release(t.Context(), ts[4], events.ReasonDrain); err != nil {
			t.Fatal(err)
		}
		a.claim("s4") // re-claimed by the same owner: another tenure all the same
		for i, r := range a.Renew(t.Context(), ts) {
			refused := i == 1 || i == 4
			switch {
			case r.Tenure.Lease.ID != handles[i]:
				t.Errorf("answer %d is about %s", i, r.Tenure.Lease)
			case r.Refused() != refused, !refused && r.Err != nil:
				t.Errorf("%s: got %v, want refused %t", handles[i], r.Err, refused)
			case !refused && r.Tenure.Last == ts[i].Last:
				t.Errorf("%s: its position did not move", handles[i])
			}
		}
		a.conn.Faults.CutOff(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, r := range a.Renew(ctx, ts[:1]) {
			if r.Err == nil || r.Refused() {
				t.Errorf("cut off: got %v, want neither renewed nor refused", r.Err)
			}
		}
	})
}

// TestRenewAdoptsItsOwnLostRenewal proves that a renewal whose answer was lost
// for good is recognised by the next round and renewed over, not taken for
// another's.
func TestRenewAdoptsItsOwnLostRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := boot(t, f, "a")
		held := []commands.Tenure{a.claim("s0"), a.claim("s1")}
		a.conn.Faults.DropAnswer(events.StreamFleet, f.Subjects.Renewal(held[0].Lease), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if r := a.Renew(ctx, held)[0]; r.Err == nil || r.Refused() {
			t.Fatalf("without time: got %v, want unknown", r.Err)
		}
		// One send, its answer lost, and no time to find out.
		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if r := a.Renew(ctx, held)[0]; kind(r.Err) != "unknown" {
			t.Fatalf("answer lost: got %v, want unknown", r.Err)
		}
		a.reconnect()
		for _, r := range a.Renew(t.Context(), held) {
			if r.Err != nil {
				t.Errorf("%s after the lost one: %v", r.Tenure.Lease, r.Err)
			}
		}
	})
}

// TestReportsRestOnTheTenure proves that a holder's host events are refused once
// another tenure was claimed, and pass while its own stands (design §4).
func TestReportsRestOnTheTenure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		held := a.claim("dev")
		a.Renew(t.Context(), []commands.Tenure{held}) // renewals do not end it
		if err := a.Established(t.Context(), held); err != nil {
			t.Errorf("established: %v", err)
		}
		if err := a.Skipped(t.Context(), held, "e1", events.SkipCompleted, ""); err != nil {
			t.Errorf("skipped: %v", err)
		}
		a.lapse()
		b.claim("dev")
		if err := a.Established(t.Context(), held); kind(err) != "ended" {
			t.Errorf("established by a former holder: got %v, want ended", err)
		}
		if err := a.Skipped(t.Context(), held, "e2", events.SkipCompleted, ""); kind(err) != "ended" {
			t.Errorf("skipped by a former holder: got %v, want ended", err)
		}
	})
}
