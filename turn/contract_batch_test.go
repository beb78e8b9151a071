package turn_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/turn"
)

// contractPartitions: what waits of one conversation is one turn, in order and with
// the work key of all its events; mail without a conversation is alone; a
// conversation that fails blocks no other; what the ledger has is skipped and the
// rest of a partition runs (K2).
func contractPartitions(t *testing.T, f *mailFleet) {
	f.send("dev", "a", "a1")
	f.send("dev", "b", "b1")
	f.send("dev", "", "lone1", "lone2")
	f.send("dev", "a", "a2", "a3")
	f.send("dev", "b", "b2", "b2") // twice: it runs once
	a := &agent{}
	failed := false
	a.set(func(_ context.Context, req turn.Request, _ turn.Calls) (turn.Reply, error) {
		if req.Events[0].ID == "a1" && !failed {
			failed = true
			return turn.Reply{}, errors.New("no")
		}
		return turn.Reply{JSON: []byte(`{}`)}, nil
	})
	s := f.boot("dev", a)
	s.hold()
	held := s.boxes.Tenure
	done := events.TurnCompleted{Handle: "dev", EventIDs: []string{"b1"}, WorkKey: "k", Epoch: held.Epoch, Owner: held.Owner, Outcome: events.OutcomeDone, Attempts: 1}
	if err := s.shell.Complete(t.Context(), held, done); err != nil {
		t.Fatal(err)
	}
	s.attach()
	t.Cleanup(func() { s.detach(false) })
	s.admit(nil)
	f.until("all of it", func() bool { return len(a.turns()) >= 5 })
	if got, want := a.turns(), []string{"a1+a2+a3", "b2", "lone1", "lone2", "a1+a2+a3"}; !slices.Equal(got, want) {
		t.Errorf("ran %q, want %q", got, want)
	}
	f.settled("dev")
	for _, id := range []string{"a1", "a2", "a3"} {
		c, ok, err := f.op.Completed(t.Context(), "dev", id)
		if err != nil || !ok || c.WorkKey != turn.WorkKey([]string{"a1", "a2", "a3"}) || c.Attempts != 2 || len(c.EventIDs) != 3 {
			t.Errorf("%s is recorded as %+v, %t (%v)", id, c, ok, err)
		}
	}
	if n := len(f.parked("dev")); n > 0 {
		t.Errorf("%d messages were parked", n)
	}
}

// contractUnfinishedBatch: a batch whose process died runs again as it was, under the
// same work key, whatever has come in since (W1).
func contractUnfinishedBatch(t *testing.T, f *mailFleet) {
	f.send("dev", "c", "e1", "e2")
	a := &agent{}
	started := make(chan struct{})
	a.set(func(ctx context.Context, _ turn.Request, _ turn.Calls) (turn.Reply, error) {
		close(started)
		<-ctx.Done()
		return turn.Reply{}, context.Cause(ctx)
	})
	s := f.sit("dev", a)
	<-started
	s.detach(false)
	f.send("dev", "c", "e3", "e4")
	next := &agent{}
	f.sit("dev", next)
	f.ran(next, "e1+e2", "e3+e4")
	if got, want := next.runs[0].WorkKey, a.runs[0].WorkKey; got != want || next.runs[0].Attempt != 2 {
		t.Errorf("run again under %s as attempt %d, want %s and 2", got, next.runs[0].Attempt, want)
	}
	f.settled("dev")
}

// contractSingles: after two failures of a batch its members run singly, so that
// the bad one goes on alone and the others are done.
func contractSingles(t *testing.T, f *mailFleet) {
	f.send("dev", "c", "good1", "bad", "good2")
	a := &agent{}
	left := 3
	a.set(func(_ context.Context, req turn.Request, _ turn.Calls) (turn.Reply, error) {
		if slices.ContainsFunc(req.Events, func(e turn.Event) bool { return e.ID == "bad" }) && left > 0 {
			left--
			return turn.Reply{}, errors.New("no")
		}
		return turn.Reply{JSON: []byte(`{}`)}, nil
	})
	f.sit("dev", a)
	f.ran(a, "good1+bad+good2", "good1+bad+good2", "good1", "bad", "good2", "bad")
	f.settled("dev")
}

// contractBudget: a message whose process died in each of 25 turns is set aside at
// the 26th start, with how they ended, and the mail behind it runs (D3, field
// case 25: nothing is left in the mailbox that is neither delivered nor reported).
func contractBudget(t *testing.T, f *mailFleet) {
	f.send("dev", "", "deadly", "next")
	a := &agent{}
	s := f.boot("dev", a)
	for range turn.Budget / 5 {
		s.hold() // a new tenure, as after a restart
		seq := s.boxes.Cursors[events.Inbox].Read
		if seq == 0 {
			msg, err := f.store.Stream(events.StreamMail).Next(t.Context(), f.store.Subjects().Mail("dev", events.Inbox), 1)
			if err != nil {
				t.Fatal(err)
			}
			seq = msg.Seq
		}
		for range 5 {
			if err := s.cursors.Attempt(t.Context(), s.boxes, events.Inbox, []uint64{seq}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.hold()
	s.attach()
	t.Cleanup(func() { s.detach(false) })
	s.admit(nil)
	f.ran(a, "next")
	f.settled("dev")
	p := f.parked("dev")
	if len(p) != 1 {
		t.Fatalf("parked: %+v", p)
	}
	dead := p[0].Event.(events.MailParked)
	tries := 0
	for _, h := range dead.History {
		tries += h.Count
		if h.End != events.AttemptUnfinished || h.Epoch == 0 {
			t.Errorf("its history has %+v", h)
		}
	}
	if dead.Attempts != turn.Budget || dead.EventID != "deadly" || tries < 15 {
		t.Errorf("parked after %d attempts with a history of %d: %+v", dead.Attempts, tries, dead.History)
	}
}

// contractReplayAndDrop: replayed mail runs once, however often that is asked for;
// what is parked anew has a record of its own; dropped mail stays readable and
// never comes again.
func contractReplayAndDrop(t *testing.T, f *mailFleet) {
	bad := func(id string) {
		w := events.Write{Subject: f.store.Subjects().Mail("dev", events.Inbox), Data: []byte(`{}`),
			Header: events.Header{events.HeaderID: {id}, events.HeaderType: {"not yet known"}}}
		if _, err := f.store.Stream(events.StreamMail).Append(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	bad("again")
	bad("drop")
	a := &agent{}
	f.sit("dev", a)
	f.until("two parked", func() bool { return len(f.parked("dev")) == 2 })
	all := f.parked("dev")
	for range 3 {
		if _, err := f.op.Replay(t.Context(), all[0], "a build that knows it", "ann"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.op.Drop(t.Context(), all[1], "a test", "ann"); err != nil {
			t.Fatal(err)
		}
	}
	f.until("it is parked anew", func() bool { return len(f.parked("dev")) == 3 })
	f.settled("dev")
	if got := f.parked("dev"); got[2].Event.(events.MailParked).EventID != "again" || got[1].Event.(events.MailParked).EventID != "drop" {
		t.Errorf("parked: %+v", got)
	}
	// A record whose mail runs, as after the fault was mended.
	good := all[0].Event.(events.MailParked)
	good.Header.Set(events.HeaderType, events.TaskAssigned)
	good.EventID, good.MailSeq = "good", 1<<40
	good.Header.Set(events.HeaderID, "good")
	mended := all[0]
	mended.Event = good
	for range 3 {
		if _, err := f.op.Replay(t.Context(), mended, "mended", "ann"); err != nil {
			t.Fatal(err)
		}
	}
	f.ran(a, "good")
	f.settled("dev")
}
