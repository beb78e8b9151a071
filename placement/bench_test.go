package placement_test

import (
	"fmt"
	"testing"

	"github.com/seat-tenure/tenure/placement"
)

// BenchmarkSweep is one node's pass: idle in a full fleet, and from cold, when
// every seat is a candidate.
func BenchmarkSweep(b *testing.B) {
	for _, size := range []struct{ seats, nodes int }{{1000, 50}, {10000, 100}} {
		var nodes []placement.Node
		for i := range size.nodes {
			n := zoned(i)
			n.SeatsHeld = size.seats/size.nodes + 2
			nodes = append(nodes, n)
		}
		full := viewOf(mixed(size.seats), nodes...)
		cold := full
		cold.Nodes = make([]placement.Node, len(nodes))
		for i, n := range nodes {
			n.SeatsHeld = 0
			cold.Nodes[i] = n
		}
		for name, v := range map[string]placement.View{"full": full, "cold": cold} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size.seats, size.nodes), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					placement.Sweep(v)
				}
			})
		}
	}
}
