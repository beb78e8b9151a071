package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/seat-tenure/tenure/metrics"
)

// scrape asks the handler and parses the answer as Prometheus does.
func scrape(t *testing.T, m *metrics.Set) page {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("the scrape: %d %s", w.Code, w.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatalf("the page cannot be parsed: %v", err)
	}
	return page{t, families}
}

type page struct {
	t        *testing.T
	families map[string]*dto.MetricFamily
}

// value is what a counter or a gauge stands at, or how many observations a
// histogram has; labels are "name=value". It is -1 where there is no such series.
func (p page) value(name string, labels ...string) float64 {
	switch m := p.series(name, labels...); {
	case m == nil:
		return -1
	case m.Counter != nil:
		return m.GetCounter().GetValue()
	case m.Histogram != nil:
		return float64(m.GetHistogram().GetSampleCount())
	default:
		return m.GetGauge().GetValue()
	}
}

// sum is the sum of a histogram's observations.
func (p page) sum(name string, labels ...string) float64 {
	return p.series(name, labels...).GetHistogram().GetSampleSum()
}

func (p page) series(name string, labels ...string) *dto.Metric {
	for _, m := range p.families[name].GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		if strings.Join(have, ",") == strings.Join(labels, ",") {
			return m
		}
	}
	return nil
}

// want holds series, "name" or "name label=value", against values.
func (p page) want(want map[string]float64) {
	p.t.Helper()
	for series, value := range want {
		name, label, labelled := strings.Cut(series, " ")
		var labels []string
		if labelled {
			labels = strings.Split(label, ",")
		}
		if got := p.value(name, labels...); got != value {
			p.t.Errorf("%s: got %v, want %v", series, got, value)
		}
	}
}

// names lists the families of our own.
func (p page) names() []string {
	var own []string
	for name := range p.families {
		if strings.HasPrefix(name, "tenure_") {
			own = append(own, name)
		}
	}
	return own
}

func (p page) String() string { return fmt.Sprint(p.families) }
