package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const cliReference = "../../docs/reference/cli.md"

const referenceHead = `# Command line

Made from the program itself by ` + "`make golden`" + `; a test fails when the two differ.
The exit codes and what goes to stdout and stderr are the same everywhere.
`

// The reference page says exactly what the program says of itself.
func TestCLIReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(referenceHead)
	writeReference(&b, program().rootCommand())
	if os.Getenv("TENURE_GOLDEN") == "rewrite" {
		if err := os.WriteFile(cliReference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(cliReference)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Errorf("%s is not what the program says of itself; run `make golden` and look at the difference", cliReference)
	}
}

func writeReference(b *strings.Builder, cmd *cobra.Command) {
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n", cmd.CommandPath(), about, cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindented(cmd.Example))
	}
	var flags []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		_, usage := pflag.UnquoteUsage(f)
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) && !strings.Contains(usage, "(default ") {
			usage += " (default " + f.DefValue + ")"
		}
		flags = append(flags, fmt.Sprintf("| %s | %s |", name, strings.ReplaceAll(usage, "|", `\|`)))
	})
	if len(flags) > 0 {
		fmt.Fprintf(b, "\n| flag | |\n|---|---|\n%s\n", strings.Join(flags, "\n"))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			writeReference(b, sub)
		}
	}
}

func unindented(text string) string {
	all := strings.Split(text, "\n")
	for i, line := range all {
		all[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(all, "\n")
}

// Every command teaches: what it is for in a line and in full, and how it is
// called, by calls that the program takes.
func TestCLIHelpTeaches(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s: has no Short, Long or Example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			tryExample(t, cmd, strings.TrimSpace(line))
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(program().rootCommand())
}

// tryExample holds an example's flags and arguments against the program, and
// runs nothing.
func tryExample(t *testing.T, of *cobra.Command, line string) {
	t.Helper()
	_, call, ok := strings.Cut(line, "tenure ")
	if !ok {
		t.Errorf("%s: the example %q does not call the program", of.CommandPath(), line)
		return
	}
	call, _, _ = strings.Cut(call, "|")
	call, _, _ = strings.Cut(call, ">")
	root := program().rootCommand()
	cmd, args, err := root.Find(words(call))
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: the example %q: %v", of.CommandPath(), line, err)
	}
}
