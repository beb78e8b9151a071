package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

func (c *cli) inboxReplayCommand() *cobra.Command {
	var a act
	var all bool
	cmd := &cobra.Command{
		Use:   "replay HANDLE [POSITION]...",
		Short: "send parked mail to its seat again",
		Long: `Sends parked mail to its seat again, with a budget of its own: first mend what sent
it or what runs it. It is sent once, however often that is asked for, and what the
seat has done since is not done again. Where one of the positions cannot be replayed,
none is; --all leaves out mail that was too large to be kept whole.`,
		Example: "  tenure inbox replay writer 12 14 --reason 'the provider is back'\n  tenure inbox replay writer --all --dry-run",
		Args:    handleAndPositions("parked", 0, maxAtOnce),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 1) {
				return usagef("say which: positions of `tenure inbox parked %s`, or --all", args[0])
			}
			return c.decide(cmd, &a, decision{
				handle: args[0], positions: args[1:], verb: verbReplay, would: "send again",
				call: "replayParked(handle: $handle, positions: $positions, reason: $reason)",
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that nobody has decided about, and that was kept whole")
	a.add(cmd)
	return cmd
}

func (c *cli) inboxDropCommand() *cobra.Command {
	var a act
	cmd := &cobra.Command{
		Use:   "drop HANDLE POSITION...",
		Short: "give parked mail up",
		Long: `Gives parked mail up: it is counted and listed as parked no longer, and is never sent
again. Its record stays readable until it is 90 days old. Where one of the positions
cannot be dropped, none is.`,
		Example: "  tenure inbox drop writer 12 --reason 'a test'\n  tenure inbox drop writer 12 14 --dry-run",
		Args:    handleAndPositions("parked", 1, maxAtOnce),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.decide(cmd, &a, decision{
				handle: args[0], positions: args[1:], verb: "drop", would: "give up",
				call: "dropParked(handle: $handle, positions: $positions, reason: $reason)",
			})
		},
	}
	a.add(cmd)
	return cmd
}

const verbReplay = "replay"

// decision is what is to become of parked mail.
type decision struct {
	handle    string
	positions []string // none: all
	verb      string
	would     string
	call      string
}

func (c *cli) decide(cmd *cobra.Command, a *act, d decision) error {
	if err := a.check(); err != nil {
		return err
	}
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	chosen, at := d.positions, asOf{}
	if len(chosen) == 0 || a.dryRun { // else the node judges them, from the log itself
		if chosen, at, err = d.choose(cmd, cl); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%s %d parked mail of %s", d.verb, len(chosen), d.handle)
	if a.dryRun && d.verb == verbReplay {
		if err := d.addressable(cmd, cl); err != nil {
			return err
		}
	}
	if a.dryRun {
		return c.output(cmd).would(fmt.Sprintf("%s: %s %s", d.handle, d.would, list(chosen)), at)
	}
	if err := c.confirm(cmd, a, what); err != nil {
		return err
	}
	var first operation
	for i, some := range slices.Collect(slices.Chunk(chosen, maxAtOnce)) {
		op, err := operate(cmd, cl, "$handle: ID!, $positions: [Position!]!, $reason: String!", d.call,
			map[string]any{"handle": d.handle, "positions": some, "reason": a.reason})
		if err != nil && i > 0 {
			return fmt.Errorf("%d of %d were done before this: %w", i*maxAtOnce, len(chosen), err)
		}
		if err != nil {
			return err
		}
		if i == 0 {
			first = op
		}
	}
	return c.output(cmd).accepted(what, first)
}

// choose reads what is parked: all of it, oldest first, or those that were named,
// which must be there and undecided. What cannot be sent again is not among all of
// it: one mail that was too large to be kept would keep all others parked.
func (d decision) choose(cmd *cobra.Command, cl *client) (chosen []string, at asOf, err error) {
	clipped := map[string]bool{} // by position
	var parked []string
	for variables := (map[string]any{"handle": d.handle, "first": maxPage}); ; {
		l, more, err := parkedOf(cmd, cl, variables)
		if err != nil {
			return nil, at, err
		}
		at = l.AsOf
		for _, m := range l.Mail {
			parked = append(parked, m.Position)
			clipped[m.Position] = m.Clipped && d.verb == verbReplay
		}
		if more == nil {
			break
		}
		variables["after"] = *more
	}
	for _, position := range d.positions {
		switch {
		case !slices.Contains(parked, position):
			return nil, at, fmt.Errorf("no mail of %s that nobody has decided about is parked at %s; `tenure inbox parked %s --decided` lists all", d.handle, position, d.handle)
		case clipped[position]:
			return nil, at, fmt.Errorf("would be refused: the mail parked at %s was too large to be kept whole", position)
		}
	}
	if len(d.positions) > 0 {
		return d.positions, at, nil
	}
	whole := slices.DeleteFunc(slices.Clone(parked), func(position string) bool { return clipped[position] })
	switch left := len(parked) - len(whole); {
	case len(parked) == 0:
		return nil, at, fmt.Errorf("nothing of %s is parked that nobody has decided about", d.handle)
	case len(whole) == 0:
		return nil, at, fmt.Errorf("%d parked mail of %s cannot be sent again, too large to be kept whole, and there is no other; have it sent smaller, and drop it", left, d.handle)
	case left > 0:
		cl.warn(fmt.Sprintf("left out %s, too large to be kept whole: have it sent smaller, and drop it", count(left, "mail")))
	}
	slices.Reverse(whole)
	return whole, at, nil
}

const parkingSeatQuery = `query($handle: ID!) { seat(handle: $handle) { state owner } }`

// addressable says why nothing would be sent again: nobody works on that seat.
func (d decision) addressable(cmd *cobra.Command, cl *client) error {
	got, err := ask[struct{ Seat *apiSeat }](cmd.Context(), cl, parkingSeatQuery, map[string]any{"handle": d.handle})
	if err == nil && (got.Seat == nil || got.Seat.State == "REMOVED" && got.Seat.Owner == nil) {
		err = fmt.Errorf("would be refused: the company has no seat %q", d.handle)
	}
	return err
}
