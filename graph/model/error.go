package model

import (
	"fmt"
	"maps"
)

// Code says what kind of error a caller has met, in extensions.code.
type Code string

// The codes. A caller may act on them; the message is for people.
const (
	// BadRequest: the request can never be answered as it is.
	BadRequest Code = "BAD_REQUEST"
	// Refused: it was understood, and the fleet does not do it.
	Refused Code = "REFUSED"
	// Unavailable: it cannot be seen or done now; later or elsewhere it may be.
	Unavailable Code = "UNAVAILABLE"
	// BeforeHistory: it asks about what lies before the kept history.
	BeforeHistory Code = "BEFORE_HISTORY"
	// TooComplex: it asks for more than one request may.
	TooComplex Code = "TOO_COMPLEX"
	// Internal: a fault of this node, which has logged it.
	Internal Code = "INTERNAL"
	// Unauthenticated: no token, or one that is not known here.
	Unauthenticated Code = "UNAUTHENTICATED"
	// Forbidden: it comes from a web page that this node does not serve.
	Forbidden Code = "FORBIDDEN"
	// NotFound: there is nothing under that path.
	NotFound Code = "NOT_FOUND"
)

// Error is an error that a caller is shown.
type Error struct {
	Code    Code
	Message string
	More    map[string]any // further extensions
}

func (e *Error) Error() string { return e.Message }

// Extensions are what stands beside the message.
func (e *Error) Extensions() map[string]any {
	ext := map[string]any{"code": e.Code}
	maps.Copy(ext, e.More)
	return ext
}

// Badf is a BadRequest about one argument, which it names.
func Badf(argument, format string, args ...any) *Error {
	return &Error{
		Code: BadRequest, Message: argument + ": " + fmt.Sprintf(format, args...),
		More: map[string]any{"argument": argument},
	}
}

// Unavailablef says that something cannot be seen or done now.
func Unavailablef(format string, args ...any) *Error {
	return &Error{Code: Unavailable, Message: fmt.Sprintf(format, args...)}
}

// badScalar is a BadRequest about a value whose place the caller is told by the
// error's path.
func badScalar(format string, args ...any) *Error {
	return &Error{Code: BadRequest, Message: fmt.Sprintf(format, args...)}
}
