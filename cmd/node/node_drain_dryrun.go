package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const (
	drainShown   = 100 // seats that a dry run of a drain explains
	explainBatch = 10  // in one question, which costs the node a look at the whole company each
)

// couldGo is where one seat could go.
type couldGo struct {
	Handle string   `json:"handle"`
	State  string   `json:"state"`
	To     []string `json:"to"`
	Why    string   `json:"why"`
}

// wouldDrain shows what a drain would move, and where it could go.
func (c *cli) wouldDrain(cmd *cobra.Command, cl *client, node string) error {
	plan, err := planNode(cmd, cl, node)
	if err != nil {
		return err
	}
	var seats []couldGo
	_, last, err := eachSeatPage(cmd.Context(), cl, map[string]any{"node": node}, func(page []apiSeat) error {
		for _, s := range page {
			seats = append(seats, couldGo{Handle: s.Handle, State: s.State})
		}
		return nil
	})
	if err != nil {
		return err
	}
	shown := seats[:min(len(seats), drainShown)]
	for at := 0; at < len(shown); at += explainBatch {
		if err := explainWithout(cmd, cl, node, shown[at:min(at+explainBatch, len(shown))]); err != nil {
			return err
		}
	}
	if more := len(seats) - len(shown); more > 0 {
		cl.warn(count(more, "more seat") + " not shown")
	}
	out := c.output(cmd)
	if out.format != formatText {
		return out.json(struct {
			AsOf  asOf      `json:"asOf"`
			Would string    `json:"would"`
			Seats []couldGo `json:"seats"`
		}{last, "drain node " + node, shown})
	}
	if err := out.would(fmt.Sprintf("cordon %s and give up %s", node, plan.seats()), last); err != nil || len(shown) == 0 {
		return err
	}
	rows := make([][]string, len(shown))
	for i, s := range shown {
		to := list(s.To)
		if len(s.To) == 0 {
			to = "nowhere: " + plain(s.Why)
		}
		rows[i] = []string{plain(s.Handle), s.State, to}
	}
	if _, err := fmt.Fprintln(out.w); err != nil {
		return err
	}
	if err := out.table([]string{"SEAT", "STATE", "COULD GO TO"}, rows); err != nil {
		return err
	}
	return nil
}

func explainWithout(cmd *cobra.Command, cl *client, node string, seats []couldGo) error {
	var b strings.Builder
	for i, s := range seats { // handles are tokens: they need no quoting beyond the quotes
		fmt.Fprintf(&b, ` s%d: explainPlacement(handle: "%s", without: [$node]) { %s }`, i, s.Handle, explanationFields)
	}
	got, err := ask[map[string]*explanation](cmd.Context(), cl, `query($node: ID!) {`+b.String()+` }`, map[string]any{"node": node})
	if err != nil {
		return err
	}
	for i := range seats {
		if x := got[fmt.Sprintf("s%d", i)]; x != nil {
			seats[i].To, seats[i].Why = x.Eligible, x.Why
		}
	}
	return nil
}
