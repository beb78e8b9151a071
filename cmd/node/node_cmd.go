package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (c *cli) nodeCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "node",
		Short:   "nodes of the fleet: see them, empty them",
		Long:    "A node is one process under a name that stays over restarts; each of its runs\nis an incarnation.",
		Example: "  tenure node ls\n  tenure node drain node-1 --reason 'kernel update'",
	}, c.nodeListCommand(), c.nodeDrainCommand(), c.nodeCordonCommand(), c.nodeUncordonCommand())
}

const nodesQuery = `query { fleet { ` + asOfFields + ` nodes { ` + nodeFields + ` } } }`

type nodeList struct {
	AsOf  asOf      `json:"asOf"`
	Nodes []apiNode `json:"nodes"`
}

func (c *cli) nodeListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "every node that is present, and how it is",
		Long: `Lists the nodes whose presence the log has. A node that took leave is not among
them; one that died stays, as LAPSED, until its name comes back. The state is
judged by the log and never by a wall clock: UNKNOWN means that the asked node
cannot tell yet.`,
		Example: "  tenure node ls\n  tenure node ls -o jsonl | jq -r 'select(.state==\"LAPSED\").id'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			got, err := ask[struct{ Fleet nodeList }](cmd.Context(), cl, nodesQuery, nil)
			if err != nil {
				return err
			}
			return c.writeNodes(cmd, got.Fleet)
		},
	}
}

func (c *cli) writeNodes(cmd *cobra.Command, l nodeList) error {
	return writeAsOf(c, cmd, listing[apiNode]{
		whole: l, items: l.Nodes,
		header: []string{"NODE", "STATE", "SEATS", "ROLES", "LABELS", "PROTOCOL", "SINCE", "EXPIRES", "INCARNATION"},
		row: func(n apiNode) []string {
			return []string{
				plain(n.ID), n.State, known(n.SeatsHeld), n.roleList(), n.labelList(), fmt.Sprint(n.Protocol),
				ago(n.Since, c.now()), until(n.PresenceExpiresAt, c.now()), plain(n.Incarnation),
			}
		},
	}, l.AsOf)
}
