package main

import (
	"testing"
	"time"
)

// TestPausedSeatsNodeIsKilled proves H3 on real processes: the node that has a
// paused seat is killed, and its successor attaches the seat already held. Mail
// that waited in it, and mail that comes to it there, starts no turn, while the
// successor works on the mail of the other seats that it took over; resumed, it
// runs, in order and once.
func TestPausedSeatsNodeIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a fleet")
	}
	t.Parallel()
	p := startPair(t, 5)
	p.until(0, p.shared)
	a, b := p.nodes["a"], p.nodes["b"]
	held, free := p.seats("a")[0], p.seats("a")[1]
	// A node takes in what its view has before it reads on: once a's has what comes
	// after the pause, the pause is in force there.
	for _, command := range [][]string{{"pause", held}, {"pause", free}, {"resume", free}} {
		var done struct{ Position string }
		b.must(&done, "seat", command[0], command[1], "--reason", "a look at its mail", "-o", "json")
		eventually(t, 20*time.Second, "a has read it", func() bool {
			var f apiFleet
			a.must(&f, "fleet", "-o", "json")
			return epochOf(t, f.AsOf.Position) >= epochOf(t, done.Position)
		})
	}
	b.must(nil, "send", held, "--id", "before")
	mark := b.mark()
	a.kill()
	b.awaitFrom(mark, 30*time.Second, `msg=seat_attached .*seat=`+held)
	b.must(nil, "send", held, "--id", "after")
	b.awaitFrom(mark, 30*time.Second, `msg=seat_attached .*seat=`+free)
	for range 3 { // so it runs turns, and time passes
		b.must(nil, "send", free, "--wait=30s")
	}
	var l waitingList
	b.must(&l, "inbox", "ls", held, "-o", "json")
	if len(l.Mail) != 2 || *l.Mail[0].ID != "before" || *l.Mail[1].ID != "after" || l.Mail[0].Attempts+l.Mail[1].Attempts > 0 {
		t.Errorf("in the paused seat wait %+v", l.Mail)
	}
	if n := a.logs.count(`msg=turn_started .*seat=`+held+` `) + b.logs.count(`msg=turn_started .*seat=`+held+` `); n > 0 {
		t.Errorf("%d turns were started on the paused seat", n)
	}

	resumed := time.Now()
	b.must(nil, "seat", "resume", held, "--reason", "go on")
	for _, id := range []string{"before", "after"} {
		var ran sendResult
		b.must(&ran, "send", held, "--id", id, "--wait=30s", "-o", "json")
		if c := ran.Completion; c == nil || *c.Node != "b" || *c.Attempts != 1 || c.At.Before(resumed) {
			t.Errorf("%s after the resume: %+v; want it run by b, once, and not before it was resumed", id, ran.Completion)
		}
	}
	first := logTime(t, b.await(time.Second, `msg=turn_started .*seat=`+held+` .*event=before`))
	if second := logTime(t, b.await(time.Second, `msg=turn_started .*seat=`+held+` .*event=after`)); second.Before(first) {
		t.Errorf("the mail ran out of order: %v, %v", first, second)
	}
	b.must(nil, "audit")
}
