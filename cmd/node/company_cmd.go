package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/company"
)

func (c *cli) companyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "company",
		Short: "the company document: who works there, and how it changes",
		Long: `The company document says which seats there are, where each may be placed and what
runs it. Each document that is applied is a revision, an event of the log; every
node takes it up from there.`,
		Example: "  tenure company validate company.yaml\n  tenure company diff company.yaml\n  tenure company apply company.yaml --reason 'a second writer'",
	}, c.companyValidateCommand(), c.companyDiffCommand(), c.companyApplyCommand(), c.companyShowCommand(), c.companyRevisionsCommand())
}

// oneFile takes exactly one argument, a company file.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return usagef("one company file is wanted, not %d; write: %s", len(args), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
}

// readDocument reads a company file, or stdin for "-".
func readDocument(cmd *cobra.Command, path string) (name string, doc []byte, err error) {
	in, name := cmd.InOrStdin(), "stdin"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return path, nil, fmt.Errorf("company file %s: %w", path, pathError(err))
		}
		defer f.Close()
		in, name = f, path
	}
	// One byte more than there may be, so that what is too long is not cut to fit.
	doc, err = io.ReadAll(io.LimitReader(in, company.MaxDocument+1))
	if err != nil {
		return name, nil, fmt.Errorf("company file %s: %w", name, pathError(err))
	}
	return name, doc, nil
}

// judged is a document's problems as they are printed.
type judged struct {
	File     string       `json:"file"`
	Company  string       `json:"company,omitempty"`
	Seats    int          `json:"seats"`
	Humans   int          `json:"humans"`
	Problems []apiProblem `json:"problems"`
}

type apiProblem struct {
	Path    string  `json:"path"`
	Line    *int    `json:"line"`
	Column  *int    `json:"column"`
	Message string  `json:"message"`
	Fix     *string `json:"fix"`
}

const problemFields = `path line column message fix`

// say is file:line:column: path: message; fix.
func (p apiProblem) say(file string) string {
	shown := company.Problem{Source: plain(file), Path: plain(p.Path), Message: plain(p.Message)}
	if p.Line != nil && p.Column != nil {
		shown.Line, shown.Column = *p.Line, *p.Column
	}
	if p.Fix != nil {
		shown.Fix = plain(*p.Fix)
	}
	return shown.String()
}

// problemsOf puts what is wrong with a document into the API's form; nil when
// err is about something else.
func problemsOf(err error) []apiProblem {
	var out []apiProblem
	for _, p := range asProblems(err) {
		one := apiProblem{Path: p.Path, Message: p.Message}
		if p.Line > 0 {
			one.Line, one.Column = &p.Line, &p.Column
		}
		if p.Fix != "" {
			one.Fix = &p.Fix
		}
		out = append(out, one)
	}
	return out
}

// badDocument is how a command ends that was given one with problems.
func badDocument(file string, problems []apiProblem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.say(file)
	}
	return &exitError{exitBadConfig, errors.New(strings.Join(lines, "\n"))}
}

func (c *cli) companyValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "judge a company file; asks no node",
		Long: `Reads a company file (- is stdin) and lists everything that is wrong with it, with
line and column and what to write instead. No node is asked. Exit code 0 when it
is fine, 78 when it is not.`,
		Example: "  tenure company validate company.yaml\n  cat company.yaml | tenure company validate - -o json",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, doc, err := readDocument(cmd, args[0])
			if err != nil {
				return err
			}
			acme, _, wrong := packCompany(name, doc)
			agents := len(acme.AgentSeats())
			j := judged{File: name, Company: acme.Name, Seats: agents, Humans: len(acme.Roles) - agents, Problems: []apiProblem{}}
			if problems := problemsOf(wrong); problems != nil {
				j = judged{File: name, Problems: problems}
			} else if wrong != nil {
				return wrong
			}
			out := c.output(cmd)
			switch {
			case out.format != formatText:
				err = out.json(j)
			case len(j.Problems) == 0:
				err = out.table(nil, [][]string{{"company", plain(j.Company)}, {"seats", fmt.Sprint(j.Seats)}, {"humans", fmt.Sprint(j.Humans)}})
			}
			if err == nil && len(j.Problems) > 0 {
				err = badDocument(name, j.Problems)
			}
			return err
		},
	}
}

const applyMutation = `mutation($document: String!, $expected: Int, $dry: Boolean, $reason: String!) {
  applyCompany(document: $document, expectedRevision: $expected, dryRun: $dry, reason: $reason) {
    revision unchanged before added removed moved changed renamed problems { ` + problemFields + ` } } }`

type applyResult struct {
	Revision  *int         `json:"revision"`
	Unchanged bool         `json:"unchanged"`
	Before    *int         `json:"before"`
	Added     []string     `json:"added"`
	Removed   []string     `json:"removed"`
	Moved     []string     `json:"moved"`
	Changed   []string     `json:"changed"`
	Renamed   bool         `json:"renamed"`
	Problems  []apiProblem `json:"problems"`
}

// applyCompany asks for an apply, or with dry for what it would do.
func applyCompany(ctx context.Context, cl *client, doc []byte, expected int, dry bool, reason string) (applyResult, error) {
	variables := map[string]any{"document": string(doc), "dry": dry, "reason": reason}
	if expected >= 0 {
		variables["expected"] = expected
	}
	got, err := ask[struct{ ApplyCompany applyResult }](ctx, cl, applyMutation, variables)
	var lost *lostError
	if errors.As(err, &lost) {
		err = fmt.Errorf("%w; it may have been applied: apply it again, which changes nothing where it was", err)
	}
	return got.ApplyCompany, err
}

// changes prints what an apply did, or would do.
func (o output) changes(r applyResult) error {
	if o.format != formatText {
		return o.json(r)
	}
	before := none
	if r.Before != nil {
		before = fmt.Sprint(*r.Before)
	}
	rows := [][]string{{"against revision", before}}
	for _, part := range []struct {
		name    string
		handles []string
	}{{"added", r.Added}, {"removed", r.Removed}, {"moved", r.Moved}, {"changed", r.Changed}} {
		rows = append(rows, []string{part.name, list(part.handles)})
	}
	if r.Renamed {
		rows = append(rows, []string{"renamed", "the company: every agent gets another identity"})
	}
	switch {
	case r.Unchanged:
		rows = [][]string{{"unchanged", "the document is in force already"}, {"revision", known(r.Revision)}}
	case r.Revision != nil:
		rows = append([][]string{{"revision", known(r.Revision)}}, rows...)
	}
	return o.table(nil, rows)
}

func (c *cli) companyDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff FILE",
		Short: "what a company file would change",
		Long: `Compares a company file (- is stdin) with the revision in force, and changes
nothing. MOVED are seats whose placement changes, CHANGED those whose title or
runner does. A role that becomes a human's is REMOVED.`,
		Example: "  tenure company diff company.yaml\n  tenure company diff company.yaml -o json | jq .removed",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.applyFile(cmd, args[0], -1, true, "what it would change")
		},
	}
}

func (c *cli) companyApplyCommand() *cobra.Command {
	var a act
	expected := noRevision
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "make a company file the newest revision",
		Long: `Makes a company file (- is stdin) the company's newest revision. A file with
problems changes nothing and all of them are listed; exit code 78. One that is in
force already is no new revision.

Of two who apply at once one wins; the other is refused and told which revision is
in force. --expected-revision says which one the file was written against, as
"tenure company revisions" lists them: any other is refused, also one that was
applied an hour ago.

Nodes take a revision up by themselves: seats that are added are claimed, seats
that are removed are given up and their mail is kept for the grace, seats that are
placed elsewhere go there. A turn in flight ends as it began.`,
		Example: "  tenure company apply company.yaml --reason 'a second writer'\n  tenure company apply company.yaml --dry-run\n  tenure company apply company.yaml --expected-revision 7 --reason 'a second writer'",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			if !a.dryRun && args[0] != "-" { // stdin is taken
				if err := c.confirm(cmd, &a, "apply "+args[0]); err != nil {
					return err
				}
			}
			reason := a.reason
			if reason == "" {
				reason = "what it would change"
			}
			return c.applyFile(cmd, args[0], int(expected), a.dryRun, reason)
		},
	}
	a.add(cmd)
	cmd.Flags().Var(&expected, "expected-revision", "refuse unless this revision is in force; 0: none was applied yet (default the one in force now)")
	return cmd
}

func (c *cli) applyFile(cmd *cobra.Command, path string, expected int, dry bool, reason string) error {
	name, doc, err := readDocument(cmd, path)
	if err != nil {
		return err
	}
	// Judged here first: what no node would take is not sent anywhere.
	if _, _, err := packCompany(name, doc); err != nil {
		if problems := problemsOf(err); problems != nil {
			return badDocument(name, problems)
		}
		return err
	}
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	got, err := applyCompany(cmd.Context(), cl, doc, expected, dry, reason)
	if err != nil {
		return err
	}
	if len(got.Problems) > 0 {
		return badDocument(name, got.Problems)
	}
	return c.output(cmd).changes(got)
}
