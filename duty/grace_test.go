package duty_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// TestCase22TheLongerGraceCounts proves that a duty which moves between nodes of
// different files deletes no mailbox before the time that either of them announced,
// and that each node which finds the difference says so once.
func TestCase22TheLongerGraceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("dev", "ops")
		w.apply()
		w.send("dev", events.Inbox)
		hasty := usual
		hasty.Grace = time.Hour
		patient, quick := w.node("a", usual), w.node("b", hasty)
		patient.tick()
		announced, _ := w.saga("dev")
		patient.ticks(20, usual.Tick) // five hours
		quick.ticks(20, usual.Tick)
		s, _ := w.saga("dev")
		if s.Step != events.RetireAbsent || s.Grace != announced.Grace || s.RetiresAt.Before(announced.RetiresAt) || w.kept("dev") != 1 {
			t.Fatalf("%s by a grace of %v, retires at %v, %d mails; announced was %v, after %v",
				s.Step, s.Grace.Duration(), s.RetiresAt, w.kept("dev"), announced.RetiresAt, announced.Grace.Duration())
		}
		said := 0
		for _, line := range quick.log.lines {
			if (&logged{lines: []string{line}}).has("level=WARN", "msg=seat_mailbox_grace_differs", "judged_by=24h0m0s", "file=1h0m0s") {
				said++
			}
		}
		if said != 1 || patient.log.has("seat_mailbox_grace_differs") {
			t.Errorf("the node that differs said so %d times, and the other: %v", said, patient.log.has("seat_mailbox_grace_differs"))
		}
		patient.ticks(100, usual.Tick)
		if w.kept("dev") != 0 {
			t.Error("not retired after the longer grace")
		}

		// The other way round: a longer grace takes over from a shorter one.
		w.register("late")
		w.send("late", events.Inbox)
		quick.tick()
		patient.ticks(2, usual.Tick)
		if s, _ := w.saga("late"); s.Grace != events.MillisOf(usual.Grace) || !patient.log.has("seat_mailbox_grace_differs", "judged_by=1h0m0s", "file=24h0m0s") {
			t.Errorf("judged by %v; %q", s.Grace.Duration(), patient.log.lines)
		}
		quick.ticks(10, usual.Tick)
		if w.kept("late") != 1 {
			t.Error("retired by the shorter grace")
		}
	})
}
