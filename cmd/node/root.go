package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seat-tenure/tenure/company/strictyaml"
)

// cli is what the commands share: the global flags, and what a test replaces.
type cli struct {
	addr      string
	tokenFile string
	format    outputFormat
	timeout   time.Duration

	began bool // a command is at work: its flags and arguments were in order

	now   func() time.Time
	newID func() string
	// terminal says whether somebody sits at one; nil looks at the streams.
	terminal func() bool
}

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{now: time.Now, newID: uuid.NewString}
	return c.run(ctx, args, stdin, stdout, stderr)
}

func (c *cli) run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := c.rootCommand() //nolint:contextcheck // a command gets its context when it is run, below
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !c.began {
		err = asUsage(err)
	}
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return exitFine // whoever read our output has seen enough
	case exitCode(err) == exitBadConfig:
		fmt.Fprintln(stderr, err) // lines of file:line:column, which editors follow
	default:
		fmt.Fprintf(stderr, "tenure: %v\n", err)
	}
	return exitCode(err)
}

const rootLong = `Tenure decides which node of a fleet runs which agent, and makes sure that no
two ever run the same one. This program is the node, and the way to look at and
act on a fleet of them.

Start one on this machine with "tenure dev". The commands that ask a node reach
it at --addr; what they print goes to stdout, what they have to say to stderr.

Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 stopped by force with the work
handed back, 4 waited and it did not come, 75 stalled (restart the node),
78 bad configuration (a restart changes nothing).`

const rootExample = `  tenure dev
  tenure send writer --data '{"text":"hello"}' --wait
  tenure fleet
  tenure event tail`

func (c *cli) rootCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use:           "tenure",
		Short:         "seats that exactly one node holds",
		Long:          rootLong,
		Example:       rootExample,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetVersionTemplate("tenure {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	c.addGlobalFlags(root.PersistentFlags())
	root.AddCommand(
		devCommand(), runCommand(),
		c.sendCommand(), c.fleetCommand(), c.nodeCommand(), c.seatCommand(), c.companyCommand(),
		c.sagaCommand(), c.inboxCommand(), c.mailboxCommand(),
		c.eventCommand(), c.auditCommand(), group(configCommand()), c.versionCommand(),
	)
	c.watch(root)
	return root
}

// watch notes when a command begins, in all of them.
func (c *cli) watch(cmd *cobra.Command) {
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.began = true
			return work(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		c.watch(sub)
	}
}

// asUsage makes an error from before a command began wrong usage: cobra gives
// some of them, such as flags that exclude each other, no kind of their own.
func asUsage(err error) error {
	if exitCode(err) != exitFailed {
		return err
	}
	return usagef("%w", err)
}

// group makes of cmd a noun: it has verbs below it and does nothing itself.
// Without its own Args, cobra takes a verb that is not there for no verb at all.
func group(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(verbs...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownVerb(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

func unknownVerb(cmd *cobra.Command, word string) error {
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if near := strictyaml.Nearest(word, known, 1); len(near) == 1 {
		return usagef("no command %q under %q; did you mean %q?", word, cmd.CommandPath(), cmd.CommandPath()+" "+near[0])
	}
	return usagef("no command %q under %q, which has %s", word, cmd.CommandPath(), strings.Join(known, ", "))
}

// flagError makes a flag that is not there, or has a wrong value, wrong usage.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := strictyaml.Nearest(unknown.GetSpecifiedName(), known, 1); len(near) == 1 {
			return usagef("no flag %s at %q; did you mean --%s?", dashed(unknown.GetSpecifiedName()), cmd.CommandPath(), near[0])
		}
		return usagef("no flag %s at %q; add --help to see those there are", dashed(unknown.GetSpecifiedName()), cmd.CommandPath())
	}
	return usagef("%w", err)
}

func dashed(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// usagef is an error of how the program was called.
func usagef(format string, args ...any) error {
	return &exitError{Code: exitUsage, Err: fmt.Errorf(format, args...)}
}

// oneHandle takes exactly one argument, the handle of a seat.
func oneHandle(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	// Whoever writes "--wait 5m" has sent the time to where a handle is wanted.
	if wait := cmd.Flags().Lookup("wait"); wait != nil && wait.Changed && len(args) == 2 {
		if _, err := time.ParseDuration(args[1]); err == nil {
			return usagef("--wait takes its time after an equals sign; write: --wait=%s", args[1])
		}
	}
	return usagef("one handle of a seat is wanted, not %d; write: %s", len(args), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
}
