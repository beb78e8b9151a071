package main

import (
	"net/http"

	"github.com/seat-tenure/tenure/graph"
	"github.com/seat-tenure/tenure/metrics"
	"github.com/seat-tenure/tenure/seat"
	"github.com/seat-tenure/tenure/turn"
)

// observers make the node's metrics and return who is told; nobody where there
// is no API to ask for them.
func (n *node) observers() (seat.Observer, turn.Observer) {
	if n.api == nil {
		return nil, nil
	}
	n.metrics = metrics.New(buildVersion())
	return n.metrics.Seats(), n.metrics.Turns()
}

// handler is what the API's listener serves.
func (n *node) handler() http.Handler {
	n.metrics.Read(metrics.State{
		Host: n.host, Copies: n.views, Streams: followed, LogClock: n.logClock,
		Connected: n.store.Connected, NotReady: n.NotReady,
	})
	deps := n.apiDeps()
	mux := http.NewServeMux()
	mux.Handle("/metrics", graph.Beside(deps, n.metrics.Handler()))
	mux.Handle("/", graph.New(deps))
	return mux
}
