package aggregates_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

var (
	life  = events.StreamIdentity{CreatedAt: "2026-03-01T08:00:00Z", MarkerSeq: 1, MarkerID: "m-1"}
	life2 = events.StreamIdentity{CreatedAt: "2026-03-01T08:00:00Z", MarkerSeq: 90, MarkerID: "m-2"}
)

// failer is what tables and properties have in common.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// mailbox is a cursor under test, with the sequence that its next event gets.
type mailbox struct {
	t     failer
	state aggregates.Cursor
	seq   uint64
}

func newMailbox(t failer) *mailbox {
	m := &mailbox{t: t}
	m.do(aggregates.CreateCursor{Mail: life})
	return m
}

// try decides cmd and applies what happens; it returns the refusal.
func (m *mailbox) try(cmd aggregates.CursorCommand) ([]events.Event, error) {
	m.t.Helper()
	before := m.state
	before.Open = slices.Clone(before.Open)
	decided, err := aggregates.DecideCursor("dev", events.Inbox, m.state, cmd)
	if !reflect.DeepEqual(m.state, before) {
		m.t.Fatalf("%+v changed the state it was decided on", cmd)
	}
	for _, e := range decided {
		m.seq += 10
		m.state = aggregates.EvolveCursor(m.state, m.seq, e.(events.CursorEvent))
	}
	return decided, err
}

func (m *mailbox) do(cmd aggregates.CursorCommand) events.Event {
	m.t.Helper()
	decided, err := m.try(cmd)
	if err != nil || len(decided) != 1 {
		m.t.Fatalf("%+v decided %v (%v), want one event", cmd, decided, err)
	}
	return decided[0]
}

func (m *mailbox) wants(read uint64, open ...events.OpenMail) {
	m.t.Helper()
	have := slices.Clone(m.state.Open)
	for i := range have {
		have[i].RanAt = 0 // TestCursorTellsOfItsAttempts looks at that
	}
	if m.state.Read != read || !slices.Equal(have, open) {
		m.t.Errorf("read %d, open %+v; want %d, %+v", m.state.Read, m.state.Open, read, open)
	}
}

func open(epoch uint64, owner events.Incarnation) aggregates.OpenCursor {
	return aggregates.OpenCursor{Epoch: epoch, Owner: owner}
}

func attempt(epoch uint64, owner events.Incarnation, seqs ...uint64) aggregates.AttemptMail {
	return aggregates.AttemptMail{Epoch: epoch, Owner: owner, Mail: life2, Seqs: seqs}
}

func ack(epoch uint64, owner events.Incarnation, seqs ...uint64) aggregates.SettleMail {
	return aggregates.SettleMail{Epoch: epoch, Owner: owner, Mail: life2, Ack: seqs}
}

func nak(epoch uint64, owner events.Incarnation, seqs ...uint64) aggregates.SettleMail {
	return aggregates.SettleMail{Epoch: epoch, Owner: owner, Mail: life2, Nak: seqs}
}

// TestCursorLife proves the course of a mailbox: created with all its mail to
// come, taken over, attempts counted from when a turn starts (D3), naks kept to
// come again, acks gone for good, and the watermark behind the first open mail.
func TestCursorLife(t *testing.T) {
	m := newMailbox(t)
	if m.state.Mail != life || m.state.Epoch != 0 || !m.state.Exists {
		t.Fatalf("created as %+v", m.state)
	}
	if e, ok := m.do(open(1, alpha)).(events.CursorOpened); !ok || e.Mail != life {
		t.Errorf("opened by %+v, want MAIL as the cursor knew it: nothing was read yet", e)
	}
	if e, ok := m.do(attempt(1, alpha, 5)).(events.CursorAttempted); !ok || e.Mail != life2 {
		t.Errorf("attempted by %+v, want MAIL as it was read", e)
	}
	m.wants(5, events.OpenMail{Seq: 5, Attempts: 1, Running: true})
	m.do(nak(1, alpha, 5))
	m.wants(5, events.OpenMail{Seq: 5, Attempts: 1})
	m.do(attempt(1, alpha, 8, 5)) // the nak comes again, with newer mail
	m.wants(8, events.OpenMail{Seq: 5, Attempts: 2, Running: true}, events.OpenMail{Seq: 8, Attempts: 1, Running: true})
	m.do(ack(1, alpha, 8))
	m.wants(8, events.OpenMail{Seq: 5, Attempts: 2, Running: true})
	if got := m.state.Watermark(); got != 4 {
		t.Errorf("watermark %d, want 4: mail 5 is open", got)
	}
	m.do(ack(1, alpha, 5, 9)) // 9 is settled at first sight, without a turn
	m.wants(9)
	if got := m.state.Watermark(); got != 9 {
		t.Errorf("watermark %d, want 9: all that was seen is settled", got)
	}
}

// TestCursorRefusals proves what may not happen to a cursor, and that nothing
// happens twice.
func TestCursorRefusals(t *testing.T) {
	m := newMailbox(t)
	m.do(open(2, alpha))
	m.do(attempt(2, alpha, 5, 6))
	m.do(ack(2, alpha, 5))
	fencedBy2 := aggregates.FencedError{Handle: "dev", By: 2, Owner: alpha}
	for name, c := range map[string]struct {
		cmd    aggregates.CursorCommand
		fenced uint64 // the refused epoch; 0: no refusal, nothing happens
	}{
		"create again":                   {aggregates.CreateCursor{Mail: life2}, 0},
		"open with an older epoch":       {open(1, beta), 1},
		"open with another's epoch":      {open(2, beta), 2},
		"attempt with an older epoch":    {attempt(1, beta, 6), 1},
		"attempt with an epoch to come":  {attempt(3, beta, 6), 3},
		"attempt with another's epoch":   {attempt(2, beta, 6), 2},
		"settle with an older epoch":     {ack(1, beta, 6), 1},
		"settle with an epoch to come":   {ack(3, beta, 6), 3},
		"settle with another's epoch":    {nak(2, beta, 6), 2},
		"ack what is settled":            {ack(2, alpha, 5), 0},
		"nak what is settled":            {nak(2, alpha, 5), 0},
		"nak what was never seen":        {nak(2, alpha, 9), 0},
		"settle nothing":                 {ack(2, alpha), 0},
		"ack what is below and was none": {ack(2, alpha, 3), 0},
	} {
		decided, err := m.try(c.cmd)
		var f *aggregates.FencedError
		want := fencedBy2
		want.Epoch = c.fenced
		switch {
		case len(decided) > 0:
			t.Errorf("%s: decided %+v", name, decided)
		case c.fenced == 0 && err != nil:
			t.Errorf("%s: refused with %v, want nothing to happen", name, err)
		case c.fenced != 0 && (!errors.As(err, &f) || *f != want):
			t.Errorf("%s: got %v, want %v", name, err, &want)
		}
	}
	if decided, err := m.try(attempt(2, alpha, 5)); err == nil || decided != nil {
		t.Errorf("an attempt on settled mail decided %v", decided)
	}
	m.wants(6, events.OpenMail{Seq: 6, Attempts: 1, Running: true})
}

// TestNakRepeated proves that a nak whose answer was lost can be repeated.
func TestNakRepeated(t *testing.T) {
	m := newMailbox(t)
	m.do(open(1, alpha))
	m.do(attempt(1, alpha, 5))
	m.do(nak(1, alpha, 5))
	if decided, err := m.try(nak(1, alpha, 5)); decided != nil || err != nil {
		t.Errorf("decided %v (%v), want nothing to happen", decided, err)
	}
}

// TestAbsentCursorIsAnAlarm proves that mail is never read without a cursor:
// what was settled is not known (design §2, Schedule10).
func TestAbsentCursorIsAnAlarm(t *testing.T) {
	for _, cmd := range []aggregates.CursorCommand{open(1, alpha), attempt(1, alpha, 1), ack(1, alpha, 1)} {
		_, err := aggregates.DecideCursor("dev", events.Control, aggregates.Cursor{}, cmd)
		var lost *aggregates.NoCursorError
		if !errors.As(err, &lost) || *lost != (aggregates.NoCursorError{Handle: "dev", Mailbox: events.Control}) {
			t.Errorf("%T: got %v, want a NoCursorError", cmd, err)
		}
	}
}

// TestSchedule6SlowAcquirer proves that epoch 7, which comes to its cursors
// after epoch 8 did, gets nothing, and that epoch 8 goes on undisturbed.
func TestSchedule6SlowAcquirer(t *testing.T) {
	m := newMailbox(t)
	m.do(open(8, beta))
	m.do(attempt(8, beta, 5))
	for _, cmd := range []aggregates.CursorCommand{open(7, alpha), attempt(7, alpha, 6), ack(7, alpha, 5)} {
		var f *aggregates.FencedError
		if decided, err := m.try(cmd); !errors.As(err, &f) || f.By != 8 || decided != nil {
			t.Errorf("%T of epoch 7: %v (%v), want fenced by epoch 8", cmd, decided, err)
		}
	}
	m.do(ack(8, beta, 5))
	m.do(attempt(8, beta, 6))
	m.wants(6, events.OpenMail{Seq: 6, Attempts: 1, Running: true})
}

// TestSchedule5ZombieStartsNothing proves that a holder which slept through a
// takeover may start nothing and settle nothing, and that what it left running
// is known to the successor as an attempt that never ended.
func TestSchedule5ZombieStartsNothing(t *testing.T) {
	m := newMailbox(t)
	m.do(open(7, alpha))
	m.do(attempt(7, alpha, 5))
	m.do(open(8, beta))
	m.wants(5, events.OpenMail{Seq: 5, Attempts: 1, Running: true})
	for _, cmd := range []aggregates.CursorCommand{attempt(7, alpha, 6), ack(7, alpha, 5), nak(7, alpha, 5)} {
		if decided, err := m.try(cmd); err == nil || decided != nil {
			t.Errorf("%T by the zombie: %v (%v), want refused", cmd, decided, err)
		}
	}
	m.do(attempt(8, beta, 5))
	m.wants(5, events.OpenMail{Seq: 5, Attempts: 2, Running: true})
}

// TestSchedule13RepeatedAttemptAfterTakeover proves that an attempt record that
// was stored, its answer lost, and that is decided again after the successor's
// takeover is refused: the record of old stands and admits nothing.
func TestSchedule13RepeatedAttemptAfterTakeover(t *testing.T) {
	m := newMailbox(t)
	m.do(open(7, alpha))
	record := attempt(7, alpha, 5)
	m.do(record)
	m.do(open(8, beta))
	var f *aggregates.FencedError
	if decided, err := m.try(record); !errors.As(err, &f) || decided != nil {
		t.Errorf("the repeat decided %v (%v), want fenced", decided, err)
	}
}

// TestCase6HandoffsCostNoAttempts proves D3: 30 takeovers of a mailbox with 40
// messages, none of which starts a turn, leave every message's budget whole;
// and a takeover in the middle of a turn costs that message one attempt.
func TestCase6HandoffsCostNoAttempts(t *testing.T) {
	m := newMailbox(t)
	for epoch := uint64(1); epoch <= 30; epoch++ {
		m.do(open(epoch, alpha))
		if epoch == 1 {
			m.do(attempt(1, alpha, 1))
		}
	}
	m.wants(1, events.OpenMail{Seq: 1, Attempts: 1, Running: true})
	m.do(attempt(30, alpha, 1, 1)) // named twice, one turn
	m.wants(1, events.OpenMail{Seq: 1, Attempts: 2, Running: true})
}

// TestOpenMailIsBounded proves that a mailbox keeps at most MaxOpenMail
// messages open, says so, and still lets those be tried and settled.
func TestOpenMailIsBounded(t *testing.T) {
	m := newMailbox(t)
	m.do(open(1, alpha))
	seqs := make([]uint64, aggregates.MaxOpenMail)
	for i := range seqs {
		seqs[i] = uint64(i + 1)
	}
	m.do(attempt(1, alpha, seqs...))
	for name, more := range map[string][]uint64{"one more": {2000}, "one more beside an open one": {1, 2000}} {
		decided, err := m.try(attempt(1, alpha, more...))
		var full *aggregates.FullError
		if !errors.As(err, &full) || full.Open != aggregates.MaxOpenMail || decided != nil {
			t.Errorf("%s: %v (%v), want full at %d", name, decided, err, aggregates.MaxOpenMail)
		}
	}
	m.do(attempt(1, alpha, 7))
	m.do(ack(1, alpha, 7))
	m.do(attempt(1, alpha, 2000))
	if got := m.state.Watermark(); got != 0 {
		t.Errorf("watermark %d, want 0: message 1 is open", got)
	}
}

// TestCursorCarriesUnknownFields proves L9 for the one aggregate whose events
// carry its whole state: a newer build's fields survive an older build's turn.
func TestCursorCarriesUnknownFields(t *testing.T) {
	m := newMailbox(t)
	m.do(open(1, alpha))
	newer := events.CursorAttempted{CursorBody: events.CursorBody{
		Handle: "dev", Mailbox: events.Inbox, CursorSnapshot: m.state.CursorSnapshot,
		Kept: events.Kept{Unknown: events.Fields{"holds": []byte(`[3]`)}},
	}}
	m.state = aggregates.EvolveCursor(m.state, 99, newer)
	for _, cmd := range []aggregates.CursorCommand{open(2, beta), attempt(2, beta, 5), ack(2, beta, 5)} {
		if got := events.UnknownOf(m.do(cmd)); string(got["holds"]) != "[3]" {
			t.Errorf("after %T the newer build's field is %v", cmd, got)
		}
	}
}
