package sagas

import (
	"time"

	"github.com/seat-tenure/tenure/aggregates"
	"github.com/seat-tenure/tenure/events"
)

// Retirement is the newest retirement of a seat's mailbox (R1, design §5). Its
// newest event alone tells all of it.
type Retirement struct {
	Last                  uint64 // position of that event: the check of the next one; 0: there is none
	events.RetirementBody        // Number 0: the mailbox was never judged absent
}

// EvolveRetirement applies the event at seq. It is total.
func EvolveRetirement(_ Retirement, seq uint64, e events.RetirementEvent) Retirement {
	return Retirement{Last: seq, RetirementBody: e.Retirement()}
}

// Open says whether the retirement goes on.
func (s Retirement) Open() bool { return s.Step == events.RetireAbsent || s.Marked() }

// Marked says whether deletion has begun: a node that adds the seat back waits.
func (s Retirement) Marked() bool {
	return s.Step == events.RetireMarked || s.Step == events.RetireRunsEnded || s.Step == events.RetirePurged
}

// Due says whether the grace is over.
func (s Retirement) Due() bool { return s.Step == events.RetireAbsent && s.Absent >= s.Grace }

// RetirementCommand is what can be asked of a retirement. A Mailbox in a command
// is the mailbox's record as the leader has it.
type RetirementCommand interface{ retirementCommand() }

// ObserveAbsent is one tick's judgement: the revision at position Company does
// not have the seat.
type ObserveAbsent struct {
	Handle  string
	By      events.Incarnation
	Company uint64
	Grace   time.Duration
	Tick    time.Duration // how long until the next judgement, for the estimate alone
	// Passed is how long ago By's own clocks saw its last tick of this retirement
	// stored, and 0 when it has none. It counts only if that tick is the newest.
	Passed time.Duration
	// Restart: a revision between the last tick's and this one had the seat, so
	// the absence begins anew (R4).
	Restart bool
	Now     time.Time // wall clock, for people
}

// ObserveReturned: the revision at position Company has the seat.
type ObserveReturned struct {
	By      events.Incarnation
	Company uint64
}

// HoldRetirement records what keeps a retirement that is due from beginning (R6).
type HoldRetirement struct {
	By      events.Incarnation
	Refused events.RetirementRefusal
}

// MarkRetirement begins the deletion under a tenure of the seat's lease. Marks
// were read after that tenure was claimed.
type MarkRetirement struct {
	By      events.Incarnation
	Company uint64
	Owner   events.Incarnation
	Epoch   uint64
	Claimed uint64 // position of that tenure's claim
	Marks   events.Marks
	Now     bool // an operator waives what is left of the grace
	Mailbox aggregates.Mailbox
}

// ResumeRetirement goes on with a mark that was left, under a tenure and marks of
// its own. Unseen is how long By has seen the retirement stand at its Last.
type ResumeRetirement struct {
	MarkRetirement
	Unseen, Stale time.Duration
	// Back: the seat was back since the mark, so Marks are those of before, and the
	// absence begins anew in case the mark has to be taken back (R4).
	Back bool
}

// EndRuns: no run of the seat is left (R7).
type EndRuns struct {
	Owner events.Incarnation
	Epoch uint64
}

// MarkPurged: the cursors stand at the marks and the mail up to them is gone.
type MarkPurged struct {
	Owner events.Incarnation
	Epoch uint64
}

// CompleteRetirement ends the record.
type CompleteRetirement struct {
	Owner   events.Incarnation
	Epoch   uint64
	Mailbox aggregates.Mailbox
}

// UnmarkRetirement: a step could not be done; the next tick tries again.
type UnmarkRetirement struct {
	Owner   events.Incarnation
	Epoch   uint64
	Mailbox aggregates.Mailbox
}

// TakeOverRetirement: a node that adds the seat back has waited for the mark, and
// finished the deletion itself.
type TakeOverRetirement struct {
	By              events.Incarnation
	AgentID         string
	Unseen, Patient time.Duration
}

func (ObserveAbsent) retirementCommand()      {}
func (ObserveReturned) retirementCommand()    {}
func (HoldRetirement) retirementCommand()     {}
func (MarkRetirement) retirementCommand()     {}
func (ResumeRetirement) retirementCommand()   {}
func (EndRuns) retirementCommand()            {}
func (MarkPurged) retirementCommand()         {}
func (CompleteRetirement) retirementCommand() {}
func (UnmarkRetirement) retirementCommand()   {}
func (TakeOverRetirement) retirementCommand() {}
