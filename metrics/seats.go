package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seat-tenure/tenure/placement"
	"github.com/seat-tenure/tenure/seat"
)

// maxGroups is how many placement groups of a node have series of their own. A
// company may place each of its seats differently; the rest are added up.
const maxGroups = 50

// otherGroups is what stands for the rest. No placement is written like this.
const otherGroups = "(others)"

// seats is told by the host.
type seats struct {
	sweeps      *prometheus.HistogramVec
	steps       map[seat.Step]*prometheus.HistogramVec
	dark        prometheus.Observer
	denials     map[seat.Gate]*prometheus.CounterVec
	groups      *groups
	unplaceable prometheus.Gauge
}

func newSeats(r prometheus.Registerer) *seats {
	step := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return histograms(r, name, help, "outcome", buckets, seat.OutcomeDone, seat.OutcomeRefused, seat.OutcomeUnknown)
	}
	s := &seats{
		sweeps: histograms(r, "tenure_sweep_seconds",
			"How long a pass of the sweep took, by how it ended.", "outcome", quick,
			seat.SweepDone, seat.SweepIdle, seat.SweepWithheld, seat.SweepFailed),
		steps: map[seat.Step]*prometheus.HistogramVec{
			seat.StepClaim: step("tenure_claim_seconds",
				"How long the claim of a seat took to be answered. Refused is everyday where nodes compete.", quick),
			seat.StepEstablish: step("tenure_establish_seconds",
				"How long a claimed seat took to be up, from before the claim was sent.", quick),
			seat.StepRenew: step("tenure_renew_seconds",
				"How long a round of renewals took, all leases of the node together. Unknown: at least one was not answered.", quick),
		},
		dark: histogram(r, "tenure_handoff_dark_seconds",
			"How long nobody served a seat that was handed over to this node, by the log clock.", dark),
		denials: map[seat.Gate]*prometheus.CounterVec{
			seat.GateAdmission: counters(r, "tenure_admission_refusals_total",
				"How often a turn was refused to start, each time it was asked.", "reason",
				seat.DeniedNotHeld, seat.DeniedStale),
			seat.GateFence: counters(r, "tenure_fence_trips_total",
				"How often a turn was told at a fence to do nothing more.", "reason",
				seat.DeniedNotHeld, seat.DeniedStopped),
		},
		groups: newGroups(),
		unplaceable: gauge(r, "tenure_seats_unplaceable",
			"Seats of the company that no counted node may run, as of this node's last pass."),
	}
	r.MustRegister(s.groups)
	return s
}

// Swept implements seat.Observer.
func (s *seats) Swept(w seat.Swept) {
	s.sweeps.WithLabelValues(string(w.End)).Observe(w.Took.Seconds())
	if w.End == seat.SweepDone {
		s.unplaceable.Set(float64(w.Unplaceable))
		s.groups.set(w.Groups)
	}
}

// Took implements seat.Observer.
func (s *seats) Took(step seat.Step, how seat.Outcome, took time.Duration) {
	s.steps[step].WithLabelValues(string(how)).Observe(took.Seconds())
}

// Received implements seat.Observer.
func (s *seats) Received(dark time.Duration) { s.dark.Observe(dark.Seconds()) }

// Denied implements seat.Observer.
func (s *seats) Denied(g seat.Gate, why seat.Denial) { s.denials[g].WithLabelValues(string(why)).Inc() }

// grouped is a node's part of one placement group.
type grouped struct{ size, held, wanted int }

// bounded adds up what is beyond maxGroups. The groups come most constrained
// first; those are the narrowest, and of them there may be one per seat.
func bounded(all []placement.Group) map[string]grouped {
	out := make(map[string]grouped, min(len(all), maxGroups+1))
	for i, g := range all {
		name := g.Name
		if len(all)-i > maxGroups {
			name = otherGroups
		}
		sum := out[name]
		out[name] = grouped{sum.size + g.Size, sum.held + g.Held, sum.wanted + g.Room}
	}
	return out
}
