package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
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

// revisionFlag is the number of a revision, noRevision when none is named.
type revisionFlag int

const noRevision revisionFlag = -1

func (r *revisionFlag) String() string {
	if *r == noRevision {
		return ""
	}
	return strconv.Itoa(int(*r))
}

func (r *revisionFlag) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 31) // an Int of the API
	if err != nil {
		return errors.New("write the number of a revision; `tenure company revisions` lists them")
	}
	*r = revisionFlag(n)
	return nil
}

func (r *revisionFlag) Type() string { return "number" }

func (c *cli) companyShowCommand() *cobra.Command {
	revision := noRevision
	cmd := &cobra.Command{
		Use:   "show",
		Short: "the company document as it was applied",
		Long: `Prints the document of the revision in force, or of --revision, byte for byte as it
was applied. With -o json the revision's number, position and author stand beside
it.`,
		Example: "  tenure company show > company.yaml\n  tenure company show --revision 3\n  tenure company show -o json | jq '{revision, actor, reason}'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if revision == 0 {
				return usagef("--revision: 0 is no revision; the first one is 1")
			}
			return c.showCompany(cmd, int(revision))
		},
	}
	cmd.Flags().Var(&revision, "revision", "number of the revision (default the one in force)")
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
	err = writeAsOf(c, cmd, listing[apiRevision]{
		whole: list, items: list.Revisions,
		header: []string{"REVISION", "POSITION", "APPLIED", "SEATS", "BY", "REASON"},
		row: func(r apiRevision) []string {
			return []string{fmt.Sprint(r.Revision), plain(r.Position), ago(r.AppliedAt, c.now()), fmt.Sprint(r.SeatCount), given(r.Actor), given(r.Reason)}
		},
	}, list.AsOf)
	if err == nil && got.CompanyRevisions.PageInfo.HasNextPage {
		cl.warn("there are older ones; show more with --limit")
	}
	return err
}
