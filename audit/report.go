package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/seat-tenure/tenure/events"
)

// MaxFindings bounds how many violations, and how many notes, a report lists.
// All are counted.
const MaxFindings = 1000

// Rule names what a finding is about.
type Rule string

// Rules of violations.
const (
	RuleLine       Rule = "line"       // the line is not one of an export
	RuleChain      Rule = "chain"      // a line was removed, added or altered here
	RuleHeader     Rule = "header"     // header and lines disagree
	RuleOrder      Rule = "order"      // not by stream and sequence
	RuleDecode     Rule = "decode"     // this build cannot read the event
	RuleEpoch      Rule = "epoch"      // an epoch did not rise (L2)
	RuleClaim      Rule = "claim"      // a tenure was taken without the right to it (L3, L6)
	RuleReserved   Rule = "reserved"   // what a handoff had reserved was taken or given up by another (design §5)
	RuleHandoff    Rule = "handoff"    // a handoff took a step that it may not, or half a step (design §5)
	RuleRetirement Rule = "retirement" // a mailbox was retired without the right to it, or by half a step (R1, R5, R8)
	RuleEnded      Rule = "ended"      // something names a tenure that had ended, or never was (L8)
	RuleFence      Rule = "fence"      // a tenure was fenced twice
	RuleCursor     Rule = "cursor"     // a cursor went back, is lost, or rests on no tenure (D4)
	RuleCompletion Rule = "completion" // a completion rests on no tenure of its writer
	RuleDead       Rule = "dead"       // parked mail rests on no tenure of its writer
)

// Rules of notes: what a reader should know and what breaks no rule.
const (
	NoteEpochGap Rule = "epoch_gap"       // harmless (L2)
	NoteEvidence Rule = "pruned_evidence" // rests on a renewal that is pruned
	NoteLate     Rule = "late"            // stamped after the tenure it names had ended
	NoteUnseen   Rule = "unseen_tenure"   // names a tenure that this history cannot show
	NoteCut      Rule = "cut"             // the history ends inside a batch
	NoteNoFleet  Rule = "no_fleet"        // without FLEET no tenure can be judged
)

// Finding is one violation or note, with its place.
type Finding struct {
	Stream  events.Stream `json:"stream,omitempty"`
	Seq     uint64        `json:"seq,omitempty"`
	Line    int           `json:"line,omitempty"` // of the export; 0: not from a file
	Seat    string        `json:"seat,omitempty"` // the lease it is about, as seat:dev
	Rule    Rule          `json:"rule"`
	Message string        `json:"message"`
}

func (f Finding) String() string {
	place := ""
	if f.Line > 0 {
		place = fmt.Sprintf("line %d: ", f.Line)
	}
	if f.Stream != "" {
		place += fmt.Sprintf("%s sequence %d: ", f.Stream, f.Seq)
	}
	if f.Seat != "" {
		place += f.Seat + ": "
	}
	return fmt.Sprintf("%s[%s] %s", place, f.Rule, f.Message)
}

// Report is what an audit found.
type Report struct {
	Events         uint64    `json:"events"` // messages read, of every stream
	Seats          int       `json:"seats"`  // seats that were ever claimed
	Tenures        int       `json:"tenures"`
	Chain          string    `json:"chain,omitempty"` // of the last line: note it elsewhere
	ViolationCount uint64    `json:"violation_count"`
	NoteCount      uint64    `json:"note_count"`
	Violations     []Finding `json:"violations"` // the first MaxFindings
	Notes          []Finding `json:"notes"`      // the first MaxFindings
}

// OK says whether the history broke no rule.
func (r Report) OK() bool { return r.ViolationCount == 0 }

// WriteJSON writes the report as one JSON object and a line break.
func (r Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteText writes the report for people: a line per finding, then the sum.
func (r Report) WriteText(w io.Writer) error {
	for _, list := range []struct {
		name     string
		count    uint64
		findings []Finding
	}{{"note", r.NoteCount, r.Notes}, {"violation", r.ViolationCount, r.Violations}} {
		for _, f := range list.findings {
			if _, err := fmt.Fprintf(w, "%s: %s\n", list.name, f); err != nil {
				return err
			}
		}
		if more := list.count - uint64(len(list.findings)); more > 0 {
			if _, err := fmt.Fprintf(w, "%s: %d more are not listed\n", list.name, more); err != nil {
				return err
			}
		}
	}
	verdict := "the history is legal"
	if !r.OK() {
		verdict = "the history is NOT legal"
	}
	_, err := fmt.Fprintf(w, "%s: %d events, %d seats, %d tenures, %d violations, %d notes\n",
		verdict, r.Events, r.Seats, r.Tenures, r.ViolationCount, r.NoteCount)
	broken := slices.ContainsFunc(r.Violations, func(f Finding) bool { return f.Rule == RuleChain })
	if err == nil && r.Chain != "" && !broken { // of a broken chain the last value proves nothing
		_, err = fmt.Fprintf(w, "chain %s\n", r.Chain)
	}
	return err
}
