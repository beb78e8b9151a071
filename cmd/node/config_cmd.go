package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// defaultNodeFile is read when no file is named and it is there.
const defaultNodeFile = "node.yaml"

// configFlag names the node file.
const configFlag = "config"

// addConfigFlags gives fs the flag that names the node file and one flag for
// every value of it.
func addConfigFlags(flags *pflag.FlagSet) {
	flags.StringP(configFlag, "c", "", "node file (default "+defaultNodeFile+" when it is there)")
	defaults := DefaultConfig()
	for _, f := range configFields {
		name := flagName(f.path)
		usage := f.usage
		if shown := textValue(f.value(&defaults)); shown != `""` && shown != "[]" && shown != "{}" {
			usage += " (default " + shown + ")"
		}
		flags.String(name, "", usage)
		if _, ok := f.at(&defaults).(*bool); ok {
			flags.Lookup(name).NoOptDefVal = "true"
		}
	}
}

// configFromFlags loads the configuration that a command with addConfigFlags
// was called with. A bad one is an exitError with code 78.
func configFromFlags(flags *pflag.FlagSet) (Config, Sources, error) {
	path, err := nodeFile(flags)
	if err != nil {
		return Config{}, nil, err
	}
	set := map[string]string{}
	for _, f := range configFields {
		if flag := flags.Lookup(flagName(f.path)); flag != nil && flag.Changed {
			set[flag.Name] = flag.Value.String()
		}
	}
	c, sources, err := LoadConfig(path, os.Environ(), set)
	if err != nil {
		return Config{}, nil, &exitError{Code: exitBadConfig, Err: err}
	}
	return c, sources, nil
}

// nodeFile is the file to read: the one that was named, else node.yaml when it
// is there, else none.
func nodeFile(flags *pflag.FlagSet) (string, error) {
	path, err := flags.GetString(configFlag)
	if err != nil || path != "" || flags.Changed(configFlag) {
		return path, err
	}
	_, err = os.Stat(defaultNodeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return defaultNodeFile, nil // there, or not to be looked at: reading it says why
}

// configCommand is `tenure config`: look at a configuration without starting.
func configCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "config",
		Short: "check and show this node's configuration",
		Long: "A value comes from a flag, else from the environment (TENURE_API__LISTEN\n" +
			"for api.listen), else from the node file, else from the defaults.",
		Example: "  tenure config check\n  tenure config print --sources",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(configCheckCommand(), configPrintCommand())
	return command
}

func configCheckCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "check",
		Short: "say everything that is wrong with the configuration; exit code 78 if anything is",
		Long: "Reads the configuration as a node would and starts nothing. Every problem of\n" +
			"every source is shown at once: where it stands, what is wrong, what to write.",
		Example: "  tenure config check --config node.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, sources, err := configFromFlags(cmd.Flags())
			if err != nil {
				return err
			}
			set := 0
			for _, s := range sources {
				if s.Kind != fromDefault {
					set++
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the configuration is fine: %d of %d values set, the others default\n", set, len(sources))
			return err
		},
	}
	addConfigFlags(command.Flags())
	return command
}

func configPrintCommand() *cobra.Command {
	var format string
	var withSources bool
	command := &cobra.Command{
		Use:   "print",
		Short: "show every effective value, and with --sources where it came from",
		Long: "Shows what a node would run with. As yaml it is a node file again. Passwords in\n" +
			"URLs are hidden.",
		Example: "  tenure config print --sources\n  tenure config print --config node.yaml -o yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "text" && format != "json" && format != "yaml" {
				return &exitError{Code: exitUsage, Err: fmt.Errorf("--output: %q is no output format; write text, json or yaml", format)}
			}
			c, sources, err := configFromFlags(cmd.Flags())
			if err != nil {
				return err
			}
			if !withSources {
				sources = nil
			}
			return PrintConfig(cmd.OutOrStdout(), c, sources, format)
		},
	}
	addConfigFlags(command.Flags())
	command.Flags().StringVarP(&format, "output", "o", "text", "text, json or yaml")
	command.Flags().BoolVar(&withSources, "sources", false, "say where each value came from")
	return command
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q takes no arguments, and %q is one; add --help to see its flags", cmd.CommandPath(), args[0])
	}
	return nil
}
