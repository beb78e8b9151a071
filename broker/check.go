package broker

import (
	"fmt"
	"strings"

	"github.com/seat-tenure/tenure/events"
)

// Headers with a meaning to the broker. Callers set none but the message id,
// and see none: a rollup or a TTL would delete (nats-facts 1.7), and a batch id
// or an expectation is for this package to write.
const (
	headerReserved     = "Nats-"
	headerMsgID        = "Nats-Msg-Id"
	headerExpectSeq    = "Nats-Expected-Last-Subject-Sequence"
	headerExpectSubj   = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerBatchID      = "Nats-Batch-Id"
	headerBatchSeq     = "Nats-Batch-Sequence"
	headerBatchCommit  = "Nats-Batch-Commit"
	headerDirectSeq    = "Nats-Sequence"
	headerDirectSubj   = "Nats-Subject"
	headerDirectTime   = "Nats-Time-Stamp"
	maxRequestSubjects = 1024 // of one multi_last answer
)

// checkWrite refuses what the broker would misunderstand, before anything is sent.
func checkWrite(s settings, w events.Write) error {
	if !s.covers(w.Subject) {
		return refuse("subject %q does not belong to stream %s", w.Subject, s.stream)
	}
	if strings.ContainsAny(w.Subject, "*> \t\r\n") {
		return refuse("subject %q cannot be published to", w.Subject)
	}
	for key := range w.Header {
		if strings.HasPrefix(key, headerReserved) && key != headerMsgID {
			return refuse("header %s is the broker's own", key)
		}
	}
	if w.Header.Get(headerMsgID) != "" && (w.Check != nil || s.stream != events.StreamMail) {
		// On replicated streams dedupe answers before the check, so a zombie's
		// repeat would read as success (design §2).
		return refuse("%s stands on unconditional MAIL writes only", headerMsgID)
	}
	if w.Check == nil {
		return nil
	}
	if !s.covers(w.Check.Subject) {
		return refuse("the check's subject %q does not belong to stream %s", w.Check.Subject, s.stream)
	}
	return nil
}

func checkBatch(s settings, ws []events.Write) error {
	switch {
	case len(ws) == 0:
		return refuse("a batch without messages")
	case len(ws) > MaxBatch:
		return refuse("a batch of %d messages, the most is %d", len(ws), MaxBatch)
	case !s.batches:
		return refuse("stream %s takes no batches", s.stream)
	}
	for _, w := range ws {
		if err := checkWrite(s, w); err != nil {
			return err
		}
	}
	return nil
}

// checkPurge is the one guard of every purge: to the broker an empty filter
// means the whole stream and sequence 0 the whole subject.
func checkPurge(s settings, filter string, below uint64) error {
	switch {
	case filter == "":
		return refuse("a purge without a filter would empty stream %s", s.stream)
	case below == 0:
		return refuse("a purge below sequence 0 would remove everything under %s", filter)
	case !s.covers(filter):
		return refuse("the purge's filter %q does not belong to stream %s", filter, s.stream)
	}
	return nil
}

// checkFilter refuses to read where the stream can have nothing.
func checkFilter(s settings, filter string) error {
	if !s.covers(filter) {
		return refuse("filter %q does not belong to stream %s", filter, s.stream)
	}
	return nil
}

func refuse(format string, args ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, args...)}
}

// covered says whether subject, or every subject a narrower filter stands for,
// matches filter.
func covered(filter, subject string) bool {
	for {
		f, fRest, fMore := strings.Cut(filter, ".")
		s, sRest, sMore := strings.Cut(subject, ".")
		switch {
		case f == ">":
			return s != ""
		case f != "*" && f != s, f == "*" && s == ">":
			return false
		case fMore != sMore:
			return false
		case !fMore:
			return true
		}
		filter, subject = fRest, sRest
	}
}

// ownHeader returns a copy of h without what the broker added.
func ownHeader(h map[string][]string) events.Header {
	own := make(events.Header, len(h))
	for key, values := range h {
		if !strings.HasPrefix(key, headerReserved) || key == headerMsgID {
			own[key] = values
		}
	}
	return own
}
