package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/examples"
)

// devCommand is `tenure dev`: everything on this machine, with the company Acme.
func devCommand() *cobra.Command {
	var dataDir, listen, companyFile, natsListen string
	var ephemeral bool
	var ttl int
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "run one node on this machine, with a demo company",
		Long: "Runs a whole fleet of one on this machine: the event log, the node and its API.\n" +
			"The demo company Acme has the seats lead, writer, reviewer, support and ops,\n" +
			"whose agents echo what they are sent. Data is kept between starts, in\n" +
			"$XDG_STATE_HOME/tenure/dev unless --data-dir names another place.",
		Example: "  tenure dev\n  tenure dev --ephemeral --listen 127.0.0.1:0\n  tenure dev --company company.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ephemeral {
				dir, err := os.MkdirTemp("", "tenure-dev-")
				if err != nil {
					return err
				}
				defer func() { _ = os.RemoveAll(dir) }()
				dataDir = dir
			} else if dataDir == "" {
				dataDir = stateDir()
			}
			doc := &companyDoc{"the demo company", examples.AcmeCompany}
			if companyFile != "" {
				raw, err := os.ReadFile(companyFile)
				if err != nil {
					return &exitError{exitBadConfig, fmt.Errorf("company file %s: %w", companyFile, pathError(err))}
				}
				doc = &companyDoc{companyFile, raw}
			}
			cfg, err := devConfig(dataDir, listen, natsListen, ttl)
			if err != nil {
				return err
			}
			return runNode(cmd.Context(), cfg, doc, cmd.ErrOrStderr(), func(n *node) {
				devBanner(cmd.OutOrStdout(), n, ephemeral)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dataDir, "data-dir", "", "where data is kept (default $XDG_STATE_HOME/tenure/dev)")
	f.BoolVar(&ephemeral, "ephemeral", false, "keep nothing: use a temporary directory and remove it at the end")
	f.StringVar(&listen, "listen", DefaultConfig().API.Listen, "address of the API; port 0 takes a free one")
	f.StringVar(&natsListen, "nats-listen", "", "also let NATS clients on this machine send mail, at host:port")
	f.StringVar(&companyFile, "company", "", "company file instead of Acme")
	f.IntVar(&ttl, "lease-ttl-seconds", DefaultConfig().Coordination.LeaseTTLSeconds, "lease TTL of a fleet that starts here")
	cmd.MarkFlagsMutuallyExclusive("data-dir", "ephemeral")
	return cmd
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

// devConfig is the default configuration with a few values of its own.
func devConfig(dataDir, listen, natsListen string, ttl int) (Config, error) {
	flags := map[string]string{
		flagName("data_dir"): dataDir, flagName("api.listen"): listen, flagName("stream.listen"): natsListen,
		flagName("coordination.lease_ttl_seconds"): fmt.Sprint(ttl), flagName("node.id"): "dev",
	}
	cfg, _, err := LoadConfig("", nil, flags)
	if err != nil {
		return Config{}, &exitError{exitUsage, err}
	}
	return cfg, nil
}

// devBanner says where the node is and what to try.
func devBanner(w io.Writer, n *node, ephemeral bool) {
	kept := n.cfg.DataDir
	if ephemeral {
		kept += " (removed at the end)"
	}
	addr := ""
	if n.url() != "http://"+DefaultConfig().API.Listen {
		addr = " --addr " + n.url()
	}
	fmt.Fprintf(w, `
Tenure is running: company Acme, five seats, one node.

  API    %s/graphql
  data   %s

Three things to try in another terminal:

  bin/tenure%[3]s send writer --data '{"text":"hello"}' --wait
  bin/tenure%[3]s fleet
  bin/tenure%[3]s audit

Ctrl-C gives the seats back and stops.

`, n.url(), kept, addr)
}
