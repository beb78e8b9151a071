package audit_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

// renewals is how long a history the memory test streams: a tenth of a million
// with `make test`, a million in the long runs.
func renewals() int {
	if os.Getenv("TENURE_CASES") == "full" {
		return 1_000_000
	}
	return 100_000
}

// TestMemoryIsBoundedBySeats proves that a history takes the memory of its
// seats and tenures, whatever its length: a hundred seats that are renewed for
// ever, cost nothing more per event.
func TestMemoryIsBoundedBySeats(t *testing.T) {
	const seats = 100
	h := newHistory()
	a := audit.New(fleet)
	templates := make([]events.Message, seats)
	for i := range seats {
		l := events.SeatLease("seat-" + strconv.Itoa(i))
		h.put(claimed(l, 1, alpha))
		a.Add(h.messages[events.StreamFleet][i])
		w := must(events.Encode(fleet, events.Meta{ID: "r", Time: h.now, Source: alpha, Epoch: 1}, renewed(l, 1, alpha)))
		templates[i] = events.Message{Stream: events.StreamFleet, Subject: w.Subject, Header: w.Header, Data: w.Data}
	}
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	n := renewals()
	for i := range n {
		m := templates[i%seats]
		m.Seq = uint64(seats + 1 + i)
		a.Add(m)
	}
	grown := heap() - before
	if r := a.Finish(); !r.OK() || r.Events != uint64(n+seats) || r.Tenures != seats {
		t.Errorf("found\n%s", found(r))
	}
	if grown > 1<<20 {
		t.Errorf("%d events more took %d bytes more, want under 1 MiB", n, grown)
	}
}

// BenchmarkAudit measures an event of a history, read and judged.
func BenchmarkAudit(b *testing.B) {
	h := newHistory()
	h.put(claimed(dev, 1, alpha))
	h.put(renewed(dev, 1, alpha))
	a := audit.New(fleet)
	a.Add(h.messages[events.StreamFleet][0])
	for i := range b.N {
		line := audit.AppendMessage(nil, h.messages[events.StreamFleet][1])
		m := must(audit.ParseMessage(line))
		m.Seq = uint64(i + 2)
		a.Add(m)
	}
}
