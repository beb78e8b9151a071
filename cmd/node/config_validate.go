package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/events"
)

// Bounds of the timings and limits, and why.
const (
	minTTLSeconds           = 3    // the heartbeat is a third of it, the clock bound 250 ms
	minReplicatedTTLSeconds = 15   // a replicated stream takes 4 to 7 s to fail over
	maxTTLSeconds           = 3600 // a dead node's seats are dark for so long
	minSweepInterval        = 100 * time.Millisecond
	maxSweepInterval        = 5 * time.Minute
	maxPerSweep             = 10_000
	minMailboxTick          = 100 * time.Millisecond
	maxMailboxGrace         = 365 * 24 * time.Hour
)

// Validate says whether the values are possible, each by itself and together.
// The error is strictyaml.Problems, each pointing at where its value came from.
func (c Config) Validate(sources Sources) error {
	if problems := validateConfig(c, sources, nil); len(problems) > 0 {
		return problems
	}
	return nil
}

// configCheck gathers problems. A value that could not be read (bad) has its
// problem already: checks that rest on it stay silent.
type configCheck struct {
	c        Config
	sources  Sources
	bad      map[string]bool
	problems strictyaml.Problems
}

func validateConfig(c Config, sources Sources, bad map[string]bool) strictyaml.Problems {
	k := &configCheck{c: c, sources: sources, bad: bad}
	k.node()
	k.stream()
	if c.Clustered() {
		k.cluster()
	}
	k.coordination()
	k.seat()
	k.mailbox()
	k.api()
	k.logging()
	k.ports()
	return k.problems
}

// refuse reports a problem on path, unless path or one of the other values it
// rests on was never read.
func (k *configCheck) refuse(path, message, fix string, restsOn ...string) {
	if k.bad[path] || slices.ContainsFunc(restsOn, func(p string) bool { return k.bad[p] }) {
		return
	}
	from := k.sources[path]
	k.problems = append(k.problems, strictyaml.Problem{
		Source: from.Name, Path: path, Line: from.Line, Column: from.Column, Message: message, Fix: fix,
	})
}

func (k *configCheck) oneOf(path, value string, known ...string) {
	if slices.Contains(known, value) {
		return
	}
	fix := "write " + strings.Join(known, " or ")
	if near := strictyaml.Nearest(value, known, 1); len(near) == 1 {
		fix = "write " + near[0]
	}
	k.refuse(path, strictyaml.Quote(value)+" is not one of "+strings.Join(known, ", "), fix)
}

func (k *configCheck) between(path string, value, low, high int) {
	if value < low || value > high {
		k.refuse(path, fmt.Sprintf("%d is outside %d to %d", value, low, high), fmt.Sprintf("write a number from %d to %d", low, high))
	}
}

func (k *configCheck) token(path, value, example string) {
	if events.ValidHandle(value) != nil {
		k.refuse(path, strictyaml.Quote(value)+" is not "+company.TokenRule, "write one such as "+example)
	}
}

func (k *configCheck) node() {
	k.token("node.id", k.c.Node.ID, "node-1")
	for _, key := range slices.Sorted(maps.Keys(k.c.Node.Labels)) {
		value := k.c.Node.Labels[key]
		if !company.ValidLabel(key) || !company.ValidLabel(value) {
			k.refuse("node.labels", strictyaml.Quote(key+": "+value)+" is no label: key and value are each "+company.LabelRule, "write one such as zone: eu-west")
		}
	}
	roles := k.c.Node.Roles
	if len(roles) == 0 {
		k.refuse("node.roles", "names no role, so the node would do nothing", "write some of "+strings.Join(nodeRoles, ", "))
	}
	for i, role := range roles {
		k.oneOf("node.roles", role, nodeRoles...)
		if slices.Contains(roles[:i], role) {
			k.refuse("node.roles", strictyaml.Quote(role)+" stands twice", "write it once")
		}
	}
	if k.c.DataDir == "" {
		k.refuse("data_dir", "is empty", "write a folder such as ./data")
	}
}

func (k *configCheck) coordination() {
	co := k.c.Coordination
	k.oneOf("coordination.type", co.Type, coordinationLocal, coordinationEmbeddedKV)
	// N1: local leases never leave the process, so each node of a fleet would
	// own the whole company.
	if co.Type == coordinationLocal {
		const fix = "write embedded-kv, so that leases ride the stream all nodes share"
		switch {
		case k.c.Clustered():
			k.refuse("coordination.type", "local beside a clustered embedded stream: every node would believe that it owns the whole company", fix, "stream.type")
		case k.c.Stream.Type == streamExternal:
			k.refuse("coordination.type", "local beside an external stream: every node would believe that it owns the whole company", fix, "stream.type")
		}
	}
	const path = "coordination.lease_ttl_seconds"
	switch ttl := co.LeaseTTLSeconds; {
	case ttl < minTTLSeconds:
		k.refuse(path, fmt.Sprintf("%d seconds is too short to renew three times", ttl), fmt.Sprintf("write 45, or at least %d", minTTLSeconds))
	case ttl > maxTTLSeconds:
		k.refuse(path, fmt.Sprintf("%d seconds: a dead node's seats would wait for all of it", ttl), fmt.Sprintf("write 45, or at most %d", maxTTLSeconds))
	case ttl < minReplicatedTTLSeconds && k.c.Stream.Replicas > 1:
		k.refuse(path, fmt.Sprintf("%d seconds on a stream with %d replicas, which takes 4 to 7 s to fail over: healthy nodes would lose their seats", ttl, k.c.Stream.Replicas),
			fmt.Sprintf("write 45, or at least %d", minReplicatedTTLSeconds), "stream.replicas")
	}
}

// mailbox bounds what is deleted, and when. Every mistake in here costs mail.
func (k *configCheck) mailbox() {
	for _, d := range []struct {
		path      string
		value     time.Duration
		low, high time.Duration
		fix       string
	}{
		{"mailbox.grace", k.c.Mailbox.Grace, time.Second, maxMailboxGrace, "write 24h"},
		{"mailbox.tick", k.c.Mailbox.Tick, minMailboxTick, time.Hour, "write 15m"},
		{"mailbox.retire_budget", k.c.Mailbox.RetireBudget, 100 * time.Millisecond, 10 * time.Minute, "write 30s"},
		{"mailbox.resume_after", k.c.Mailbox.ResumeAfter, time.Second, 24 * time.Hour, "write 15m"},
	} {
		if d.value < d.low || d.value > d.high {
			k.refuse(d.path, fmt.Sprintf("%s is outside %s to %s", strictyaml.ShortDuration(d.value), strictyaml.ShortDuration(d.low), strictyaml.ShortDuration(d.high)), d.fix)
		}
	}
	if m := k.c.Mailbox; m.ResumeAfter < m.RetireBudget {
		k.refuse("mailbox.resume_after", fmt.Sprintf("%s is less than the budget of %s, in which a retirement may still be at work",
			strictyaml.ShortDuration(m.ResumeAfter), strictyaml.ShortDuration(m.RetireBudget)), "write 15m", "mailbox.retire_budget")
	}
}

func (k *configCheck) seat() {
	k.oneOf("seat.limits", k.c.Seat.Limits, "adaptive", "fixed")
	k.between("seat.claim_limit_per_sweep", k.c.Seat.ClaimLimitPerSweep, 1, maxPerSweep)
	k.between("seat.release_limit_per_sweep", k.c.Seat.ReleaseLimitPerSweep, 1, maxPerSweep)
	if d := k.c.Seat.SweepInterval; d < minSweepInterval || d > maxSweepInterval {
		k.refuse("seat.sweep_interval", fmt.Sprintf("%s is outside %s to %s", strictyaml.ShortDuration(d), strictyaml.ShortDuration(minSweepInterval), strictyaml.ShortDuration(maxSweepInterval)), "write 5s")
	}
}

func (k *configCheck) api() {
	api := k.c.API
	if (api.TLS.Cert == "") != (api.TLS.Key == "") {
		path, other := "api.tls.key", "api.tls.cert"
		if api.TLS.Cert == "" {
			path, other = other, path
		}
		k.refuse(path, "is missing beside "+other, "write both, or neither", other)
	}
	if !slices.Contains(k.c.Node.Roles, "api") {
		return // it listens nowhere
	}
	host, ok := k.listen("api.listen", api.Listen)
	if ok && !loopbackHost(host) && api.Tokens == "" {
		k.refuse("api.tokens", "is missing while api.listen is "+api.Listen+": whoever reaches it could move and stop seats",
			"write a file with tokens, and api.tls to keep them off the wire in the clear; or listen on 127.0.0.1", "api.listen", "node.roles")
	}
}

func (k *configCheck) logging() {
	k.oneOf("logging.level", k.c.Logging.Level, "debug", "info", "warn", "error")
	k.oneOf("logging.format", k.c.Logging.Format, "text", "json")
	if !k.c.Logging.Stderr && k.c.Logging.File == "" {
		k.refuse("logging.stderr", "false without logging.file: no log would be written at all", "write logging.file, or true", "logging.file")
	}
}
