package turn

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"
)

const (
	stderrLine   = 4 << 10 // bytes of one line that are logged
	stderrRate   = 50      // lines logged in one second; the rest is counted
	tailLines    = 10      // last lines kept for an error
	tailLineSize = 300     // bytes of each
)

// stderrLog logs what a program says on stderr, line by line, within bounds,
// and keeps its last words. One goroutine uses it; last is read after that ended.
type stderrLog struct {
	log        *slog.Logger
	second     time.Time // when the current second began
	logged     int       // in the current second
	suppressed int       // since the last report
	last       []string
}

// readFrom reads until the last writer is gone.
func (s *stderrLog) readFrom(r io.Reader) {
	lines := bufio.NewReaderSize(r, stderrLine)
	for {
		chunk, err := lines.ReadSlice('\n')
		text := strings.ToValidUTF8(strings.TrimRight(string(chunk), "\r\n"), "�")
		if text != "" {
			s.line(text)
		}
		// The rest of an endless line is dropped, it must not pass as lines.
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if err != nil {
			s.reportSuppressed()
			return
		}
	}
}

func (s *stderrLog) line(text string) {
	if len(s.last) == tailLines {
		s.last = append(s.last[:0], s.last[1:]...)
	}
	s.last = append(s.last, clip(text, tailLineSize))

	if now := time.Now(); now.Sub(s.second) >= time.Second {
		s.reportSuppressed()
		s.second, s.logged = now, 0
	}
	if s.logged == stderrRate {
		s.suppressed++
		return
	}
	s.logged++
	s.log.Info("runner_stderr", "line", text)
}

func (s *stderrLog) reportSuppressed() {
	if s.suppressed > 0 {
		s.log.Warn("runner_stderr_suppressed", "lines", s.suppressed)
		s.suppressed = 0
	}
}
