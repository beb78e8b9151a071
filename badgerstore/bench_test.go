package badgerstore_test

import (
	"fmt"
	"testing"

	"github.com/seat-tenure/tenure/badgerstore"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/projections/rowstest"
)

// encoded is n tenures of 500 seats as the log has them: claim, established,
// release.
func encoded(b *testing.B, n int) (events.Subjects, []events.Message) {
	b.Helper()
	subjects, err := events.NewSubjects("acme")
	if err != nil {
		b.Fatal(err)
	}
	var msgs []events.Message
	for i := range n {
		handle, epoch := fmt.Sprintf("seat-%d", i%500), uint64(1+i/500)
		for _, e := range []events.Event{
			events.LeaseClaimed{Lease: events.SeatLease(handle), Epoch: epoch, Owner: nodeA, TTL: 45000, Protocol: 4},
			events.SeatEstablished{Handle: handle, Epoch: epoch, Owner: nodeA},
			events.LeaseReleased{Lease: events.SeatLease(handle), Epoch: epoch, Owner: nodeA, Reason: events.ReasonDrain},
		} {
			r := record(fleet, uint64(len(msgs)+1), e)
			r.Meta.Time, r.Meta.Source = r.At, nodeA
			w, err := events.Encode(subjects, r.Meta, e)
			if err != nil {
				b.Fatal(err)
			}
			msgs = append(msgs, events.Message{Stream: fleet, Seq: r.Seq, Subject: w.Subject, At: r.At, Header: w.Header, Data: w.Data})
		}
	}
	return subjects, msgs
}

func decoded(b *testing.B, subjects events.Subjects, msgs []events.Message) []events.Recorded {
	log := make([]events.Recorded, 0, len(msgs))
	for _, msg := range msgs {
		r, err := events.Decode(subjects, msg)
		if err != nil {
			b.Fatal(err)
		}
		log = append(log, r)
	}
	return log
}

const benchTenures = 10_000

func perEvent(b *testing.B, events int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(events), "µs/event")
}

// BenchmarkDecode is what reading the log costs in any case.
func BenchmarkDecode(b *testing.B) {
	subjects, msgs := encoded(b, benchTenures)
	for b.Loop() {
		decoded(b, subjects, msgs)
	}
	perEvent(b, len(msgs))
}

// BenchmarkApply adds the fold, into rows in memory. Scans are left out: the
// memory's are not made to be fast, and tenures need none.
func BenchmarkApply(b *testing.B) {
	subjects, msgs := encoded(b, benchTenures)
	for b.Loop() {
		rows := rowstest.Memory{}
		for _, r := range decoded(b, subjects, msgs) {
			if err := projections.Apply(rows, r); err != nil {
				b.Fatal(err)
			}
		}
	}
	perEvent(b, len(msgs))
}

// BenchmarkRebuild is a rebuild from zero: decode, fold, commit.
func BenchmarkRebuild(b *testing.B) {
	subjects, msgs := encoded(b, benchTenures)
	for b.Loop() {
		src := newSource(fleet, decoded(b, subjects, msgs)...)
		src.batch = 512
		s, err := badgerstore.Open(b.Context(), b.TempDir(), options(&lines{}))
		if err != nil {
			b.Fatal(err)
		}
		stop := project(b, s, src)
		<-s.Ready()
		stop()
		closed(b, s)
	}
	perEvent(b, len(msgs))
}

// BenchmarkOpen is what checking every row costs a start.
func BenchmarkOpen(b *testing.B) {
	subjects, msgs := encoded(b, benchTenures)
	dir := b.TempDir()
	src := newSource(fleet, decoded(b, subjects, msgs)...)
	src.batch = 512
	s := open(b, dir, options(&lines{}))
	stop := project(b, s, src)
	<-s.Ready()
	stop()
	closed(b, s)
	for b.Loop() {
		s, err := badgerstore.Open(b.Context(), dir, options(&lines{}))
		if err != nil {
			b.Fatal(err)
		}
		closed(b, s)
	}
	perEvent(b, len(msgs))
}

// BenchmarkSeat is one read of one seat.
func BenchmarkSeat(b *testing.B) {
	subjects, msgs := encoded(b, 1000)
	s := open(b, b.TempDir(), options(&lines{}))
	project(b, s, newSource(fleet, decoded(b, subjects, msgs)...))
	<-s.Ready()
	for b.Loop() {
		err := s.View(func(v projections.View) error {
			_, _, err := v.Seat("seat-7")
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
