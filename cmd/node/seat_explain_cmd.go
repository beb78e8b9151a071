package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
)

const explanationFields = `handle verdict holder group eligible rules why`

type explanation struct {
	Handle   string   `json:"handle"`
	Verdict  string   `json:"verdict"`
	Holder   *string  `json:"holder"`
	Group    string   `json:"group"`
	Eligible []string `json:"eligible"`
	Rules    []string `json:"rules"`
	Why      string   `json:"why"`
}

const explainQuery = `query($handle: ID!, $without: [ID!]) { ` + asOfFields + ` explanation: explainPlacement(handle: $handle, without: $without) { ` + explanationFields + ` } }`

type explained struct {
	AsOf        asOf         `json:"asOf"`
	Explanation *explanation `json:"explanation"`
}

func (c *cli) seatExplainCommand() *cobra.Command {
	var without []string
	cmd := &cobra.Command{
		Use:   "explain HANDLE",
		Short: "why a seat is where it is, or with nobody",
		Long: `Judges one seat by the arithmetic that nodes place seats by: which nodes may run
it, who holds it, and what would happen next. With --without, as if those nodes had
left and their seats were free. It asks for nothing to be changed.

The verdicts: placed; surplus (its holder has more than its share, and gives it
back); leaving (its holder is cordoned, draining or withdrawn); misplaced (its
holder does not match its placement); waiting (its holder is gone, its lease not
yet over); unproven (its teardown keeps failing); free; unplaceable (no node may
run it); removed (the company has no such seat); unknown.`,
		Example: "  tenure seat explain writer\n  tenure seat explain writer --without node-1,node-2",
		Args:    oneHandle,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range append([]string{args[0]}, without...) {
				if err := validName(name); err != nil {
					return err
				}
			}
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			variables := map[string]any{"handle": args[0]}
			if len(without) > 0 {
				variables["without"] = without
			}
			got, err := ask[explained](cmd.Context(), cl, explainQuery, variables)
			if err != nil {
				return err
			}
			if got.Explanation == nil {
				return fmt.Errorf("the log has never named a seat %q (%s); `tenure seat ls` lists those there are", args[0], got.AsOf.sentence(c.now()))
			}
			return c.writeExplanation(cmd, got)
		},
	}
	cmd.Flags().StringSliceVar(&without, "without", nil, "judge as if these nodes had left")
	return cmd
}

func (c *cli) writeExplanation(cmd *cobra.Command, e explained) error {
	out := c.output(cmd)
	if out.format != formatText {
		return out.json(e)
	}
	x := e.Explanation
	err := out.table(nil, [][]string{
		{"seat", plain(x.Handle)},
		{"verdict", plain(x.Verdict)},
		{"why", plain(x.Why)},
		{"node", given(x.Holder)},
		{"placement", plain(cmp.Or(x.Group, none))},
		{"may run it", list(x.Eligible)},
		{"rules", list(x.Rules)},
	})
	if err != nil {
		return err
	}
	c.standing(cmd, e.AsOf)
	return nil
}
