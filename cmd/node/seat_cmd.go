package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (c *cli) seatCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "seat",
		Short: "seats of the company: who holds them, and who is to",
		Long: `A seat is a role of the company with a mailbox. At any moment one node holds it
or none does; each holding is a tenure, numbered by its epoch.`,
		Example: "  tenure seat ls --state UNOWNED\n  tenure seat show writer\n  tenure seat move writer --to node-2 --reason 'closer to its data' --wait",
	}, c.seatListCommand(), c.seatShowCommand(), c.seatExplainCommand(), c.seatMoveCommand(), c.seatReleaseCommand(),
		c.seatFenceCommand(), c.seatPauseCommand(), c.seatResumeCommand())
}

const (
	maxPage  = 500     // items of a list that a node gives at once
	maxSeats = 200_000 // that one list may have
)

const seatsQuery = `query($filter: SeatFilter, $first: Int, $after: String) {
  seats(filter: $filter, first: $first, after: $after) {
    ` + asOfFields + `
    edges { node { ` + seatFields + ` } }
    pageInfo { hasNextPage endCursor }
  }
}`

type seatList struct {
	AsOf  asOf      `json:"asOf"`
	Seats []apiSeat `json:"seats"`
}

// seatStates are the states to filter by.
var seatStates = []string{"HELD", "ESTABLISHING", "RELEASING", "UNPROVEN", "UNOWNED", "UNPLACEABLE", "REMOVED", "UNKNOWN"}

func (c *cli) seatListCommand() *cobra.Command {
	var state word
	var node, prefix string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "every seat, or those of a state, a node or a prefix",
		Long: `Lists seats by handle, all of them, however many pages of answers that takes;
also those that the company has removed. NODE and EPOCH are of the tenure in
force by the log: a holder that died stays until its seat is claimed again, and
the state is what tells.`,
		Example: "  tenure seat ls\n  tenure seat ls --state UNOWNED\n  tenure seat ls --node node-1 -o jsonl\n  tenure seat ls --prefix sales-",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter := map[string]any{}
			for name, value := range map[string]string{"state": state.value, "node": node, "handlePrefix": prefix} {
				if value != "" {
					filter[name] = value
				}
			}
			return c.listSeats(cmd, filter)
		},
	}
	state.words = seatStates
	cmd.Flags().Var(&state, "state", "only seats in this state: "+state.choices())
	cmd.Flags().StringVar(&node, "node", "", "only seats that this node holds")
	cmd.Flags().StringVar(&prefix, "prefix", "", "only seats whose handle begins with this")
	complete(cmd, "state", seatStates)
	return cmd
}

func (c *cli) listSeats(cmd *cobra.Command, filter map[string]any) error {
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	out := c.output(cmd)
	all := seatList{Seats: []apiSeat{}}
	first, last, err := eachSeatPage(cmd.Context(), cl, filter, func(page []apiSeat) error {
		if out.format != formatJSONL {
			all.Seats = append(all.Seats, page...)
			return nil
		}
		for _, s := range page {
			if err := out.json(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	all.AsOf = last
	switch out.format {
	case formatJSON:
		err = out.json(all)
	case formatText:
		err = c.seatTable(out, all.Seats)
	case formatJSONL: // written page by page
	}
	if err != nil {
		return err
	}
	if first.Position != last.Position {
		cl.warn(fmt.Sprintf("the log moved from position %s to %s while the list was read: a seat that changed hands is shown as of its own page", plain(first.Position), plain(last.Position)))
	}
	c.standing(cmd, last)
	if id, asked := filter["node"].(string); asked && len(all.Seats) == 0 && out.format != formatJSONL {
		return c.warnOfUnknownNode(cmd.Context(), cl, id)
	}
	return nil
}

// warnOfUnknownNode tells an empty list from one of a node that there is not.
func (c *cli) warnOfUnknownNode(ctx context.Context, cl *client, id string) error {
	got, err := ask[struct{ Node *struct{ ID string } }](ctx, cl, `query($id: ID!) { node(id: $id) { id } }`, map[string]any{"id": id})
	if err == nil && got.Node == nil {
		cl.warn(fmt.Sprintf("the log has never had a node %q; `tenure node ls` lists those there are", id))
	}
	return err
}

// eachSeatPage calls fn with every page of the list, and returns where the first
// and the last of them stand.
func eachSeatPage(ctx context.Context, cl *client, filter map[string]any, fn func([]apiSeat) error) (first, last asOf, err error) {
	variables := map[string]any{"first": maxPage}
	if len(filter) > 0 {
		variables["filter"] = filter
	}
	for read := 0; ; {
		got, err := ask[struct{ Seats connection[apiSeat] }](ctx, cl, seatsQuery, variables)
		if err != nil {
			return first, last, err
		}
		page := got.Seats.nodes()
		last = got.Seats.AsOf
		if read == 0 {
			first = last
		}
		if err := fn(page); err != nil {
			return first, last, err
		}
		read += len(page)
		after := got.Seats.PageInfo.EndCursor
		switch {
		case !got.Seats.PageInfo.HasNextPage:
			return first, last, nil
		case read > maxSeats:
			return first, last, fmt.Errorf("the list goes on after %d seats, which is where this command stops; narrow it with --prefix, --node or --state", read)
		case after == nil || len(page) == 0 || *after == variables["after"]:
			return first, last, fmt.Errorf("the node at %s says that the list goes on, and not where; it may be of another version", cl.base)
		}
		variables["after"] = *after
	}
}

// condition is the state, and whether a person holds the seat's mail (H3).
func (s apiSeat) condition() string {
	if s.Paused {
		return s.State + ", paused"
	}
	return s.State
}

func (c *cli) seatTable(out output, seats []apiSeat) error {
	rows := make([][]string, len(seats))
	for i, s := range seats {
		rows[i] = []string{
			plain(s.Handle), s.condition(), s.node(), given(s.Epoch), s.held(c.since(s.Since)), given(s.Title),
		}
	}
	return out.table([]string{"SEAT", "STATE", "NODE", "EPOCH", "SINCE", "TITLE"}, rows)
}
