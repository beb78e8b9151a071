// Command chart brings the figures of docs/bench into the docs: it draws them as
// bars, in plain SVG, readable on light and on dark ground, and fills them into
// the tables of docs/benchmarks.md.
//
//	go run ./bench/chart
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seat-tenure/tenure/bench/measure"
)

func main() {
	docs := flag.String("docs", "docs", "folder with benchmarks.md and, in bench, the figures and the pictures")
	flag.Parse()
	if err := run(*docs); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// chart is one picture.
type chart struct {
	file, from, title, unit string
	groups                  []group
}

// group is the bars of one condition.
type group struct {
	title string
	bars  []bar
}

type bar struct{ label, figure string }

var charts = []chart{
	{"claims.svg", "peers.json", "Leases taken per second, one log server, one run", "/s", []group{
		claims("with fsync, one writer", "leases/R1-fsync/1-writer/"),
		claims("with fsync, 32 writers", "leases/R1-fsync/32-writers/"),
		claims("without fsync, one writer", "leases/R1/1-writer/"),
		claims("without fsync, 32 writers", "leases/R1/32-writers/"),
	}},
	{"renewals.svg", "tenure.json", "Seats renewed per second by their holder, with fsync", "/s", []group{
		{"one server", []bar{{"Tenure, in batches", "renew/R1-fsync/renew-batched"}, {"single publishes", "renew/R1-fsync/raw-publish"}}},
		{"three servers", []bar{{"Tenure, in batches", "renew/R3-fsync/renew-batched"}, {"single publishes", "renew/R3-fsync/raw-publish"}}},
	}},
}

func claims(title, prefix string) group {
	return group{title, []bar{
		{"raw publish, no lease", prefix + "raw-publish"},
		{"Tenure, a claim", prefix + "claim"},
		{"etcd, a transaction", prefix + "etcd-txn"},
		{"NATS KV, three writes", prefix + "kv-three-writes"},
	}}
}

func run(docs string) error {
	dir := filepath.Join(docs, "bench")
	if err := fill(filepath.Join(docs, "benchmarks.md"), dir); err != nil {
		return err
	}
	for _, c := range charts {
		report, err := measure.Load(filepath.Join(dir, c.from))
		if err != nil {
			return err
		}
		picture, err := draw(c, report)
		if err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fill puts the figures into the tables.
func fill(path, dir string) error {
	var reports []measure.Report
	for _, name := range []string{"peers.json", "tenure.json", "scale.json"} {
		report, err := measure.Load(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	filled, err := measure.Fill(string(doc), reports...)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(filled), 0o644)
}

// Measures of a picture, in pixels.
const (
	width     = 720
	labels    = 190 // room for the names on the left
	values    = 80  // and for the numbers on the right
	barHeight = 18
	rowHeight = 24
	headRoom  = 44
	groupHead = 30
)

// style follows the reader's ground; a viewer that knows no media queries shows
// the light one.
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}.t{font-weight:600;font-size:15px}.g{fill:#59636e}
.b{fill:#8c959f}.us{fill:#0969da}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.g{fill:#9198a1}.b{fill:#656c76}.us{fill:#4493f8}}
</style>`

// draw renders a chart; each group has a scale of its own, since fsync and none
// are an order of magnitude apart.
func draw(c chart, report measure.Report) (string, error) {
	var b strings.Builder
	y := headRoom
	for _, g := range c.groups {
		found, most, err := lookUp(g, report)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, `<text class="g" x="8" y="%d">%s</text>`+"\n", y+16, g.title)
		y += groupHead
		for i, value := range found {
			class := "b"
			if strings.HasPrefix(g.bars[i].label, "Tenure") {
				class = "us"
			}
			long := max(1, int(value/most*(width-labels-values)))
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labels-8, y+14, g.bars[i].label)
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="2"/>`, class, labels, y, long, barHeight)
			fmt.Fprintf(&b, `<text x="%d" y="%d">%s%s</text>`+"\n", labels+long+6, y+14, measure.Number(value), c.unit)
			y += rowHeight
		}
		y += rowHeight / 3
	}
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, y, c.title)
	return head + "\n" + style + "\n" + fmt.Sprintf(`<text class="t" x="8" y="24">%s</text>`, c.title) + "\n" + b.String() + "</svg>\n", nil
}

// lookUp finds the bars' values and the longest of them.
func lookUp(g group, report measure.Report) (found []float64, most float64, err error) {
	for _, bar := range g.bars {
		f, ok := report.Find(bar.figure)
		if !ok {
			return nil, 0, fmt.Errorf("no figure %s", bar.figure)
		}
		found, most = append(found, f.Value), max(most, f.Value)
	}
	return found, most, nil
}
