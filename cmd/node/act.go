package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/events"
)

const maxReason = 500 // bytes, as the API has it

// act is what every verb that changes something has: why, and the ways to look
// before leaping.
type act struct {
	reason string
	dryRun bool
	yes    bool
}

func (a *act) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.reason, "reason", "", "why; the log keeps it beside who asked")
	flags.BoolVar(&a.dryRun, "dry-run", false, "say what would be done, and change nothing")
	flags.BoolVar(&a.yes, "yes", false, "do not ask back (nobody is asked where stdin is no terminal)")
}

// check judges the reason; a dry run needs none.
func (a *act) check() error {
	switch {
	case a.reason == "" && a.dryRun:
		return nil
	case strings.TrimSpace(a.reason) == "":
		return usagef("--reason: say why, for whoever reads the log after you")
	case len(a.reason) > maxReason || strings.ContainsFunc(a.reason, unicode.IsControl):
		return usagef("--reason: write at most %d bytes, in one line", maxReason)
	}
	a.reason = strings.TrimSpace(a.reason)
	return nil
}

// errNotConfirmed: the person at the terminal said no.
var errNotConfirmed = errors.New("nothing was done")

// confirm asks the person at the terminal, if there is one.
func (c *cli) confirm(cmd *cobra.Command, a *act, what string) error {
	if a.yes || !c.attended(cmd) {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s? [y/N] ", what)
	said, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 64)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(said)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}

// attended says whether somebody sits there to answer.
func (c *cli) attended(cmd *cobra.Command) bool {
	if c.terminal != nil {
		return c.terminal()
	}
	return isTerminal(cmd.InOrStdin()) && isTerminal(cmd.ErrOrStderr())
}

// operation is what became of a mutation.
type operation struct {
	Position string  `json:"position"`
	SagaID   *string `json:"sagaId"`
}

const operationFields = ` { __typename ... on Accepted { position sagaId } ... on Refused { code message } }`

// operate asks for a mutation of one argument list and returns what was
// accepted; a refusal is an error that names its code.
func operate(cmd *cobra.Command, cl *client, signature, call string, variables map[string]any) (operation, error) {
	type result struct {
		Done struct {
			Typename string `json:"__typename"`
			operation
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"done"`
	}
	query := "mutation(" + signature + ") { done: " + call + operationFields + " }"
	got, err := ask[result](cmd.Context(), cl, query, variables)
	var lost *lostError
	switch {
	case errors.As(err, &lost):
		return operation{}, fmt.Errorf("%w; it may have been done: look before you ask again, though twice does no harm", err)
	case err != nil:
		return operation{}, err
	case got.Done.Typename == "Refused":
		return operation{}, fmt.Errorf("refused: %s (%s)", plain(got.Done.Message), plain(got.Done.Code))
	case got.Done.Typename != "Accepted":
		return operation{}, fmt.Errorf("the node at %s neither accepted nor refused it: it may be of another version", cl.base)
	}
	return got.Done.operation, nil
}

// accepted prints what was accepted.
func (o output) accepted(what string, op operation) error {
	if o.format != formatText {
		return o.json(op)
	}
	rows := [][]string{{"accepted", what}, {"position", plain(op.Position)}}
	if op.SagaID != nil {
		rows = append(rows, []string{"saga", plain(*op.SagaID)})
	}
	return o.table(nil, rows)
}

// would prints what a dry run found.
func (o output) would(what string, at asOf) error {
	if o.format != formatText {
		return o.json(struct {
			AsOf  asOf   `json:"asOf"`
			Would string `json:"would"`
		}{at, what})
	}
	return o.table(nil, [][]string{{"would", what}})
}

// oneNode takes exactly one argument, the id of a node.
func oneNode(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return usagef("one id of a node is wanted, not %d; write: %s", len(args), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
}

// validName judges the name of a seat or a node before anybody is asked.
func validName(name string) error {
	if err := events.ValidHandle(name); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// bounded judges how long a command is to wait.
func bounded(flag string, d, limit time.Duration) error {
	if d <= 0 || d > limit {
		return usagef("%s: %s is not above zero and at most %s", flag, d, human(limit))
	}
	return nil
}
