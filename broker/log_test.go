package broker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/events"
)

// node is one process's view of the in-memory broker.
type node struct {
	*broker.Memory
	log *broker.Log
}

// bubble runs fn with the connections of two nodes to one in-memory broker.
func bubble(t *testing.T, fn func(t *testing.T, a, b node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := broker.NewMemory(broker.Config{Prefix: "crewlet", LeaseTTL: 45 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		peer := m.Peer()
		fn(t, node{m, broker.NewLog(m)}, node{peer, broker.NewLog(peer)})
		m.Faults.Settle()
		peer.Faults.Settle()
	})
}

func (n node) fleet() broker.Stream { return n.Stream(events.StreamFleet) }

// history lists who wrote what under a filter, by data.
func (n node) history(t *testing.T, st events.Stream, filter string) (data []string) {
	t.Helper()
	for from := uint64(1); ; {
		m, err := n.Stream(st).Next(t.Context(), filter, from)
		if errors.Is(err, events.ErrNotFound) {
			return data
		}
		if err != nil {
			t.Fatal(err)
		}
		data, from = append(data, string(m.Data)), m.Seq+1
	}
}

func wantHistory(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the log holds %v, want %v", got, want)
	}
}

var (
	ada      = events.SeatLease("ada")
	bob      = events.SeatLease("bob")
	grammar  = func() events.Subjects { s, _ := events.NewSubjects("crewlet"); return s }()
	anything = "crewlet.>"
)

func claim(who string, last uint64) events.Write {
	return write(grammar.Tenure(ada), who, grammar.FamilyCheck(ada, last))
}

// Schedule 2: a claim of unknown outcome lands seconds later. Settling by
// writing leaves exactly one tenure, whichever of the sends it is.
func TestSchedule2WriteLandsLate(t *testing.T) {
	t.Run("behind its own repeat", func(t *testing.T) {
		bubble(t, func(t *testing.T, a, _ node) {
			a.Faults.LandLate(events.StreamFleet, anything, 1, 5*time.Second)
			r, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0))
			if err != nil || r.Seq != 1 || r.FirstHand {
				t.Errorf("got %+v, %v, want sequence 1, not first-hand", r, err)
			}
			a.Faults.Settle()
			wantHistory(t, a.history(t, events.StreamFleet, grammar.Family(ada)), "a")
		})
	})
	t.Run("before its own repeat", func(t *testing.T) {
		bubble(t, func(t *testing.T, a, _ node) {
			a.Faults.LandLate(events.StreamFleet, anything, 1, time.Millisecond)
			r, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0))
			if err != nil || r.Seq != 1 || r.FirstHand {
				t.Errorf("got %+v, %v, want its own claim recognised", r, err)
			}
			wantHistory(t, a.history(t, events.StreamFleet, grammar.Family(ada)), "a")
		})
	})
	t.Run("behind another's claim", func(t *testing.T) {
		bubble(t, func(t *testing.T, a, b node) {
			a.Faults.LandLate(events.StreamFleet, anything, 1, 5*time.Second)
			go func() {
				pass(time.Millisecond) // between a's send and its repeat
				if _, err := b.log.Append(t.Context(), events.StreamFleet, claim("b", 0)); err != nil {
					t.Error(err)
				}
			}()
			_, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0))
			wantConflict(t, err, 1)
			a.Faults.Settle()
			wantHistory(t, a.history(t, events.StreamFleet, grammar.Family(ada)), "b")
		})
	})
}

// Field case 3: the claim stands and its answer is lost. The writer recognises
// its own command id, nothing is claimed twice, and what was proven this way is
// not first-hand.
func TestCase3ClaimAnswerLost(t *testing.T) {
	bubble(t, func(t *testing.T, a, b node) {
		a.Faults.DropAnswer(events.StreamFleet, anything, 3)
		r, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0))
		if err != nil || r.Seq != 1 || r.FirstHand {
			t.Errorf("got %+v, %v, want its own claim recognised", r, err)
		}
		_, err = b.log.Append(t.Context(), events.StreamFleet, claim("b", 0))
		wantConflict(t, err, 1)
		// Its next write is an ordinary one again.
		r, err = a.log.Append(t.Context(), events.StreamFleet, claim("a again", 1))
		if err != nil || r.Seq != 2 || !r.FirstHand {
			t.Errorf("got %+v, %v, want a first-hand receipt", r, err)
		}
		wantHistory(t, a.history(t, events.StreamFleet, grammar.Family(ada)), "a", "a again")
	})
}

// Field case 3, released and claimed on meanwhile: the first message after the
// expected position tells whose claim it was, not the newest one.
func TestCase3ClaimOvertakenBeforeItWasFound(t *testing.T) {
	bubble(t, func(t *testing.T, a, b node) {
		a.Faults.DropAnswer(events.StreamFleet, anything, 1)
		go func() {
			pass(time.Millisecond)
			if _, err := b.log.Append(t.Context(), events.StreamFleet, claim("b", 1)); err != nil {
				t.Error(err)
			}
		}()
		r, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0))
		if err != nil || r.Seq != 1 || r.FirstHand {
			t.Errorf("got %+v, %v, want its own claim at 1", r, err)
		}
	})
}

// Schedule 13: a zombie's attempt record is stored, its answer is lost, and it
// repeats after the successor's takeover: it is told that it lost.
func TestSchedule13AttemptRepeatedAfterTakeover(t *testing.T) {
	bubble(t, func(t *testing.T, a, b node) {
		subject := grammar.Cursor("ada", events.Inbox)
		record := func(who string, last uint64) events.Write { return write(subject, who, at(subject, last)) }
		created, err := a.log.Append(t.Context(), events.StreamCursor, record("created", 0))
		if err != nil {
			t.Fatal(err)
		}
		a.Faults.DropAnswer(events.StreamCursor, anything, 1)
		go func() {
			pass(time.Millisecond)
			m, err := b.Stream(events.StreamCursor).Last(t.Context(), subject)
			if err == nil {
				_, err = b.log.Append(t.Context(), events.StreamCursor, record("opened by b", m.Seq))
			}
			if err != nil {
				t.Error(err)
			}
		}()
		r, err := a.log.Append(t.Context(), events.StreamCursor, record("attempt by a", created.Seq))
		wantErr(t, "the zombie's attempt", err, events.ErrConflict)
		if r.FirstHand {
			t.Error("the zombie holds a first-hand receipt")
		}
		wantHistory(t, a.history(t, events.StreamCursor, subject), "opened by b")
	})
}

// A batch of unknown outcome stands whole or not at all; the receipt names its
// last member's sequence also when only the first was recognised.
func TestBatchAnswerLost(t *testing.T) {
	bubble(t, func(t *testing.T, a, _ node) {
		var ws []events.Write
		for _, m := range events.Mailboxes {
			subject := grammar.Cursor("ada", m)
			ws = append(ws, write(subject, string(m), at(subject, 0)))
		}
		a.Faults.DropAnswer(events.StreamCursor, anything, 1)
		r, err := a.log.AppendBatch(t.Context(), events.StreamCursor, ws)
		if err != nil || r.Seq != 3 || r.FirstHand {
			t.Errorf("got %+v, %v, want the batch recognised up to 3", r, err)
		}
		wantHistory(t, a.history(t, events.StreamCursor, under("cursor")), "inbox", "control", "reflect")
	})
}

// A batch lost on its way, of which one member's check no longer holds: settled
// as a conflict, although another member has no message at all.
func TestBatchLostAndOneMemberMovedOn(t *testing.T) {
	bubble(t, func(t *testing.T, a, b node) {
		inbox, control := grammar.Cursor("ada", events.Inbox), grammar.Cursor("ada", events.Control)
		a.Faults.DropWrite(events.StreamCursor, anything, 1)
		go func() {
			pass(time.Millisecond)
			if _, err := b.log.Append(t.Context(), events.StreamCursor, write(control, "b", at(control, 0))); err != nil {
				t.Error(err)
			}
		}()
		_, err := a.log.AppendBatch(t.Context(), events.StreamCursor, []events.Write{write(inbox, "a", at(inbox, 0)), write(control, "a", at(control, 0))})
		wantErr(t, "the batch", err, events.ErrConflict)
		wantHistory(t, a.history(t, events.StreamCursor, under("cursor")), "b")
	})
}

// A host event rests on the tenure, not on its own subject, so a repeat could
// store it twice: a stored one is found before it is repeated, a lost one is
// repeated, and one whose tenure has ended is refused.
func TestHostEventAnswerLost(t *testing.T) {
	bubble(t, func(t *testing.T, a, b node) {
		if _, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0)); err != nil {
			t.Fatal(err)
		}
		established := func(what string) events.Write {
			return write(grammar.Host("ada"), what, grammar.TenureCheck(ada, 1))
		}
		a.Faults.DropAnswer(events.StreamFleet, anything, 1)
		if r, err := a.log.Append(t.Context(), events.StreamFleet, established("stored")); err != nil || r.Seq != 2 || r.FirstHand {
			t.Errorf("stored: %+v, %v", r, err)
		}
		a.Faults.DropWrite(events.StreamFleet, anything, 2)
		if r, err := a.log.Append(t.Context(), events.StreamFleet, established("lost twice")); err != nil || r.Seq != 3 || r.FirstHand {
			t.Errorf("lost: %+v, %v", r, err)
		}
		a.Faults.DropWrite(events.StreamFleet, anything, 1)
		go func() {
			pass(time.Millisecond)
			if _, err := b.log.Append(t.Context(), events.StreamFleet, claim("b", 1)); err != nil {
				t.Error(err)
			}
		}()
		_, err := a.log.Append(t.Context(), events.StreamFleet, established("too late"))
		wantErr(t, "after the tenure", err, events.ErrConflict)
		wantHistory(t, a.history(t, events.StreamFleet, grammar.Host("ada")), "stored", "lost twice")
	})
}

// Completions are write-once: an unknown one is recognised, and a batch that
// was lost is refused when one of its ids is recorded already (schedule 12).
func TestSchedule12CompletionAnswerLost(t *testing.T) {
	bubble(t, func(t *testing.T, a, b node) {
		done := func(who, id string) events.Write { return write(grammar.Work("ada", id), who+" "+id, nil) }
		a.Faults.DropAnswer(events.StreamWork, anything, 1)
		r, err := a.log.AppendBatch(t.Context(), events.StreamWork, []events.Write{done("a", "1"), done("a", "2")})
		if err != nil || r.Seq != 2 || r.FirstHand {
			t.Errorf("stored: %+v, %v", r, err)
		}
		a.Faults.DropWrite(events.StreamWork, anything, 1)
		_, err = a.log.AppendBatch(t.Context(), events.StreamWork, []events.Write{done("a", "3"), done("a", "2")})
		wantErr(t, "a batch over a recorded id", err, events.ErrExists)
		a.Faults.DropAnswer(events.StreamWork, anything, 1)
		if r, err := a.log.Append(t.Context(), events.StreamWork, done("a", "3")); err != nil || r.Seq != 3 {
			t.Errorf("single: %+v, %v", r, err)
		}
		_, err = b.log.Append(t.Context(), events.StreamWork, done("b", "3"))
		wantErr(t, "another's", err, events.ErrExists)
	})
}

// What nothing could recognise is sent once; mail is known by its message id.
func TestUnconditionalWrites(t *testing.T) {
	bubble(t, func(t *testing.T, a, _ node) {
		plain := write(grammar.Mail("ada", events.Inbox), "plain", nil)
		a.Faults.DropWrite(events.StreamMail, anything, 1)
		_, err := a.log.Append(t.Context(), events.StreamMail, plain)
		wantErr(t, "without an id", err, events.ErrUnknown)
		mail := write(grammar.Mail("ada", events.Inbox), "mail", nil)
		mail.Header.Set("Nats-Msg-Id", "ada.inbox.e1.1")
		a.Faults.DropAnswer(events.StreamMail, anything, 2)
		if r, err := a.log.Append(t.Context(), events.StreamMail, mail); err != nil || r.Seq != 1 || r.FirstHand {
			t.Errorf("with an id: %+v, %v", r, err)
		}
		wantHistory(t, a.history(t, events.StreamMail, under("agent")), "mail")
	})
}

// Without a broker a write ends within its limit, and says that nothing was
// sent; one that comes back in time is written. A context that ends while the
// write is on its way leaves it unknown.
func TestBrokerAway(t *testing.T) {
	bubble(t, func(t *testing.T, a, _ node) {
		a.Faults.CutOff(true)
		start := time.Now()
		_, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0))
		wantErr(t, "cut off", err, events.ErrUnavailable)
		if errors.Is(err, events.ErrUnknown) || time.Since(start) > 25*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		go func() {
			pass(7 * time.Second) // a leader's fail-over
			a.Faults.CutOff(false)
		}()
		if r, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0)); err != nil || !r.FirstHand {
			t.Errorf("healed: %+v, %v", r, err)
		}
		a.Faults.Delay(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err = a.log.Append(ctx, events.StreamFleet, claim("a", 1))
		wantErr(t, "on its way", err, events.ErrUnknown)
	})
}

// A refusal that only repeats meet is no proof that the first send was refused.
func TestRefusedRepeatStaysUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, a, _ node) {
		a.Faults.DropAnswer(events.StreamFleet, anything, 1)
		a.Faults.Refuse(events.StreamFleet, anything, 1, &broker.RefusedError{Code: 10073, Why: "stream sealed"})
		_, err := a.log.Append(t.Context(), events.StreamFleet, claim("a", 0))
		wantErr(t, "sealed meanwhile", err, events.ErrUnknown)
	})
}

func renewals(data string, from uint64) []events.Write {
	return []events.Write{
		write(grammar.Renewal(ada), data, grammar.FamilyCheck(ada, from)),
		write(grammar.Renewal(bob), data, grammar.FamilyCheck(bob, from+1)),
	}
}

// Renewals of unknown outcome are settled per member: stored by the lost send,
// taken over meanwhile, or never there.
func TestRenewalsAnswerLost(t *testing.T) {
	bubble(t, func(t *testing.T, a, b node) {
		for _, l := range []events.Lease{ada, bob} {
			if _, err := a.log.Append(t.Context(), events.StreamFleet, write(grammar.Tenure(l), "a", grammar.FamilyCheck(l, 0))); err != nil {
				t.Fatal(err)
			}
		}
		a.Faults.DropAnswer(events.StreamFleet, anything, 1)
		for i, r := range a.log.AppendEach(t.Context(), events.StreamFleet, renewals("stored", 1)) {
			if r.Err != nil || r.Seq != uint64(3+i) {
				t.Errorf("stored %d: %+v", i, r)
			}
		}
		a.Faults.DropWrite(events.StreamFleet, anything, 1)
		go func() {
			pass(time.Millisecond)
			w := write(grammar.Tenure(bob), "b", grammar.FamilyCheck(bob, 4))
			if _, err := b.log.Append(t.Context(), events.StreamFleet, w); err != nil {
				t.Error(err)
			}
		}()
		results := a.log.AppendEach(t.Context(), events.StreamFleet, renewals("lost", 3))
		if results[0].Err != nil || results[0].Seq != 6 {
			t.Errorf("ada: %+v", results[0])
		}
		wantConflict(t, results[1].Err, 5)
		a.Faults.CutOff(true)
		for i, r := range a.log.AppendEach(t.Context(), events.StreamFleet, renewals("away", 6)) {
			wantErr(t, fmt.Sprint("away ", i), r.Err, events.ErrUnavailable)
		}
		a.Faults.CutOff(false)
		a.Faults.DropWrite(events.StreamFleet, anything, 1000)
		for i, r := range a.log.AppendEach(t.Context(), events.StreamFleet, renewals("silence", 6)) {
			wantErr(t, fmt.Sprint("silence ", i), r.Err, events.ErrUnknown)
		}
	})
}

// Where the broker has no room for batches, renewals go one by one.
func TestRenewalsFallBackToSingles(t *testing.T) {
	bubble(t, func(t *testing.T, a, _ node) {
		for _, l := range []events.Lease{ada, bob} {
			if _, err := a.log.Append(t.Context(), events.StreamFleet, write(grammar.Tenure(l), "a", grammar.FamilyCheck(l, 0))); err != nil {
				t.Fatal(err)
			}
		}
		a.Faults.Refuse(events.StreamFleet, anything, 4, fmt.Errorf("%w: too many batches", events.ErrBusy))
		for i, r := range a.log.AppendEach(t.Context(), events.StreamFleet, renewals("single", 1)) {
			if r.Err != nil || r.Seq != uint64(3+i) {
				t.Errorf("renewal %d: %+v", i, r)
			}
		}
	})
}

func under(token string) string { return "crewlet." + token + ".>" }
