package aggregates_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

func hold(epoch uint64, owner events.Incarnation, run string, seqs ...uint64) aggregates.HoldMail {
	return aggregates.HoldMail{Epoch: epoch, Owner: owner, Mail: life2, Run: run, Seqs: seqs}
}

// TestHoldKeepsMailWithoutAnAttempt proves the fourth outcome (D1): held mail
// stays open and costs no attempt, the watermark stays behind it, the run's end
// frees what it held and nothing else, and an attempt ends a hold by itself.
func TestHoldKeepsMailWithoutAnAttempt(t *testing.T) {
	m := newMailbox(t)
	m.do(open(1, alpha))
	m.do(hold(1, alpha, "r1", 5))
	m.do(hold(1, alpha, "r2", 7))
	m.do(ack(1, alpha, 8)) // reading goes on
	m.wants(8, events.OpenMail{Seq: 5, Run: "r1"}, events.OpenMail{Seq: 7, Run: "r2"})
	if got := m.state.Watermark(); got != 4 {
		t.Errorf("watermark %d, want 4: held mail must not be purged", got)
	}
	if decided, err := m.try(hold(1, alpha, "r1", 5)); decided != nil || err != nil {
		t.Errorf("held again: %v (%v), want nothing to happen", decided, err)
	}
	m.do(aggregates.FreeMail{Epoch: 1, Owner: alpha, Run: "r1"})
	m.wants(8, events.OpenMail{Seq: 5}, events.OpenMail{Seq: 7, Run: "r2"})
	if decided, err := m.try(aggregates.FreeMail{Epoch: 1, Owner: alpha, Run: "r1"}); decided != nil || err != nil {
		t.Errorf("freed again: %v (%v), want nothing to happen", decided, err)
	}
	m.do(attempt(1, alpha, 7))
	m.wants(8, events.OpenMail{Seq: 5}, events.OpenMail{Seq: 7, Attempts: 1, Running: true})
	if decided, err := m.try(hold(1, alpha, "r2", 7)); decided != nil || err != nil {
		t.Errorf("a hold on mail that runs: %v (%v), want nothing to happen", decided, err)
	}
	for _, cmd := range []aggregates.CursorCommand{hold(2, alpha, "r", 9), hold(1, beta, "r", 9), aggregates.FreeMail{Epoch: 2, Owner: alpha, Run: "r2"}} {
		var f *aggregates.FencedError
		if _, err := m.try(cmd); !errors.As(err, &f) {
			t.Errorf("%+v: got %v, want fenced (D4)", cmd, err)
		}
	}
	for _, run := range []string{"", "r.1", strings.Repeat("r", 64)} {
		if _, err := m.try(hold(1, alpha, run, 9)); err == nil {
			t.Errorf("held behind a run %q", run)
		}
	}
}

// TestSchedule17TakeoverFreesHoldsOfEndedRuns proves at the cursor that mail held
// behind a run which ended while nobody held the seat is unread for the next
// holder, and that what a live run holds stays held.
func TestSchedule17TakeoverFreesHoldsOfEndedRuns(t *testing.T) {
	m := newMailbox(t)
	m.do(open(1, alpha))
	m.do(hold(1, alpha, "ended", 5))
	m.do(hold(1, alpha, "lives", 6))
	m.do(aggregates.OpenCursor{Epoch: 2, Owner: beta, Live: []string{"lives"}})
	m.wants(6, events.OpenMail{Seq: 5}, events.OpenMail{Seq: 6, Run: "lives"})
	m.do(open(3, alpha))
	m.wants(6, events.OpenMail{Seq: 5}, events.OpenMail{Seq: 6})
}

// TestSeenOnTheWayStaysOpen proves that messages read on the way to a turn's own
// are kept open without an attempt: the watermark never passes what was not
// settled, whatever partition it belongs to (design §6).
func TestSeenOnTheWayStaysOpen(t *testing.T) {
	m := newMailbox(t)
	m.do(open(1, alpha))
	try := attempt(1, alpha, 5, 9)
	try.Seen = []uint64{6, 8}
	m.do(try)
	m.wants(9, events.OpenMail{Seq: 5, Attempts: 1, Running: true}, events.OpenMail{Seq: 6}, events.OpenMail{Seq: 8}, events.OpenMail{Seq: 9, Attempts: 1, Running: true})
	done := ack(1, alpha, 5, 9, 12)
	done.Seen = []uint64{11, 6} // 6 is known already
	m.do(done)
	m.wants(12, events.OpenMail{Seq: 6}, events.OpenMail{Seq: 8}, events.OpenMail{Seq: 11})
	if decided, err := m.try(done); decided != nil || err != nil {
		t.Errorf("settled again: %v (%v), want nothing to happen", decided, err)
	}
}

// TestCursorTellsOfItsAttempts proves that a message carries how its attempts
// ended, failed and unfinished ones, under which tenure, equal ones counted, and
// that nothing is kept of what is settled (D3: parked with its history).
func TestCursorTellsOfItsAttempts(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	failed := func(epoch uint64, owner events.Incarnation, why string, seqs ...uint64) aggregates.SettleMail {
		cmd := nak(epoch, owner, seqs...)
		cmd.Why, cmd.At = why, at
		return cmd
	}
	m := newMailbox(t)
	m.do(open(1, alpha))
	for range 2 {
		m.do(attempt(1, alpha, 5, 7))
		m.do(failed(1, alpha, "exit status 2", 5, 7))
	}
	m.do(attempt(1, alpha, 5))
	m.do(open(2, beta)) // alpha died in it
	m.do(attempt(2, beta, 5))
	m.do(failed(2, beta, strings.Repeat("ü", 500), 5))
	m.do(ack(2, beta, 7))
	got := m.state.Tried
	want := []events.Tried{
		{Seq: 5, Epoch: 1, End: events.AttemptFailed, Count: 2, Why: "exit status 2", At: at},
		{Seq: 5, Epoch: 1, End: events.AttemptUnfinished, Count: 1},
		{Seq: 5, Epoch: 2, End: events.AttemptFailed, Count: 1, Why: strings.Repeat("ü", 50), At: at},
	}
	if !slices.Equal(got, want) {
		t.Errorf("tried %+v, want %+v", got, want)
	}
}

// TestCursorFitsOneMessage proves that a cursor at all its bounds, every text in
// it as long and as hard to write as may be, fits one message of the broker.
func TestCursorFitsOneMessage(t *testing.T) {
	m := newMailbox(t)
	var seqs []uint64
	for i := range aggregates.MaxOpenMail {
		seqs = append(seqs, 1<<53+uint64(i))
	}
	for epoch := uint64(1 << 50); epoch < 1<<50+6; epoch++ {
		m.do(open(epoch, alpha))
		m.do(attempt(epoch, alpha, seqs...))
		cmd := nak(epoch, alpha, seqs...)
		cmd.Why, cmd.At = strings.Repeat("<", 500), time.Now()
		m.do(cmd)
	}
	m.do(hold(1<<50+5, alpha, strings.Repeat("r", 63), seqs...))
	if len(m.state.Tried) != aggregates.MaxTried || m.state.Tried[0].Seq <= seqs[0] || m.state.Tried[aggregates.MaxTried-1].Seq != seqs[len(seqs)-1] {
		t.Errorf("%d entries of attempts, from mail %d to %d", len(m.state.Tried), m.state.Tried[0].Seq, m.state.Tried[len(m.state.Tried)-1].Seq)
	}
	data, err := json.Marshal(m.state.CursorSnapshot)
	if err != nil || len(data) > 1<<20-64<<10 {
		t.Errorf("%d bytes (%v), and a message has at most 1 MiB with its header", len(data), err)
	}
}
