package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seat-tenure/tenure/company/strictyaml"
)

// stream checks the log this node stands on, and that nothing is set that its
// type does not read: what has no effect was meant to have one.
func (k *configCheck) stream() {
	s := k.c.Stream
	k.oneOf("stream.type", s.Type, streamEmbedded, streamExternal)
	k.token("stream.prefix", s.Prefix, "crewlet")
	if s.Replicas != 1 && s.Replicas != 3 && s.Replicas != 5 {
		k.refuse("stream.replicas", fmt.Sprintf("%d copies: only an odd number outvotes a lost one", s.Replicas), "write 1, 3 or 5")
	}
	switch s.Type {
	case streamEmbedded:
		if s.Listen != "" {
			k.listen("stream.listen", s.Listen)
		}
		k.unused("stream.urls", len(s.URLs) > 0, "an external stream")
		k.unused("stream.credentials", s.Credentials != "", "an external stream")
		if s.Replicas > 1 && !k.c.Clustered() {
			k.refuse("stream.replicas", fmt.Sprintf("%d copies on one embedded server", s.Replicas), "write 1, or stream.cluster with 3 or 5 routes", "stream.type", "stream.cluster.routes")
		}
	case streamExternal:
		k.unused("stream.listen", s.Listen != "", "an embedded stream")
		k.unused("stream.cluster.name", s.Cluster.Name != "", "an embedded stream")
		k.unused("stream.cluster.listen", s.Cluster.Listen != "", "an embedded stream")
		k.unused("stream.cluster.routes", len(s.Cluster.Routes) > 0, "an embedded stream")
		k.urls()
	}
}

func (k *configCheck) unused(path string, set bool, of string) {
	if set {
		k.refuse(path, "belongs to "+of+", and stream.type is "+k.c.Stream.Type, "remove it, or change stream.type", "stream.type")
	}
}

func (k *configCheck) urls() {
	if len(k.c.Stream.URLs) == 0 {
		k.refuse("stream.urls", "is missing beside stream.type: external", "write [nats://host:4222]", "stream.type")
	}
	for _, raw := range k.c.Stream.URLs {
		u, err := url.Parse(raw)
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			k.refuse("stream.urls", strictyaml.Quote(redact(raw))+" is no URL of a server", "write one such as nats://host:4222")
		}
	}
}

// cluster checks an embedded server that is one of several.
func (k *configCheck) cluster() {
	cl := k.c.Stream.Cluster
	const rests = "stream.type"
	if cl.Name == "" || strings.ContainsAny(cl.Name, " \t\r\n") {
		k.refuse("stream.cluster.name", strictyaml.Quote(cl.Name)+" is no cluster's name", "write one word, the same on every node", rests)
	}
	if cl.Listen == "" {
		k.refuse("stream.cluster.listen", "is missing", "write host:port for the other servers, such as 0.0.0.0:6222", rests)
	} else {
		k.listen("stream.cluster.listen", cl.Listen)
	}
	// The server's name is its raft identity and comes from the node id: two
	// servers that both left it out would be one voter to the cluster.
	if k.c.Node.ID == DefaultConfig().Node.ID && k.sources["node.id"].Kind == fromDefault {
		k.refuse("node.id", "is left out in a cluster, whose servers must have names of their own", "write node.id, another one on each node", rests)
	}
	const routes = "stream.cluster.routes"
	if n := len(cl.Routes); n != 3 && n != 5 {
		k.refuse(routes, fmt.Sprintf("names %d servers, and a cluster has 3 or 5", n), "name every server, this one too; further nodes connect as clients (stream.type: external)", rests)
	} else if k.c.Stream.Replicas > n {
		k.refuse("stream.replicas", fmt.Sprintf("%d copies on %d servers", k.c.Stream.Replicas, n), fmt.Sprintf("write %d, or less", n), routes, rests)
	}
	for i, route := range cl.Routes {
		if !validRoute(route) {
			k.refuse(routes, strictyaml.Quote(redact(route))+" is no route", "write host:port, such as 10.0.0.1:6222", rests)
		}
		if slices.Contains(cl.Routes[:i], route) {
			k.refuse(routes, strictyaml.Quote(redact(route))+" stands twice", "name each server once", rests)
		}
	}
}

func validRoute(route string) bool {
	if strings.Contains(route, "://") {
		u, err := url.Parse(route)
		if err != nil || u.Scheme != "nats-route" && u.Scheme != "nats" && u.Scheme != "tls" {
			return false
		}
		route = u.Host
	}
	host, port, err := splitListen(route)
	return err == nil && host != "" && port > 0
}

// ports refuses two listeners on one port.
func (k *configCheck) ports() {
	type listener struct{ path, value string }
	listeners := []listener{}
	if slices.Contains(k.c.Node.Roles, "api") {
		listeners = append(listeners, listener{"api.listen", k.c.API.Listen})
	}
	if k.c.Stream.Type == streamEmbedded {
		listeners = append(listeners, listener{"stream.listen", k.c.Stream.Listen}, listener{"stream.cluster.listen", k.c.Stream.Cluster.Listen})
	}
	for i, a := range listeners {
		for _, b := range listeners[:i] {
			if samePort(a.value, b.value) {
				k.refuse(a.path, strictyaml.Quote(a.value)+" takes the port of "+b.path, "give each its own port", b.path, "node.roles", "stream.type")
			}
		}
	}
}

func samePort(a, b string) bool {
	hostA, portA, errA := splitListen(a)
	hostB, portB, errB := splitListen(b)
	return errA == nil && errB == nil && portA == portB && portA != 0 && (hostA == hostB || everywhere(hostA) || everywhere(hostB))
}

func everywhere(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

// listen checks host:port and returns the host.
func (k *configCheck) listen(path, value string) (host string, ok bool) {
	host, _, err := splitListen(value)
	if err != nil {
		k.refuse(path, strictyaml.Quote(value)+" is not host:port", "write one such as 127.0.0.1:8420")
		return "", false
	}
	return host, true
}

func splitListen(value string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(value)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, err
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '/' || r == '@' }) {
		return "", 0, fmt.Errorf("no host: %q", host)
	}
	return host, int(n), nil
}

func loopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// redact hides what a URL carries as user and password. In a NATS URL a user
// without a password is a token, so both go.
func redact(raw string) string {
	scheme, rest, hasScheme := strings.Cut(raw, "://")
	if !hasScheme {
		scheme, rest = "", raw
	}
	at := strings.LastIndex(rest, "@")
	if at < 0 {
		return raw
	}
	rest = "xxxxx@" + rest[at+1:]
	if hasScheme {
		return scheme + "://" + rest
	}
	return rest
}
