package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/seat-tenure/tenure/broker"
)

// clusterUser is who other nodes are when they connect to a clustered server as
// clients, and who its servers may be to each other.
const clusterUser = "node"

// clusterServer is how the embedded server joins the others. The secret of the
// routes is also what further nodes connect with (stream.urls of an external
// stream, user "node"); it is "" when the routes carry none, and then only this
// process can be a node on this server.
func clusterServer(k ClusterSection) (cluster *broker.ClusterConfig, secret string) {
	cluster = &broker.ClusterConfig{Name: k.Name, Listen: k.Listen}
	for _, route := range k.Routes {
		if !strings.Contains(route, "://") {
			route = "nats-route://" + route
		}
		if u, err := url.Parse(route); err == nil && u.User != nil { // validated; the broker refuses others
			secret, _ = u.User.Password()
		}
		cluster.Routes = append(cluster.Routes, route)
	}
	return cluster, secret
}

// withoutQuorum explains why the log of a cluster could not be opened in time.
func (n *node) withoutQuorum(err error) error {
	if !n.cfg.Clustered() || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	servers := len(n.cfg.Stream.Cluster.Routes)
	return fmt.Errorf("the log does not stand: of the %d servers in stream.cluster.routes %d must run at the same time and reach each other; start them together: %w",
		servers, servers/2+1, err)
}
