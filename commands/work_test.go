package commands_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

func turnOf(t commands.Tenure, ids ...string) events.TurnCompleted {
	return events.TurnCompleted{
		Handle: t.Lease.ID, EventIDs: ids, WorkKey: "k", Epoch: t.Epoch, Owner: t.Owner,
		Outcome: events.OutcomeDone, Attempts: 1, Reply: []byte(`{}`),
	}
}

// TestSchedule12OneIDIsRecordedAlready proves that a turn's completion is
// recorded for every constituent also when some have a record already, which
// stays as it is (K2).
func TestSchedule12OneIDIsRecordedAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		first := a.claim("dev")
		if err := a.Complete(t.Context(), first, turnOf(first, "e2")); err != nil {
			t.Fatal(err)
		}
		b.lapse()
		second := b.claim("dev")
		if err := b.Complete(t.Context(), second, turnOf(second, "e1", "e2", "e3")); err != nil {
			t.Fatal(err)
		}
		for id, epoch := range map[string]uint64{"e1": 2, "e2": 1, "e3": 2} {
			done, ok, err := b.Completed(t.Context(), "dev", id)
			if err != nil || !ok || done.Epoch != epoch || done.EventID != id {
				t.Errorf("%s: got %+v, %t, %v; want the record of epoch %d", id, done, ok, err, epoch)
			}
		}
	})
}

// TestComplete proves that a completion stands once whatever happens to its
// answers, that an id named twice is one record, and that one that cannot be
// written says so (K3).
func TestComplete(t *testing.T) {
	for name, c := range map[string]struct {
		ids   []string
		fault func(f *seattest.Fleet, a *process)
		want  string
	}{
		"one":       {[]string{"e1"}, nil, ""},
		"none":      {nil, nil, ""},
		"several":   {[]string{"e1", "e2", "e3"}, nil, ""},
		"one twice": {[]string{"e1", "e2", "e1"}, nil, ""},
		"answer lost": {[]string{"e1"}, func(f *seattest.Fleet, a *process) {
			a.conn.Faults.DropAnswer(events.StreamWork, f.Subjects.Completions(), 1)
		}, ""},
		"batch answer lost": {[]string{"e1", "e2"}, func(f *seattest.Fleet, a *process) {
			a.conn.Faults.DropAnswer(events.StreamWork, f.Subjects.Completions(), 2)
		}, ""},
		"no room for batches": {[]string{"e1", "e2"}, func(f *seattest.Fleet, a *process) {
			a.conn.Faults.Refuse(events.StreamWork, f.Subjects.Work("dev", "e1"), 46, events.ErrBusy)
		}, ""},
		"unwritable": {[]string{"e1", "e2"}, func(_ *seattest.Fleet, a *process) { a.conn.Faults.CutOff(true) }, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				a := boot(t, f, "a")
				held := a.claim("dev")
				if c.fault != nil {
					c.fault(f, a)
				}
				if err := a.Complete(t.Context(), held, turnOf(held, c.ids...)); kind(err) != c.want {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				records := map[string]int{}
				for _, r := range f.History(events.StreamWork) {
					if done, is := r.Event.(events.TurnCompleted); is {
						records[done.EventID]++
						if r.Meta.FleetSeq != held.Claimed || r.Meta.Epoch != held.Epoch {
							t.Errorf("%s rests on %+v, want the tenure claimed at %d", done.EventID, r.Meta, held.Claimed)
						}
					}
				}
				for _, id := range c.ids {
					if c.want == "" && records[id] != 1 {
						t.Errorf("%s has %d records, want 1", id, records[id])
					}
				}
			})
		})
	}
}

// TestCompletedAsksTheLeader proves the ledger's three answers: recorded, not
// recorded, and not known, which is neither (K1, K3).
func TestCompletedAsksTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := boot(t, f, "a")
		if _, ok, err := a.Completed(t.Context(), "dev", "e1"); ok || err != nil {
			t.Errorf("nothing recorded: got %t, %v", ok, err)
		}
		a.conn.Faults.CutOff(true)
		if _, ok, err := a.Completed(t.Context(), "dev", "e1"); ok || kind(err) != "unavailable" {
			t.Errorf("cut off: got %t, %v, want unavailable", ok, err)
		}
	})
}

// TestSchedule7OneEventIDForTwoSeats proves that the ledger and the broker's
// dedupe keep one event id of two seats apart: both get it.
func TestSchedule7OneEventIDForTwoSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a := boot(t, f, "a")
		dev, ops := a.claim("dev"), a.claim("ops")
		seen := map[uint64]bool{}
		for _, handle := range []string{"dev", "ops"} {
			seq, err := a.Send(t.Context(), events.Mail{Handle: handle, Mailbox: events.Inbox, ID: "e1", Type: events.TaskAssigned, Time: time.Now(), Data: []byte("1")})
			if err != nil || seen[seq] {
				t.Errorf("mail to %s: position %d, %v", handle, seq, err)
			}
			seen[seq] = true
		}
		if err := a.Complete(t.Context(), dev, turnOf(dev, "e1")); err != nil {
			t.Fatal(err)
		}
		if _, ok, _ := a.Completed(t.Context(), "ops", "e1"); ok {
			t.Error("what one seat did counts as done for the other")
		}
		if err := a.Complete(t.Context(), ops, turnOf(ops, "e1")); err != nil {
			t.Error(err)
		}
	})
}

// TestPark proves that mail is parked once, by whichever tenure, with its
// reason and its content, and that mail that cannot be told apart by an event
// id is by its position.
func TestPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		first := a.claim("dev")
		parked := func(t commands.Tenure, id string, seq uint64) events.MailParked {
			return events.MailParked{Handle: "dev", Mailbox: events.Inbox, EventID: id, MailSeq: seq, Epoch: t.Epoch, Owner: t.Owner,
				Reason: "r", Header: events.Header{"x": {"1"}}, Data: []byte("\x00")}
		}
		if err := a.Park(t.Context(), first, parked(first, "e1", 5)); err != nil {
			t.Fatal(err)
		}
		b.lapse()
		second := b.claim("dev")
		a.conn.Faults.DropAnswer(events.StreamDead, f.Subjects.Prefix()+".dead.>", 1)
		for _, p := range []events.MailParked{parked(second, "e1", 5), parked(second, "", 6), parked(second, "", 7)} {
			if err := b.Park(t.Context(), second, p); err != nil {
				t.Errorf("park %+v: %v", p, err)
			}
		}
		var got []string
		for _, r := range f.History(events.StreamDead) {
			if p, is := r.Event.(events.MailParked); is {
				got = append(got, fmt.Sprintf("%s/%d/%d/%s", p.EventID, p.MailSeq, p.Epoch, p.Data))
			}
		}
		if want := []string{"e1/5/1/\x00", "/6/2/\x00", "/7/2/\x00"}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("parked %q, want %q", got, want)
		}
	})
}

// TestApply proves that revisions follow each other without a gap however many
// nodes apply at once, and that the same document is no new revision.
func TestApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		nodes := []*process{boot(t, f, "a"), boot(t, f, "b"), boot(t, f, "c")}
		var all sync.WaitGroup
		for i, p := range nodes {
			p.conn.Faults.Delay(time.Millisecond)
			all.Go(func() {
				for range 2 {
					c := events.CompanyApplied{Name: "Acme", Digest: fmt.Sprint("d", i)}
					if _, err := p.Apply(t.Context(), c); err != nil {
						t.Errorf("apply: %v", err)
					}
				}
			})
		}
		all.Wait()
		var newest events.CompanyApplied
		for _, r := range f.History(events.StreamFleet) {
			if c, is := r.Event.(events.CompanyApplied); is {
				if c.Revision != newest.Revision+1 || c.Digest == newest.Digest {
					t.Errorf("revision %d (%s) follows %d (%s)", c.Revision, c.Digest, newest.Revision, newest.Digest)
				}
				newest = c
			}
		}
		if got, err := nodes[0].Apply(t.Context(), newest); err != nil || got.Revision != newest.Revision || got.New {
			t.Errorf("the same document again: %+v, %v; want revision %d", got, err, newest.Revision)
		}
	})
}

// TestRefusedIsNotUnknown proves that what the broker refuses for good comes
// back as it is, and at once, from every command that writes.
func TestRefusedIsNotUnknown(t *testing.T) {
	refused := errors.New("a message too large")
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		f.Seats("dev")
		a := boot(t, f, "a")
		held := a.claim("dev")
		m := a.takeOver(held)
		seqs := mail(t, f, "dev", 1)
		for name, c := range map[string]struct {
			stream events.Stream
			do     func(ctx context.Context) error
		}{
			"claim":     {events.StreamFleet, func(ctx context.Context) error { _, err := a.try(ctx, "ops"); return err }},
			"renew":     {events.StreamFleet, func(ctx context.Context) error { return a.Renew(ctx, []commands.Tenure{held})[0].Err }},
			"release":   {events.StreamFleet, func(ctx context.Context) error { return a.Release(ctx, held, events.ReasonDrain) }},
			"report":    {events.StreamFleet, func(ctx context.Context) error { return a.Established(ctx, held) }},
			"take over": {events.StreamCursor, func(ctx context.Context) error { _, err := a.cursors.TakeOver(ctx, held); return err }},
			"attempt":   {events.StreamCursor, func(ctx context.Context) error { return a.cursors.Attempt(ctx, m, events.Inbox, seqs) }},
			"settle": {events.StreamCursor, func(ctx context.Context) error {
				return a.cursors.Settle(ctx, m, events.Inbox, commands.Ended{Ack: seqs})
			}},
			"complete": {events.StreamWork, func(ctx context.Context) error { return a.Complete(ctx, held, turnOf(held, "e1")) }},
			"park": {events.StreamDead, func(ctx context.Context) error {
				return a.Park(ctx, held, events.MailParked{Handle: "dev", MailSeq: 1, Epoch: 1, Owner: a.Self(), Reason: "r"})
			}},
		} {
			a.conn.Faults.Refuse(c.stream, f.Subjects.Prefix()+".>", 1, refused)
			start := time.Now()
			if err := c.do(t.Context()); !errors.Is(err, refused) || errors.Is(err, events.ErrUnknown) {
				t.Errorf("%s: got %v, want the refusal", name, err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s: told after %v", name, took)
			}
		}
	})
}
