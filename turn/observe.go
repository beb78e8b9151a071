package turn

import (
	"time"

	"github.com/seat-tenure/tenure/events"
)

// Observer is told what becomes of mail, for whoever counts it. Its methods must
// not block and are called from any goroutine.
type Observer interface {
	// Started: an attempt begins. waited is how long after its event, by this
	// machine's wall clock and the sender's.
	Started(attempt int, waited time.Duration)
	// Ended: that attempt is over.
	Ended(how End, attempt int, took time.Duration)
	// Skipped: a trigger will not come back, and this is why. After a settle that
	// was not answered it is told again.
	Skipped(why events.SkipReason)
	// Parked: mail was set aside in DEAD.
	Parked()
}

// End says how an attempt ended.
type End string

// Ends of an attempt. After Failed and Fenced the mail comes again.
const (
	EndCompleted End = "completed"
	EndFailed    End = "failed"
	EndFenced    End = "fenced"   // the seat moved, or the inbox was told to end (F5)
	EndStopped   End = "stopped"  // by a person (F4)
	EndBroke     End = "broke"    // after it acted (B1)
	EndPanicked  End = "panicked" // B1
)

func (w *Worker) started(mail events.Mail, attempt int) {
	if w.Observe != nil {
		w.Observe.Started(attempt, max(0, time.Since(mail.Time)))
	}
}

func (w *Worker) ended(how End, attempt int, since time.Time) {
	if w.Observe != nil {
		w.Observe.Ended(how, attempt, time.Since(since))
	}
}

func (w *Worker) skipped(why events.SkipReason) {
	if w.Observe != nil {
		w.Observe.Skipped(why)
	}
}

func (w *Worker) parked() {
	if w.Observe != nil {
		w.Observe.Parked()
	}
}
