package main

import (
	"github.com/spf13/cobra"
)

func (c *cli) eventCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "event",
		Short: "the log: what happened, in order",
		Long: `Everything that ownership rests on is an event of the log, in one total order per
stream. FLEET has the leases, the company and the hosts' reports; CURSOR what
mailboxes have settled; WORK the completions; DEAD the mail that was set aside.`,
		Example: "  tenure event tail --seat writer\n  tenure event export --file history.jsonl",
	}, c.eventTailCommand(), c.eventExportCommand())
}
