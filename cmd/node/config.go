package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/duty"
)

// Config is everything that can be set for one node. Where a value comes from:
// flags win over the environment, the environment over the node file, the file
// over DefaultConfig. Timings that follow from others (heartbeat, bound) are
// computed where they are used and cannot be set. Relative paths are relative
// to the working directory.
type Config struct {
	Node         NodeSection
	DataDir      string // LOCK, badger/ and jetstream/
	Stream       StreamSection
	Coordination CoordinationSection
	Seat         SeatSection
	Mailbox      MailboxSection
	API          APISection
	Logging      LoggingSection
}

// NodeSection is who this node is.
type NodeSection struct {
	ID     string            // stable over restarts, a subject token (L1)
	Labels map[string]string // what placements select by (P3)
	Roles  []string          // what it does: seats, api, workers, data
}

// StreamSection is the log this node stands on.
type StreamSection struct {
	Type        string // embedded or external
	Prefix      string // first token of every subject
	Listen      string // host:port for clients of the embedded server; "" for none
	Replicas    int    // of each stream: 1, 3 or 5
	Cluster     ClusterSection
	URLs        []string // of an external server
	Credentials string   // file; external
}

// ClusterSection joins three or five embedded servers into one.
type ClusterSection struct {
	Name   string
	Listen string   // host:port for the other servers
	Routes []string // every server of the cluster, this one too
}

// CoordinationSection is how leases are kept.
type CoordinationSection struct {
	Type            string // local or embedded-kv
	LeaseTTLSeconds int    // the fleet's own value wins once it has one (L7)
}

// SeatSection bounds a placement pass (P2, P4, P5).
type SeatSection struct {
	Limits               string // adaptive: the limits below are floors; fixed: they hold exactly
	SweepInterval        time.Duration
	ClaimLimitPerSweep   int
	ReleaseLimitPerSweep int
}

// MailboxSection times the retirement of removed seats' mailboxes (R1, R4, R8).
type MailboxSection struct {
	Grace        time.Duration // how long a seat must have been seen missing
	Tick         time.Duration // between two sweeps
	RetireBudget time.Duration // of one retirement; half the lease TTL where that is less
	ResumeAfter  time.Duration // a mark that has not moved for so long was left
}

func (m MailboxSection) timings() duty.Timings {
	return duty.Timings{Grace: m.Grace, Tick: m.Tick, Budget: m.RetireBudget, ResumeAfter: m.ResumeAfter}
}

// APISection is where people and programs reach this node.
type APISection struct {
	Listen string // host:port
	Tokens string // file
	TLS    TLSSection
}

// TLSSection serves the API over TLS: both files, or neither.
type TLSSection struct{ Cert, Key string }

// LoggingSection is where the log goes.
type LoggingSection struct {
	Level  string // debug, info, warn or error
	Format string // text or json
	Stderr bool
	File   string // "" for none
}

// The words that choose a way of working.
const (
	streamEmbedded = "embedded"
	streamExternal = "external"

	coordinationLocal      = "local"
	coordinationEmbeddedKV = "embedded-kv"
)

// nodeRoles is what a node can be asked to do.
var nodeRoles = []string{"seats", "api", "workers", "data"}

// DefaultConfig is a single node on this machine that needs no file.
func DefaultConfig() Config {
	return Config{
		Node:         NodeSection{ID: "node-0", Labels: map[string]string{}, Roles: slices.Clone(nodeRoles)},
		DataDir:      "./data",
		Stream:       StreamSection{Type: streamEmbedded, Prefix: "crewlet", Replicas: 1},
		Coordination: CoordinationSection{Type: coordinationLocal, LeaseTTLSeconds: 45},
		Seat:         SeatSection{Limits: "adaptive", SweepInterval: 5 * time.Second, ClaimLimitPerSweep: 4, ReleaseLimitPerSweep: 2},
		Mailbox:      MailboxSection{Grace: 24 * time.Hour, Tick: 15 * time.Minute, RetireBudget: 30 * time.Second, ResumeAfter: 15 * time.Minute},
		API:          APISection{Listen: "127.0.0.1:8420"},
		Logging:      LoggingSection{Level: "info", Format: "text", Stderr: true},
	}
}

// TTL is the lease TTL that this node brings along.
func (c Config) TTL() time.Duration {
	return time.Duration(c.Coordination.LeaseTTLSeconds) * time.Second
}

// Clustered says that the embedded server is one of several.
func (c Config) Clustered() bool {
	k := c.Stream.Cluster
	return c.Stream.Type == streamEmbedded && (k.Name != "" || k.Listen != "" || len(k.Routes) > 0)
}

// maxNodeFile bounds the node file, in bytes.
const maxNodeFile = 1 << 20

// LoadConfig puts the configuration together and validates it. An empty path
// means no file; env is as os.Environ gives it; flags are those that were set,
// by name without dashes (flagName). The error is strictyaml.Problems: every
// problem of every source at once, and then the Config is not to be used.
func LoadConfig(path string, env []string, flags map[string]string) (Config, Sources, error) {
	l := &configLoader{config: DefaultConfig(), sources: Sources{}, bad: map[string]bool{}}
	for _, f := range configFields {
		l.sources[f.path] = Source{Kind: fromDefault, Name: path}
	}
	if path != "" {
		l.readFile(path)
	}
	l.readEnv(env)
	l.readFlags(flags)
	l.problems = append(l.problems, validateConfig(l.config, l.sources, l.bad)...)
	if len(l.problems) == 0 {
		return l.config, l.sources, nil
	}
	slices.SortStableFunc(l.problems, func(a, b strictyaml.Problem) int {
		if placed := cmp.Compare(min(b.Line, 1), min(a.Line, 1)); placed != 0 {
			return placed // what has a line in the file first
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return Config{}, nil, l.problems
}
