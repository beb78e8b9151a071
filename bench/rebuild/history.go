package rebuild

import (
	"fmt"
	"iter"
	"time"

	"github.com/seat-tenure/tenure/events"
)

// The history is that of a fleet which lives for a long time: every seat's
// mailbox is registered once; then, again and again, a node takes a share of the
// seats, runs them, is drained, and the next one takes the share. A share's
// claims stand together, as do its releases, since passes work that way; a seat
// in so many meets something out of the ordinary.
const (
	seats    = 10_000
	nodes    = 100
	share    = seats / nodes
	unlucky  = 20 // one seat in so many is lapsed over instead of released
	skipping = 10 // one in so many skips a trigger
)

func handle(i int) string { return fmt.Sprintf("seat-%05d", i) }

// history yields n events, or a few more to end a share.
func history(subjects events.Subjects, n int) iter.Seq2[events.Write, error] {
	return func(yield func(events.Write, error) bool) {
		h := &writer{subjects: subjects, yield: yield, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		for i := 0; i < seats && h.written < n; i++ {
			h.put(0, events.MailboxRegistered{Handle: handle(i), AgentID: fmt.Sprintf("6f0c52aa-0000-4000-8000-%012d", i)})
		}
		for round := 0; h.written < n && !h.stopped; round++ {
			h.round(round%nodes, uint64(1+round/nodes))
		}
	}
}

type writer struct {
	subjects events.Subjects
	yield    func(events.Write, error) bool
	at       time.Time
	written  int
	stopped  bool
}

// round is one share's life at that epoch.
func (h *writer) round(of int, epoch uint64) {
	owner := func(epoch uint64) events.Incarnation {
		return events.Incarnation(fmt.Sprintf("node-%02d:%08x", (of+int(epoch))%nodes, epoch))
	}
	first := of * share
	for i := first; i < first+share; i++ {
		e := events.LeaseClaimed{
			Lease: events.SeatLease(handle(i)), Epoch: epoch, Owner: owner(epoch), Preferred: owner(epoch).NodeID(), TTL: 45000, Protocol: 4,
		}
		if epoch > 1 && i%unlucky == 0 {
			e.Over = &events.Over{Epoch: epoch - 1, Owner: owner(epoch - 1), LastSeq: uint64(h.written), Unseen: 46000}
		}
		h.put(epoch, e)
	}
	for i := first; i < first+share; i++ {
		h.put(epoch, events.SeatEstablished{Handle: handle(i), Epoch: epoch, Owner: owner(epoch)})
	}
	for i := first; i < first+share; i += skipping {
		h.put(epoch, events.TriggerSkipped{
			Handle: handle(i), Epoch: epoch, Owner: owner(epoch), EventID: fmt.Sprintf("event-%d-%d", i, epoch), Why: events.SkipCompleted,
		})
	}
	for i := first; i < first+share; i++ {
		if i%unlucky != 0 {
			h.put(epoch, events.LeaseReleased{Lease: events.SeatLease(handle(i)), Epoch: epoch, Owner: owner(epoch), Reason: events.ReasonDrain})
		}
	}
}

func (h *writer) put(epoch uint64, e events.Event) {
	if h.stopped {
		return
	}
	h.at = h.at.Add(137 * time.Millisecond)
	id := fmt.Sprintf("7a1f0c52-3a54-4d2e-9a57-%012d", h.written)
	w, err := events.Encode(h.subjects, events.Meta{ID: id, Command: id, Source: "node-0:5ea7be4c", Time: h.at, Epoch: epoch}, e)
	h.written++
	h.stopped = !h.yield(w, err)
}
