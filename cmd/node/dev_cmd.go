package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/examples"
)

// devFlags is what `tenure dev` was called with.
type devFlags struct {
	nodes                                    int
	dataDir, listen, natsListen, companyFile string
	ephemeral                                bool
	ttlSeconds                               int // 0 for the default
}

// devCommand is `tenure dev`: everything on this machine, with the company Acme.
func devCommand() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "run one node, or a fleet of them, on this machine, with a demo company",
		Long: "Runs a whole fleet of one on this machine: the event log, the node and its API.\n" +
			"The demo company Acme has the seats lead, writer, reviewer, support and ops,\n" +
			"whose agents echo what they are sent. Data is kept between starts, in\n" +
			"$XDG_STATE_HOME/tenure/dev unless --data-dir names another place.\n\n" +
			"With --nodes N each node is a process of its own: node i listens on the port\n" +
			"of --listen + i - 1, the first three carry the log, the others are its clients.\n" +
			"DIR/node-i holds the node's file, and while it runs its pid and addr. Kill one\n" +
			"and see the others take its seats. None is restarted; all end with this one.",
		Example: "  tenure dev\n  tenure dev --ephemeral --listen 127.0.0.1:0\n  tenure dev --nodes 3 --data-dir ./fleet\n  tenure dev --company company.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if f.ephemeral {
				dir, err := os.MkdirTemp("", "tenure-dev-")
				if err != nil {
					return err
				}
				defer func() { _ = os.RemoveAll(dir) }()
				f.dataDir = dir
			} else if f.dataDir == "" {
				f.dataDir = stateDir()
			}
			if err := checkDevDir(f.dataDir, f.nodes); err != nil {
				return err
			}
			doc, err := f.company()
			if err != nil {
				return err
			}
			if f.nodes > 1 {
				return f.runFleet(cmd.Context(), doc, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			cfg, err := f.config()
			if err != nil {
				return err
			}
			return runNode(cmd.Context(), cfg, doc, cmd.ErrOrStderr(), func(n *node) {
				devBanner(cmd.OutOrStdout(), n, f.ephemeral)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func (f *devFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.nodes, "nodes", 1, "how many nodes: 1, or 3 and more, each a process")
	flags.StringVar(&f.dataDir, "data-dir", "", "where data is kept (default $XDG_STATE_HOME/tenure/dev)")
	flags.BoolVar(&f.ephemeral, "ephemeral", false, "keep nothing: use a temporary directory and remove it at the end")
	flags.StringVar(&f.listen, "listen", DefaultConfig().API.Listen, "address of the API, of node 1's in a fleet; port 0 takes a free one")
	flags.StringVar(&f.natsListen, "nats-listen", "", "also let NATS clients on this machine send mail, at host:port; one node only")
	flags.StringVar(&f.companyFile, "company", "", "company file instead of Acme, taken up as run does")
	flags.IntVar(&f.ttlSeconds, "lease-ttl-seconds", 0, fmt.Sprintf("lease TTL of a fleet that starts here (default %d, with --nodes %d)",
		DefaultConfig().Coordination.LeaseTTLSeconds, fleetTTLSeconds))
}

func (f *devFlags) check() error {
	if err := checkFleetSize(f.nodes); err != nil {
		return err
	}
	if f.ephemeral && f.dataDir != "" {
		return usagef("--ephemeral keeps nothing, and --data-dir says where to keep it; leave one of them out")
	}
	if f.nodes > 1 && f.natsListen != "" {
		return usagef("--nats-listen goes with one node; write stream.listen into the node files of a fleet of your own, as in examples/fleet")
	}
	return nil
}

// company is the document the fleet starts with.
func (f *devFlags) company() (*companyDoc, error) {
	if f.companyFile == "" {
		return &companyDoc{name: "the demo company", doc: examples.AcmeCompany, first: true}, nil
	}
	raw, err := os.ReadFile(f.companyFile)
	if err != nil {
		return nil, &exitError{exitBadConfig, fmt.Errorf("company file %s: %w", f.companyFile, pathError(err))}
	}
	return &companyDoc{name: f.companyFile, doc: raw}, nil
}

func (f *devFlags) runFleet(ctx context.Context, doc *companyDoc, stdout, stderr io.Writer) error {
	dir, err := filepath.Abs(f.dataDir) // the nodes' files work from everywhere
	if err != nil {
		return err
	}
	ttl := cmp.Or(f.ttlSeconds, fleetTTLSeconds)
	return runFleet(ctx, devFleet{f.nodes, dir, f.ephemeral, f.listen, ttl, doc}, stdout, stderr)
}

// stateDir is where programs keep what should survive a restart.
func stateDir() string {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return filepath.Join(".", "data")
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "tenure", "dev")
}

// config is the default configuration with a few values of its own.
func (f *devFlags) config() (Config, error) {
	ttl := cmp.Or(f.ttlSeconds, DefaultConfig().Coordination.LeaseTTLSeconds)
	flags := map[string]string{
		flagName("data_dir"): f.dataDir, flagName("api.listen"): f.listen, flagName("stream.listen"): f.natsListen,
		flagName("coordination.lease_ttl_seconds"): fmt.Sprint(ttl), flagName("node.id"): "dev",
	}
	cfg, _, err := LoadConfig("", nil, flags)
	if err != nil {
		return Config{}, &exitError{exitUsage, ofDev(err)}
	}
	return cfg, nil
}

// devFlagOf has the flags of dev that set a value of the node file under a name
// of their own, by the flag that run has for it.
var devFlagOf = map[string]string{
	"--api-listen": "--listen", "--stream-listen": "--nats-listen", "--coordination-lease-ttl-seconds": "--lease-ttl-seconds",
}

// ofDev names the flags that dev was called with.
func ofDev(err error) error {
	var problems strictyaml.Problems
	if !errors.As(err, &problems) {
		return err
	}
	own := slices.Clone(problems)
	for i, p := range own {
		if flag, is := devFlagOf[p.Source]; is {
			own[i].Source, own[i].Path = flag, ""
		}
	}
	return own
}

// devBanner says where the node is and what to try.
func devBanner(w io.Writer, n *node, ephemeral bool) {
	kept := n.cfg.DataDir
	if ephemeral {
		kept += " (removed at the end)"
	}
	c, _ := n.roster.current()
	addr := ""
	if n.url() != "http://"+DefaultConfig().API.Listen {
		addr = " --addr " + n.url()
	}
	fmt.Fprintf(w, `
Tenure is running: %s, one node.

  API    %s/graphql
  data   %s

Three things to try in another terminal:

  %[4]s send %[5]s --data '{"text":"hello"}' --wait
  %[4]s fleet
  %[4]s audit

Ctrl-C gives the seats back and stops.

`, companyWords(c), n.url(), kept, shellQuote(os.Args[0])+addr, aSeat(c))
}
