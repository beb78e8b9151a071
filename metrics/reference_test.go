package metrics_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/seat-tenure/tenure/events"
	"github.com/seat-tenure/tenure/metrics"
	"github.com/seat-tenure/tenure/placement"
	"github.com/seat-tenure/tenure/projections"
	"github.com/seat-tenure/tenure/seat"
)

// nobody is a host without seats.
type nobody struct{}

func (nobody) Held() []string                     { return nil }
func (nobody) Unproven() map[string]time.Duration { return nil }

// whole is a set of which every series of our own is there.
func whole() *metrics.Set {
	m := metrics.New("v1.2.3")
	st := plain(nobody{})
	st.Streams = []events.Stream{events.StreamFleet, events.StreamWork, events.StreamDead}
	st.Copies = copies{
		events.StreamFleet: {State: projections.CopyCurrent, Position: 9, LagKnown: true},
		events.StreamWork:  {State: projections.CopyBehind, Position: 5, Lag: 3, LagKnown: true},
		events.StreamDead:  {State: projections.CopyOutOfService, LagKnown: true},
	}
	m.Read(st)
	m.Seats().Swept(seat.Swept{End: seat.SweepDone, Groups: []placement.Group{{Name: "anywhere", Held: 1, Room: 1}}})
	return m
}

// TestNames holds every name and help text of ours against the rules that
// Prometheus has for them, and against our own: the prefix, and a label for
// nothing that there may be any number of.
func TestNames(t *testing.T) {
	m := whole()
	p := scrape(t, m)
	problems, err := testutil.GatherAndLint(m.Gatherer(), p.names()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	if len(p.names()) < 25 {
		t.Errorf("only %d names were looked at", len(p.names()))
	}
	for name, family := range p.families {
		if !strings.HasPrefix(name, "tenure_") && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s is neither ours nor the runtime's", name)
		}
		for _, label := range labels(family) {
			if slices.Contains([]string{"seat", "handle", "node", "epoch", "owner", "event"}, label) {
				t.Errorf("%s is labelled by %s: there may be any number of them", name, label)
			}
		}
	}
}

// TestGroupsAreBounded proves that a company which places each seat differently
// makes no more series than there may be, and loses no seat of the sums.
func TestGroupsAreBounded(t *testing.T) {
	m := metrics.New("test")
	var many []placement.Group
	for i := range 1000 {
		many = append(many, placement.Group{Name: fmt.Sprintf("pin=p%d", i), Held: 1, Room: 2})
	}
	sweep := func(groups []placement.Group) *dto.MetricFamily {
		m.Seats().Swept(seat.Swept{End: seat.SweepDone, Groups: groups})
		return scrape(t, m).families["tenure_seats_wanted"]
	}
	sum := 0.0
	wanted := sweep(many).GetMetric()
	for _, series := range wanted {
		sum += series.GetGauge().GetValue()
	}
	if len(wanted) != 51 || sum != 2000 {
		t.Errorf("%d series with %v seats, want 51 with 2000", len(wanted), sum)
	}
	if p := scrape(t, m); p.value("tenure_seats_held", "group=(others)") != 950 || p.value("tenure_seats_held", "group=pin=p999") != 1 {
		t.Error("the rest is not added up, or too much is")
	}
	if left := sweep(many[:1]).GetMetric(); len(left) != 1 {
		t.Errorf("%d groups are left, want 1: those that are gone stay", len(left))
	}
	m.Seats().Swept(seat.Swept{End: seat.SweepFailed})
	if p := scrape(t, m); p.value("tenure_seats_held", "group=pin=p0") != 1 {
		t.Error("a pass that saw nothing changed the groups")
	}
}

// TestState proves that a scrape shows the node as it is: a copy's state is the
// one series of it that is 1, a lag that is not known has none, and a node that
// cannot work does not say it can.
func TestState(t *testing.T) {
	m, st := metrics.New("test"), plain(nobody{})
	st.Streams = []events.Stream{events.StreamFleet, events.StreamWork, events.StreamDead}
	st.Copies = copies{
		events.StreamFleet: {State: projections.CopyCurrent, Position: 9, LagKnown: true},
		events.StreamWork:  {State: projections.CopyBehind, Position: 5, Lag: 3, LagKnown: true},
		events.StreamDead:  {State: projections.CopyUnknown, Lag: 3},
	}
	st.Connected = func() bool { return false }
	st.NotReady = func() []string { return []string{"the broker is not connected"} }
	m.Read(st)
	scrape(t, m).want(map[string]float64{
		"tenure_projection_state state=current,stream=fleet": 1,
		"tenure_projection_state state=behind,stream=fleet":  0,
		"tenure_projection_state state=behind,stream=work":   1,
		"tenure_projection_state state=unknown,stream=dead":  1,
		"tenure_projection_lag_events stream=fleet":          0,
		"tenure_projection_lag_events stream=work":           3,
		"tenure_projection_lag_events stream=dead":           -1,
		"tenure_projection_position stream=work":             5,
		"tenure_broker_connected":                            0,
		"tenure_node_ready":                                  0,
	})
}

const reference = "../docs/reference/metrics.md"

const referenceHead = `# Metrics

A node with the role ` + "`api`" + ` answers ` + "`GET /metrics`" + ` on its API listener, in the
Prometheus text format, to whoever may read the API: where tokens are configured,
send one as ` + "`Authorization: Bearer`" + `. A scrape asks that process alone; it waits for
no broker and no disk. There are no series by seat: which node holds which seat
is in the log, and the API tells it.

Worth an alarm:

| expression | means |
|---|---|
| ` + "`tenure_seats_unproven_oldest_seconds > 60`" + ` | a seat's teardown cannot be proven: it is dark until it is, or until that node is restarted |
| ` + "`tenure_projection_state{state=\"out_of_service\"} == 1`" + ` | the node has stopped reading a stream; its log says why |
| ` + "`tenure_broker_connected == 0`" + ` | the node cannot renew; its seats lapse after the lease TTL |
| ` + "`rate(tenure_renew_seconds_count{outcome=\"unknown\"}[5m]) > 0`" + ` | renewals go unanswered: turns will be refused as stale |
| ` + "`tenure_seats_unplaceable > 0`" + ` | seats that no node matches |
| ` + "`increase(tenure_mail_parked_total[1h]) > 0`" + ` | mail was given up; read it in DEAD |
| ` + "`sum by (group) (tenure_seats_held) < max by (group) (tenure_group_seats)`" + ` | for longer than two sweeps: seats that nobody runs |

This page is made from the program itself by ` + "`make golden`" + `; a test fails when the
two differ. The Go runtime's (` + "`go_`" + `) and the process's (` + "`process_`" + `) metrics are
served as well.

| name | type | labels | |
|---|---|---|---|
`

// TestReference: the reference page says exactly what a node serves.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(referenceHead)
	p := scrape(t, whole())
	names := p.names()
	slices.Sort(names)
	for _, name := range names {
		family := p.families[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(family.GetType().String()), described(family), family.GetHelp())
	}
	if os.Getenv("TENURE_GOLDEN") == "rewrite" {
		if err := os.WriteFile(reference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Errorf("%s is not what a node serves; run `make golden` and look at the difference", reference)
	}
}

func labels(f *dto.MetricFamily) []string {
	names := map[string]bool{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			names[l.GetName()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// described lists a family's labels, each with its values where those are a
// closed set.
func described(f *dto.MetricFamily) string {
	values := map[string]map[string]bool{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if values[l.GetName()] == nil {
				values[l.GetName()] = map[string]bool{}
			}
			values[l.GetName()][l.GetValue()] = true
		}
	}
	var all []string
	for _, name := range labels(f) {
		text := "`" + name + "`"
		if slices.Contains([]string{"outcome", "reason", "state", "stream"}, name) {
			text += ": " + strings.Join(slices.Sorted(maps.Keys(values[name])), ", ")
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
