package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

type apiRevision struct {
	Revision  int        `json:"revision"`
	Name      string     `json:"name"`
	Digest    string     `json:"digest"`
	SeatCount int        `json:"seatCount"`
	Position  string     `json:"position"`
	AppliedAt *time.Time `json:"appliedAt"`
	Actor     *string    `json:"actor"`
	Reason    *string    `json:"reason"`
	Document  *string    `json:"document,omitempty"`
}

const revisionFields = `revision name digest seatCount position appliedAt actor reason`

func (c *cli) companyShowCommand() *cobra.Command {
	var revision int
	cmd := &cobra.Command{
		Use:   "show",
		Short: "the company document as it was applied",
		Long: `Prints the document of the revision in force, or of --revision, byte for byte as it
was applied. With -o json the revision's number, position and author stand beside
it.`,
		Example: "  tenure company show > company.yaml\n  tenure company show --revision 3\n  tenure company show -o json | jq '{revision, actor, reason}'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("revision") && revision < 1 {
				return usagef("--revision: %d is no revision; the first one is 1", revision)
			}
			return c.showCompany(cmd, revision)
		},
	}
	cmd.Flags().IntVar(&revision, "revision", 0, "number of the revision (default the one in force)")
	cmd.Flags().Lookup("revision").DefValue = ""
	return cmd
}

func (c *cli) showCompany(cmd *cobra.Command, revision int) error {
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	variables := map[string]any{}
	if revision > 0 {
		variables["revision"] = revision
	}
	type answered struct {
		AsOf    asOf         `json:"asOf"`
		Company *apiRevision `json:"company"`
	}
	got, err := ask[answered](cmd.Context(), cl,
		`query($revision: Int) { `+asOfFields+` company(revision: $revision) { `+revisionFields+` document } }`, variables)
	switch {
	case err != nil:
		return err
	case got.Company == nil && revision > 0:
		return fmt.Errorf("the company has no revision %d; `tenure company revisions` lists those there are", revision)
	case got.Company == nil:
		return errors.New("no company was applied yet; `tenure company apply FILE` applies the first")
	case got.Company.Document == nil:
		return errors.New("the document cannot be read from the log now; ask again")
	}
	out := c.output(cmd)
	if out.format != formatText {
		return out.json(got)
	}
	if _, err := io.WriteString(out.w, *got.Company.Document); err != nil {
		return err
	}
	c.standing(cmd, got.AsOf)
	return nil
}

func (c *cli) companyRevisionsCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "revisions",
		Short: "the revisions of the company, newest first",
		Long: `Lists the company's revisions, newest first: where each stands in the log, when it
was applied, by whom and why. BY is "-" where a node brought the document along at
its start.`,
		Example: "  tenure company revisions\n  tenure company revisions --limit 3 -o jsonl | jq -r .reason",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(limit, maxPage); err != nil {
				return err
			}
			return c.listRevisions(cmd, limit)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return cmd
}

func (c *cli) listRevisions(cmd *cobra.Command, limit int) error {
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	got, err := ask[struct{ CompanyRevisions connection[apiRevision] }](cmd.Context(), cl, `query($first: Int) { companyRevisions(first: $first) { `+asOfFields+
		` edges { node { `+revisionFields+` } } pageInfo { hasNextPage endCursor } } }`, map[string]any{"first": limit})
	if err != nil {
		return err
	}
	list := struct {
		AsOf      asOf          `json:"asOf"`
		Revisions []apiRevision `json:"revisions"`
	}{got.CompanyRevisions.AsOf, got.CompanyRevisions.nodes()}
	return writeAsOf(c, cmd, listing[apiRevision]{
		whole: list, items: list.Revisions,
		header: []string{"REVISION", "POSITION", "APPLIED", "SEATS", "BY", "REASON"},
		row: func(r apiRevision) []string {
			return []string{fmt.Sprint(r.Revision), plain(r.Position), ago(r.AppliedAt, c.now()), fmt.Sprint(r.SeatCount), given(r.Actor), given(r.Reason)}
		},
	}, list.AsOf)
}
