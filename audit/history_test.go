package audit_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/events"
)

const (
	alpha events.Incarnation = "node-0:0badcafe"
	beta  events.Incarnation = "node-1:5eedf00d"

	ttl    events.Millis = 45000
	lapsed events.Millis = 45450 // TTL and bound
)

var (
	dev   = events.SeatLease("dev")
	fleet = must(events.NewSubjects("crewlet"))
	life  = events.StreamIdentity{CreatedAt: "2026-03-01T08:00:00Z", MarkerSeq: 1, MarkerID: "m-1"}
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// tenureKey names a tenure as records outside FLEET do.
type tenureKey struct {
	handle string
	epoch  uint64
}

// history is a log under construction.
type history struct {
	messages map[events.Stream][]events.Message
	seq      map[events.Stream]uint64
	claimed  map[tenureKey]uint64 // where each tenure was claimed last
	now      time.Time
	created  map[events.Stream]string
}

func newHistory() *history {
	return &history{
		messages: map[events.Stream][]events.Message{}, seq: map[events.Stream]uint64{}, claimed: map[tenureKey]uint64{},
		now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC),
		created: map[events.Stream]string{
			events.StreamFleet: "2026-03-01T08:00:00.000000001Z", events.StreamCursor: "2026-03-01T08:00:00.000000002Z",
			events.StreamWork: "2026-03-01T08:00:00.000000003Z", events.StreamDead: "2026-03-01T08:00:00.000000004Z",
		},
	}
}

// where is the stream of e, and the tenure that a write of it rests on.
func where(e events.Event) (events.Stream, tenureKey, events.Incarnation) {
	switch e := e.(type) {
	case events.LeaseClaimed:
		return events.StreamFleet, tenureKey{"", e.Epoch}, e.Owner
	case events.LeaseRenewed:
		return events.StreamFleet, tenureKey{"", e.Epoch}, e.Owner
	case events.LeaseReleased:
		return events.StreamFleet, tenureKey{"", e.Epoch}, e.Owner
	case events.NodeReported:
		return events.StreamFleet, tenureKey{"", e.Epoch}, e.Owner
	case events.HandoffEvent:
		return events.StreamFleet, tenureKey{}, stepper(e)
	case events.CursorEvent:
		handle, _, s := e.Cursor()
		return events.StreamCursor, tenureKey{handle, s.Epoch}, s.Owner
	case events.TurnCompleted:
		return events.StreamWork, tenureKey{e.Handle, e.Epoch}, e.Owner
	case events.MailParked:
		return events.StreamDead, tenureKey{e.Handle, e.Epoch}, e.Owner
	case events.StreamMarked:
		return e.Stream, tenureKey{}, ""
	}
	return events.StreamFleet, tenureKey{}, ""
}

// stepper is whose turn a step of a handoff is.
func stepper(e events.HandoffEvent) events.Incarnation {
	switch step, body := e.Handoff(); step {
	case events.StepWarmed, events.StepCompleted, events.StepDeclined:
		return body.To
	default:
		return body.From
	}
}

// put appends e as its writer would, a second after the event before.
func (h *history) put(e events.Event) uint64 {
	stream, on, owner := where(e)
	h.seq[stream]++
	meta := events.Meta{ID: fmt.Sprintf("e-%s-%d", stream, h.seq[stream]), Time: h.now, Source: owner, Epoch: on.epoch}
	if on.handle != "" {
		meta.FleetSeq = h.claimed[on]
	}
	w := must(events.Encode(fleet, meta, e))
	if claim, ok := e.(events.LeaseClaimed); ok && claim.Lease.Kind == events.KindSeat {
		h.claimed[tenureKey{claim.Lease.ID, claim.Epoch}] = h.seq[stream]
	}
	return h.raw(events.Message{Stream: stream, Seq: h.seq[stream], Subject: w.Subject, Header: w.Header, Data: w.Data})
}

// raw appends m as it is. CURSOR keeps the last message of a subject only.
func (h *history) raw(m events.Message) uint64 {
	h.now = h.now.Add(time.Second)
	m.At = h.now
	h.seq[m.Stream] = m.Seq
	if m.Stream == events.StreamCursor {
		h.messages[m.Stream] = slices.DeleteFunc(h.messages[m.Stream], func(old events.Message) bool { return old.Subject == m.Subject })
	}
	h.messages[m.Stream] = append(h.messages[m.Stream], m)
	return m.Seq
}

// purge removes a message, as pruning and expiry do.
func (h *history) purge(stream events.Stream, seq uint64) {
	h.messages[stream] = slices.DeleteFunc(h.messages[stream], func(m events.Message) bool { return m.Seq == seq })
}

// edit changes the message at seq in place.
func (h *history) edit(stream events.Stream, seq uint64, change func(*events.Message)) {
	for i, m := range h.messages[stream] {
		if m.Seq == seq {
			m.Header = cloneHeader(m.Header)
			m.Data = bytes.Clone(m.Data)
			change(&m)
			h.messages[stream][i] = m
		}
	}
}

func cloneHeader(h events.Header) events.Header {
	clone := events.Header{}
	for key, values := range h {
		clone[key] = slices.Clone(values)
	}
	return clone
}

var streams = []events.Stream{events.StreamFleet, events.StreamCursor, events.StreamWork, events.StreamDead}

// all lists the messages in the order of an export.
func (h *history) all() []events.Message {
	var all []events.Message
	for _, s := range streams {
		all = append(all, h.messages[s]...)
	}
	return all
}

// line is the line of a message in the export; the header is line 1.
func (h *history) line(stream events.Stream, seq uint64) int {
	return 2 + slices.IndexFunc(h.all(), func(m events.Message) bool { return m.Stream == stream && m.Seq == seq })
}

// export writes the history as a file, with a header that is right.
func (h *history) export() []byte {
	tally := audit.NewTally(fleet)
	for _, m := range h.all() {
		tally.Add(m)
	}
	var file bytes.Buffer
	w := must(audit.NewWriter(&file, tally.Header(h.created)))
	for _, m := range h.all() {
		if err := w.Add(m); err != nil {
			panic(err)
		}
	}
	must(w.Close())
	return file.Bytes()
}

func (h *history) check() audit.Report { return must(audit.Check(bytes.NewReader(h.export()))) }

func claimed(l events.Lease, epoch uint64, owner events.Incarnation) events.LeaseClaimed {
	return events.LeaseClaimed{Lease: l, Epoch: epoch, Owner: owner, TTL: ttl, Protocol: 4}
}

func takenOver(l events.Lease, epoch uint64, owner events.Incarnation, o events.Over) events.LeaseClaimed {
	c := claimed(l, epoch, owner)
	c.Over = &o
	return c
}

func renewed(l events.Lease, epoch uint64, owner events.Incarnation) events.LeaseRenewed {
	return events.LeaseRenewed{Lease: l, Epoch: epoch, Owner: owner}
}

func released(l events.Lease, epoch uint64, owner events.Incarnation) events.LeaseReleased {
	return events.LeaseReleased{Lease: l, Epoch: epoch, Owner: owner, Reason: events.ReasonDrain}
}

// moving is what every event of a handoff of dev says. Its release reserves the
// lease for 10 s.
func moving(number, epoch uint64, from, to events.Incarnation) events.HandoffBody {
	return events.HandoffBody{Handle: dev.ID, Number: number, From: from, To: to, Epoch: epoch, Reason: events.HandoffDrain, By: "ops",
		Patience: events.Patience{Warm: 1000, Quiesce: 1000, Flush: 1000, Release: 1000, Claim: 10000, Establish: 1000}}
}

// handedOver is the release of the lease that a handoff's own release stands with.
func handedOver(b events.HandoffBody) events.LeaseReleased {
	r := released(dev, b.Epoch, b.From)
	r.Successor, r.ReservedFor, r.Saga = b.To, b.Patience.Claim, b.ID()
	return r
}

// flush takes a handoff to where its source has nothing left to do but to
// release; b gets what that adds to it.
func (h *history) flush(b *events.HandoffBody) {
	h.put(events.HandoffRequested{HandoffBody: *b})
	h.put(events.HandoffWarmed{HandoffBody: *b})
	b.Quiesced = h.put(events.HandoffQuiesced{HandoffBody: *b})
	h.put(events.HandoffFlushed{HandoffBody: *b})
}

// handOver takes a handoff to its release, and returns where the lease's stands.
func (h *history) handOver(b *events.HandoffBody) uint64 {
	h.flush(b)
	h.put(events.HandoffReleased{HandoffBody: *b, ReservedFor: b.Patience.Claim})
	return h.put(handedOver(*b))
}

func forSaga(c events.LeaseClaimed, saga string) events.LeaseClaimed {
	c.Saga = saga
	return c
}

func waited(c events.LeaseClaimed, w events.Waited) events.LeaseClaimed {
	c.Waited = &w
	return c
}

func declined(l events.Lease, epoch uint64, owner, by events.Incarnation, saga string) events.LeaseDeclined {
	return events.LeaseDeclined{Lease: l, Epoch: epoch, Owner: owner, By: by, Reason: events.DeclineDraining, Saga: saga}
}

func fenced(l events.Lease, epoch uint64, owner events.Incarnation) events.LeaseFenced {
	return events.LeaseFenced{Lease: l, Epoch: epoch, Owner: owner, Reason: "sick", By: "ops"}
}

func cursorBody(handle string, box events.Mailbox, epoch uint64, owner events.Incarnation, read uint64) events.CursorBody {
	return events.CursorBody{Handle: handle, Mailbox: box, CursorSnapshot: events.CursorSnapshot{Epoch: epoch, Owner: owner, Mail: life, Read: read}}
}

func completed(handle, id string, epoch uint64, owner events.Incarnation) events.TurnCompleted {
	return events.TurnCompleted{Handle: handle, EventID: id, EventIDs: []string{id}, Epoch: epoch, Owner: owner, Outcome: events.OutcomeDone, Attempts: 1}
}

func parked(handle, id string, seq, epoch uint64, owner events.Incarnation) events.MailParked {
	return events.MailParked{Handle: handle, Mailbox: events.Inbox, EventID: id, MailSeq: seq, Mail: life, Epoch: epoch, Owner: owner, Attempts: 25, Reason: "budget spent"}
}

// register makes a seat's mailbox, its cursors first.
func (h *history) register(handle string) {
	for _, box := range events.Mailboxes {
		h.put(events.CursorCreated{CursorBody: cursorBody(handle, box, 0, "", 0)})
	}
	h.put(events.MailboxRegistered{Handle: handle, AgentID: "a-" + handle})
}

var node, duty = events.NodeLease("node-0"), events.Lease{Kind: events.KindWorker, ID: "retention"}

// brief is a legal history with something in every stream, for tests that go
// over it byte by byte.
func brief() *history {
	h := newHistory()
	for _, s := range streams {
		h.put(events.StreamMarked{Stream: s, Marker: "first of " + string(s), CreatedAt: h.created[s]})
	}
	h.put(claimed(node, 1, alpha))
	h.put(claimed(duty, 1, alpha))
	h.register("dev")
	h.put(claimed(dev, 1, alpha))
	h.put(events.CursorOpened{CursorBody: cursorBody("dev", events.Inbox, 1, alpha, 0)})
	h.put(events.SeatEstablished{Handle: "dev", Epoch: 1, Owner: alpha})
	h.put(renewed(node, 1, alpha))
	last := h.put(renewed(dev, 1, alpha))
	h.put(completed("dev", "mail/1", 1, alpha))
	h.put(takenOver(dev, 2, beta, events.Over{Epoch: 1, Owner: alpha, LastSeq: last, Unseen: lapsed}))
	h.put(events.CursorOpened{CursorBody: cursorBody("dev", events.Inbox, 2, beta, 1)})
	h.put(events.TriggerSkipped{Handle: "dev", Epoch: 2, Owner: beta, EventID: "mail/1", Why: events.SkipCompleted})
	h.put(parked("dev", "mail/2", 2, 2, beta))
	h.put(fenced(dev, 2, beta))
	h.put(released(dev, 2, beta))
	h.put(claimed(dev, 3, beta))
	h.put(completed("dev", "mail/3", 3, beta))
	return h
}

// ordinary is a history with a bit of everything, all of it legal.
func ordinary() *history {
	h := brief()
	h.put(events.SeatPaused{Handle: "dev", By: "ops", Reason: "review"})
	done := moving(1, 3, beta, alpha)
	h.handOver(&done)
	h.put(forSaga(claimed(dev, 4, alpha), "dev.1"))
	h.put(events.SeatEstablished{Handle: "dev", Epoch: 4, Owner: alpha})
	h.put(events.HandoffCompleted{HandoffBody: done, ClaimedEpoch: 4, DarkFor: 3000})
	refused := moving(2, 4, alpha, beta)
	h.handOver(&refused)
	h.put(events.HandoffDeclined{HandoffBody: refused, Step: events.StepReleased, Cause: events.DeclineDraining})
	h.put(declined(dev, 4, alpha, beta, "dev.2"))
	h.put(events.SeatResumed{Handle: "dev", By: "ops", Reason: "reviewed"})
	h.put(claimed(dev, 5, alpha))
	lost := moving(3, 5, alpha, beta)
	unclaimed := h.handOver(&lost)
	h.put(waited(claimed(dev, 6, alpha), events.Waited{Successor: beta, LastSeq: unclaimed, Unseen: 10000}))
	h.put(events.HandoffAbandoned{HandoffBody: lost, Step: events.StepReleased, Cause: events.AbandonLost, Ender: string(alpha)})
	late := moving(4, 6, alpha, beta)
	h.put(events.HandoffRequested{HandoffBody: late})
	h.put(events.HandoffAbandoned{HandoffBody: late, Step: events.StepRequested, Cause: events.AbandonDeadline, Ender: string(beta), Unseen: 1000})
	h.put(events.SeatUnproven{Handle: "dev", Epoch: 6, Owner: alpha})
	h.put(events.SeatProven{Handle: "dev", Epoch: 6, Owner: alpha})
	h.put(events.NodeReported{Lease: node, Epoch: 1, Owner: alpha, Node: events.NodeFacts{Draining: true}})
	h.put(released(duty, 1, alpha))
	return h
}

// found renders a report's findings for messages of tests.
func found(r audit.Report) string {
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		panic(err)
	}
	return b.String()
}
