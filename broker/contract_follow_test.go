package broker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

var errEnough = errors.New("enough")

// fill appends n host events for alternating seats, in batches.
func fill(t *testing.T, f fleet, n int) {
	t.Helper()
	var ws []events.Write
	for i := range n {
		ws = append(ws, write(fmt.Sprintf("%sfleet.host.s%d", f.p, i%2), fmt.Sprint(i), nil))
	}
	for part := range slices.Chunk(ws, 500) {
		if _, err := f.stream(events.StreamFleet).AppendBatch(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
}

// follow collects what Follow hands over until it has caught up.
func follow(ctx context.Context, s broker.Stream, from uint64, filters []string) (msgs []events.Message, largest int, err error) {
	err = s.Follow(ctx, from, filters, func(batch []events.Message, caughtUp bool) error {
		msgs = append(msgs, batch...)
		largest = max(largest, len(batch))
		if caughtUp {
			return errEnough
		}
		return nil
	})
	return msgs, largest, err
}

// From a position on, in order, every message that the filters select and no
// other, in batches of the promised size; an empty stream says so.
func contractFollowOrder(t *testing.T, f fleet) {
	s := f.stream(events.StreamFleet)
	msgs, _, err := follow(t.Context(), s, 1, nil)
	if wantErr(t, "empty stream", err, errEnough); len(msgs) != 0 {
		t.Fatalf("an empty stream gave %v", msgs)
	}
	const n = 1400
	fill(t, f, n)
	all, largest, err := follow(t.Context(), f.stores[2].Stream(events.StreamFleet), 1, nil)
	wantErr(t, "all", err, errEnough)
	if len(all) != n || largest > broker.MaxFollow || !slices.IsSorted(seqsOf(all)) || all[0].Seq != 1 || all[n-1].Seq != n {
		t.Fatalf("%d messages in batches of up to %d", len(all), largest)
	}
	one := all[700]
	if string(one.Data) != "700" || one.Subject != f.p+"fleet.host.s0" || one.Header.Get(events.HeaderCommand) == "" || one.At.IsZero() || one.Stream != events.StreamFleet {
		t.Errorf("message 700: %+v", one)
	}
	odd, _, err := follow(t.Context(), s, 1001, []string{f.p + "fleet.host.s1", f.p + "fleet.log"})
	wantErr(t, "filtered", err, errEnough)
	if len(odd) != 200 || odd[0].Seq != 1002 || odd[199].Seq != 1400 {
		t.Fatalf("filtered from 1001: %d messages", len(odd))
	}
	far, largest, err := follow(t.Context(), s, 1, []string{f.p + "fleet.host.s1", f.p + "fleet.log"})
	wantErr(t, "filtered from far", err, errEnough)
	if len(far) != 700 || largest > broker.MaxFollow || !slices.IsSorted(seqsOf(far)) || far[0].Seq != 2 || far[699].Seq != 1400 {
		t.Fatalf("filtered from the first: %d messages in batches of up to %d", len(far), largest)
	}
	end, _, err := follow(t.Context(), s, n+1, nil)
	if wantErr(t, "from the end", err, errEnough); len(end) != 0 {
		t.Errorf("behind the end: %v", end)
	}
	var identity *broker.IdentityError
	if _, _, err := follow(t.Context(), s, n+2, nil); !errors.As(err, &identity) || identity.Reason != broker.Shorter {
		t.Errorf("from beyond the end: %v", err)
	}
	_, _, err = follow(t.Context(), s, 1, []string{f.p + "agent.>"})
	wantRefused(t, "another stream's filter", err)
}

// What is written while a reader follows comes to it, without gap or duplicate,
// and the reader ends with the cause of its context.
func contractFollowLive(t *testing.T, f fleet) {
	fill(t, f, 10)
	ctx, cancel := context.WithCancelCause(t.Context())
	var got []uint64
	caught := 0
	var wg sync.WaitGroup
	started := make(chan struct{})
	var once sync.Once
	var err error
	wg.Go(func() {
		err = f.stores[1].Stream(events.StreamFleet).Follow(ctx, 1, nil, func(batch []events.Message, caughtUp bool) error {
			got = append(got, seqsOf(batch)...)
			if caughtUp {
				caught++
				once.Do(func() { close(started) })
			}
			if len(got) >= 250 {
				cancel(errEnough)
			}
			return nil
		})
	})
	<-started
	var writers sync.WaitGroup
	for i := range 3 {
		writers.Go(func() {
			for range 80 {
				_, _ = appendBusy(t.Context(), f.stores[i].Stream(events.StreamFleet), write(f.p+"fleet.host.s2", "", nil))
			}
		})
	}
	writers.Wait()
	wg.Wait()
	wantErr(t, "ended", err, errEnough)
	for i, seq := range got {
		if seq != uint64(i+1) {
			t.Fatalf("message %d has sequence %d", i, seq)
		}
	}
	if len(got) != 250 || caught < 2 {
		t.Errorf("%d messages, caught up %d times", len(got), caught)
	}
}

// A reader of several filters that falls behind a good deal while it lives, as
// one does whose node stands still, misses nothing, sees nothing twice and nothing
// that it did not ask for, and is told when it has caught up again.
func contractFollowBehind(t *testing.T, f fleet) {
	fill(t, f, 10)
	const n = 3000
	var got []events.Message
	caught := 0
	err := f.stores[1].Stream(events.StreamFleet).Follow(t.Context(), 1, []string{f.p + "fleet.host.s1", f.p + "fleet.log"},
		func(batch []events.Message, caughtUp bool) error {
			got = append(got, batch...)
			if caughtUp {
				if caught++; caught == 1 {
					fill(t, f, n)
				}
			}
			if caughtUp && len(got) >= (10+n)/2 {
				return errEnough
			}
			return nil
		})
	wantErr(t, "ended", err, errEnough)
	for i, m := range got {
		if m.Seq != uint64(2*i+2) || m.Subject != f.p+"fleet.host.s1" {
			t.Fatalf("message %d has sequence %d and subject %s", i, m.Seq, m.Subject)
		}
	}
	if len(got) != (10+n)/2 {
		t.Errorf("%d messages", len(got))
	}
}

// A stream swapped underneath its reader stops it: nothing of the new one is
// handed over as if it followed on the old (design §10, schedule 10).
func contractFollowRecreated(t *testing.T, f fleet) {
	fill(t, f, 10)
	started := make(chan struct{})
	var once sync.Once
	var got []uint64
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		err = f.stores[1].Stream(events.StreamFleet).Follow(t.Context(), 1, nil, func(batch []events.Message, caughtUp bool) error {
			got = append(got, seqsOf(batch)...)
			if caughtUp {
				once.Do(func() { close(started) })
			}
			return nil
		})
	})
	<-started
	f.recreate(t, events.StreamFleet)
	fill(t, f, 20)
	wg.Wait()
	var identity *broker.IdentityError
	if !errors.As(err, &identity) || identity.Reason != broker.Recreated || identity.Stream != events.StreamFleet {
		t.Errorf("got %v, want a recreated stream", err)
	}
	if len(got) != 10 {
		t.Errorf("handed over %v", got)
	}
}

// Markers stand in every stream, a checkpoint that rests on one is verified,
// and the newest one below a position is found.
func contractIdentity(t *testing.T, f fleet) {
	store := f.stores[0]
	marks := broker.Marks{Store: store, Source: "n1:0123abcd"}
	first, err := marks.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, f, 20)
	second, err := marks.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for st, id := range second {
		info, err := store.Stream(st).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := broker.CheckIdentity(t.Context(), store, st, id, info.Last); err != nil {
			t.Errorf("%s: %v", st, err)
		}
		if err := broker.CheckIdentity(t.Context(), f.stores[2], st, first[st], first[st].MarkerSeq); err != nil {
			t.Errorf("%s at the first marker: %v", st, err)
		}
		newest, err := broker.NewestMarker(t.Context(), store, st, info.Last)
		if err != nil || newest != id {
			t.Errorf("%s: newest marker %v, %v, want %v", st, newest, err, id)
		}
		older, err := broker.NewestMarker(t.Context(), store, st, id.MarkerSeq-1)
		if err != nil || older != first[st] {
			t.Errorf("%s: marker below %d is %v, %v, want %v", st, id.MarkerSeq, older, err, first[st])
		}
		none, err := broker.NewestMarker(t.Context(), store, st, first[st].MarkerSeq-1)
		if err != nil || none.MarkerSeq != 0 || none.CreatedAt != id.CreatedAt {
			t.Errorf("%s: below all markers: %v, %v", st, none, err)
		}
		// A reader that knew the first marker and has read past the second without
		// seeing it read another stream.
		wantIdentity(t, broker.CheckIdentity(t.Context(), store, st, first[st], info.Last), broker.MarkerForeign)
		wantIdentity(t, broker.CheckIdentity(t.Context(), store, st, id, info.Last+1), broker.Shorter)
		other := id
		other.MarkerID = "00"
		wantIdentity(t, broker.CheckIdentity(t.Context(), store, st, other, info.Last), broker.MarkerGone)
	}
	// Every marker is an event, and FLEET has all streams'.
	recorded := map[events.Stream]int{}
	msgs, _, err := follow(t.Context(), store.Stream(events.StreamFleet), 1, []string{store.Subjects().FleetLog()})
	wantErr(t, "fleet log", err, errEnough)
	for _, m := range msgs {
		r, err := events.Decode(store.Subjects(), m)
		if err != nil {
			t.Fatal(err)
		}
		recorded[r.Event.(events.StreamMarked).Stream]++
	}
	for st := range second {
		if recorded[st] != 2 {
			t.Errorf("FLEET records %d markers of %s, want 2", recorded[st], st)
		}
	}
}

// MAIL or CURSOR recreated: the check that every reader makes on opening says
// so (design §10, schedule 10).
func contractIdentityRecreated(t *testing.T, f fleet) {
	marks := broker.Marks{Store: f.stores[0], Source: "n1:0123abcd"}
	ids, err := marks.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range []events.Stream{events.StreamMail, events.StreamCursor} {
		f.recreate(t, st)
		wantIdentity(t, broker.CheckIdentity(t.Context(), f.stores[0], st, ids[st], ids[st].MarkerSeq), broker.Recreated)
	}
}

func wantIdentity(t *testing.T, err error, reason broker.IdentityReason) {
	t.Helper()
	var identity *broker.IdentityError
	if !errors.As(err, &identity) || identity.Reason != reason {
		t.Errorf("got %v, want %q", err, reason)
	}
}
