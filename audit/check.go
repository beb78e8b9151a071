package audit

import (
	"errors"
	"io"

	"github.com/seat-tenure/tenure/events"
)

// Check reads a whole export and audits it. A *LineError means that r has no
// header this build can read, any other error is r's own; everything that is
// wrong with the history itself is in the report.
func Check(r io.Reader) (Report, error) {
	in, err := NewReader(r)
	if err != nil {
		return Report{}, err
	}
	subjects, err := events.NewSubjects(in.Header().Prefix)
	if err != nil {
		return Report{}, &LineError{1, err}
	}
	a := New(subjects)
	for _, s := range in.Header().Streams {
		a.covers[s.Stream] = true
	}
	if in.broken {
		a.at = place{line: 1}
		a.violation(nobody, RuleChain, "the header was altered")
	}
	for {
		entry, err := in.Next()
		var bad *LineError
		switch {
		case errors.Is(err, io.EOF):
			return a.finishExport(in), nil
		case errors.As(err, &bad):
			a.at = place{line: bad.Line}
			a.violation(nobody, RuleLine, "%v", bad.Err)
			continue
		case err != nil:
			return Report{}, err
		}
		if entry.Broken {
			a.at = place{entry.Message.Stream, entry.Message.Seq, entry.Line}
			a.violation(nobody, RuleChain, "a line was removed or added before this one, or this one was altered")
		}
		a.AddLine(entry.Line, entry.Message)
	}
}

// finishExport ends the history with what only a file can say.
func (a *Auditor) finishExport(in *Reader) Report {
	a.at = place{line: 1}
	for _, problem := range disagreements(in.Header(), a.tally) {
		a.violation(nobody, RuleHeader, "%s", problem)
	}
	report := a.Finish()
	report.Chain = in.Chain()
	return report
}
