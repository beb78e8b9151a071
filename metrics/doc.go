// Package metrics counts what a node does and serves it in the Prometheus text
// format. docs/reference/metrics.md lists all of it; a test keeps the page true.
//
// Guaranteed. Each Set has a registry of its own, so that two nodes in one
// process do not mix. Label values come from closed sets, but for the build's
// version and for placement groups, of which maxGroups have series of their own;
// nothing is labelled by seat, event or process. A scrape asks this process
// alone: it waits for no log, no broker and no disk.
//
// Not guaranteed. Counters begin anew with the process. What is told by the log
// (who holds which seat) is better asked of the API; what stands here of seats
// is what this node believes of itself.
//
// Concurrency. All methods may be called from any goroutine and do not block,
// but for Read, which is called once, before the first scrape.
//
//	m := metrics.New("v1.4.0")
//	host := seat.New(cfg, seat.Deps{Observe: m.Seats()})
//	m.Read(metrics.State{Host: host})
//	mux.Handle("/metrics", m.Handler())
package metrics
