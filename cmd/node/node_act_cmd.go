package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (c *cli) nodeCordonCommand() *cobra.Command {
	return c.nodeVerb(nodeVerb{
		verb: "cordon", mutation: "cordonNode", would: "make %s claim nothing more, and keep the seats it has: %s",
		short: "make a node claim nothing more",
		long: `Makes a node claim no seats. It keeps those it has; to empty it, drain it. A cordon
ends with "tenure node uncordon", and with the node's process: one that is started
again claims.`,
		example: "  tenure node cordon node-1 --reason 'disk is being replaced'\n  tenure node cordon node-1 --dry-run",
	})
}

func (c *cli) nodeUncordonCommand() *cobra.Command {
	return c.nodeVerb(nodeVerb{
		verb: "uncordon", mutation: "uncordonNode", would: "let %s claim seats again; it has %s",
		short: "let a node claim seats again",
		long: `Ends a cordon, and calls off a drain that has not ended. What the node has begun to
hand over still goes.`,
		example: "  tenure node uncordon node-1 --reason 'disk is replaced'",
	})
}

type nodeVerb struct {
	verb, mutation, would string
	short, long, example  string
}

func (c *cli) nodeVerb(v nodeVerb) *cobra.Command {
	var a act
	cmd := &cobra.Command{
		Use: v.verb + " ID", Short: v.short, Long: v.long, Example: v.example, Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := validName(args[0]); err != nil {
				return err
			}
			if err := a.check(); err != nil {
				return err
			}
			return c.nodeOperation(cmd, args[0], &a, v)
		},
	}
	a.add(cmd)
	return cmd
}

func (c *cli) nodeOperation(cmd *cobra.Command, id string, a *act, v nodeVerb) error {
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	if a.dryRun {
		plan, err := planNode(cmd, cl, id)
		if err != nil {
			return err
		}
		return c.output(cmd).would(fmt.Sprintf(v.would, id, plan.seats()), plan.AsOf)
	}
	if err := c.confirm(cmd, a, v.verb+" node "+id); err != nil {
		return err
	}
	op, err := operate(cmd, cl, "$id: ID!, $reason: String!", v.mutation+"(id: $id, reason: $reason)",
		map[string]any{"id": id, "reason": a.reason})
	if err != nil {
		return err
	}
	return c.output(cmd).accepted(v.verb+" node "+id, op)
}

// nodePlan is what a dry run looks at.
type nodePlan struct {
	AsOf asOf `json:"asOf"`
	Node *struct {
		State     string `json:"state"`
		SeatsHeld *int   `json:"seatsHeld"`
	} `json:"node"`
}

func (p nodePlan) seats() string {
	if p.Node.SeatsHeld == nil {
		return unknown + " seats"
	}
	return count(*p.Node.SeatsHeld, "seat")
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// planNode looks at a node; one that would be refused is an error.
func planNode(cmd *cobra.Command, cl *client, id string) (nodePlan, error) {
	p, err := ask[nodePlan](cmd.Context(), cl, `query($id: ID!) { `+asOfFields+` node(id: $id) { state seatsHeld } }`, map[string]any{"id": id})
	switch {
	case err != nil:
		return p, err
	case p.Node == nil:
		return p, fmt.Errorf("would be refused: no node %q is present; `tenure node ls` lists those there are", id)
	case p.Node.State == "LAPSED":
		return p, fmt.Errorf("would be refused: node %q is dead or cut off, its presence has lapsed", id)
	}
	return p, nil
}
