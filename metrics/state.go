package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/projections"
)

// Host is the seats of this process.
type Host interface {
	Held() []string
	// Unproven tells how long each undead seat has been one (O3).
	Unproven() map[string]time.Duration
}

// Copies tells what the copies of streams are worth now.
type Copies interface {
	Copy(st events.Stream) projections.Copy
}

// LogClock knows the log's head.
type LogClock interface {
	Head() uint64
}

// State is what a scrape looks at. Nothing of it may wait for another machine.
type State struct {
	Host      Host
	Copies    Copies
	Streams   []events.Stream // of Copies
	LogClock  LogClock
	Connected func() bool     // to the broker
	NotReady  func() []string // what keeps the node from its work
}

// Read makes scrapes look at st.
func (s *Set) Read(st State) { s.registry.MustRegister(newState(st)) }

// state reads at each scrape what is a fact of the moment.
type state struct {
	of State

	running, unproven, unprovenAge, ready, connected, head *prometheus.Desc
	position, lag, copyState                               *prometheus.Desc
}

func newState(of State) *state {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &state{
		of:      of,
		running: desc("tenure_node_seats", "Seats that this node runs now, of all groups."),
		unproven: desc("tenure_seats_unproven",
			"Seats whose teardown this node could not prove. Each stays here until it is proven or the process ends."),
		unprovenAge: desc("tenure_seats_unproven_oldest_seconds",
			"How long the oldest of the seats whose teardown is not proven has been one; 0 without any."),
		ready:     desc("tenure_node_ready", "1 while /ready says yes."),
		connected: desc("tenure_broker_connected", "1 while there is a connection to the broker."),
		head: desc("tenure_log_clock_head",
			"The highest position of the log of tenures that this node's log clock has seen."),
		position: desc("tenure_projection_position", "Up to which position of the stream the read model has applied it.", "stream"),
		lag: desc("tenure_projection_lag_events",
			"How many events the stream is known to have beyond that. There is no such series while that is not known.", "stream"),
		copyState: desc("tenure_projection_state",
			"1 for the state that the read model's copy of the stream is in, 0 for the others.", "stream", "state"),
	}
}

// copyStates are all there are, so that each has a series.
var copyStates = []projections.CopyState{
	projections.CopyCurrent, projections.CopyBehind, projections.CopyRebuilding,
	projections.CopyOutOfService, projections.CopyUnknown,
}

// Describe implements prometheus.Collector.
func (s *state) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.running, s.unproven, s.unprovenAge, s.ready, s.connected, s.head, s.position, s.lag, s.copyState,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *state) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	oldest, unproven := time.Duration(0), s.of.Host.Unproven()
	for _, age := range unproven {
		oldest = max(oldest, age)
	}
	send(s.running, float64(len(s.of.Host.Held())))
	send(s.unproven, float64(len(unproven)))
	send(s.unprovenAge, oldest.Seconds())
	send(s.ready, truth(len(s.of.NotReady()) == 0))
	send(s.connected, truth(s.of.Connected()))
	send(s.head, float64(s.of.LogClock.Head()))
	for _, st := range s.of.Streams {
		stream, c := strings.ToLower(string(st)), s.of.Copies.Copy(st)
		send(s.position, float64(c.Position), stream)
		if c.LagKnown {
			send(s.lag, float64(c.Lag), stream)
		}
		for _, is := range copyStates {
			send(s.copyState, truth(c.State == is), stream, strings.ToLower(string(is)))
		}
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
