package main

import "github.com/seat-tenure/tenure/broker"

// shellLog is the broker's log as the write shell needs it.
type shellLog struct{ *broker.Log }
