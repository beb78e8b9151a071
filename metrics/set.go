package metrics

import (
	"net/http"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/turn"
)

// maxScrapes is how many scrapes are answered at once; more get status 503.
const maxScrapes = 4

// Set is one node's metrics.
type Set struct {
	registry *prometheus.Registry
	seats    *seats
	turns    *turns
}

// New returns the metrics of a node of that build, all at zero.
func New(version string) *Set {
	s := &Set{registry: prometheus.NewRegistry()}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tenure_build_info", Help: "1, labelled with the build, its Go version and the lease protocol it speaks.",
	}, []string{"version", "goversion", "protocol"})
	build.WithLabelValues(version, runtime.Version(), strconv.Itoa(seat.Protocol)).Set(1)
	s.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
	)
	s.seats, s.turns = newSeats(s.registry), newTurns(s.registry)
	return s
}

// Seats is told what the host does.
func (s *Set) Seats() seat.Observer { return s.seats }

// Turns is told what becomes of mail.
func (s *Set) Turns() turn.Observer { return s.turns }

// Gatherer is the registry, for whoever collects without HTTP.
func (s *Set) Gatherer() prometheus.Gatherer { return s.registry }

// Handler answers scrapes.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// Buckets, in seconds. They are wide enough for what ends in a timeout.
var (
	quick = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30} // an answer of the broker
	slow  = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}           // work, and waiting for it
	dark  = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 45, 90}                // up to two lease TTLs
)

func counter(r prometheus.Registerer, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func gauge(r prometheus.Registerer, name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.MustRegister(g)
	return g
}

func histogram(r prometheus.Registerer, name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.MustRegister(h)
	return h
}

// counters is a counter by one label, with a series for each of its values from
// the start: a rate over one that appears with its first event misses that event.
func counters[V ~string](r prometheus.Registerer, name, help, label string, values ...V) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	r.MustRegister(vec)
	for _, v := range values {
		vec.WithLabelValues(string(v))
	}
	return vec
}

// histograms is the same for a histogram.
func histograms[V ~string](r prometheus.Registerer, name, help, label string, buckets []float64, values ...V) *prometheus.HistogramVec {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
	r.MustRegister(vec)
	for _, v := range values {
		vec.WithLabelValues(string(v))
	}
	return vec
}
