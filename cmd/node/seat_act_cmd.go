package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/events"
)

// seatVerb is one thing to do to a seat.
type seatVerb struct {
	handle, verb string
	signature    string // of the mutation's variables beyond handle and reason
	call         string
	variables    map[string]any
	// would says what would be done, or, as an error, why it would be refused.
	would func(seatPlan) (string, error)
	wait  time.Duration // for the handoff; 0: not at all
}

func (c *cli) seatReleaseCommand() *cobra.Command {
	return c.seatCommandOf("release", "make the holder give a seat back",
		`Makes the node that holds a seat give it back, the turn in flight first. Whichever
node has room for it takes it at its next pass, the same one too; until then nobody
runs it. To choose the node, and to be dark for milliseconds only, move it.`,
		"  tenure seat release writer --reason 'start it afresh'\n  tenure seat release writer --dry-run",
		func(v *seatVerb) error {
			v.call = "releaseSeat(handle: $handle, reason: $reason)"
			v.would = func(p seatPlan) (string, error) { return p.held("release it from %s (epoch %s)") }
			return nil
		}, nil)
}

func (c *cli) seatFenceCommand() *cobra.Command {
	return c.seatCommandOf("fence", "end a holder's lease from outside",
		`Ends the renewals of a seat's tenure in the log, whether or not its holder answers.
A holder that is well stops at its next renewal and gives the seat back, unfinished
turns to be run again; whichever node has room claims it then, the same one too. Of
a holder that does not answer, the seat is dark until the time that it had bought is
over. For a holder that is well, release or move is faster and gentler.`,
		"  tenure seat fence writer --reason 'its node does not answer and does not die'",
		func(v *seatVerb) error {
			v.call = "fenceSeat(handle: $handle, reason: $reason)"
			v.would = func(p seatPlan) (string, error) {
				return p.held("fence %s (epoch %s); nobody runs it until that node has given it back or that tenure's time is over")
			}
			return nil
		}, nil)
}

func (c *cli) seatPauseCommand() *cobra.Command {
	var stop bool
	return c.seatCommandOf("pause", "hold a seat's mail",
		`Makes a seat start no turn, wherever it runs and wherever it moves, until it is
resumed. Its mail is kept. The turn in flight goes on, unless --stop-turn stops it
at its next call; what that one was about is recorded and not run again.`,
		"  tenure seat pause writer --reason 'answers too fast'\n  tenure seat pause writer --stop-turn --reason 'runs in circles'",
		func(v *seatVerb) error {
			v.signature = ", $stopTurn: Boolean"
			v.call = "pauseSeat(handle: $handle, stopTurn: $stopTurn, reason: $reason)"
			v.variables["stopTurn"] = stop
			v.would = func(p seatPlan) (string, error) {
				if p.Seat.Paused {
					return "pause it anew; it is paused already", nil
				}
				return "hold its mail until it is resumed", nil
			}
			return nil
		}, func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&stop, "stop-turn", false, "stop the turn in flight too")
		})
}

func (c *cli) seatResumeCommand() *cobra.Command {
	return c.seatCommandOf("resume", "end a pause", "Ends a pause: the mail that was held is run.",
		"  tenure seat resume writer --reason 'looked into'",
		func(v *seatVerb) error {
			v.call = "resumeSeat(handle: $handle, reason: $reason)"
			v.would = func(p seatPlan) (string, error) {
				if !p.Seat.Paused {
					return "change nothing: it is not paused", nil
				}
				return "run the mail that is held", nil
			}
			return nil
		}, nil)
}

func (c *cli) seatMoveCommand() *cobra.Command {
	var to string
	var wait time.Duration
	var cmd *cobra.Command
	cmd = c.seatCommandOf("move", "hand a seat over to a node",
		`Hands a seat over from the node that holds it to another: the turn in flight ends
first, and the seat is dark for milliseconds. The node must match the seat's
placement and have room for it: over its share it would give the seat back.

With --wait the command ends when the seat is served there: exit code 0, 1 when the
handoff came to nothing, 4 when the time was up.`,
		`  tenure seat move writer --to node-2 --reason 'closer to its data' --wait
  tenure seat move writer --to node-2 --dry-run`,
		func(v *seatVerb) error {
			if to == "" {
				return usagef("--to: say which node is to run it; `tenure node ls` lists those there are")
			}
			if err := validName(to); err != nil {
				return usagef("--to: %w", err)
			}
			if cmd.Flags().Changed("wait") {
				if err := bounded("--wait", wait, maxDeadline); err != nil {
					return err
				}
			}
			v.signature, v.wait = ", $to: ID!", wait
			v.call = "moveSeat(handle: $handle, to: $to, reason: $reason)"
			v.variables["to"] = to
			v.would = func(p seatPlan) (string, error) { return p.move(to) }
			return nil
		}, func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&to, "to", "", "node that is to run it")
			cmd.Flags().DurationVar(&wait, "wait", 0, "wait until it is served there: --wait for "+human(defaultWait)+", --wait=5m for another time")
			cmd.Flags().Lookup("wait").NoOptDefVal = defaultWait.String()
		})
	return cmd
}

// seatCommandOf is a verb on one seat. fill completes what is asked for once the
// flags are read.
func (c *cli) seatCommandOf(verb, short, long, example string, fill func(*seatVerb) error, flags func(*cobra.Command)) *cobra.Command {
	var a act
	cmd := &cobra.Command{
		Use: verb + " HANDLE", Short: short, Long: long, Example: example, Args: oneHandle,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := validName(args[0]); err != nil {
				return err
			}
			if err := a.check(); err != nil {
				return err
			}
			v := seatVerb{handle: args[0], verb: verb, variables: map[string]any{"handle": args[0]}}
			if err := fill(&v); err != nil {
				return err
			}
			return c.seatOperation(cmd, &a, v)
		},
	}
	if flags != nil {
		flags(cmd)
	}
	a.add(cmd)
	return cmd
}

func (c *cli) seatOperation(cmd *cobra.Command, a *act, v seatVerb) error {
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	out := c.output(cmd)
	if a.dryRun {
		return c.wouldDo(cmd, cl, v)
	}
	if err := c.confirm(cmd, a, v.verb+" seat "+v.handle); err != nil {
		return err
	}
	v.variables["reason"] = a.reason
	op, err := operate(cmd, cl, "$handle: ID!, $reason: String!"+v.signature, v.call, v.variables)
	if err != nil {
		return err
	}
	if v.wait == 0 {
		return out.accepted(v.verb+" seat "+v.handle, op)
	}
	dark, err := awaitHandoff(cmd.Context(), cl, op, v.wait)
	if err != nil {
		return err
	}
	return out.moved(v, op, dark)
}

// awaitHandoff follows the handoff to its end and returns for how long the seat
// was dark.
func awaitHandoff(ctx context.Context, cl *client, op operation, wait time.Duration) (dark string, err error) {
	if op.SagaID == nil {
		return "", fmt.Errorf("the node at %s named no saga to wait for", cl.base)
	}
	after, err := strconv.ParseUint(op.Position, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the node at %s accepted it at position %s, which is none", cl.base, plain(op.Position))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errNotMoved)
	defer cancel()
	err = cl.watchFleet(ctx, after, func(r events.Recorded) (bool, error) {
		e, is := r.Event.(events.HandoffEvent)
		if !is {
			return false, nil
		}
		if _, body := e.Handoff(); body.ID() != *op.SagaID {
			return false, nil
		}
		switch e := e.(type) {
		case events.HandoffCompleted:
			dark = writeISO(e.DarkFor.Duration())
			return true, nil
		case events.HandoffDeclined:
			return false, fmt.Errorf("node %s declined the seat: %s", e.To.NodeID(), plain(string(e.Cause)))
		case events.HandoffAbandoned:
			return false, fmt.Errorf("the handoff was abandoned when it was %s: %s", plain(string(e.Step)), plain(string(e.Cause)))
		}
		return false, nil
	})
	if errors.Is(err, errNotMoved) || errors.Is(context.Cause(ctx), errNotMoved) {
		return "", &exitError{Code: exitTimedOut, Err: fmt.Errorf("the seat is not served there after %s; the handoff goes on: tenure saga ls --open", human(wait))}
	}
	return dark, err
}

var errNotMoved = errors.New("the handoff has not ended yet")

func (o output) moved(v seatVerb, op operation, dark string) error {
	if o.format != formatText {
		return o.json(struct {
			operation
			DarkFor string `json:"darkFor"`
		}{op, dark})
	}
	return o.table(nil, [][]string{
		{"moved", v.handle}, {"to", fmt.Sprint(v.variables["to"])}, {"saga", given(op.SagaID)}, {"dark", humanISO(&dark)},
	})
}

const planQuery = `query($handle: ID!) {
  ` + asOfFields + `
  seat(handle: $handle) { handle state owner epoch paused handoff { id step to } }
  explanation: explainPlacement(handle: $handle) { ` + explanationFields + ` }
}`

// seatPlan is what a dry run looks at.
type seatPlan struct {
	AsOf asOf `json:"asOf"`
	Seat *struct {
		apiSeat
		Paused  bool     `json:"paused"`
		Handoff *apiSaga `json:"handoff"`
	} `json:"seat"`
	Explanation *explanation `json:"explanation"`
}

// wouldDo says what would be done; what would be refused is an error.
func (c *cli) wouldDo(cmd *cobra.Command, cl *client, v seatVerb) error {
	p, err := ask[seatPlan](cmd.Context(), cl, planQuery, map[string]any{"handle": v.handle})
	if err != nil {
		return err
	}
	if p.Seat == nil || p.Explanation == nil {
		return fmt.Errorf("would be refused: the log has never named a seat %q", v.handle)
	}
	what, err := v.would(p)
	if err != nil {
		return fmt.Errorf("would be refused: %w", err)
	}
	return c.output(cmd).would(v.handle+": "+what, p.AsOf)
}

// held says what would happen to the tenure in force.
func (p seatPlan) held(format string) (string, error) {
	if p.Seat.Owner == nil {
		return "", errors.New("nobody holds the seat")
	}
	return fmt.Sprintf(format, p.Seat.node(), given(p.Seat.Epoch)), nil
}

func (p seatPlan) move(to string) (string, error) {
	switch s := p.Seat; {
	case s.Handoff != nil:
		return "", fmt.Errorf("it is on its way to %s already (%s, %s)", given(s.Handoff.To), plain(s.Handoff.ID), plain(s.Handoff.Step))
	case s.Owner == nil:
		return "", errors.New("nobody holds the seat")
	case s.node() == to:
		return "", fmt.Errorf("it runs on %s already", to)
	case !slices.Contains(p.Explanation.Eligible, to):
		return "", fmt.Errorf("node %s may not run it now; %s may", to, list(p.Explanation.Eligible))
	}
	return fmt.Sprintf("hand it over from %s to %s, if that has room", p.Seat.node(), to), nil
}
