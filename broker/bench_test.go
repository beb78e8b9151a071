package broker_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/broker/natstest"
	"github.com/seat-tenure/tenure/events"
)

// BenchmarkWrites measures claims and batched renewals against plain publishes
// to the same stream: read them as ratios within one run.
func BenchmarkWrites(b *testing.B) {
	for name, start := range map[string]func(testing.TB) *natstest.Brokers{"R1": natstest.R1, "R3": natstest.R3} {
		b.Run(name, func(b *testing.B) {
			brokers := start(b)
			store := brokers.Store(0)
			log, subjects := broker.NewLog(store), store.Subjects()
			nc, err := nats.Connect(brokers.Server(0).NodeURL())
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			b.Run("publish", func(b *testing.B) {
				var n atomic.Int64
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := nc.Request(subjects.Host(fmt.Sprintf("p%d", n.Add(1))), nil, nats.DefaultTimeout); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
			var run atomic.Int64
			b.Run("claim", func(b *testing.B) {
				var n atomic.Int64
				id := run.Add(1)
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						lease := events.SeatLease(fmt.Sprintf("c%d-%d", id, n.Add(1)))
						w := write(subjects.Tenure(lease), "{}", subjects.FamilyCheck(lease, 0))
						if _, err := log.Append(b.Context(), events.StreamFleet, w); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
			b.Run("renew500", func(b *testing.B) {
				id := run.Add(1)
				leases, last := make([]events.Lease, 500), make([]uint64, 500)
				for i := range leases {
					leases[i] = events.SeatLease(fmt.Sprintf("r%d-%d", id, i))
				}
				for n := 0; b.Loop(); n++ {
					ws := make([]events.Write, len(leases))
					for i, lease := range leases {
						ws[i] = write(subjects.Renewal(lease), "{}", subjects.FamilyCheck(lease, last[i]))
					}
					for i, r := range log.AppendEach(b.Context(), events.StreamFleet, ws) {
						if r.Err != nil {
							b.Fatal(r.Err)
						}
						last[i] = r.Seq
					}
				}
				b.ReportMetric(float64(b.N*500)/b.Elapsed().Seconds(), "renewals/s")
			})
			b.Run("family-read", func(b *testing.B) {
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := store.Stream(events.StreamFleet).Last(b.Context(), subjects.Family(events.SeatLease("c1-1"))); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		})
	}
}
