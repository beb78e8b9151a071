package aggregates

import (
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// Company is the newest revision of the company, as far as deciding the next
// one needs it.
type Company struct {
	Last     uint64
	Revision uint64
	Digest   string
}

// EvolveCompany applies the event at seq. It is total.
func EvolveCompany(_ Company, seq uint64, e events.CompanyApplied) Company {
	return Company{Last: seq, Revision: e.Revision, Digest: e.Digest}
}

// ApplyCompany makes Next the newest revision.
type ApplyCompany struct {
	Next events.CompanyApplied
	// Expected is the revision that Next was written against, 0 for none before;
	// nil takes any.
	Expected *uint64
}

// StaleRevisionError: another revision is in force than the one that the
// document was written against. What it would undo has to be looked at first.
type StaleRevisionError struct {
	Expected uint64
	Current  uint64
}

func (e *StaleRevisionError) Error() string {
	if e.Current == 0 {
		return fmt.Sprintf("revision %d of the company was expected, and none was applied yet", e.Expected)
	}
	return fmt.Sprintf("revision %d of the company was expected, and revision %d is in force", e.Expected, e.Current)
}

// DecideApply makes the document the newest revision. One that is in force
// already needs no event, whatever was expected: that is how an apply is asked
// for again whose answer was lost. It refuses with *StaleRevisionError.
func DecideApply(s Company, cmd ApplyCompany) ([]events.Event, error) {
	switch {
	case s.Revision > 0 && s.Digest == cmd.Next.Digest:
		return nil, nil
	case cmd.Expected != nil && *cmd.Expected != s.Revision:
		return nil, &StaleRevisionError{Expected: *cmd.Expected, Current: s.Revision}
	}
	next := cmd.Next
	next.Revision = s.Revision + 1
	return []events.Event{next}, nil
}
