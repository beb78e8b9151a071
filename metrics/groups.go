package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seat-tenure/tenure/placement"
)

// groups holds the last pass's groups. It is a collector, not two vectors of
// gauges: a scrape sees one pass, and a group that is gone is gone.
type groups struct {
	size, held, wanted *prometheus.Desc
	last               atomic.Pointer[map[string]grouped]
}

func newGroups() *groups {
	label := []string{"group"}
	return &groups{
		size: prometheus.NewDesc("tenure_group_seats",
			"Seats of a placement group in the whole company, by a node that has a part in it.", label, nil),
		held: prometheus.NewDesc("tenure_seats_held",
			"Seats of a placement group that this node runs, as of its last pass.", label, nil),
		wanted: prometheus.NewDesc("tenure_seats_wanted",
			"How many seats of a placement group are this node's share to run, as of its last pass. Shares are rounded up.", label, nil),
	}
}

func (g *groups) set(all []placement.Group) {
	now := bounded(all)
	g.last.Store(&now)
}

// Describe implements prometheus.Collector.
func (g *groups) Describe(to chan<- *prometheus.Desc) {
	to <- g.size
	to <- g.held
	to <- g.wanted
}

// Collect implements prometheus.Collector.
func (g *groups) Collect(to chan<- prometheus.Metric) {
	last := g.last.Load()
	if last == nil {
		return
	}
	for name, part := range *last {
		to <- prometheus.MustNewConstMetric(g.size, prometheus.GaugeValue, float64(part.size), name)
		to <- prometheus.MustNewConstMetric(g.held, prometheus.GaugeValue, float64(part.held), name)
		to <- prometheus.MustNewConstMetric(g.wanted, prometheus.GaugeValue, float64(part.wanted), name)
	}
}
