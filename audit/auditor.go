package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/sagas"
)

// Auditor checks a history as it streams by. Feed it FLEET first: records of
// other streams are held against the tenures seen so far.
type Auditor struct {
	subjects events.Subjects
	report   Report
	tally    *Tally
	at       place
	last     events.Message // stream and sequence of the message before

	leases       map[events.Lease]*lease
	lastFleet    uint64                      // sequence of the last message of FLEET
	firstRenewal uint64                      // sequence of the first renewal there; pruned ones stood below it
	handoffs     map[string]*handoff         // by seat
	owed         *owed                       // what FLEET's next message must be
	company      company                     // the newest revision
	retirements  map[string]sagas.Retirement // by seat
	unread       uint64                      // sequence of the last message of FLEET that could not be read
	mailboxes    map[string]place            // where each was registered first
	cursors      map[mailbox]events.CursorSnapshot
	covers       map[events.Stream]bool // streams that the history has, empty ones too
}

// nobody is the lease of a finding that is about none.
var nobody events.Lease

// place is where the message being judged stands.
type place struct {
	stream events.Stream
	seq    uint64
	line   int
}

type mailbox struct {
	handle string
	box    events.Mailbox
}

// New returns an auditor of the fleet with that subject grammar.
func New(s events.Subjects) *Auditor {
	return &Auditor{
		subjects: s, tally: NewTally(s), leases: map[events.Lease]*lease{}, handoffs: map[string]*handoff{},
		retirements: map[string]sagas.Retirement{}, mailboxes: map[string]place{}, cursors: map[mailbox]events.CursorSnapshot{},
		covers: map[events.Stream]bool{},
		report: Report{Violations: []Finding{}, Notes: []Finding{}},
	}
}

// Add judges the next message of the history.
func (a *Auditor) Add(m events.Message) { a.AddLine(0, m) }

// AddLine is Add for a message that stands at that line of an export.
func (a *Auditor) AddLine(line int, m events.Message) {
	a.report.Events++
	a.at = place{m.Stream, m.Seq, line}
	a.inOrder(m)
	a.covers[m.Stream] = true
	if m.Stream == events.StreamFleet {
		a.lastFleet = max(a.lastFleet, m.Seq)
	}
	var marker *events.StreamMarked
	defer func() { a.tally.add(m, marker) }()

	kind := m.Header.Get(events.HeaderType)
	if (m.Stream == events.StreamMail || m.Stream == events.StreamMemory) && kind != events.NameStreamMarked {
		return // somebody's words and somebody's rows, not facts of the fleet
	}
	rec, err := events.Decode(a.subjects, m)
	if err != nil {
		a.violation(nobody, RuleDecode, "%v", err)
		a.doubt(m)
		return
	}
	if home := homeOf(rec.Event); home != "" && home != m.Stream {
		a.violation(nobody, RuleDecode, "a %s belongs to %s", kind, home)
		return
	}
	if marked, ok := rec.Event.(events.StreamMarked); ok {
		marker = &marked
	}
	if m.Stream == events.StreamFleet {
		a.settle(rec)
	}
	a.judge(rec)
}

// judge holds an event against the rules of its kind. Events of a kind that no
// rule is about pass.
func (a *Auditor) judge(rec events.Recorded) {
	switch e := rec.Event.(type) {
	case events.LeaseClaimed:
		a.claimed(rec, e)
	case events.LeaseRenewed:
		if a.firstRenewal == 0 {
			a.firstRenewal = rec.Seq
		}
		a.extended(rec, e.Lease, e.Epoch, e.Owner, "was renewed")
	case events.NodeReported:
		a.extended(rec, e.Lease, e.Epoch, e.Owner, "reported on its node")
	case events.LeaseReleased:
		a.released(rec, e)
	case events.LeaseFenced:
		a.fenced(rec, e)
	case events.LeaseDeclined:
		a.declined(rec, e)
	case events.SeatEstablished:
		a.hosted(events.SeatLease(e.Handle), e.Epoch, e.Owner, "was established")
	case events.TriggerSkipped:
		a.hosted(events.SeatLease(e.Handle), e.Epoch, e.Owner, "skipped a trigger")
	case events.SeatUnproven:
		a.hosted(events.SeatLease(e.Handle), e.Epoch, e.Owner, "said that its teardown is not proven")
	case events.SeatProven:
		a.hosted(events.SeatLease(e.Handle), e.Epoch, e.Owner, "said that its teardown is proven")
	case events.SeatPaused, events.SeatResumed: // an operator's, at any time and on no tenure (H3)
	case events.HandoffEvent:
		a.handedOver(rec, e)
	case events.CompanyApplied:
		a.company = companyOf(rec.Seq, e)
	case events.RetirementEvent:
		a.retired(rec, e)
	case events.MailboxRegistered:
		if _, known := a.mailboxes[e.Handle]; !known {
			a.mailboxes[e.Handle] = a.at
		}
	case events.CursorEvent:
		a.cursor(rec, e)
	case events.TurnCompleted:
		a.completed(rec, e)
	case events.MailParked:
		a.parked(rec, e)
	}
}

// homeOf is the stream that an event stands in; "" when it may be any.
func homeOf(e events.Event) events.Stream {
	switch e.(type) {
	case events.StreamMarked:
		return ""
	case events.CursorEvent:
		return events.StreamCursor
	case events.TurnCompleted:
		return events.StreamWork
	case events.MailParked:
		return events.StreamDead
	default:
		return events.StreamFleet
	}
}

// inOrder holds m's place against the message before it.
func (a *Auditor) inOrder(m events.Message) {
	before, after := rank(a.last.Stream), rank(m.Stream)
	switch {
	case after < 0:
		a.violation(nobody, RuleOrder, "%q is no stream of a fleet", m.Stream)
	case after < before:
		a.violation(nobody, RuleOrder, "%s stands after %s", m.Stream, a.last.Stream)
	case after == before && m.Seq <= a.last.Seq:
		a.violation(nobody, RuleOrder, "sequence %d stands after %d", m.Seq, a.last.Seq)
	}
	a.last = events.Message{Stream: m.Stream, Seq: m.Seq}
}

// Finish ends the history and returns what was found in it.
func (a *Auditor) Finish() Report {
	a.at = place{}
	if !a.covers[events.StreamFleet] && a.report.Events > 0 {
		a.note(nobody, NoteNoFleet, "the history has no message of FLEET: no tenure could be judged")
	}
	if a.covers[events.StreamCursor] {
		a.cursorsThere()
	}
	if a.owed != nil {
		saga, name := sagaOf(a.owed.event)
		a.at = a.owed.at
		a.note(name, NoteCut, "handoff %q gave the lease up, and the history ends before the other half of that batch", saga)
	}
	for name, l := range a.leases {
		a.report.Tenures += l.claims
		if name.Kind == events.KindSeat && l.claims > 0 {
			a.report.Seats++
		}
	}
	return a.report
}

// cursorsThere looks for the cursors of registered mailboxes. They are created
// before the mailbox is registered, so one that is absent was lost (design §2).
func (a *Auditor) cursorsThere() {
	for _, handle := range slices.Sorted(maps.Keys(a.mailboxes)) {
		for _, box := range events.Mailboxes {
			if _, there := a.cursors[mailbox{handle, box}]; !there {
				a.at = a.mailboxes[handle]
				a.violation(events.SeatLease(handle), RuleCursor, "the %s is registered and has no cursor", box)
			}
		}
	}
}

func (a *Auditor) violation(about events.Lease, rule Rule, format string, args ...any) {
	a.report.ViolationCount++
	if len(a.report.Violations) < MaxFindings {
		a.report.Violations = append(a.report.Violations, a.finding(about, rule, format, args))
	}
}

func (a *Auditor) note(about events.Lease, rule Rule, format string, args ...any) {
	a.report.NoteCount++
	if len(a.report.Notes) < MaxFindings {
		a.report.Notes = append(a.report.Notes, a.finding(about, rule, format, args))
	}
}

func (a *Auditor) finding(about events.Lease, rule Rule, format string, args []any) Finding {
	seat := ""
	if about != nobody {
		seat = about.String()
	}
	return Finding{a.at.stream, a.at.seq, a.at.line, seat, rule, fmt.Sprintf(format, args...)}
}
