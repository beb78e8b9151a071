package commands_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// TestApplyOverOneRevision proves that of several who apply over the same
// revision at once exactly one wins, and that each other is told by which
// revision it lost and has changed nothing; that a winner whose answer was lost
// may ask again; and that an act's author and reason stand in the log.
func TestApplyOverOneRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		nodes := []*process{boot(t, f, "a"), boot(t, f, "b"), boot(t, f, "c")}
		doc := func(i int) events.CompanyApplied {
			return events.CompanyApplied{Name: "Acme", Digest: fmt.Sprint("d", i)}
		}
		if _, err := nodes[0].Apply(t.Context(), doc(9)); err != nil {
			t.Fatal(err)
		}
		type outcome struct {
			commands.Applied
			err error
		}
		got := make([]outcome, len(nodes))
		var all sync.WaitGroup
		for i, p := range nodes {
			p.conn.Faults.Delay(time.Millisecond)
			all.Go(func() {
				ctx := commands.Acting(t.Context(), "ops@acme.example", fmt.Sprint("because ", i))
				got[i].Applied, got[i].err = p.ApplyOver(ctx, 1, doc(i))
			})
		}
		all.Wait()
		winner := -1
		for i, o := range got {
			var stale *aggregates.StaleRevisionError
			switch {
			case o.err == nil && winner < 0 && o.New && o.Revision == 2:
				winner = i
			case !errors.As(o.err, &stale) || stale.Current != 2 || stale.Expected != 1:
				t.Errorf("%d: %+v, %v; want to be told of revision 2", i, o.Applied, o.err)
			}
		}
		r, found, err := nodes[0].Company(t.Context())
		if err != nil || !found || winner < 0 {
			t.Fatalf("winner %d, found %v, %v", winner, found, err)
		}
		if c := r.Event.(events.CompanyApplied); c.Revision != 2 || c.Digest != doc(winner).Digest ||
			r.Meta.Actor != "ops@acme.example" || r.Meta.Reason != fmt.Sprint("because ", winner) {
			t.Errorf("in force: %+v by %q for %q", c, r.Meta.Actor, r.Meta.Reason)
		}
		again, err := nodes[winner].ApplyOver(t.Context(), 1, doc(winner))
		if err != nil || again.New || again.Revision != 2 {
			t.Errorf("asked for again: %+v, %v", again, err)
		}
	})
}

// TestApplyOverNothing proves that a first apply may say that it is the first,
// and is refused where it is not.
func TestApplyOverNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := boot(t, f, "a")
		if _, found, err := a.Company(t.Context()); err != nil || found {
			t.Fatalf("a company before the first: %v, %v", found, err)
		}
		var stale *aggregates.StaleRevisionError
		if _, err := a.ApplyOver(t.Context(), 3, events.CompanyApplied{Name: "Acme", Digest: "d"}); !errors.As(err, &stale) || stale.Current != 0 {
			t.Errorf("over a revision that never was: %v", err)
		}
		if got, err := a.ApplyOver(t.Context(), 0, events.CompanyApplied{Name: "Acme", Digest: "d"}); err != nil || got.Revision != 1 {
			t.Errorf("the first: %+v, %v", got, err)
		}
		if _, err := a.ApplyOver(t.Context(), 0, events.CompanyApplied{Name: "Acme", Digest: "e"}); !errors.As(err, &stale) || stale.Current != 1 {
			t.Errorf("a second first: %v", err)
		}
	})
}

// TestCompanyTooLarge proves that a company that no event can hold is refused
// with both sizes, and that nothing is stored.
func TestCompanyTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := boot(t, f, "a")
		var large *commands.TooLargeError
		c := events.CompanyApplied{Name: "Acme", Digest: "d", Document: make([]byte, 900<<10)}
		if _, err := a.Apply(t.Context(), c); !errors.As(err, &large) || large.Have <= large.Limit || large.Limit == 0 {
			t.Errorf("applied: %v", err)
		}
		if err := commands.Fits(c); !errors.As(err, new(*commands.TooLargeError)) {
			t.Errorf("it is said to fit: %v", err)
		}
		if err := commands.Fits(events.CompanyApplied{Name: "Acme", Digest: "d", Document: make([]byte, 700<<10)}); err != nil {
			t.Errorf("one that fits: %v", err)
		}
		if _, found, err := a.Company(t.Context()); err != nil || found {
			t.Errorf("something was stored: %v, %v", found, err)
		}
	})
}
