package metrics_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/seat-tenure/tenure/placement"
	"github.com/seat-tenure/tenure/seat"
)

// BenchmarkTold is what one edge costs whoever acts.
func BenchmarkTold(b *testing.B) {
	m := whole()
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			m.Seats().Took(seat.StepRenew, seat.OutcomeDone, time.Millisecond)
		}
	})
	b.Run("pass of 1000 groups", func(b *testing.B) {
		var many []placement.Group
		for i := range 1000 {
			many = append(many, placement.Group{Name: fmt.Sprint(i), Held: 1, Room: 1, Size: 1})
		}
		for b.Loop() {
			m.Seats().Swept(seat.Swept{End: seat.SweepDone, Groups: many})
		}
	})
	b.Run("scrape", func(b *testing.B) {
		for b.Loop() {
			families, err := m.Gatherer().Gather()
			if err != nil {
				b.Fatal(err)
			}
			enc := expfmt.NewEncoder(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
			for _, f := range families {
				if err := enc.Encode(f); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
