package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/company/strictyaml"
)

// configField is one value that can be set: in the node file under its path, in
// the environment under envName(path), by the flag flagName(path).
type configField struct {
	path   string
	at     func(*Config) any // a pointer to the value
	usage  string
	secret bool // holds URLs that may carry a password
}

// configFields is every value there is, in the node file's order. File,
// environment, flags and print all go by this one table.
var configFields = []configField{
	{path: "node.id", at: func(c *Config) any { return &c.Node.ID }, usage: "stable id of this node"},
	{path: "node.labels", at: func(c *Config) any { return &c.Node.Labels }, usage: "labels that placements select by: zone=a,rack=r1"},
	{path: "node.roles", at: func(c *Config) any { return &c.Node.Roles }, usage: "what the node does: seats,api,workers,data"},
	{path: "data_dir", at: func(c *Config) any { return &c.DataDir }, usage: "folder of this node's data"},
	{path: "stream.type", at: func(c *Config) any { return &c.Stream.Type }, usage: "embedded or external"},
	{path: "stream.prefix", at: func(c *Config) any { return &c.Stream.Prefix }, usage: "first token of every subject"},
	{path: "stream.listen", at: func(c *Config) any { return &c.Stream.Listen }, usage: "host:port of the embedded server, for clients; empty for none"},
	{path: "stream.replicas", at: func(c *Config) any { return &c.Stream.Replicas }, usage: "copies of each stream: 1, 3 or 5"},
	{path: "stream.cluster.name", at: func(c *Config) any { return &c.Stream.Cluster.Name }, usage: "name of the embedded cluster"},
	{path: "stream.cluster.listen", at: func(c *Config) any { return &c.Stream.Cluster.Listen }, usage: "host:port for the cluster's other servers"},
	{path: "stream.cluster.routes", at: func(c *Config) any { return &c.Stream.Cluster.Routes }, usage: "every server of the cluster, 3 or 5, this one too", secret: true},
	{path: "stream.urls", at: func(c *Config) any { return &c.Stream.URLs }, usage: "URLs of an external server", secret: true},
	{path: "stream.credentials", at: func(c *Config) any { return &c.Stream.Credentials }, usage: "credentials file for an external server"},
	{path: "coordination.type", at: func(c *Config) any { return &c.Coordination.Type }, usage: "local (one node) or embedded-kv (a fleet)"},
	{path: "coordination.lease_ttl_seconds", at: func(c *Config) any { return &c.Coordination.LeaseTTLSeconds }, usage: "seconds a lease lives without a renewal"},
	{path: "seat.limits", at: func(c *Config) any { return &c.Seat.Limits }, usage: "adaptive or fixed"},
	{path: "seat.sweep_interval", at: func(c *Config) any { return &c.Seat.SweepInterval }, usage: "time between two placement passes"},
	{path: "seat.claim_limit_per_sweep", at: func(c *Config) any { return &c.Seat.ClaimLimitPerSweep }, usage: "seats one pass may claim"},
	{path: "seat.release_limit_per_sweep", at: func(c *Config) any { return &c.Seat.ReleaseLimitPerSweep }, usage: "seats one pass may give back"},
	{path: "mailbox.grace", at: func(c *Config) any { return &c.Mailbox.Grace }, usage: "how long a removed seat's mailbox is kept"},
	{path: "mailbox.tick", at: func(c *Config) any { return &c.Mailbox.Tick }, usage: "time between two sweeps for removed seats"},
	{path: "mailbox.retire_budget", at: func(c *Config) any { return &c.Mailbox.RetireBudget }, usage: "time that one retirement may take"},
	{path: "mailbox.resume_after", at: func(c *Config) any { return &c.Mailbox.ResumeAfter }, usage: "age from which a retirement that stands still is taken up again"},
	{path: "api.listen", at: func(c *Config) any { return &c.API.Listen }, usage: "host:port of the API"},
	{path: "api.tokens", at: func(c *Config) any { return &c.API.Tokens }, usage: "file of the API's tokens"},
	{path: "api.tls.cert", at: func(c *Config) any { return &c.API.TLS.Cert }, usage: "certificate file of the API"},
	{path: "api.tls.key", at: func(c *Config) any { return &c.API.TLS.Key }, usage: "key file of the API"},
	{path: "logging.level", at: func(c *Config) any { return &c.Logging.Level }, usage: "debug, info, warn or error"},
	{path: "logging.format", at: func(c *Config) any { return &c.Logging.Format }, usage: "text or json"},
	{path: "logging.stderr", at: func(c *Config) any { return &c.Logging.Stderr }, usage: "log to stderr"},
	{path: "logging.file", at: func(c *Config) any { return &c.Logging.File }, usage: "log to this file as well; empty for none"},
}

// envName is the variable that sets path: TENURE_API__LISTEN for api.listen.
func envName(path string) string {
	return "TENURE_" + strings.ToUpper(strings.ReplaceAll(path, ".", "__"))
}

// flagName is the flag that sets path, without dashes: api-listen.
func flagName(path string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(path) }

// Bounds of what one value may hold.
const (
	maxNodeLabels = 64
	maxListValues = 64
)

// setFromNode reads a value of the node file. What it cannot take is reported,
// and the value stays as it was.
func setFromNode(at any, n strictyaml.Node) bool {
	switch at := at.(type) {
	case *string:
		return keep(at)(n.Text())
	case *int:
		return keep(at)(n.Int())
	case *bool:
		return keep(at)(n.Bool())
	case *time.Duration:
		return keep(at)(n.Duration())
	case *[]string:
		return keep(at)(n.Texts(maxListValues))
	case *map[string]string:
		keys, values, ok := n.Entries(maxNodeLabels)
		labels := make(map[string]string, len(keys))
		for i, key := range keys {
			text, good := values[i].Text()
			ok = ok && good
			labels[key] = text
		}
		return keep(at)(labels, ok)
	}
	panic(fmt.Sprintf("config: no way to read a %T", at))
}

func keep[T any](at *T) func(T, bool) bool {
	return func(v T, ok bool) bool {
		if ok {
			*at = v
		}
		return ok
	}
}

// setFromText reads a value of a variable or a flag. It says what is wrong and
// what to write, "" when nothing is. It shows no value: a URL may hold a
// password.
func setFromText(at any, text string) (message, fix string) {
	switch at := at.(type) {
	case *string:
		*at = text
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return strictyaml.Quote(text) + " is not a whole number", "write digits alone"
		}
		*at = n
	case *bool:
		if text != "true" && text != "false" {
			return strictyaml.Quote(text) + " is not true or false", "write true or false"
		}
		*at = text == "true"
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return strictyaml.Quote(text) + " is not a duration", "write a number and a unit, such as 500ms, 30s or 10m"
		}
		*at = d
	case *[]string:
		values := splitList(text)
		if len(values) > maxListValues {
			return fmt.Sprintf("has %d values, and at most %d are read", len(values), maxListValues), "shorten the list"
		}
		*at = values
	case *map[string]string:
		labels := map[string]string{}
		for _, pair := range splitList(text) {
			key, value, ok := strings.Cut(pair, "=")
			if _, twice := labels[key]; !ok || twice || len(labels) == maxNodeLabels {
				return strictyaml.Quote(pair) + " is not one more key=value", fmt.Sprintf("write zone=a,rack=r1, each key once, at most %d", maxNodeLabels)
			}
			labels[key] = value
		}
		*at = labels
	default:
		panic(fmt.Sprintf("config: no way to read a %T", at))
	}
	return "", ""
}

func splitList(text string) []string {
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
