package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seat-tenure/tenure/bench/brokers"
	"github.com/seat-tenure/tenure/bench/measure"
)

// Sizes say how large the companies are and how much is asked of them.
type Sizes struct {
	Few, Many int           // seats of the two companies that are compared
	Idle      time.Duration // how long an idle node is watched
	Pages     int           // GraphQL answers
	Mails     int           // one at a time; ten times as many are sent at once
}

// Measure measures one node on one broker with fsync: how long it takes until all
// seats of a large company run, the first time and again after a stop; what a seat
// costs it in memory and, while nothing happens, in messages; how fast it answers
// pages of seats; and how long mail takes from its sending to the record that it
// is done.
func Measure(ctx context.Context, program string, s Sizes) ([]measure.Figure, error) {
	dir, err := os.MkdirTemp("", "tenure-bench-node-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	few, err := one(ctx, program, filepath.Join(dir, "few"), s, s.Few)
	if err != nil {
		return nil, fmt.Errorf("%d seats: %w", s.Few, err)
	}
	many, err := one(ctx, program, filepath.Join(dir, "many"), s, s.Many)
	if err != nil {
		return nil, fmt.Errorf("%d seats: %w", s.Many, err)
	}
	figures := many.figures
	perSeat := float64(many.rss-few.rss) / float64(s.Many-s.Few) / 1024
	figures = append(figures,
		measure.Figure{Name: fmt.Sprintf("memory/%d-seats", s.Few), Unit: "MB", Value: measure.Round(float64(few.rss) / (1 << 20))},
		measure.Figure{Name: fmt.Sprintf("memory/%d-seats", s.Many), Unit: "MB", Value: measure.Round(float64(many.rss) / (1 << 20))},
		measure.Figure{Name: "memory/per-seat", Unit: "KB", Value: measure.Round(perSeat)})
	for seats, idle := range map[int]idle{s.Few: few.idle, s.Many: many.idle} {
		prefix := fmt.Sprintf("idle/%d-seats/", seats)
		figures = append(figures,
			measure.Figure{Name: prefix + "messages-sent", Unit: "1/s", Value: measure.Round(idle.sent)},
			measure.Figure{Name: prefix + "messages-received", Unit: "1/s", Value: measure.Round(idle.received)},
			measure.Figure{Name: prefix + "bytes", Unit: "KB/s", Value: measure.Round(idle.bytes / 1024)},
			measure.Figure{Name: prefix + "cpu", Unit: "% of a core", Value: measure.Round(100 * idle.cpu)})
	}
	return figures, nil
}

type found struct {
	figures []measure.Figure
	rss     int
	idle    idle
}

// one measures a company of that size on a broker of its own.
func one(ctx context.Context, program, dir string, s Sizes, seats int) (f found, err error) {
	fleet, err := brokers.Start(ctx, 1, true)
	if err != nil {
		return f, err
	}
	defer fleet.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return f, err
	}
	doc, err := company(dir, seats)
	if err != nil {
		return f, err
	}
	flags := []string{
		"--company", doc, "--stream-type", "external", "--stream-urls", fleet.URL(), "--stream-prefix", brokers.Prefix,
		"--coordination-type", "embedded-kv",
	}
	began := time.Now()
	n, err := start(ctx, program, filepath.Join(dir, "data"), flags...)
	if err != nil {
		return f, err
	}
	defer func() { n.kill() }()
	cold, err := n.established(ctx, began, seats)
	if err != nil {
		return f, err
	}
	if err := n.stop(); err != nil {
		return f, err
	}
	began = time.Now()
	if n, err = start(ctx, program, filepath.Join(dir, "data"), flags...); err != nil {
		return f, err
	}
	again, err := n.established(ctx, began, seats)
	if err != nil {
		return f, err
	}
	prefix := fmt.Sprintf("start/%d-seats/", seats)
	f.figures = append(f.figures, seconds(prefix+"first", cold), seconds(prefix+"again", again))
	if f.idle, err = n.watch(ctx, fleet.Server(), s.Idle); err != nil {
		return f, err
	}
	if f.rss, err = n.rss(); err != nil {
		return f, err
	}
	pages, err := n.pages(ctx, s.Pages)
	if err != nil {
		return f, err
	}
	mail, err := mails(ctx, fleet, s.Mails, seats)
	f.figures = append(append(f.figures, pages...), mail...)
	return f, errors.Join(err, n.stop())
}

func seconds(name string, d time.Duration) measure.Figure {
	return measure.Figure{Name: name, Unit: "s", Value: measure.Round(d.Seconds())}
}

// pages asks for pages of 100 seats, from the first to the last and again, by two
// clients at once.
func (n *node) pages(ctx context.Context, count int) ([]measure.Figure, error) {
	const query = `query($after:String){seats(first:100,after:$after){edges{node{handle title state owner epoch since}}pageInfo{endCursor hasNextPage}}}`
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var work sync.WaitGroup
	began := time.Now()
	for range 2 {
		work.Go(func() {
			var after any
			for range count / 2 {
				var page struct {
					Seats struct {
						PageInfo struct {
							EndCursor   string
							HasNextPage bool
						}
					}
				}
				asked := time.Now()
				err := n.ask(ctx, query, map[string]any{"after": after}, &page)
				mu.Lock()
				all = append(all, time.Since(asked))
				failed = errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
				if after = nil; page.Seats.PageInfo.HasNextPage {
					after = page.Seats.PageInfo.EndCursor
				}
			}
		})
	}
	work.Wait()
	took := time.Since(began)
	return []measure.Figure{
		measure.Milliseconds("graphql/page-of-100-seats-p50", measure.Percentile(all, 50)),
		measure.Milliseconds("graphql/page-of-100-seats-p99", measure.Percentile(all, 99)),
		{Name: "graphql/pages", Unit: "1/s", Value: measure.Round(float64(len(all)) / took.Seconds())},
	}, failed
}
