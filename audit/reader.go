package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/seat-tenure/tenure/events"
)

// Entry is one line of an export after the header.
type Entry struct {
	Line    int // counted from 1, which is the header
	Message events.Message
	// Broken: the chain does not lead from the line before to this one. A line
	// was removed or added between them, or this one was altered.
	Broken bool
}

// LineError says that a line is not one of an export. The lines after it can
// still be read.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Reader reads an export line by line.
type Reader struct {
	in     *bufio.Reader
	buf    []byte
	line   int
	chain  chain
	header Header
	broken bool // the header's own chain does not hold
}

// NewReader reads the header. A *LineError means that r is no export that this
// build reads; any other error is the one of r.
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{in: bufio.NewReaderSize(r, 64<<10)}
	line, broken, err := in.next()
	if errors.Is(err, io.EOF) {
		err = &LineError{1, errors.New("the file is empty")}
	}
	if err != nil {
		return nil, err
	}
	in.broken = broken
	if in.header, err = parseHeader(line); err != nil {
		return nil, &LineError{1, err}
	}
	return in, nil
}

// Header returns the header.
func (r *Reader) Header() Header { return r.header }

// Chain returns the chain value of the line read last.
func (r *Reader) Chain() string { return r.chain.String() }

// Next returns the next line, io.EOF after the last, a *LineError for a line
// that cannot be read (go on with the next), or the error of the reader below.
func (r *Reader) Next() (Entry, error) {
	line, broken, err := r.next()
	if err != nil {
		return Entry{Line: r.line}, err
	}
	m, err := ParseMessage(line)
	if err != nil {
		return Entry{Line: r.line}, &LineError{r.line, err}
	}
	return Entry{r.line, m, broken}, nil
}

// next reads a line, takes its chain off and says whether it is broken. The
// chain goes on from what the line says of itself, so that one altered line is
// one finding.
func (r *Reader) next() (line []byte, broken bool, err error) {
	if line, err = r.readLine(); err != nil {
		return nil, false, err
	}
	line, stated, ok := detach(line)
	if !ok {
		return nil, false, &LineError{r.line, errors.New("the line does not end in its chain")}
	}
	broken = stated != r.chain.next(line)
	r.chain = stated
	return line, broken, nil
}

// readLine returns the next line without its line break; it is good until the
// next call.
func (r *Reader) readLine() ([]byte, error) {
	r.buf = r.buf[:0]
	tooLong := false
	for {
		part, err := r.in.ReadSlice('\n')
		if !tooLong {
			r.buf = append(r.buf, part...)
			tooLong = len(r.buf) > MaxLine+1
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(r.buf) == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		}
		r.line++
		if tooLong {
			return nil, &LineError{r.line, fmt.Errorf("longer than the %d bytes that a line may have", MaxLine)}
		}
		line, ended := bytes.CutSuffix(r.buf, []byte("\n"))
		if !ended {
			return nil, &LineError{r.line, errors.New("the file ends in the middle of the line")}
		}
		return line, nil
	}
}
