// Command tenure runs a node, and is the way to look at and act on a fleet.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "tenure", Short: "seats that exactly one node holds", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(configCommand())
	err := root.Execute()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(exitCode(err))
}
