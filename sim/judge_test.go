package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sim"
)

const (
	ttl   = 15 * time.Second
	alpha = events.Incarnation("a:00000001")
	beta  = events.Incarnation("b:00000002")
)

// court is a judge who is told a short history: alpha has dev under epoch 1, and
// an attempt of it on mail 1 is recorded; times are seconds.
type court struct {
	*sim.Judge
	start time.Time
}

func newCourt() court {
	c := court{sim.NewJudge(ttl), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	c.claim(0, 1, alpha)
	c.cursor(1, 1, alpha, events.OpenMail{Seq: 1, Attempts: 1, Running: true})
	return c
}

func (c court) at(sec float64) time.Time {
	return c.start.Add(time.Duration(sec * float64(time.Second)))
}

func (c court) log(sec float64, st events.Stream, e events.Event) {
	c.Logged(events.Recorded{Stream: st, Event: e}, c.at(sec))
}

func (c court) claim(sec float64, epoch uint64, owner events.Incarnation) {
	c.log(sec, events.StreamFleet, events.LeaseClaimed{Lease: events.SeatLease("dev"), Epoch: epoch, Owner: owner})
}

func (c court) cursor(sec float64, epoch uint64, owner events.Incarnation, open ...events.OpenMail) {
	c.log(sec, events.StreamCursor, events.CursorAttempted{CursorBody: events.CursorBody{
		Handle: "dev", Mailbox: events.Inbox, CursorSnapshot: events.CursorSnapshot{Epoch: epoch, Owner: owner, Open: open},
	}})
}

func (c court) deed(sec float64, epoch uint64, owner events.Incarnation, start bool) sim.Deed {
	d := sim.Deed{Seat: "dev", Epoch: epoch, Owner: owner, Mails: []string{"m1"}, Seqs: []uint64{1}, Start: start, At: c.at(sec)}
	c.Did(d)
	return d
}

// TestJudge proves of each thing that a Judge asks that it notices when it is not
// kept, and of what is allowed that it is let pass.
func TestJudge(t *testing.T) {
	for name, story := range map[string]struct {
		tell func(c court)
		want string // in the first fault; "" for none
	}{
		"a turn": {func(c court) {
			c.Sent("dev", "m1", 1, c.at(0))
			c.Ended(c.deed(1, 1, alpha, true))
			c.deed(2, 1, alpha, false)
			c.log(3, events.StreamWork, events.TurnCompleted{Handle: "dev", EventID: "m1"})
		}, ""},
		"after a later claim": {func(c court) {
			c.deed(1, 1, alpha, true)
			c.claim(5, 2, beta)
			c.deed(6, 1, alpha, false)
		}, "epoch 2 of b:00000002 was claimed"},
		"after a later claim, asleep meanwhile": {func(c court) {
			c.deed(1, 1, alpha, true)
			c.claim(5, 2, beta)
			c.Napped(alpha, c.at(5.5))
			c.deed(6, 1, alpha, false)
		}, ""},
		"after it slept, under an earlier tenure": {func(c court) {
			c.Napped(beta, c.at(1))
			c.claim(5, 2, beta)
			c.claim(6, 3, alpha)
			c.deed(7, 2, beta, false)
		}, "epoch 3 of a:00000001 was claimed"},
		"after its time": {func(c court) {
			c.log(4, events.StreamFleet, events.LeaseRenewed{Lease: events.SeatLease("dev"), Epoch: 1, Owner: alpha})
			c.deed(18.9, 1, alpha, false)
			c.deed(19, 1, alpha, false)
		}, "its bought time was over"},
		"after its own release": {func(c court) {
			c.log(4, events.StreamFleet, events.LeaseReleased{Lease: events.SeatLease("dev"), Epoch: 1, Owner: alpha})
			c.deed(5, 1, alpha, false)
		}, "gave the seat back"},
		"of no tenure": {func(c court) { c.deed(1, 1, beta, false) }, "no such tenure"},
		"without a record": {func(c court) {
			c.claim(5, 2, beta)
			c.deed(6, 2, beta, true)
		}, "has no attempt of that tenure"},
		"twice on one record": {func(c court) {
			c.Ended(c.deed(1, 1, alpha, true))
			c.deed(2, 1, alpha, true)
		}, "for the 2. time, on 1 records"},
		"two at a time": {func(c court) {
			c.deed(1, 1, alpha, true)
			c.cursor(2, 1, alpha, events.OpenMail{Seq: 1, Attempts: 2, Running: true})
			c.deed(3, 1, alpha, true)
		}, "while that one had not ended"},
		"once more, unsaid": {func(c court) {
			c.Ended(c.deed(1, 1, alpha, true))
			c.claim(5, 2, beta)
			c.cursor(6, 2, beta, events.OpenMail{Seq: 1, Attempts: 2, Running: true})
			c.deed(7, 2, beta, true)
		}, "the log does not say so"},
		"what is done": {func(c court) {
			c.log(1, events.StreamWork, events.TurnCompleted{Handle: "dev", EventID: "m1"})
			c.deed(2, 1, alpha, true)
		}, "the completion of m1 stands in the ledger"},
		"what is done since, asleep meanwhile": {func(c court) {
			c.claim(20, 2, beta)
			c.log(21, events.StreamWork, events.TurnCompleted{Handle: "dev", EventID: "m1"})
			c.Napped(alpha, c.at(22))
			c.deed(23, 1, alpha, true)
		}, ""},
		"what was done already, asleep once": {func(c court) {
			c.log(0.5, events.StreamWork, events.TurnCompleted{Handle: "dev", EventID: "m1"})
			c.Napped(alpha, c.at(2))
			c.deed(3, 1, alpha, true)
		}, "the completion of m1 stands in the ledger"},
		"what is done, the ledger away": {func(c court) {
			c.log(1, events.StreamWork, events.TurnCompleted{Handle: "dev", EventID: "m1"})
			c.Excuse(sim.Unread, "dev", "m1")
			c.deed(2, 1, alpha, true)
		}, ""},
		"an epoch that does not rise": {func(c court) { c.claim(5, 1, beta) }, "after epoch 1"},
		"a cursor that goes back": {func(c court) {
			c.cursor(2, 2, beta)
			c.cursor(3, 1, alpha)
		}, "went back from epoch 2 to 1"},
		"done twice": {func(c court) {
			c.log(1, events.StreamWork, events.TurnCompleted{Handle: "dev", EventID: "m1"})
			c.log(2, events.StreamWork, events.TurnCompleted{Handle: "dev", EventID: "m1"})
		}, "was recorded twice"},
		"parked for no reason": {func(c court) {
			c.log(1, events.StreamDead, events.MailParked{Handle: "dev", EventID: "m1"})
		}, "without a reason"},
		"lost": {func(c court) { c.Sent("dev", "m7", 7, c.at(0)) }, "gone from MAIL"},
		"told to be unwritten": {func(c court) {
			c.Sent("dev", "m7", 7, c.at(0))
			c.Excuse(sim.Unwritten, "dev", "m7")
		}, ""},
		"parked": {func(c court) {
			c.Sent("dev", "m7", 7, c.at(0))
			c.log(1, events.StreamDead, events.MailParked{Handle: "dev", EventID: "m7", Reason: "it cannot be read"})
		}, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			c := newCourt()
			story.tell(c)
			faults := c.Finish(func(uint64) bool { return false })
			switch {
			case story.want == "" && len(faults) > 0:
				t.Errorf("it found %q", faults)
			case story.want != "" && (len(faults) == 0 || !strings.Contains(faults[0], story.want)):
				t.Errorf("it found %q, want %q", faults, story.want)
			}
		})
	}
}
