package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/seat-tenure/tenure/events"
)

// Writer writes an export: the header at once, then a line per Add.
type Writer struct {
	out    *bufio.Writer
	header Header
	tally  *Tally
	chain  chain
	line   []byte
	last   events.Message // of which only stream and sequence are kept
	failed error          // the first failure; nothing is written after it
}

// NewWriter writes the header h and returns a writer for its messages. It
// refuses a header whose streams are unknown or out of order.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	subjects, err := events.NewSubjects(h.Prefix)
	if err := errors.Join(err, h.ordered()); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	h.FormatVersion = FormatVersion
	line, err := h.line()
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	out := &Writer{out: bufio.NewWriter(w), header: h, tally: NewTally(subjects)}
	return out, out.write(line)
}

// Add writes m. Messages come in the order of the export; one out of order, or
// longer than a reader takes, is refused.
func (w *Writer) Add(m events.Message) error {
	if w.failed != nil {
		return w.failed
	}
	if before, after := rank(w.last.Stream), rank(m.Stream); after < 0 || after < before || (after == before && m.Seq <= w.last.Seq) {
		w.failed = fmt.Errorf("export: %s sequence %d cannot follow %s sequence %d", m.Stream, m.Seq, w.last.Stream, w.last.Seq)
		return w.failed
	}
	w.last = events.Message{Stream: m.Stream, Seq: m.Seq}
	w.tally.Add(m)
	w.line = AppendMessage(w.line[:0], m)
	if len(w.line)+chainLen > MaxLine {
		w.failed = fmt.Errorf("export: %s sequence %d takes %d bytes, more than the %d that a line may have", m.Stream, m.Seq, len(w.line), MaxLine)
		return w.failed
	}
	return w.write(w.line)
}

func (w *Writer) write(line []byte) error {
	w.chain = w.chain.next(line)
	w.line = append(w.chain.attach(line), '\n')
	if _, err := w.out.Write(w.line); err != nil {
		w.failed = fmt.Errorf("export: %w", err)
	}
	return w.failed
}

// Close ends the export and returns its last chain value. It fails when the
// lines are not those that the header announced: the file is then no export.
// The writer under it stays open.
func (w *Writer) Close() (string, error) {
	if w.failed == nil {
		if problems := disagreements(w.header, w.tally); len(problems) > 0 {
			w.failed = fmt.Errorf("export: %s; the log moved while it was read, export it again", problems[0])
		}
	}
	if err := w.out.Flush(); err != nil && w.failed == nil {
		w.failed = fmt.Errorf("export: %w", err)
	}
	return w.chain.String(), w.failed
}

// disagreements lists where the lines are not what the header says of them.
func disagreements(h Header, counted *Tally) []string {
	var problems []string
	announced := map[events.Stream]StreamHeader{}
	for _, s := range h.Streams {
		announced[s.Stream] = s
	}
	for _, stream := range order {
		want, known := announced[stream]
		got := StreamHeader{Stream: stream}
		if c := counted.streams[stream]; c != nil {
			got = *c
		}
		switch {
		case !known && got.Count > 0:
			problems = append(problems, fmt.Sprintf("%s has %d lines and is not in the header", stream, got.Count))
		case !known:
		case got.Count != want.Count || got.First != want.First || got.Last != want.Last:
			problems = append(problems, fmt.Sprintf("the header says that %s has %d lines from sequence %d to %d, it has %d from %d to %d",
				stream, want.Count, want.First, want.Last, got.Count, got.First, got.Last))
		case got.Generation != "" && got.Generation != want.Generation:
			problems = append(problems, fmt.Sprintf("the header says that the generation of %s is %q, its newest marker says %q", stream, want.Generation, got.Generation))
		}
	}
	return problems
}
