package commands_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/commands"
	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/seat/seattest"
)

// park sets one mail aside and returns its record.
func park(t *testing.T, a *process, held commands.Tenure, p events.MailParked) events.Recorded {
	t.Helper()
	p.Handle, p.Mailbox, p.Epoch, p.Owner, p.Reason = "dev", events.Inbox, held.Epoch, held.Owner, "r"
	if err := a.Park(t.Context(), held, p); err != nil {
		t.Fatal(err)
	}
	all := a.fleet.History(events.StreamDead)
	return all[len(all)-1]
}

func mailOf(f *seattest.Fleet, t *testing.T) []events.Message {
	t.Helper()
	var all []events.Message
	for from := uint64(1); ; from = all[len(all)-1].Seq + 1 {
		msg, err := f.Conn.Stream(events.StreamMail).Next(t.Context(), f.Subjects.Mail("dev", events.Inbox), from)
		if errors.Is(err, events.ErrNotFound) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, msg)
	}
}

// told lists what the log says of parked mail, and by whom.
func told(f *seattest.Fleet) []string {
	var all []string
	for _, r := range f.History(events.StreamFleet) {
		if e, is := r.Event.(events.ParkedEvent); is {
			all = append(all, events.Name(e)+" by "+e.Parked().By+": "+e.Parked().Reason+", envelope "+r.Meta.Actor)
		}
	}
	return all
}

// TestReplaySendsOnce proves that parked mail is sent again as its sender sent
// it, without what steered the broker the first time, once however often and
// however late it is asked for, and that the log says who asked and why.
func TestReplaySendsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		dead := park(t, a, a.claim("dev"), events.MailParked{EventID: "e1", MailSeq: 5, Data: []byte(`{"n":1}`), Header: events.Header{
			events.HeaderID: {"e1"}, events.HeaderType: {events.TaskAssigned}, "conversation": {"c"}, "x-mine": {"1", "2"},
			"Nats-Msg-Id": {"old"}, "nats-ttl": {"1s"},
		}})
		first, err := a.Replay(t.Context(), dead, "provider is back", "ann")
		if err != nil {
			t.Fatal(err)
		}
		for _, later := range []time.Duration{0, time.Second, 3 * time.Minute} {
			f.Advance(later)
			if again, err := b.Replay(t.Context(), dead, "once more", "bob"); err != nil || again < first {
				t.Errorf("replayed again after %v at %d: %v", later, again, err)
			}
		}
		got := mailOf(f, t)
		if len(got) != 1 || string(got[0].Data) != `{"n":1}` || got[0].Header.Get(events.HeaderID) != "e1" || got[0].Header.Get("conversation") != "c" ||
			!slices.Equal(got[0].Header["x-mine"], []string{"1", "2"}) || got[0].Header.Get(events.HeaderReplayOf) != fmt.Sprint(dead.Seq) ||
			got[0].Header.Get("nats-ttl") != "" || !strings.HasPrefix(got[0].Header.Get(events.HeaderMsgID), "dev.inbox.e1.replay-") {
			t.Errorf("MAIL has %+v", got)
		}
		want := []string{"mail-replayed by ann: provider is back, envelope ann", "mail-returned by ann: provider is back, envelope ann"}
		if got := told(f); !slices.Equal(got, want) {
			t.Errorf("the log says %q, want %q", got, want)
		}
		var decided *aggregates.DecidedError
		if _, err := a.Drop(t.Context(), dead, "r", "ann"); !errors.As(err, &decided) {
			t.Errorf("dropped what was replayed: %v", err)
		}
	})
}

// TestReplayOutlivesItsCaller proves that a replay whose caller dies before, at
// or after the sending is finished by whoever asks again, and stores the mail
// once while the broker remembers it.
func TestReplayOutlivesItsCaller(t *testing.T) {
	for name, appends := range map[string]int{"before the sending": 1, "before it is noted": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := seattest.New(t, ttl)
				a, b := boot(t, f, "a"), boot(t, f, "b")
				dead := park(t, a, a.claim("dev"), events.MailParked{EventID: "e1", MailSeq: 5, Header: events.Header{events.HeaderID: {"e1"}}})
				dies := commands.New(&mortal{seattest.NewLog(f.Conn), appends}, f.Subjects, f.Boot("c"))
				if _, err := dies.Replay(t.Context(), dead, "r", "ann"); !errors.Is(err, errDied) {
					t.Fatal(err)
				}
				if _, err := b.Replay(t.Context(), dead, "again", "bob"); err != nil {
					t.Fatal(err)
				}
				if got := mailOf(f, t); len(got) != 1 {
					t.Errorf("MAIL has %d messages", len(got))
				}
				if got := told(f); len(got) != 2 || !strings.HasPrefix(got[1], "mail-returned") {
					t.Errorf("the log says %q", got)
				}
			})
		})
	}
}

var errDied = errors.New("the process dies here")

// mortal is a log whose process dies after that many appends.
type mortal struct {
	commands.Log
	left int
}

func (m *mortal) Append(ctx context.Context, st events.Stream, w events.Write) (events.Receipt, error) {
	if m.left--; m.left < 0 {
		return events.Receipt{}, errDied
	}
	return m.Log.Append(ctx, st, w)
}

// TestReplayAndDropExcludeEachOther proves that of operators who ask at the same
// time for both, one wins, and that mail which was dropped is never sent.
func TestReplayAndDropExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := seattest.New(t, ttl)
		a, b := boot(t, f, "a"), boot(t, f, "b")
		a.conn.Faults.Delay(time.Millisecond)
		b.conn.Faults.Delay(time.Millisecond)
		held := a.claim("dev")
		for n := range 20 {
			dead := park(t, a, held, events.MailParked{EventID: "e", MailSeq: uint64(n + 1), Header: events.Header{events.HeaderID: {"e"}}})
			before := len(mailOf(f, t))
			var all sync.WaitGroup
			var errs [2]error
			all.Go(func() { _, errs[0] = a.Replay(t.Context(), dead, "r", "ann") })
			all.Go(func() { _, errs[1] = b.Drop(t.Context(), dead, "r", "bob") })
			all.Wait()
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Fatalf("replay: %v, drop: %v", errs[0], errs[1])
			}
			if sent := len(mailOf(f, t)) > before; sent != (errs[0] == nil) {
				t.Errorf("sent %t after replay: %v, drop: %v", sent, errs[0], errs[1])
			}
			if errs[1] == nil {
				if _, err := a.Drop(t.Context(), dead, "again", "ann"); err != nil {
					t.Errorf("dropped again: %v", err)
				}
			}
		}
	})
}
