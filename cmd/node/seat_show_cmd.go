package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

const recentTenures = 5

const seatQuery = `query($handle: ID!, $tenures: Int) {
  ` + asOfFields + `
  seat(handle: $handle) {
    ` + seatFields + ` expiresAt preferred paused pause { by reason since stopTurn } unprovenSeconds handoff { id step to }
    tenures(first: $tenures) { edges { node { ` + tenureFields + ` } } pageInfo { hasNextPage endCursor } }
  }
}`

type shownSeat struct {
	AsOf asOf           `json:"asOf"`
	Seat *apiSeatInFull `json:"seat"`
}

func (c *cli) seatShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show HANDLE",
		Short: "one seat: holder, epoch, expiry, and its last tenures",
		Long: fmt.Sprintf(`Shows who holds a seat, under which epoch and until when without a renewal, and
its last %d tenures with how each ended. LAPSED is the end of a tenure whose
holder stopped renewing: it ended with the claim that took over.`, recentTenures),
		Example: "  tenure seat show writer\n  tenure seat show writer -o json | jq -r .seat.epoch",
		Args:    oneHandle,
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			got, err := ask[shownSeat](cmd.Context(), cl, seatQuery, map[string]any{"handle": args[0], "tenures": recentTenures})
			if err != nil {
				return err
			}
			if got.Seat == nil {
				return fmt.Errorf("the log has never named a seat %q (%s); `tenure seat ls` lists those there are", args[0], got.AsOf.sentence(c.now()))
			}
			out := c.output(cmd)
			if out.format != formatText {
				return out.json(got)
			}
			if err := c.seatCard(out, *got.Seat); err != nil {
				return err
			}
			c.standing(cmd, got.AsOf)
			return nil
		},
	}
}

func (c *cli) seatCard(out output, s apiSeatInFull) error {
	agent := none
	if s.AgentID != "" {
		agent = plain(s.AgentID)
	}
	rows := [][]string{
		{"seat", plain(s.Handle)},
		{"title", given(s.Title)},
		{"agent", agent},
		{"state", s.State},
		{"node", s.node()},
		{"owner", given(s.Owner)},
		{"epoch", given(s.Epoch)},
		{"since", s.held(c.since(s.Since))},
		{"expires", s.held(func() string { return until(s.ExpiresAt, c.now()) })},
		{"preferred", given(s.Preferred)},
	}
	if p := s.Pause; p != nil {
		rows = append(rows, []string{"paused", fmt.Sprintf("%s by %s: %s", ago(p.Since, c.now()), plain(p.By), plain(p.Reason))})
	}
	if s.UnprovenSeconds != nil {
		rows = append(rows, []string{"unproven", human(time.Duration(*s.UnprovenSeconds) * time.Second)})
	}
	if h := s.Handoff; h != nil {
		rows = append(rows, []string{"on its way", fmt.Sprintf("to %s (%s, %s)", given(h.To), plain(h.ID), plain(h.Step))})
	}
	err := out.table(nil, rows)
	if err != nil || len(s.Tenures.Edges) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(out.w); err != nil {
		return err
	}
	rows = nil
	for _, e := range s.Tenures.Edges {
		t := e.Node
		end, lasted := "in force", none
		if t.End != nil {
			end, lasted = *t.End, unknown
			if t.EndedAt != nil {
				lasted = human(max(t.EndedAt.Sub(t.ClaimedAt), 0)) // broker times: for people
			}
		}
		rows = append(rows, []string{
			plain(t.Epoch), plain(t.Owner), ago(&t.ClaimedAt, c.now()), plain(t.ClaimedPosition),
			end, lasted, given(t.EndedPosition), given(t.Reason),
		})
	}
	return out.table([]string{"EPOCH", "OWNER", "CLAIMED", "POSITION", "END", "LASTED", "POSITION", "REASON"}, rows)
}
