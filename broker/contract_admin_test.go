package broker_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// A stream's position and counts, from nothing on.
func contractInfo(t *testing.T, f fleet) {
	s := f.stream(events.StreamFleet)
	empty, err := s.Info(t.Context())
	if err != nil || empty.First != 1 || empty.Last != 0 || empty.Messages != 0 || empty.CreatedAt.IsZero() || empty.Stream != events.StreamFleet {
		t.Errorf("empty: %+v, %v", empty, err)
	}
	for i := range 5 {
		mustAppend(t, s, write(fmt.Sprintf("%sfleet.host.s%d", f.p, i%2), "", nil))
	}
	full, err := f.stores[1].Stream(events.StreamFleet).Info(t.Context())
	if err != nil || full.First != 1 || full.Last != 5 || full.Messages != 5 || !full.CreatedAt.Equal(empty.CreatedAt) {
		t.Errorf("five: %+v, %v", full, err)
	}
	counts, err := s.Subjects(t.Context(), f.p+"fleet.host.*")
	if err != nil || len(counts) != 2 || counts[f.p+"fleet.host.s0"] != 3 || counts[f.p+"fleet.host.s1"] != 2 {
		t.Errorf("subjects: %v, %v", counts, err)
	}
	if err := s.Purge(t.Context(), f.p+"fleet.>", 6); err != nil {
		t.Fatal(err)
	}
	none, err := s.Info(t.Context())
	if err != nil || none.First != 6 || none.Last != 5 || none.Messages != 0 {
		t.Errorf("purged: %+v, %v", none, err)
	}
	if ttl := f.stores[2].LeaseTTL(); ttl != 3*time.Second {
		t.Errorf("lease TTL %v, want 3s", ttl)
	}
}

// A purge removes what is under its filter and below its sequence, and refuses
// the two forms that mean more than was said.
func contractPurge(t *testing.T, f fleet) {
	s := f.stream(events.StreamFleet)
	for i := range 6 {
		mustAppend(t, s, write(fmt.Sprintf("%sfleet.lease.seat.s%d.%s", f.p, i%2, []string{"renewal", "tenure"}[i%2]), "", nil))
	}
	wantRefused(t, "an empty filter", s.Purge(t.Context(), "", 5))
	wantRefused(t, "sequence 0", s.Purge(t.Context(), f.p+"fleet.lease.*.*.renewal", 0))
	wantRefused(t, "another stream's filter", s.Purge(t.Context(), ">", 5))
	if err := s.Purge(t.Context(), f.p+"fleet.lease.*.*.renewal", 5); err != nil {
		t.Fatal(err)
	}
	var kept []events.Message
	for seq := uint64(1); seq <= 6; seq++ {
		if m, err := s.Get(t.Context(), seq); err == nil {
			kept = append(kept, m)
		}
	}
	if got, want := seqsOf(kept), []uint64{2, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if seq := mustAppend(t, s, write(f.p+"fleet.host.ada", "", nil)); seq != 7 {
		t.Errorf("next sequence %d, want 7", seq)
	}
}

// Single messages go from MAIL, and from no stream of facts.
func contractDelete(t *testing.T, f fleet) {
	mail := f.stream(events.StreamMail)
	for range 3 {
		mustAppend(t, mail, write(f.p+"agent.ada.inbox", "", nil))
	}
	if err := mail.Delete(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "deleted twice", mail.Delete(t.Context(), 2), events.ErrNotFound)
	wantErr(t, "never there", mail.Delete(t.Context(), 9), events.ErrNotFound)
	if m, err := mail.Next(t.Context(), f.p+"agent.ada.inbox", 2); err != nil || m.Seq != 3 {
		t.Errorf("next after the deleted one: %d, %v", m.Seq, err)
	}
	mustAppend(t, f.stream(events.StreamFleet), write(f.p+"fleet.host.ada", "", nil))
	wantRefused(t, "a fact", f.stream(events.StreamFleet).Delete(t.Context(), 1))
	if _, err := f.stream(events.StreamFleet).Get(t.Context(), 1); err != nil {
		t.Errorf("the fact: %v", err)
	}
}

// A wake-up comes after the commit: whoever it wakes finds the mail, on every
// connection. It carries the subject only.
func contractWake(t *testing.T, f fleet) {
	woken := make(chan string, 100)
	stop, err := f.stores[1].Subscribe(t.Context(), f.p+"wake.ada.*", func(subject string) { woken <- subject })
	if err != nil {
		t.Fatal(err)
	}
	for i := range rounds(30, 300) {
		kind := []string{"inbox", "control"}[i%2]
		go func() {
			_, _ = f.stores[2].Stream(events.StreamMail).Append(t.Context(), write(f.p+"agent.ada."+kind, "", nil))
		}()
		if got := <-woken; got != f.p+"wake.ada."+kind {
			t.Fatalf("woken by %s", got)
		}
		if m, err := f.stores[1].Stream(events.StreamMail).Next(t.Context(), f.p+"agent.ada.*", uint64(i+1)); err != nil || m.Seq != uint64(i+1) {
			t.Fatalf("round %d: woken, and found %d, %v", i, m.Seq, err)
		}
	}
	stop()
	mustAppend(t, f.stream(events.StreamMail), write(f.p+"agent.ada.inbox", "", nil))
	stop() // a second time does no harm
	select {
	case subject := <-woken:
		t.Errorf("woken by %s after stop", subject)
	default:
	}
}

// Field case 10 (L7): the fleet's lease TTL is the one it was created with. Nodes
// that open it at once, each with a TTL of its own, agree on one.
func contractLeaseTTL(t *testing.T, f fleet) {
	if f.open == nil {
		t.Skip("the twin's connections share one configuration")
	}
	if ttl := f.stores[2].LeaseTTL(); ttl != f.cfg.LeaseTTL {
		t.Errorf("created with %v, opened with %v", f.cfg.LeaseTTL, ttl)
	}
	fresh := f.cfg
	fresh.Prefix += "-fresh"
	var wg sync.WaitGroup
	var ttls [3]time.Duration
	for i := range ttls {
		cfg := fresh
		cfg.LeaseTTL = time.Duration(20+i) * time.Second
		wg.Go(func() { ttls[i] = f.open(t, i, cfg).LeaseTTL() })
	}
	wg.Wait()
	fresh.LeaseTTL = time.Hour
	late := f.open(t, 0, fresh).LeaseTTL()
	if ttls[0] != ttls[1] || ttls[1] != ttls[2] || ttls[0] < 20*time.Second || late != ttls[0] {
		t.Errorf("nodes of one fleet count with %v and %v", ttls, late)
	}
}
