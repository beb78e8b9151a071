package main

import (
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// BenchmarkDrain empties a node of ten seats and lets it take its share again,
// under mail. Read the time in which a seat is dark as a multiple of one write to
// the same broker in the same run.
func BenchmarkDrain(b *testing.B) {
	nodes := twoNodes(b)
	flow := nodes[1].flow(b, 20, 40*time.Millisecond)
	for b.Loop() {
		drainRounds(b, nodes, 1)
	}
	b.StopTimer()
	flow.answered(b, nodes[1], time.Minute)
	dark, _ := darkFor(nodes[1].history(b, events.StreamFleet))
	write := percentile(flow.took, 50)
	b.ReportMetric(float64(percentile(dark, 50).Milliseconds()), "dark-p50-ms")
	b.ReportMetric(float64(percentile(dark, 99).Milliseconds()), "dark-p99-ms")
	b.ReportMetric(float64(percentile(dark, 50))/float64(write), "dark-p50/write")
	b.ReportMetric(0, "ns/op") // mostly the sweeps that are waited for
}

// BenchmarkSpread lets a node join one that has twice its share.
func BenchmarkSpread(b *testing.B) {
	const seats = 200
	var took time.Duration
	var dark []time.Duration
	rounds := 0
	for b.Loop() {
		nodes, each := spread(b, seats)
		fresh, _ := darkFor(nodes[1].history(b, events.StreamFleet))
		took, dark, rounds = took+each, append(dark, fresh...), rounds+1
		nodes[1].stop()
		nodes[0].stop()
	}
	b.ReportMetric(float64(seats*rounds)/took.Seconds(), "seats/s")
	b.ReportMetric(float64(percentile(dark, 50).Milliseconds()), "dark-p50-ms")
	b.ReportMetric(float64(percentile(dark, 99).Milliseconds()), "dark-p99-ms")
	b.ReportMetric(0, "ns/op")
}
