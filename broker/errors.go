package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seat-tenure/tenure/events"
)

// RefusedError is a refusal that no repetition changes: a wrong setting, a
// missing permission, a message too large. Nothing was stored.
type RefusedError struct {
	Code int    // JetStream's error code, 0 when refused before sending
	Why  string // what is wrong
}

func (e *RefusedError) Error() string {
	if e.Code == 0 {
		return e.Why
	}
	return fmt.Sprintf("refused by the broker: %s (code %d)", e.Why, e.Code)
}

// IdentityReason says how a stream was found not to be the one a position
// belongs to.
type IdentityReason string

// The ways in which a stream's identity can fail to hold (design §2).
const (
	Recreated     IdentityReason = "the stream was created anew"
	MarkerGone    IdentityReason = "the marker that the position rests on is not there"
	MarkerForeign IdentityReason = "a marker stands below the position that was not there when it was read"
	MarkerAged    IdentityReason = "the marker that the position rests on has aged out of the stream"
	Shorter       IdentityReason = "the stream ends before the position"
)

// IdentityError stops a reader: the stream is not the one its position belongs
// to. Nothing may be skipped and nothing purged on the strength of that
// position. With MarkerAged the stream may be the same, but that can no longer
// be shown.
type IdentityError struct {
	Stream events.Stream
	Reason IdentityReason
	Want   events.StreamIdentity // what the position rests on
	Have   events.StreamIdentity // what stands there
}

func (e *IdentityError) Error() string {
	return fmt.Sprintf("stream %s is not the one that was read before: %s (read: %v, now: %v); restore the stream, or rebuild what was read from it",
		e.Stream, e.Reason, e.Want, e.Have)
}

// Is makes it found as events.ErrSwapped.
func (e *IdentityError) Is(target error) bool { return target == events.ErrSwapped }

// MismatchError: a stream exists with other settings. It is neither used nor
// changed.
type MismatchError struct {
	Stream string // the broker's name
	Field  string
	Have   string
	Want   string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("stream %s exists with other settings: %s is %s, needed is %s; change it with the broker's own tools, or use another stream prefix",
		e.Stream, e.Field, e.Have, e.Want)
}

// Error codes of nats-server (errors.json) that mean something to a writer.
const (
	codeWrongLastSequence     = 10071 // a real conflict; the sequence is in the text alone
	codeWrongLastSequenceBusy = 10164 // another write under the same check is in flight
	codeStoreFailed           = 10077 // any failure of the store, a full subject among them
	codeBatchIncomplete       = 10176
	codeBatchTooManyInflight  = 10210
	codeBatchDuplicateID      = 10201
	codeDuplicateInProcess    = 10158
	codeNoMessage             = 10037
	codeNotAvailable          = 10008
	codeNotLeader             = 10009
	codeNoPeers               = 10005
	codeInsufficient          = 10023
	codeStreamNotFound        = 10059
	codeSequenceNotFound      = 10043
	codeDeleteFailed          = 10057
	codeTooLarge              = 10054
	codeStreamNameInUse       = 10058
)

// What the server says in the text of a code that has several meanings. The
// code alone cannot tell a recorded completion from a broken disk, so here,
// and nowhere else, text decides; a contract test pins it.
const (
	textSubjectFull    = "maximum messages per subject exceeded"
	prefixWrongLastSeq = "wrong last sequence: "
)

// apiError is the error part of every JetStream answer.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// writeError turns the broker's answer to a write into one of the classes of
// package events. check is the write's own, nil for a batch.
func writeError(e *apiError, check *events.Check) error {
	switch e.ErrCode {
	case codeWrongLastSequence:
		actual, err := strconv.ParseUint(strings.TrimPrefix(e.Description, prefixWrongLastSeq), 10, 64)
		if err != nil {
			return fmt.Errorf("%w: the broker's answer %q names no sequence", events.ErrUnknown, e.Description)
		}
		conflict := &events.ConflictError{Actual: actual}
		if check != nil {
			conflict.Subject = check.Subject
		}
		return conflict
	case codeWrongLastSequenceBusy, codeBatchIncomplete, codeBatchTooManyInflight:
		return fmt.Errorf("%w: %s (code %d)", events.ErrBusy, e.Description, e.ErrCode)
	case codeStoreFailed:
		if e.Description == textSubjectFull {
			return events.ErrExists
		}
		return fmt.Errorf("%w: %s (code %d)", events.ErrUnknown, e.Description, e.ErrCode)
	case codeBatchDuplicateID, codeDuplicateInProcess:
		return fmt.Errorf("%w: %s (code %d)", events.ErrUnknown, e.Description, e.ErrCode)
	case codeNotAvailable, codeNotLeader, codeInsufficient:
		return fmt.Errorf("%w: %s (code %d)", events.ErrBusy, e.Description, e.ErrCode)
	}
	return &RefusedError{Code: e.ErrCode, Why: e.Description}
}

// readError is the same for a read or an administrative request.
func readError(e *apiError) error {
	switch e.ErrCode {
	case codeNoMessage, codeSequenceNotFound:
		return events.ErrNotFound
	case codeNotAvailable, codeNotLeader, codeInsufficient, codeNoPeers, codeStreamNotFound:
		// A server that has just started, or is cut off, does not know of streams
		// that exist: no answer, rather than "there is none".
		return fmt.Errorf("%w: %s (code %d)", events.ErrUnavailable, e.Description, e.ErrCode)
	}
	return &RefusedError{Code: e.ErrCode, Why: e.Description}
}

// sendError classifies an error of the client. Everything that leaves open
// whether the broker got the message is ErrUnknown.
func sendError(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, nats.ErrReconnectBufExceeded), // there is no such buffer: see Connect
		errors.Is(err, nats.ErrConnectionClosed),
		errors.Is(err, nats.ErrConnectionDraining),
		errors.Is(err, nats.ErrInvalidConnection):
		return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrHeadersNotSupported):
		return &RefusedError{Why: err.Error()}
	}
	return fmt.Errorf("%w: %w", events.ErrUnknown, err)
}

// askError is sendError for a request that changes nothing: it can be
// repeated, so there is nothing to be unsure of.
func askError(err error) error {
	if err := sendError(err); !errors.Is(err, events.ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", events.ErrUnavailable, err)
}

func isUnknown(err error) bool { return errors.Is(err, events.ErrUnknown) }

// wait sleeps for d unless ctx ends first, and says whether it did sleep.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
