package projections_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// How tenures end: released, fenced, and lapsed at the position of the claim
// that took over; a fenced one stays fenced whatever comes after.
func TestTenureEnds(t *testing.T) {
	v := given(t, fleet(
		claim("dev", 1, nodeA), established("dev", 1, nodeA), release("dev", 1, nodeA),
		claim("dev", 2, nodeB), claim("dev", 3, nodeA),
		fence("dev", 3, nodeA), claim("dev", 4, nodeB),
	)...)
	p := must(v.Tenures(projections.TenureFilter{Handle: "dev"}, 0, 10))
	got := ""
	for _, x := range p.Items {
		got += fmt.Sprintf("%d %s %d", x.Epoch, x.NodeID(), x.Claimed)
		if x.Ended != nil {
			got += fmt.Sprintf("-%d %s %s%s", x.Ended.Position, x.Ended.End, x.Ended.Reason, x.Ended.By)
		}
		got += "; "
	}
	want := "4 node-b 7; 3 node-a 5-6 FENCED stuckops; 2 node-b 4-5 LAPSED ; 1 node-a 1-3 RELEASED drain; "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if e := p.Items[3]; e.Established != 2 || !e.EstablishedAt.Equal(start.Add(2*time.Second)) {
		t.Errorf("epoch 1 established: got %d at %v", e.Established, e.EstablishedAt)
	}
}

// Tenures by seat, by node and all: newest first, pages continue each other.
func TestTenuresPages(t *testing.T) {
	v := given(t, fleet(claim("dev", 1, nodeA), claim("pm", 1, nodeB), claim("dev", 2, nodeB), claim("pm", 2, nodeA), claim("dev", 3, nodeA))...)
	for _, tt := range []struct {
		f      projections.TenureFilter
		before uint64
		limit  int
		want   string
	}{
		{projections.TenureFilter{}, 0, 3, "5 4 3 true"},
		{projections.TenureFilter{}, 3, 3, "2 1 false"},
		{projections.TenureFilter{Handle: "dev"}, 0, 2, "5 3 true"},
		{projections.TenureFilter{Handle: "dev"}, 3, 2, "1 false"},
		{projections.TenureFilter{Node: "node-a"}, 0, 9, "5 4 1 false"},
		{projections.TenureFilter{Node: "node-b", Handle: "dev"}, 0, 9, "3 false"},
		{projections.TenureFilter{Handle: "nobody"}, 0, 9, "false"},
	} {
		p := must(v.Tenures(tt.f, tt.before, tt.limit))
		got := ""
		for _, x := range p.Items {
			got += fmt.Sprint(x.Claimed, " ")
		}
		if got += fmt.Sprint(p.More); got != tt.want {
			t.Errorf("%+v before %d: got %q, want %q", tt.f, tt.before, got, tt.want)
		}
	}
}

// A time means the last event stamped at or before it, also where the broker's
// clock went back; and what cannot be known is an error, never "nobody".
func TestHolderAt(t *testing.T) {
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	log := []events.Recorded{
		{Stream: events.StreamFleet, Seq: 10, At: second(10), Event: claim("dev", 1, nodeA)},
		{Stream: events.StreamFleet, Seq: 11, At: second(100), Event: release("dev", 1, nodeA)}, // the clock ran ahead
		{Stream: events.StreamFleet, Seq: 12, At: second(20), Event: claim("pm", 1, nodeB)},     // and was set back
		{Stream: events.StreamFleet, Seq: 13, At: second(30), Event: claim("dev", 2, nodeB)},
	}
	v := given(t, log...)
	for _, tt := range []struct {
		name     string
		at       projections.PointInTime
		position uint64
		epoch    uint64 // 0: nobody
	}{
		{"at the claim", projections.AtPosition(10), 10, 1},
		{"at the release", projections.AtPosition(11), 11, 0},
		{"at the newest", projections.AtPosition(13), 13, 2},
		{"by time, the first", projections.AtTime(second(10)), 10, 1},
		{"by time, before the clock went ahead", projections.AtTime(second(19)), 10, 1},
		{"by time, an event stamped earlier came after the release", projections.AtTime(second(20)), 12, 0},
		{"by time, between", projections.AtTime(second(29)), 12, 0},
		{"by time, exact to the nanosecond", projections.AtTime(second(30).Add(-1)), 12, 0},
		{"by time, at the release's stamp later events stand", projections.AtTime(second(100)), 13, 2},
		{"by time, far ahead", projections.AtTime(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), 13, 2},
	} {
		h, err := v.HolderAt("dev", tt.at)
		var epoch uint64
		if h.Tenure != nil {
			epoch = h.Tenure.Epoch
		}
		if err != nil || h.Position != tt.position || epoch != tt.epoch {
			t.Errorf("%s: got epoch %d by position %d, err %v; want %d by %d", tt.name, epoch, h.Position, err, tt.epoch, tt.position)
		}
	}
	var before *projections.BeforeHistoryError
	for _, p := range []projections.PointInTime{projections.AtPosition(9), projections.AtTime(second(9)), projections.AtTime(time.Time{})} {
		if _, err := v.HolderAt("dev", p); !errors.As(err, &before) || before.First != 10 {
			t.Errorf("before history: got %v", err)
		}
	}
	var notYet *projections.NotYetError
	if _, err := v.HolderAt("dev", projections.AtPosition(14)); !errors.As(err, &notYet) || notYet.Position != 13 {
		t.Errorf("a position not read yet: got %v", err)
	}
	if _, err := given(t).HolderAt("dev", projections.AtTime(start)); !errors.As(err, &notYet) {
		t.Errorf("nothing read yet: got %v", err)
	}
}
