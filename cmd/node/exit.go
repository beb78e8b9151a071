package main

import "errors"

// Exit codes of the program. Scripts and service managers read them, so they
// never change their meaning.
const (
	exitFine      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitForced    = 3  // stopped by force, with the work handed back
	exitTimedOut  = 4  // waited, and it did not come
	exitWedged    = 75 // a duty stalled for longer than the lease (X1): restart me
	exitBadConfig = 78 // a restart changes nothing: correct the configuration
)

// exitError is an error that says which code the program ends with.
type exitError struct {
	Code int
	Err  error
}

func (e *exitError) Error() string { return e.Err.Error() }

func (e *exitError) Unwrap() error { return e.Err }

// exitCode is the code the program ends with after err.
func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &coded):
		return coded.Code
	}
	return exitFailed
}
