package aggregates

import (
	"fmt"

	"github.com/seat-tenure/tenure/events"
)

// Pause is whether a seat is paused by an operator's hand (H3). It rests on no
// tenure and stays when the seat moves.
//
// Its events stand under the seat's host subject among a holder's reports, so
// the newest event there does not tell it, and no sequence there is a check for
// it. It is read from the read model, which may lag. That is why its events are
// idempotent: a second pause or resume changes nothing, and is written without
// a check. Whoever must not act on an older state waits until the read model
// stands at the position of the pause or resume that he knows of.
type Pause struct {
	Paused   bool
	StopTurn bool // the turn in flight was to stop, too
}

// EvolvePause applies a fact of the host subject. It is total over those.
func EvolvePause(s Pause, e events.Event) Pause {
	switch e := e.(type) {
	case events.SeatPaused:
		return Pause{Paused: true, StopTurn: s.StopTurn || e.StopTurn}
	case events.SeatResumed:
		return Pause{}
	case events.SeatEstablished, events.SeatUnproven, events.SeatProven, events.TriggerSkipped: // a holder's reports
		return s
	default:
		panic(fmt.Sprintf("aggregates: a pause cannot evolve by %T", e))
	}
}

// PauseCommand is what can be asked of a pause.
type PauseCommand interface{ pauseCommand() }

// PauseSeat holds the seat until it is resumed.
type PauseSeat struct {
	Handle   string
	By       string
	Reason   string
	StopTurn bool // instead of letting the turn in flight end
}

// ResumeSeat ends the pause.
type ResumeSeat struct {
	Handle string
	By     string
	Reason string
}

func (PauseSeat) pauseCommand()  {}
func (ResumeSeat) pauseCommand() {}

// DecidePause says what cmd makes happen. No event means that it has happened
// already; nothing is refused. A pause that asks for more than the one in
// force, the turn's stop, is an event of its own.
func DecidePause(s Pause, cmd PauseCommand) []events.Event {
	switch cmd := cmd.(type) {
	case PauseSeat:
		if s.Paused && (s.StopTurn || !cmd.StopTurn) {
			return nil
		}
		return []events.Event{events.SeatPaused{Handle: cmd.Handle, By: cmd.By, Reason: cmd.Reason, StopTurn: cmd.StopTurn}}
	case ResumeSeat:
		if !s.Paused {
			return nil
		}
		return []events.Event{events.SeatResumed{Handle: cmd.Handle, By: cmd.By, Reason: cmd.Reason}}
	default:
		panic(fmt.Sprintf("aggregates: no pause command %T", cmd))
	}
}
