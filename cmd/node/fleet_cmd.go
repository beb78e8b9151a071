package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

type apiFleet struct {
	AsOf      asOf      `json:"asOf"`
	Nodes     []apiNode `json:"nodes"`
	SeatCount int       `json:"seatCount"`
	HeldCount int       `json:"heldCount"`
	LeaseTTL  string    `json:"leaseTtl"`
	// Unplaceable is nil while nobody can tell.
	Unplaceable []string `json:"unplaceable"`
}

const fleetQuery = `query { fleet { ` + asOfFields + ` nodes { ` + nodeFields + ` } seatCount heldCount leaseTtl } }`

// Asked alone: while one node may be alive or not, this part cannot be seen, and
// must not take the rest of the fleet with it.
const unplaceableQuery = `query { fleet { unplaceable } }`

func (c *cli) fleetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fleet",
		Short: "the fleet in a few lines: nodes, seats, what no node may run",
		Long: `Shows the nodes that are present and how many seats each holds, how many of the
company's seats are held, and the seats that no live node may run. REVISION is of
the company, as the node has applied it.

It is the fleet as the asked node has read the log; the last line, on stderr,
says up to which position. What that node cannot tell is shown as unknown.`,
		Example: "  tenure fleet\n  tenure fleet -o json | jq .heldCount\n  tenure fleet --addr https://node-1.acme.example:8420 --token-file token",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			f, err := askFleet(cmd.Context(), cl)
			if err != nil {
				return err
			}
			out := c.output(cmd)
			if out.format != formatText {
				return out.json(f)
			}
			if err := out.fleet(f); err != nil {
				return err
			}
			c.standing(cmd, f.AsOf)
			return nil
		},
	}
}

func askFleet(ctx context.Context, cl *client) (apiFleet, error) {
	whole, err := ask[struct{ Fleet apiFleet }](ctx, cl, fleetQuery, nil)
	if err != nil {
		return apiFleet{}, err
	}
	part, err := ask[struct{ Fleet apiFleet }](ctx, cl, unplaceableQuery, nil)
	var refused *apiError
	switch {
	case err == nil:
		whole.Fleet.Unplaceable = part.Fleet.Unplaceable
	case errors.As(err, &refused) && refused.Extensions.Code == codeUnavailable:
		cl.warn(err.Error())
	default:
		return apiFleet{}, err
	}
	return whole.Fleet, nil
}

// nodeCount is how many nodes there are; those that are not there, or of which
// nobody can tell, are told apart.
func (f apiFleet) nodeCount() string {
	var lapsed, unknowable int
	for _, n := range f.Nodes {
		switch n.State {
		case "LAPSED":
			lapsed++
		case "UNKNOWN":
			unknowable++
		}
	}
	text := fmt.Sprint(len(f.Nodes) - lapsed - unknowable)
	if lapsed > 0 {
		text += fmt.Sprintf(", and %d lapsed", lapsed)
	}
	if unknowable > 0 {
		text += fmt.Sprintf(", and %d unknown", unknowable)
	}
	return text
}

func (o output) fleet(f apiFleet) error {
	unplaceable := unknown
	if f.Unplaceable != nil {
		unplaceable = list(f.Unplaceable)
	}
	ttl := plain(cmp.Or(f.LeaseTTL, unknown))
	if d, ok := parseISO(f.LeaseTTL); ok {
		ttl = human(d)
	}
	err := o.table(nil, [][]string{
		{"nodes", f.nodeCount()},
		{"seats", fmt.Sprintf("%d of %d held", f.HeldCount, f.SeatCount)},
		{"unplaceable", unplaceable},
		{"lease", ttl},
	})
	if err != nil || len(f.Nodes) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(o.w); err != nil {
		return err
	}
	rows := make([][]string, len(f.Nodes))
	for i, n := range f.Nodes {
		rows[i] = []string{plain(n.ID), n.State, known(n.SeatsHeld), known(n.CompanyRevision), n.roleList(), n.labelList()}
	}
	return o.table([]string{"NODE", "STATE", "SEATS", "REVISION", "ROLES", "LABELS"}, rows)
}

// standing says on stderr where an answer stands in the order of the log. Data
// that is piped on carries it inside (json), or is told only what to doubt.
func (c *cli) standing(cmd *cobra.Command, a asOf) {
	if c.format == formatText || a.Copy != "CURRENT" {
		fmt.Fprintln(cmd.ErrOrStderr(), a.sentence(c.now()))
	}
}

// since shows the age of a time that may be unknown.
func (c *cli) since(t *time.Time) func() string {
	return func() string { return ago(t, c.now()) }
}
