package aggregates_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// ledger is the naive oracle of a mailbox: every message there is, and of each
// whether it is settled and how often a turn was started on it.
type ledger struct {
	mail     []uint64 // all messages of the subject, ascending
	settled  map[uint64]bool
	attempts map[uint64]int
	seen     int // how many of mail were looked at, in order
}

func (l *ledger) open() []uint64 {
	var open []uint64
	for _, seq := range l.mail[:l.seen] {
		if !l.settled[seq] {
			open = append(open, seq)
		}
	}
	return open
}

// holder drives a mailbox as the seat does: it sees mail in order only.
type holder struct {
	*mailbox
	ledger
	epoch uint64
	owner events.Incarnation
}

// look chooses among open mail, and the next n unseen ones, all of them.
func (h *holder) look(t *rapid.T) (seqs []uint64, unseen int) {
	for _, seq := range h.open() {
		if rapid.Bool().Draw(t, "again") {
			seqs = append(seqs, seq)
		}
	}
	unseen = rapid.IntRange(0, min(3, len(h.mail)-h.seen)).Draw(t, "unseen")
	return append(seqs, h.mail[h.seen:h.seen+unseen]...), unseen
}

func (h *holder) attemptSome(t *rapid.T) {
	seqs, unseen := h.look(t)
	if len(seqs) == 0 {
		return
	}
	cmd := attempt(h.epoch, h.owner, rapid.Permutation(seqs).Draw(t, "order")...)
	if unseen > 1 && rapid.Bool().Draw(t, "of another partition") { // all but the last are only seen
		cmd.Seen = h.mail[h.seen : h.seen+unseen-1]
		cmd.Seqs = slices.DeleteFunc(cmd.Seqs, func(seq uint64) bool { return slices.Contains(cmd.Seen, seq) })
		seqs = cmd.Seqs
	}
	h.do(cmd)
	h.seen += unseen
	for _, seq := range seqs {
		if h.settled[seq] {
			t.Fatalf("message %d is settled and was attempted again", seq)
		}
		h.attempts[seq]++
	}
}

func (h *holder) settleSome(t *rapid.T) {
	acks, unseen := h.look(t)
	naks := slices.DeleteFunc(h.open(), func(seq uint64) bool { return slices.Contains(acks, seq) })
	before := h.state
	cmd := aggregates.SettleMail{Epoch: h.epoch, Owner: h.owner, Mail: life2, Ack: acks, Nak: naks}
	if _, err := h.try(cmd); err != nil {
		t.Fatalf("settle %v: %v", acks, err)
	}
	for _, o := range h.state.Open {
		if o.Running {
			t.Fatalf("message %d runs after its nak (%+v)", o.Seq, before)
		}
	}
	h.seen += unseen
	for _, seq := range acks {
		h.settled[seq] = true
	}
	if decided, err := h.try(cmd); decided != nil || err != nil {
		t.Fatalf("settled again: %v (%v)", decided, err)
	}
}

// holdSome holds mail behind a run, and now and then ends one.
func (h *holder) holdSome(t *rapid.T) {
	seqs, unseen := h.look(t)
	run := rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run")
	if _, err := h.try(hold(h.epoch, h.owner, run, seqs...)); err != nil {
		t.Fatalf("hold %v: %v", seqs, err)
	}
	h.seen += unseen
	if rapid.Bool().Draw(t, "it ends") {
		if _, err := h.try(aggregates.FreeMail{Epoch: h.epoch, Owner: h.owner, Run: run}); err != nil {
			t.Fatalf("free %s: %v", run, err)
		}
		for _, o := range h.state.Open {
			if o.Run == run {
				t.Fatalf("message %d is held behind a run that ended", o.Seq)
			}
		}
	}
}

// takeOver moves the mailbox to another owner; the former one tries everything.
func (h *holder) takeOver(t *rapid.T) {
	former, formerEpoch := h.owner, h.epoch
	h.owner = rapid.SampledFrom([]events.Incarnation{alpha, beta}).Draw(t, "owner")
	h.epoch += uint64(rapid.IntRange(1, 3).Draw(t, "gap"))
	h.do(open(h.epoch, h.owner))
	for _, o := range h.state.Open {
		if o.Run != "" {
			t.Fatalf("message %d is held, and no run lives (Schedule17)", o.Seq)
		}
	}
	again := h.state
	h.do(open(h.epoch, h.owner)) // after a lost answer: the same state
	again.Last = h.state.Last
	h.same(t, again)
	for _, cmd := range []aggregates.CursorCommand{
		open(formerEpoch, former), attempt(formerEpoch, former, 1<<40), aggregates.SettleMail{Epoch: formerEpoch, Owner: former, Mail: life2, Ack: h.mail, Nak: h.mail},
	} {
		var f *aggregates.FencedError
		if decided, err := h.try(cmd); !errors.As(err, &f) || decided != nil {
			t.Fatalf("%T of the former epoch %d: %v (%v)", cmd, formerEpoch, decided, err)
		}
	}
}

func (h *holder) same(t *rapid.T, want aggregates.Cursor) {
	if h.state.Epoch != want.Epoch || h.state.Owner != want.Owner || h.state.Read != want.Read || !slices.Equal(h.state.Open, want.Open) {
		t.Fatalf("state %+v, want %+v", h.state, want)
	}
}

// retrySettled asks for a turn on mail that is settled.
func (h *holder) retrySettled(t *rapid.T) {
	done := slices.Sorted(maps.Keys(h.settled))
	if len(done) == 0 {
		return
	}
	if decided, err := h.try(attempt(h.epoch, h.owner, rapid.SampledFrom(done).Draw(t, "done"))); err == nil {
		t.Fatalf("settled mail was attempted again: %+v", decided)
	}
}

// invariant holds the cursor against the oracle.
func (h *holder) invariant(t *rapid.T) {
	open := h.open()
	if len(open) != len(h.state.Open) {
		t.Fatalf("open %+v, the oracle says %v", h.state.Open, open)
	}
	for i, o := range h.state.Open {
		if o.Seq != open[i] || o.Attempts != h.attempts[o.Seq] {
			t.Fatalf("open %+v, the oracle says %v with attempts %v", h.state.Open, open, h.attempts)
		}
	}
	mark := h.state.Watermark()
	for _, seq := range h.mail {
		if seq <= mark && !h.settled[seq] {
			t.Fatalf("watermark %d passed message %d, which is not settled", mark, seq)
		}
	}
	if h.seen > 0 && len(open) == 0 && mark < h.mail[h.seen-1] {
		t.Fatalf("watermark %d lags behind message %d although all that was seen is settled", mark, h.mail[h.seen-1])
	}
	body := events.CursorBody{Handle: "dev", Mailbox: events.Inbox, CursorSnapshot: h.state.CursorSnapshot}
	if alone := aggregates.EvolveCursor(aggregates.Cursor{}, h.state.Last, events.CursorSettled{CursorBody: body}); alone.Last != h.state.Last {
		t.Fatalf("folded alone: %+v", alone)
	} else {
		h.same(t, alone)
	}
}

// TestCursorAgainstOracle proves that through any attempts, acks, naks, holds,
// first sights and takeovers no settled message is attempted again, the budget counts
// started turns and nothing else (D3), and the watermark never passes what was
// not settled.
func TestCursorAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &holder{mailbox: &mailbox{t: t}, owner: alpha, epoch: 1}
		h.settled, h.attempts = map[uint64]bool{}, map[uint64]int{}
		seq := uint64(0)
		for range rapid.IntRange(0, 30).Draw(t, "mail") {
			seq += uint64(rapid.IntRange(1, 4).Draw(t, "other mail")) // of other seats, in between
			h.mail = append(h.mail, seq)
		}
		h.do(aggregates.CreateCursor{Mail: life})
		h.do(open(1, alpha))
		t.Repeat(map[string]func(*rapid.T){
			"attempt": h.attemptSome, "settle": h.settleSome, "take over": h.takeOver, "retry": h.retrySettled, "hold": h.holdSome, "": h.invariant,
		})
	})
}
