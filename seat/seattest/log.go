package seattest

import (
	"github.com/seat-tenure/tenure/broker"
	"github.com/seat-tenure/tenure/commands"
)

// NewLog returns a log over that store, by the bubble's clock.
func NewLog(store broker.Store) commands.Log { return broker.NewLog(store) }
