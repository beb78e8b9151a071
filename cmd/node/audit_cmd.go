package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/audit"
)

func (c *cli) auditCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "prove from the history that ownership was legal",
		Long: `Reads the whole history, of a live node or of an export, and recomputes from it
that no two tenures of a seat overlapped, that epochs only rose, that a seat was
taken over only with the right to it, and that cursors, completions and parked
mail rest on tenures that existed and were their writer's.

An export carries a hash over its lines: a line that was removed, added or
altered is found as well. Note the chain value that is printed somewhere else to
find a file that was rewritten as a whole.

Exit code 0 when no rule was broken, 1 when one was; each violation is printed
with its place. Notes are worth knowing and break no rule.`,
		Example: `  tenure audit
  tenure audit --file history.jsonl
  tenure event export | tenure audit --file -
  tenure audit -o json | jq .violation_count`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := c.audit(cmd, file)
			if err != nil {
				return err
			}
			return c.writeReport(cmd, report)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "audit this export, - for stdin, instead of a live node")
	return cmd
}

// audit reads the history and judges it. An error says that it could not be
// read, which is no verdict.
func (c *cli) audit(cmd *cobra.Command, file string) (audit.Report, error) {
	history, name, err := c.history(cmd, file)
	if err != nil {
		return audit.Report{}, err
	}
	defer history.Close()
	report, done := progress(cmd.ErrOrStderr(), "audit")
	found, err := audit.Check(&counted{Reader: history, report: report})
	done()
	var bad *audit.LineError
	if errors.As(err, &bad) {
		return audit.Report{}, fmt.Errorf("%s is no export that this build reads: %w", name, err)
	}
	return found, err
}

func (c *cli) history(cmd *cobra.Command, file string) (r io.ReadCloser, name string, err error) {
	switch file {
	case "":
		cl, err := c.client(cmd)
		if err != nil {
			return nil, "", err
		}
		r, err = cl.export(cmd.Context())
		return r, "what the node at " + cl.base.String() + " sent", err
	case "-":
		return io.NopCloser(cmd.InOrStdin()), "stdin", nil
	}
	r, err = os.Open(file)
	return r, file, err
}

func (c *cli) writeReport(cmd *cobra.Command, r audit.Report) error {
	out := c.output(cmd)
	var err error
	switch out.format {
	case formatText:
		err = r.WriteText(out.w)
	case formatJSON:
		err = out.json(r)
	case formatJSONL:
		err = r.WriteJSON(out.w)
	}
	if err == nil && !r.OK() {
		err = fmt.Errorf("the history is not legal; violations: %d", r.ViolationCount)
	}
	return err
}
