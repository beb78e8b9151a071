package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// maxFaults bounds how many violations are kept: the first ones tell.
const maxFaults = 20

// Deed is what a turn was seen to do, or that it began.
type Deed struct {
	Seat  string
	Epoch uint64
	Owner events.Incarnation
	Mails []string // event ids of its triggers
	Seqs  []uint64 // of them in MAIL
	Start bool     // it began; else it had an effect
	Rerun bool     // it began, and the node's log says that an earlier attempt never ended
	At    time.Time
}

func (d Deed) String() string {
	what := "did something"
	if d.Start {
		what = "began"
	}
	return fmt.Sprintf("at %s a turn of %s on %s under epoch %d of %s %s", clockOf(d.At), strings.Join(d.Mails, ", "), d.Seat, d.Epoch, d.Owner, what)
}

// Judge is told what nodes did and what the broker's log says, each with the
// bubble's time, and says what should not have been:
//
//   - a turn begins on the record of its attempt and on no other proof, once for
//     each record, one at a time on a seat, and never on a mail whose completion
//     stands in the ledger;
//   - no turn begins or does anything after a later tenure was claimed, after its
//     own was given back, or once the time that its last renewal bought is over;
//   - epochs rise, on leases and on cursors;
//   - a turn that was begun before, and of which nobody knows how it ended, is
//     reported when it is run again;
//   - mail that was acknowledged ends in the ledger, or parked with a reason.
//
// Of a process that slept through a pause that no clock showed, only what the
// broker enforces is asked (design §4): what its turns do beyond is counted as
// duplicated.
type Judge struct {
	ttl time.Duration

	mu      sync.Mutex // guards all below
	seats   map[string][]*tenure
	cursors map[string]events.CursorSnapshot
	records map[attempt]*record
	starts  map[attempt]int
	begun   map[string]map[uint64]int // turns, by seat and mail
	running map[string]Deed
	done    map[letter]time.Time
	parked  map[letter]string
	excused map[string]bool
	naps    map[events.Incarnation][]time.Time // when it woke from an uncounted pause
	sent    []post
	deeds   []Deed // not judged yet
	faults  []string
	tally   Tally
}

// Tally is how much a Judge has seen.
type Tally struct {
	Mails, Turns, Deeds, Tenures int
	Edges                        int // events of FLEET but renewals
	Reruns                       int // turns that were reported as run again
	Duplicated                   int // deeds past the end of a tenure, after an uncounted pause
}

type tenure struct {
	epoch    uint64
	owner    events.Incarnation
	claimed  time.Time
	extended []time.Time
	released time.Time // zero: it was not
}

type attempt struct {
	seat  string
	seq   uint64
	epoch uint64
	owner events.Incarnation
}

// record is how often attempts were recorded, the last one when, and whether the
// first of them found one that had not ended.
type record struct {
	times int
	again bool
	last  time.Time
}

type letter struct{ seat, id string }

type post struct {
	letter
	seq uint64
	at  time.Time
}

// NewJudge returns a judge of a fleet with that lease TTL.
func NewJudge(ttl time.Duration) *Judge {
	return &Judge{
		ttl: ttl, seats: map[string][]*tenure{}, cursors: map[string]events.CursorSnapshot{},
		records: map[attempt]*record{}, starts: map[attempt]int{}, begun: map[string]map[uint64]int{}, running: map[string]Deed{},
		done: map[letter]time.Time{}, parked: map[letter]string{}, excused: map[string]bool{},
		naps: map[events.Incarnation][]time.Time{},
	}
}

func (j *Judge) fault(format string, args ...any) {
	if len(j.faults) < maxFaults {
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	}
}

// Did takes in a deed as it is done.
func (j *Judge) Did(d Deed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.Deeds++
	j.deeds = append(j.deeds, d)
	if !d.Start {
		return
	}
	j.tally.Turns++
	here := string(d.Owner) + " " + d.Seat
	if before, busy := j.running[here]; busy {
		j.fault("%v while that one had not ended: %v", d, before)
	}
	j.running[here] = d
}

// Ended takes in that the turn of that deed is over.
func (j *Judge) Ended(d Deed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.running, string(d.Owner)+" "+d.Seat)
}

// Napped takes in that a process woke from a pause that its clocks do not show.
func (j *Judge) Napped(owner events.Incarnation, woke time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.naps[owner] = append(j.naps[owner], woke)
}

// Sent takes in mail that was acknowledged to its sender.
func (j *Judge) Sent(seat, id string, seq uint64, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tally.Mails++
	j.sent = append(j.sent, post{letter{seat, id}, seq, at})
}

// Excuse takes in what a node reported of a mail: that its completion could not
// be written, or that the ledger could not be asked (K3).
func (j *Judge) Excuse(why, seat, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.excused[why+" "+seat+" "+id] = true
}

// Excuses of a mail.
const (
	Unwritten = "unwritten"
	Unread    = "unread"
)

// Look judges what was done since the last look; by now the judge has been told
// of everything in the log that stood before it.
func (j *Judge) Look() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, d := range j.deeds {
		if d.Start {
			j.began(d)
		}
		j.acted(d)
	}
	j.deeds = j.deeds[:0]
	return j.faults
}

// Tally says how much was seen.
func (j *Judge) Tally() Tally {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tally
}

// began judges that a turn began on what the cursor and the ledger say.
func (j *Judge) began(d Deed) {
	if d.Rerun {
		j.tally.Reruns++
	}
	if len(d.Seqs) != len(d.Mails) {
		j.fault("%v on %d mails, and %d attempts were recorded", d, len(d.Mails), len(d.Seqs))
		return
	}
	for i, id := range d.Mails {
		j.beganOn(d, letter{d.Seat, id}, d.Seqs[i])
	}
}

func (j *Judge) beganOn(d Deed, mail letter, seq uint64) {
	at := attempt{d.Seat, seq, d.Epoch, d.Owner}
	on, known := j.records[at]
	j.starts[at]++
	earlier := j.begun[at.seat][seq]
	if j.begun[at.seat] == nil {
		j.begun[at.seat] = map[uint64]int{}
	}
	j.begun[at.seat][seq]++
	switch {
	case !known:
		j.fault("%v, and the cursor has no attempt of that tenure on mail %d", d, seq)
	case j.starts[at] > on.times:
		j.fault("%v for the %d. time, on %d records of attempts on mail %d", d, j.starts[at], on.times, seq)
	case on.again && j.starts[at] == 1 && earlier > 0 && !d.Rerun:
		j.fault("%v, once more for mail %d, and the log does not say so", d, seq)
	}
	done, is := j.done[mail]
	switch {
	case !is || !done.Before(d.At) || j.excused[Unread+" "+mail.seat+" "+mail.id]:
	case known && on.last.Before(done) && j.slept(d.Owner, on.last, d.At): // admitted, then asleep, then told so
		j.tally.Duplicated++
	default:
		j.fault("%v, and the completion of %s stands in the ledger since %s", d, mail.id, clockOf(done))
	}
}

// acted judges a deed by the tenure that it was done under.
func (j *Judge) acted(d Deed) {
	var own *tenure
	var wrong string
	for _, t := range j.seats[d.Seat] {
		switch {
		case t.epoch == d.Epoch && t.owner == d.Owner:
			own = t
		case t.epoch > d.Epoch && t.claimed.Before(d.At) && wrong == "":
			wrong = fmt.Sprintf("epoch %d of %s was claimed at %s", t.epoch, t.owner, clockOf(t.claimed))
		}
	}
	switch {
	case own == nil:
		j.fault("%v, and there is no such tenure", d)
		return
	case !own.released.IsZero() && own.released.Before(d.At):
		j.fault("%v, and gave the seat back at %s", d, clockOf(own.released))
		return
	}
	if over := own.proven(d.At).Add(j.ttl); wrong == "" && !d.At.Before(over) {
		wrong = fmt.Sprintf("its bought time was over at %s", clockOf(over))
	}
	switch {
	case wrong == "":
	case j.slept(d.Owner, own.claimed, d.At):
		j.tally.Duplicated++
	default:
		j.fault("%v, and %s", d, wrong)
	}
}

// proven is when the newest proof of the tenure at that time landed.
func (t *tenure) proven(at time.Time) time.Time {
	last := t.claimed
	for _, e := range t.extended {
		if !e.After(at) {
			last = e
		}
	}
	return last
}

// slept says whether the process woke from an uncounted pause in that time.
func (j *Judge) slept(owner events.Incarnation, from, to time.Time) bool {
	for _, woke := range j.naps[owner] {
		if !woke.Before(from) && !woke.After(to) {
			return true
		}
	}
	return false
}

// Finish judges the mail, once all of it has had time to be worked on. kept says
// whether MAIL still has a message.
func (j *Judge) Finish(kept func(seq uint64) bool) []string {
	j.Look()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range j.sent {
		if !j.settled(m.letter) {
			where := "gone from MAIL"
			if kept(m.seq) {
				where = "still in MAIL"
			}
			j.fault("mail %s to %s, sent at %s as %d, is neither done nor parked: it is %s", m.id, m.seat, clockOf(m.at), m.seq, where)
		}
	}
	return j.faults
}

// Waiting says how much mail nobody is done with.
func (j *Judge) Waiting() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range j.sent {
		if !j.settled(m.letter) {
			n++
		}
	}
	return n
}

func (j *Judge) settled(l letter) bool {
	_, done := j.done[l]
	_, parked := j.parked[l]
	return done || parked || j.excused[Unwritten+" "+l.seat+" "+l.id]
}

// clockOf prints a moment of the bubble, which begins at midnight.
func clockOf(t time.Time) string { return t.UTC().Format("15:04:05.000") }
