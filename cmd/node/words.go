package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// word is a flag whose value is one of a closed set, in either case of letters.
type word struct {
	value string
	words []string
}

func (w *word) String() string { return w.value }

// Set takes one of the words.
func (w *word) Set(s string) error {
	upper := strings.ToUpper(s)
	if !slices.Contains(w.words, upper) {
		return fmt.Errorf("write one of %s", w.choices())
	}
	w.value = upper
	return nil
}

// Type names the flag's value in help.
func (w *word) Type() string { return "word" }

func (w *word) choices() string { return strings.Join(w.words, ", ") }

// complete offers words to the shell for the values of a flag.
func complete(cmd *cobra.Command, flag string, words []string) {
	offer := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(fmt.Sprintf("complete --%s: %v", flag, err)) // no such flag, or twice: ours to mend
	}
}
