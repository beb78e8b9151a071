package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (c *cli) sagaCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "saga",
		Short: "seats on their way from one node to another, mailboxes on their way out",
		Long: `A seat that changes hands does so in steps, each an event of the log: requested,
warmed, quiesced, flushed, released, claimed, established, completed. It is dark
from quiesced to established only. The mailbox of a removed seat goes in steps too:
absent for the grace, then marked, runs_ended, purged, completed.`,
		Example: "  tenure saga ls --open",
	}, c.sagaListCommand())
}

const sagaFields = `id kind step handle from to reason by startedAt deadline endedAt outcome cause darkFor`

const sagasQuery = `query($kind: SagaKind, $open: Boolean, $handle: ID, $first: Int) {
  sagas(kind: $kind, open: $open, handle: $handle, first: $first) { ` + asOfFields + ` edges { node { ` + sagaFields + ` } } pageInfo { hasNextPage endCursor } }
}`

type apiSaga struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	Step      string     `json:"step"`
	Handle    string     `json:"handle"`
	From      *string    `json:"from"`
	To        *string    `json:"to"`
	Reason    *string    `json:"reason"`
	By        *string    `json:"by"`
	StartedAt time.Time  `json:"startedAt"`
	Deadline  *time.Time `json:"deadline"`
	EndedAt   *time.Time `json:"endedAt"`
	Outcome   *string    `json:"outcome"`
	Cause     *string    `json:"cause"`
	DarkFor   *string    `json:"darkFor"` // for how long nobody served the seat
}

// ended is the saga's outcome, with its cause or what holds it.
func (s apiSaga) ended() string {
	outcome := "open"
	if s.Outcome != nil {
		outcome = *s.Outcome
	}
	if s.Cause != nil {
		outcome += " (" + *s.Cause + ")"
	}
	return plain(outcome)
}

type sagaList struct {
	AsOf  asOf      `json:"asOf"`
	Sagas []apiSaga `json:"sagas"`
}

func (c *cli) sagaListCommand() *cobra.Command {
	var open bool
	var handle, kind string
	var limit int
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "the newest sagas, or those that go on",
		Long: `Lists handoffs of seats and retirements of mailboxes, newest first: those that go on,
and of each seat the last that ended. DARK is for how long nobody served the seat, by the log's own clock.`,
		Example: "  tenure saga ls\n  tenure saga ls --open\n  tenure saga ls --kind retirement\n  tenure saga ls --seat writer -o json | jq '.sagas[].darkFor'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(limit, maxPage); err != nil {
				return err
			}
			variables := map[string]any{"first": limit}
			switch kind {
			case "":
			case "handoff", "retirement":
				variables["kind"] = strings.ToUpper(kind)
			default:
				return usagef("--kind: %q is neither handoff nor retirement", kind)
			}
			if open {
				variables["open"] = true
			}
			if handle != "" {
				variables["handle"] = handle
			}
			return c.listSagas(cmd, variables)
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "only those that go on")
	cmd.Flags().StringVar(&kind, "kind", "", "only these: handoff or retirement")
	cmd.Flags().StringVar(&handle, "seat", "", "only those of this seat")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most")
	return cmd
}

func (c *cli) listSagas(cmd *cobra.Command, variables map[string]any) error {
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	got, err := ask[struct{ Sagas connection[apiSaga] }](cmd.Context(), cl, sagasQuery, variables)
	if err != nil {
		return err
	}
	if err := c.writeSagas(cmd, sagaList{got.Sagas.AsOf, got.Sagas.nodes()}); err != nil {
		return err
	}
	if got.Sagas.PageInfo.HasNextPage {
		cl.warn("there are older ones; show more with --limit")
	}
	return nil
}

func (c *cli) writeSagas(cmd *cobra.Command, l sagaList) error {
	return writeAsOf(c, cmd, listing[apiSaga]{
		whole: l, items: l.Sagas,
		header: []string{"SAGA", "FROM", "TO", "REASON", "STEP", "OUTCOME", "DARK", "STARTED", "BY"},
		row: func(s apiSaga) []string {
			return []string{
				plain(s.ID), given(s.From), given(s.To), given(s.Reason), plain(s.Step), s.ended(), humanISO(s.DarkFor),
				ago(&s.StartedAt, c.now()), given(s.By),
			}
		},
	}, l.AsOf)
}
