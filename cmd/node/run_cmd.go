package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

// runCommand is `tenure run`: one node of a fleet.
func runCommand() *cobra.Command {
	var companyFile string
	var supervised bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "run a node",
		Long: "Runs one node until it is told to stop (SIGINT or SIGTERM); then it gives its\n" +
			"seats over, turns in flight first. A second signal gives them back at once,\n" +
			"unfinished turns to be run again by whoever takes them; a third ends the\n" +
			"process there and then, and the seats lapse after one lease TTL.\n\n" +
			"With --company a document that the log has never had becomes the company's newest\n" +
			"revision. One that it has had and that was replaced since is not applied again: a\n" +
			"node that is only restarted undoes nobody's \"tenure company apply\". Without, the\n" +
			"node takes the revision that the log has.",
		Example: "  tenure run --config node.yaml --company company.yaml\n" +
			"  tenure run --node-id node-1 --stream-type external --stream-urls nats://127.0.0.1:4222 --coordination-type embedded-kv",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := configFromFlags(cmd.Flags())
			if err != nil {
				return err
			}
			var doc *companyDoc
			if companyFile != "" {
				raw, err := os.ReadFile(companyFile)
				if err != nil {
					return &exitError{exitBadConfig, fmt.Errorf("company file %s: %w", companyFile, pathError(err))}
				}
				doc = &companyDoc{name: companyFile, doc: raw}
			}
			return runNode(cmd.Context(), cfg, doc, cmd.ErrOrStderr(), func(n *node) {
				if supervised {
					n.stay = func() { _, _ = io.Copy(io.Discard, cmd.InOrStdin()) }
				}
			})
		},
	}
	addConfigFlags(cmd.Flags())
	cmd.Flags().StringVar(&companyFile, "company", "", "company file to apply at the start, if it is new to the log")
	cmd.Flags().BoolVar(&supervised, "supervised", false, "told to stop, serve the log until stdin is closed, for the nodes that still give seats back")
	_ = cmd.Flags().MarkHidden("supervised") // of a supervisor's; it fails only for a flag that is not there
	return cmd
}

// runNode runs one node until ctx ends. up is called once it serves.
func runNode(ctx context.Context, cfg Config, doc *companyDoc, stderr io.Writer, up func(*node)) error {
	log, closeLog, err := openLogger(cfg.Logging, stderr)
	if err != nil {
		return &exitError{exitBadConfig, err}
	}
	defer closeLog()
	n, err := boot(ctx, cfg, log, doc)
	if err != nil && ctx.Err() != nil { // told to stop: what it broke off is no news
		log.Info("node_stopped", "node", cfg.Node.ID, "while", "starting")
		return nil
	}
	if err != nil {
		return err
	}
	log.Info("node_started", "node", cfg.Node.ID, "owner", string(n.self), "api", n.url(), "data_dir", cfg.DataDir, "version", buildVersion())
	up(n)
	defer hurryOnSignals(ctx, n, log)()
	err = n.run(ctx)
	if err != nil {
		log.Info("node_stopped", "node", cfg.Node.ID, "err", err)
		return err
	}
	log.Info("node_stopped", "node", cfg.Node.ID)
	return nil
}

// hurryOnSignals takes the signals after the first, which ended ctx: the second
// gives everything back at once, the third ends the process there and then. The
// returned function stops that.
func hurryOnSignals(ctx context.Context, n *node, log *slog.Logger) (stop func()) {
	signals, done := make(chan os.Signal, 3), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var watching sync.WaitGroup
	watching.Go(func() {
		for count := 1; ; count++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			switch count {
			case 1:
				log.Info("node_stopping", "do", "nothing: the seats are handed over; signal again to give them back at once")
			case 2:
				log.Warn("node_stopping_at_once", "do", "signal again to end without giving back; the seats lapse then")
				n.inboxes.Hurry() // those that wait for a turn already
				n.host.Hurry(ctx)
			default:
				log.Error("node_stopped_by_force")
				os.Exit(exitForced)
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		watching.Wait()
	}
}

// openLogger makes the node's logger from its settings.
func openLogger(s LoggingSection, stderr io.Writer) (*slog.Logger, func(), error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.Level)); err != nil {
		return nil, nil, fmt.Errorf("logging.level: %w", err)
	}
	var to []io.Writer
	closeLog := func() {}
	if s.Stderr {
		to = append(to, stderr)
	}
	if s.File != "" {
		f, err := os.OpenFile(s.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("logging.file %s: %w", s.File, pathError(err))
		}
		to, closeLog = append(to, f), func() { _ = f.Close() }
	}
	out, opts := io.MultiWriter(to...), &slog.HandlerOptions{Level: level}
	if s.Format == "json" {
		return slog.New(slog.NewJSONHandler(out, opts)), closeLog, nil
	}
	return slog.New(slog.NewTextHandler(out, opts)), closeLog, nil
}
