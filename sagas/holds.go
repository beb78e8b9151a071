package sagas

import (
	"slices"
	"strconv"
	"strings"
)

// Names of holds on a seat's mailbox that no handoff takes.
const (
	HoldAdmission = "admission" // no renewal stands for a heartbeat (A2)
	HoldPause     = "pause"     // a person's (H3)
)

// holdPrefix keeps the holds of handoffs apart from all others.
const holdPrefix = "handoff:"

// HoldOf names the hold that the seat's handoff of that number puts on its
// mailbox. The next handoff has another one, which an effect of this one, come
// late, does not lift.
func HoldOf(number uint64) string { return holdPrefix + strconv.FormatUint(number, 10) }

// Holds are the named reasons for which a seat starts nothing, sorted. Whoever
// lifts one lifts its own: a renewal that succeeds after a blip does not undo a
// quiesce, nor an abandoned handoff a pause. The zero value holds nothing.
type Holds string

// Take adds a hold; one that is there already stays one.
func (h Holds) Take(name string) Holds {
	if h.Has(name) {
		return h
	}
	return join(append(h.Names(), name))
}

// Lift removes a hold, if it is there.
func (h Holds) Lift(name string) Holds {
	return join(slices.DeleteFunc(h.Names(), func(n string) bool { return n == name }))
}

// LiftHandoffs removes the holds of the seat's handoffs up to that number.
func (h Holds) LiftHandoffs(through uint64) Holds {
	return join(slices.DeleteFunc(h.Names(), func(name string) bool {
		digits, ours := strings.CutPrefix(name, holdPrefix)
		n, err := strconv.ParseUint(digits, 10, 64)
		return ours && err == nil && n <= through
	}))
}

// Has says whether the seat is held for that reason.
func (h Holds) Has(name string) bool { return slices.Contains(h.Names(), name) }

// Free says whether nothing holds the seat.
func (h Holds) Free() bool { return h == "" }

// Names lists the holds, sorted.
func (h Holds) Names() []string {
	if h.Free() {
		return nil
	}
	return strings.Split(string(h), ",")
}

func join(names []string) Holds {
	slices.Sort(names)
	return Holds(strings.Join(names, ","))
}
