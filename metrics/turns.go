package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/turn"
)

// turns is told by the worker.
type turns struct {
	started  prometheus.Counter
	running  prometheus.Gauge
	ended    *prometheus.CounterVec
	took     *prometheus.HistogramVec
	attempts prometheus.Observer
	waited   prometheus.Observer
	skipped  *prometheus.CounterVec
	parked   prometheus.Counter
}

func newTurns(r prometheus.Registerer) *turns {
	ends := []turn.End{
		turn.EndCompleted, turn.EndFailed, turn.EndFenced, turn.EndStopped, turn.EndBroke, turn.EndPanicked,
	}
	return &turns{
		started: counter(r, "tenure_turns_started_total", "Attempts at turns that began."),
		running: gauge(r, "tenure_turns_running", "Attempts at turns that are under way."),
		ended: counters(r, "tenure_turns_ended_total",
			"Attempts at turns that are over, by how. After failed and fenced the mail comes again.", "outcome", ends...),
		took: histograms(r, "tenure_turn_seconds",
			"How long an attempt at a turn took, by how it ended.", "outcome", slow, ends...),
		attempts: histogram(r, "tenure_turn_attempts",
			"How many attempts a completed turn took.", []float64{1, 2, 3, 5, 10, turn.Budget}),
		waited: histogram(r, "tenure_mailbox_wait_seconds",
			"How long after its event a turn began for the first time, by the wall clocks of sender and node.", slow),
		skipped: counters(r, "tenure_triggers_skipped_total",
			"Triggers that will not run, by why.", "reason",
			events.SkipCompleted, events.SkipBrokeOutside, events.SkipPanicked, events.SkipParked),
		parked: counter(r, "tenure_mail_parked_total", "Mail that was set aside in the DEAD stream."),
	}
}

// Started implements turn.Observer.
func (t *turns) Started(attempt int, waited time.Duration) {
	t.started.Inc()
	t.running.Inc()
	if attempt == 1 { // later ones have waited for a backoff, or for a successor
		t.waited.Observe(waited.Seconds())
	}
}

// Ended implements turn.Observer.
func (t *turns) Ended(how turn.End, attempt int, took time.Duration) {
	t.running.Dec()
	t.ended.WithLabelValues(string(how)).Inc()
	t.took.WithLabelValues(string(how)).Observe(took.Seconds())
	if how == turn.EndCompleted {
		t.attempts.Observe(float64(attempt))
	}
}

// Skipped implements turn.Observer.
func (t *turns) Skipped(why events.SkipReason) { t.skipped.WithLabelValues(string(why)).Inc() }

// Parked implements turn.Observer.
func (t *turns) Parked() { t.parked.Inc() }
