package broker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// Field case 5, the other way round: once two writers of one family check it
// under different strings, a replicated broker lets both through. That is why
// form (b) is one string from one function, and this test keeps the reason.
func TestCase5VariedCheckShowsDoubleWins(t *testing.T) {
	t.Parallel()
	b := natstest.R3(t)
	stores := []broker.Store{b.Store(0), b.Store(1)}
	subjects := stores[0].Subjects()
	prefix := "crewlet.fleet.lease.seat.ada."
	last := mustAppend(t, stores[0].Stream(events.StreamFleet), write(prefix+"tenure", "", subjects.FamilyCheck(ada, 0)))
	double, limit := 0, rounds(300, 3000)
	round := 0
	for ; round < limit && (double == 0 || round < rounds(0, 500)); round++ {
		var wg sync.WaitGroup
		var seqs [2]uint64
		for i, w := range []events.Write{
			write(prefix+"tenure", "", at(prefix+"*", last)),
			write(prefix+"renewal", "", at(prefix+">", last)),
		} {
			wg.Go(func() {
				seq, err := appendBusy(t.Context(), stores[i].Stream(events.StreamFleet), w)
				if err == nil {
					seqs[i] = seq
				} else if !errors.Is(err, events.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if seqs[0] > 0 && seqs[1] > 0 {
			double++
		}
		last = max(last, seqs[0], seqs[1])
	}
	t.Logf("%d of %d rounds had two winners", double, round)
	if double == 0 {
		t.Errorf("no double win in %d rounds: the broker has changed, and so may the rule", round)
	}
}

// A stream's state is believed of one server by itself, and of a leader that hears
// from a majority or has just been elected; not of one without a leader, nor of a
// leader that was cut off and does not know it yet (case 8, schedule 16).
func TestCase8WhoTellsOfAStream(t *testing.T) {
	for _, c := range []struct {
		answer string
		fine   bool
	}{
		{`{}`, true},
		{`{"cluster":{"leader":"n1"}}`, true},
		{`{"cluster":{"leader":"n1","replicas":[{"active":100000000},{"active":90000000000}]}}`, true},
		{`{"cluster":{"leader":"n1","replicas":[{"active":0},{"active":0}]}}`, true},
		{`{"cluster":{"leader":"n1","replicas":[{"active":5000000000},{"active":5000000000}]}}`, false},
		{`{"cluster":{"replicas":[{"active":100000000},{"active":100000000}]}}`, false},
	} {
		switch why, err := broker.Doubt(c.answer); {
		case err != nil:
			t.Error(err)
		case (why == "") != c.fine:
			t.Errorf("%s: doubt %q", c.answer, why)
		}
	}
}

// Field case 8: a node left on the minority's side of a cut is told nothing that
// it could take for "free", claims nothing and is admitted to nothing; after the
// cut everything works on.
func TestCase8MinorityIsUnavailable(t *testing.T) {
	t.Parallel()
	b := natstest.R3(t)
	majority, minority := b.Store(0), b.Store(2)
	subjects := majority.Subjects()
	claimed := mustAppend(t, majority.Stream(events.StreamFleet), write(subjects.Tenure(ada), "", subjects.FamilyCheck(ada, 0)))
	b.Stop(0)
	b.Stop(1)
	// The server that is left needs a moment to see that it is alone. Until then a
	// leader may answer reads, and only with what was committed.
	log := broker.NewLog(minority)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_, err := log.Append(ctx, events.StreamFleet, write(subjects.Tenure(bob), "", subjects.FamilyCheck(bob, 0)))
	if !errors.Is(err, events.ErrUnavailable) && !errors.Is(err, events.ErrUnknown) && !errors.Is(err, events.ErrBusy) {
		t.Fatalf("a claim on the minority: %v", err)
	}
	<-ctx.Done() // the claim may have been answered before
	s := minority.Stream(events.StreamFleet)
	for what, read := range map[string]func() error{
		"Last": func() error { _, err := s.Last(t.Context(), subjects.Family(ada)); return err },
		"Next": func() error { _, err := s.Next(t.Context(), subjects.Family(ada), 1); return err },
		"Get":  func() error { _, err := s.Get(t.Context(), claimed); return err },
		"Info": func() error { _, err := s.Info(t.Context()); return err },
	} {
		if err := read(); err != nil && !errors.Is(err, events.ErrUnavailable) {
			t.Errorf("%s on the minority: %v", what, err)
		} else if err == nil && what == "Info" {
			t.Error("the state of the stream, from a server that has been alone for 4 s")
		}
	}
	renewing, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	results := log.AppendEach(renewing, events.StreamFleet, []events.Write{write(subjects.Renewal(ada), "", subjects.FamilyCheck(ada, claimed))})
	if err := results[0].Err; err == nil || errors.Is(err, events.ErrConflict) {
		t.Errorf("a renewal on the minority: %v", err)
	}
	b.Start(0)
	b.Start(1)
	m := readUntil(t, s, subjects.Family(ada))
	r, err := log.Append(t.Context(), events.StreamFleet, write(subjects.Renewal(ada), "", subjects.FamilyCheck(ada, m.Seq)))
	if err != nil || r.Seq <= claimed {
		t.Errorf("after the cut: %+v, %v", r, err)
	}
}

func readUntil(t *testing.T, s broker.Stream, filter string) events.Message {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; {
		m, err := s.Last(t.Context(), filter)
		if err == nil {
			return m
		}
		if !errors.Is(err, events.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatalf("read %s: %v", filter, err)
		}
	}
}

// Field case 33: a reader lives through restarts of its broker, one after the
// other, without gap or duplicate, and leaves no heap of consumers behind.
func TestCase33FollowAcrossRestarts(t *testing.T) {
	t.Parallel()
	b := natstest.R1(t)
	store := b.Store(0)
	s := store.Stream(events.StreamFleet)
	ctx, cancel := context.WithCancelCause(t.Context())
	seen := make(chan uint64, 10_000)
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		err = s.Follow(ctx, 1, []string{"crewlet.fleet.host.*"}, func(batch []events.Message, _ bool) error {
			for _, m := range batch {
				seen <- m.Seq
			}
			return nil
		})
	})
	var want, got []uint64
	for range rounds(4, 50) {
		for range 20 {
			// A write of unknown outcome may stand or not: what stands is asked below.
			_, _ = s.Append(t.Context(), write("crewlet.fleet.host.ada", "", nil))
		}
		b.Stop(0)
		b.Start(0)
		readUntil(t, s, "crewlet.fleet.>")
		want = append(want, mustAppend(t, s, write("crewlet.fleet.host.ada", "", nil)))
		for len(got) == 0 || got[len(got)-1] != want[len(want)-1] {
			select {
			case seq := <-seen:
				got = append(got, seq)
			case <-time.After(30 * time.Second):
				t.Fatalf("after restart: saw up to %v, want %d", got[max(0, len(got)-1):], want[len(want)-1])
			}
		}
	}
	cancel(errEnough)
	wg.Wait()
	wantErr(t, "Follow", err, errEnough)
	info, infoErr := s.Info(t.Context())
	if infoErr != nil || len(got) != int(info.Messages) || !slices.IsSorted(got) || got[len(got)-1] != info.Last {
		t.Errorf("saw %d messages up to %d, the stream has %+v, %v", len(got), got[len(got)-1], info, infoErr)
	}
	if n := b.Consumers(t, b.Config(), events.StreamFleet); n > 0 {
		t.Errorf("%d consumers are left", n)
	}
}

// On a cluster, the reader and the settled writer live through the loss of any
// one server, the leader among them: every acknowledged write is read once.
func TestClusterLosesOneServerAfterTheOther(t *testing.T) {
	t.Parallel()
	b := natstest.R3(t)
	reader, writer := b.Store(0), b.Store(1)
	log := broker.NewLog(writer)
	ctx, cancel := context.WithCancelCause(t.Context())
	seen := make(chan uint64, 10_000)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = reader.Stream(events.StreamFleet).Follow(ctx, 1, nil, func(batch []events.Message, _ bool) error {
			for _, m := range batch {
				seen <- m.Seq
			}
			return nil
		})
	})
	last := uint64(0)
	renew := func() {
		t.Helper()
		r, err := log.Append(t.Context(), events.StreamFleet, write(grammar.Renewal(ada), "", grammar.FamilyCheck(ada, last)))
		if err != nil {
			t.Fatal(err)
		}
		last = r.Seq
	}
	var got []uint64
	for i := range rounds(2, 3) { // the reader's server, the writer's, and the other
		for range 10 {
			renew()
		}
		b.Stop(i)
		for range 10 {
			renew()
		}
		b.Start(i)
		renew()
		for len(got) == 0 || got[len(got)-1] < last {
			select {
			case seq := <-seen:
				got = append(got, seq)
			case <-time.After(60 * time.Second):
				t.Fatalf("server %d restarted: saw up to %v, want %d", i, got[max(0, len(got)-1):], last)
			}
		}
	}
	cancel(errEnough)
	wg.Wait()
	for i, seq := range got {
		if seq != uint64(i+1) {
			t.Fatalf("message %d has sequence %d", i, seq)
		}
	}
	if uint64(len(got)) != last {
		t.Errorf("saw %d messages of %d", len(got), last)
	}
}
