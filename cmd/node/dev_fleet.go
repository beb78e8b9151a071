package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	randv2 "math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A fleet on one machine. Its first three nodes carry the log as one embedded
// cluster, however many there are: on one disk and a few cores five copies of
// each write buy nothing but the loss of a second node at once. The others
// connect to those three as clients, which is how a larger fleet is built too
// (design §2). Two nodes are refused: a log on two servers stops when either
// does, so the second would only look like safety.
const (
	logNodes      = 3
	maxFleetNodes = maxChildren

	// fleetTTLSeconds is the shortest that a replicated stream allows: killing a
	// node is what such a fleet is for, and nobody wants to wait.
	fleetTTLSeconds = minReplicatedTTLSeconds

	fleetFile   = "fleet.json"
	fleetFormat = 1
)

// fleetPlan is what must stay the same between two starts of a fleet, kept in
// DIR/fleet.json. Node ids are node-1 to node-N; a server has its node's id.
type fleetPlan struct {
	Format int    `json:"format"`
	Nodes  int    `json:"nodes"`
	Secret string `json:"secret"` // of the cluster: who has it may join as server or as node
	// Routes are the servers' addresses for each other.
	Routes []string `json:"routes"`
	// Listen are the servers' addresses for nodes that carry no log, nil when
	// every node carries it.
	Listen []string `json:"listen,omitempty"`
}

// checkFleetSize says whether a fleet of n nodes makes sense; 1 is no fleet.
func checkFleetSize(n int) error {
	switch {
	case n == 2:
		return usagef("--nodes 2: a log on two servers stops when either of them does; write 1, or 3 and more")
	case n < 1 || n > maxFleetNodes:
		return usagef("--nodes %d: write 1, or 3 to %d", n, maxFleetNodes)
	}
	return nil
}

// checkDevDir refuses a directory that holds something else than a start with so
// many nodes makes, and changes nothing.
func checkDevDir(dir string, nodes int) error {
	plan, err := readFleetPlan(dir)
	if err != nil {
		return err
	}
	elsewhere := "or choose another directory: --data-dir " + shellQuote(fmt.Sprintf("%s-%d", filepath.Clean(dir), nodes))
	switch {
	case plan != nil && nodes == 1:
		return usagef("%s holds a fleet of %d nodes; start it with --nodes %d, %s", dir, plan.Nodes, plan.Nodes, elsewhere)
	case plan != nil && plan.Nodes != nodes:
		return usagef("%s holds a fleet of %d nodes, and its log is spread over them; start it with --nodes %d, %s", dir, plan.Nodes, plan.Nodes, elsewhere)
	case plan == nil && nodes > 1:
		for _, name := range []string{"ID", "badger", "jetstream"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return usagef("%s holds a single node; start it without --nodes, %s", dir, elsewhere)
			}
		}
	}
	return nil
}

// readFleetPlan reads the plan of an existing fleet; nil when there is none.
func readFleetPlan(dir string) (*fleetPlan, error) {
	path := filepath.Join(dir, fleetFile)
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("data directory %s: %w", dir, pathError(err))
	}
	var p fleetPlan
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; restore it, or choose another --data-dir", path, err)
	}
	whole := p.Format == fleetFormat && p.Nodes >= logNodes && p.Nodes <= maxFleetNodes && p.Secret != "" && len(p.Routes) == logNodes
	if !whole || p.Nodes > logNodes && len(p.Listen) != logNodes {
		return nil, fmt.Errorf("%s describes no fleet that this build can start; use the build that made it, or choose another --data-dir", path)
	}
	return &p, nil
}

// newFleetPlan chooses what a fleet keeps for ever.
func newFleetPlan(ctx context.Context, nodes int) (*fleetPlan, error) {
	servers := logNodes
	if nodes > logNodes {
		servers *= 2
	}
	ports, err := freePorts(ctx, servers)
	if err != nil {
		return nil, err
	}
	p := &fleetPlan{Format: fleetFormat, Nodes: nodes, Secret: rand.Text(), Routes: ports[:logNodes]}
	if nodes > logNodes {
		p.Listen = ports[logNodes:]
	}
	return p, nil
}

// write keeps the plan: aside and renamed, so that a crash leaves all or none.
func (p *fleetPlan) write(dir string) error {
	raw, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(dir, fleetFile), append(raw, '\n'))
}

func writeWhole(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Ports of a fleet are kept, so they are taken from below the range in which the
// kernel gives out ports for a moment, and from none that is in common use.
const (
	lowestPort  = 20_000
	highestPort = 30_000
	portTries   = 200
)

// freePorts finds addresses on loopback that nobody listens on.
func freePorts(ctx context.Context, n int) ([]string, error) {
	var lc net.ListenConfig
	var found []string
	for range portTries {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowestPort+randv2.IntN(highestPort-lowestPort)))
		if slices.Contains(found, addr) {
			continue
		}
		l, err := lc.Listen(ctx, "tcp", addr)
		if err != nil {
			continue
		}
		_ = l.Close()
		if found = append(found, addr); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports on 127.0.0.1 between %d and %d", n, lowestPort, highestPort)
}

func fleetNodeID(i int) string { return fmt.Sprintf("node-%d", i) }

// carriesLog says whether node i (from 1) is one of the servers.
func (p *fleetPlan) carriesLog(i int) bool { return i <= len(p.Routes) }

// settings is what node i's file sets, by path, as a flag would.
func (p *fleetPlan) settings(i int, dir, listen string, ttlSeconds int) (map[string]string, error) {
	api, err := nthListen(listen, i)
	if err != nil {
		return nil, err
	}
	set := map[string]string{
		"node.id": fleetNodeID(i), "node.roles": strings.Join(nodeRoles, ","), "data_dir": filepath.Join(dir, fleetNodeID(i)),
		"stream.replicas":   strconv.Itoa(len(p.Routes)),
		"coordination.type": coordinationEmbeddedKV, "coordination.lease_ttl_seconds": strconv.Itoa(ttlSeconds),
		"api.listen": api, "logging.format": "text", "logging.stderr": "true", // the supervisor reads the log
	}
	if !p.carriesLog(i) {
		set["stream.type"] = streamExternal
		set["stream.urls"] = p.urls("nats", p.Listen)
		return set, nil
	}
	set["stream.type"] = streamEmbedded
	set["stream.cluster.name"] = "dev"
	set["stream.cluster.listen"] = p.Routes[i-1]
	set["stream.cluster.routes"] = p.urls("nats-route", p.Routes)
	if p.Listen != nil {
		set["stream.listen"] = p.Listen[i-1]
	}
	return set, nil
}

func (p *fleetPlan) urls(scheme string, addrs []string) string {
	all := make([]string, len(addrs))
	for i, addr := range addrs {
		all[i] = (&url.URL{Scheme: scheme, User: url.UserPassword(clusterUser, p.Secret), Host: addr}).String()
	}
	return strings.Join(all, ",")
}

// nthListen is node i's address when node 1 has this one: the ports follow each
// other. Port 0 takes a free one for each.
func nthListen(listen string, i int) (string, error) {
	host, port, err := splitListen(listen)
	switch {
	case err != nil:
		return "", usagef("--listen %q is not host:port; write one such as 127.0.0.1:8420", listen)
	case port == 0:
		return listen, nil
	case port+i-1 > 65535:
		return "", usagef("--listen %s: node %d would be on port %d, and 65535 is the last", listen, i, port+i-1)
	}
	return net.JoinHostPort(host, strconv.Itoa(port+i-1)), nil
}
