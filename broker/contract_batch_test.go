package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

// A batch stands whole, in order and without a gap, or not at all; each member
// is judged by its own check.
func contractBatch(t *testing.T, f fleet) {
	s := f.stream(events.StreamCursor)
	cursor := func(i int, last uint64) events.Write {
		subject := fmt.Sprintf("%scursor.s%d.inbox", f.p, i)
		return write(subject, fmt.Sprint(i), at(subject, last))
	}
	last, err := s.AppendBatch(t.Context(), []events.Write{cursor(0, 0), cursor(1, 0), cursor(2, 0)})
	if err != nil || last != 3 {
		t.Fatalf("batch of three: %d, %v", last, err)
	}
	_, err = s.AppendBatch(t.Context(), []events.Write{cursor(0, 1), cursor(1, 7), cursor(2, 3)})
	wantConflict(t, err, 2)
	if info, err := s.Info(t.Context()); err != nil || info.Last != 3 {
		t.Errorf("a refused batch stored something: %+v, %v", info, err)
	}
	last, err = s.AppendBatch(t.Context(), []events.Write{cursor(2, 3), cursor(0, 1)})
	if err != nil || last != 5 {
		t.Fatalf("second batch: %d, %v", last, err)
	}
	for seq, want := range map[uint64]string{2: "1", 4: "2", 5: "0"} {
		if m, err := s.Get(t.Context(), seq); err != nil || string(m.Data) != want {
			t.Errorf("sequence %d holds %q, %v, want %q", seq, m.Data, err, want)
		}
	}
	one, err := s.AppendBatch(t.Context(), []events.Write{cursor(7, 0)})
	if err != nil || one != 6 {
		t.Errorf("batch of one: %d, %v", one, err)
	}
	_, err = s.AppendBatch(t.Context(), []events.Write{cursor(7, 3)})
	wantConflict(t, err, 6)
	full := make([]events.Write, broker.MaxBatch)
	for i := range full {
		full[i] = cursor(100+i, 0)
	}
	if last, err := s.AppendBatch(t.Context(), full); err != nil || last != 1006 {
		t.Errorf("largest batch: %d, %v", last, err)
	}
	// A member's check may not look at what the same batch writes before it.
	_, err = s.AppendBatch(t.Context(), []events.Write{cursor(8, 0), cursor(8, 0)})
	wantErr(t, "two writes of one subject", err, events.ErrBusy)
}

// Streams without batches say so, and the limits hold.
func contractBatchRefusals(t *testing.T, f fleet) {
	for st, subject := range map[events.Stream]string{events.StreamMail: "agent.ada.inbox", events.StreamDead: "dead.ada.1"} {
		_, err := f.stream(st).AppendBatch(t.Context(), []events.Write{write(f.p+subject, "", nil), write(f.p+subject, "", nil)})
		wantRefused(t, string(st), err)
	}
	s := f.stream(events.StreamFleet)
	_, err := s.AppendBatch(t.Context(), nil)
	wantRefused(t, "an empty batch", err)
	_, err = s.AppendBatch(t.Context(), slices.Repeat([]events.Write{write(f.p+"fleet.host.ada", "", nil)}, broker.MaxBatch+1))
	wantRefused(t, "one more than the most", err)
	_, err = s.AppendBatch(t.Context(), []events.Write{write(f.p+"fleet.host.ada", "", nil), write(f.p+"agent.ada.inbox", "", nil)})
	wantRefused(t, "a member of another stream", err)
	if info, err := s.Info(t.Context()); err != nil || info.Last != 0 {
		t.Errorf("after refusals the stream ends at %d, %v", info.Last, err)
	}
}

// More subjects than one answer of the broker holds: all of them come, each
// once, with its newest message.
func contractLastPerSubjectMany(t *testing.T, f fleet) {
	s := f.stream(events.StreamFleet)
	const subjects = 1500
	var ws []events.Write
	for i := range subjects + 300 {
		ws = append(ws, write(fmt.Sprintf("%sfleet.lease.seat.s%d.renewal", f.p, i%subjects), fmt.Sprint(i), nil))
	}
	for part := range slices.Chunk(ws, 900) {
		if _, err := s.AppendBatch(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	// A direct get may lag behind the acknowledgement: ask until it does not.
	var msgs []events.Message
	for range 100 {
		var err error
		if msgs, err = s.LastPerSubject(t.Context(), f.p+"fleet.lease.seat.*.*"); err != nil {
			t.Fatal(err)
		}
		if len(msgs) == subjects && msgs[subjects-1].Seq == subjects+300 {
			break
		}
	}
	if len(msgs) != subjects {
		t.Fatalf("%d subjects, want %d", len(msgs), subjects)
	}
	for i, m := range msgs {
		if want := uint64(301 + i); m.Seq != want || string(m.Data) != fmt.Sprint(want-1) {
			t.Fatalf("message %d has sequence %d and %q, want %d", i, m.Seq, m.Data, want)
		}
	}
	few, err := s.LastPerSubject(t.Context(), f.p+"fleet.lease.seat.s7.*")
	if err != nil || len(few) != 1 || few[0].Subject != f.p+"fleet.lease.seat.s7.renewal" || few[0].At.IsZero() ||
		few[0].Header.Get(events.HeaderCommand) == "" || few[0].Header.Get("Nats-Sequence") != "" {
		t.Errorf("one family: %+v, %v", few, err)
	}
	if none, err := s.LastPerSubject(t.Context(), f.p+"fleet.lease.node.*.*"); err != nil || len(none) != 0 {
		t.Errorf("no family: %v, %v", none, err)
	}
	counts, err := s.Subjects(t.Context(), f.p+"fleet.lease.>")
	if err != nil || len(counts) != subjects {
		t.Errorf("%d subjects counted, %v", len(counts), err)
	}
}

// Three writers and a holder race for one lease, round after round, over three
// connections: two claims, a batch of renewals and a host write (field case 5).
// In each round exactly one of claims and renewal wins, and no host write of
// the old tenure lands behind a claim.
func contractOneWinner(t *testing.T, f fleet) {
	subjects, lease := f.stores[0].Subjects(), events.SeatLease("ada")
	bystander := events.SeatLease("bob")
	var logs [3]*broker.Log
	for i := range logs {
		logs[i] = broker.NewLog(f.stores[i])
	}
	family := mustAppend(t, f.stream(events.StreamFleet), write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, 0)))
	other := mustAppend(t, f.stream(events.StreamFleet), write(subjects.Tenure(bystander), "", subjects.FamilyCheck(bystander, 0)))
	tenure := family
	for round := range rounds(50, 500) {
		var wg sync.WaitGroup
		var claims [2]events.Receipt
		var claimErrs [2]error
		var renewals []events.Result
		var host events.Receipt
		var hostErr error
		for i := range claims {
			wg.Go(func() {
				w := write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, family))
				claims[i], claimErrs[i] = logs[i].Append(t.Context(), events.StreamFleet, w)
			})
		}
		wg.Go(func() {
			renewals = logs[2].AppendEach(t.Context(), events.StreamFleet, []events.Write{
				write(subjects.Renewal(bystander), "", subjects.FamilyCheck(bystander, other)),
				write(subjects.Renewal(lease), "", subjects.FamilyCheck(lease, family)),
			})
		})
		wg.Go(func() {
			w := write(subjects.Host("ada"), "", subjects.TenureCheck(lease, tenure))
			host, hostErr = logs[round%3].Append(t.Context(), events.StreamFleet, w)
		})
		wg.Wait()

		winners := 0
		won := func(seq uint64, err error, claimed bool) {
			switch {
			case err == nil:
				winners++
				family = seq
				if claimed {
					if hostErr == nil && host.Seq > seq {
						t.Fatalf("round %d: host write %d of the old tenure landed behind claim %d", round, host.Seq, seq)
					}
					tenure = seq
				}
			case !errors.Is(err, events.ErrConflict):
				t.Fatalf("round %d: %v", round, err)
			}
		}
		won(claims[0].Seq, claimErrs[0], true)
		won(claims[1].Seq, claimErrs[1], true)
		won(renewals[1].Seq, renewals[1].Err, false)
		if winners != 1 {
			t.Fatalf("round %d: %d winners: claims %v %v, renewal %v", round, winners, claimErrs[0], claimErrs[1], renewals[1].Err)
		}
		if renewals[0].Err != nil {
			t.Fatalf("round %d: the bystander's renewal: %v", round, renewals[0].Err)
		}
		other = renewals[0].Seq
		if hostErr != nil && !errors.Is(hostErr, events.ErrConflict) {
			t.Fatalf("round %d: host write: %v", round, hostErr)
		}
	}
}

// Renewals in batches: members in conflict are dropped by name, the rest are
// stored, each with its own sequence.
func contractAppendEach(t *testing.T, f fleet) {
	subjects, log := f.stores[0].Subjects(), broker.NewLog(f.stores[0])
	const seats = 1100 // three batches
	var ws []events.Write
	for i := range seats {
		lease := events.SeatLease(fmt.Sprintf("s%d", i))
		last := uint64(i + 1)
		switch i {
		case 3, 600, 601:
			last = 5000 // stale
		case 1099:
			last = 0 // as if never claimed
		}
		ws = append(ws, write(subjects.Renewal(lease), "", subjects.FamilyCheck(lease, last)))
	}
	var claims []events.Write
	for i := range seats {
		lease := events.SeatLease(fmt.Sprintf("s%d", i))
		claims = append(claims, write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, 0)))
	}
	for i, r := range log.AppendEach(t.Context(), events.StreamFleet, claims) {
		if r.Err != nil || r.Seq != uint64(i+1) {
			t.Fatalf("claim %d: %d, %v", i, r.Seq, r.Err)
		}
	}
	unchecked := write(subjects.Host("x"), "", nil)
	results := log.AppendEach(t.Context(), events.StreamFleet, append(ws, unchecked))
	for i, r := range results[:seats] {
		if i == 3 || i == 600 || i == 601 || i == 1099 {
			wantConflict(t, r.Err, uint64(i+1))
			continue
		}
		if r.Err != nil {
			t.Fatalf("renewal %d: %v", i, r.Err)
		}
		if m, err := f.stream(events.StreamFleet).Get(t.Context(), r.Seq); err != nil || m.Subject != ws[i].Subject {
			t.Fatalf("renewal %d is said to stand at %d: %s, %v", i, r.Seq, m.Subject, err)
		}
	}
	wantRefused(t, "a member without a check", results[seats].Err)
}

// The log over a healthy store: first-hand receipts, conflicts, and what it
// refuses because it could not recognise it.
func contractLog(t *testing.T, f fleet) {
	log, subjects, lease := broker.NewLog(f.stores[0]), f.stores[0].Subjects(), events.SeatLease("ada")
	r, err := log.Append(t.Context(), events.StreamFleet, write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, 0)))
	if err != nil || r.Seq != 1 || !r.FirstHand {
		t.Fatalf("claim: %+v, %v", r, err)
	}
	_, err = log.Append(t.Context(), events.StreamFleet, write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, 0)))
	wantConflict(t, err, 1)
	nameless := write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, 1))
	delete(nameless.Header, events.HeaderCommand)
	_, err = log.Append(t.Context(), events.StreamFleet, nameless)
	wantRefused(t, "a check without a command id", err)
	r, err = log.AppendBatch(t.Context(), events.StreamFleet, []events.Write{
		write(subjects.Host("ada"), "", subjects.TenureCheck(lease, 1)),
		write(subjects.Tenure(lease), "", subjects.FamilyCheck(lease, 1)),
	})
	if err != nil || r.Seq != 3 || !r.FirstHand {
		t.Fatalf("batch: %+v, %v", r, err)
	}
	w := write(f.p+"work.ada.1", "", nil)
	if _, err := log.Append(t.Context(), events.StreamWork, w); err != nil {
		t.Fatal(err)
	}
	_, err = log.Append(t.Context(), events.StreamWork, write(f.p+"work.ada.1", "", nil))
	wantErr(t, "recorded already", err, events.ErrExists)
}
