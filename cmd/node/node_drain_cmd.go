package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/events"
)

const (
	defaultDeadline = 5 * time.Minute
	maxDeadline     = 24 * time.Hour // the most that a node drains

	seatsNamed = 5 // of those that are left, in one line
)

func (c *cli) nodeDrainCommand() *cobra.Command {
	var a act
	var deadline time.Duration
	var noWait bool
	cmd := &cobra.Command{
		Use:   "drain ID",
		Short: "empty a node, and wait until it is empty",
		Long: `Makes a node claim nothing and hand over every seat it has, each after the turn in
flight on it. The command ends when the last of them is given back, which a node
does only once it has proven that nothing of the seat runs there any more. The
node stays up and answers, and claims nothing until "tenure node uncordon".

When --deadline is over the command ends with exit code 4. The node keeps, and
serves, what it still has, and stays cordoned. Interrupted, the command leaves the
drain going on.`,
		Example: `  tenure node drain node-1 --reason 'kernel update'
  tenure node drain node-1 --deadline 15m --reason 'kernel update'
  tenure node drain node-1 --dry-run`,
		Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(validName(args[0]), bounded("--deadline", deadline, maxDeadline)); err != nil {
				return usagef("%w", err)
			}
			if err := a.check(); err != nil {
				return err
			}
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			if a.dryRun {
				return c.wouldDrain(cmd, cl, args[0])
			}
			if err := c.confirm(cmd, &a, "drain node "+args[0]); err != nil {
				return err
			}
			return c.drain(cmd, cl, &draining{node: args[0], reason: a.reason, deadline: deadline, noWait: noWait})
		},
	}
	a.add(cmd)
	cmd.Flags().DurationVar(&deadline, "deadline", defaultDeadline, "how long the node goes on giving seats up")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until it is empty")
	return cmd
}

// draining is one drain as its operator follows it.
type draining struct {
	node     string
	reason   string
	deadline time.Duration
	noWait   bool

	left map[string]bool // seats that the node has, by the log
	read bool            // left has all of them
	had  int
	from uint64 // position of the node's word that it takes nothing more
	show func(left []string)
}

func (c *cli) drain(cmd *cobra.Command, cl *client, d *draining) error {
	began := c.now()
	op, err := operate(cmd, cl, "$id: ID!, $deadline: Duration!, $reason: String!", "drainNode(id: $id, deadline: $deadline, reason: $reason)",
		map[string]any{"id": d.node, "deadline": writeISO(d.deadline), "reason": d.reason})
	if err != nil {
		return err
	}
	out := c.output(cmd)
	if d.noWait {
		return out.accepted("drain node "+d.node, op)
	}
	if d.from, err = strconv.ParseUint(op.Position, 10, 64); err != nil {
		return fmt.Errorf("the node at %s accepted it at position %s, which is none", cl.base, plain(op.Position))
	}
	show, done := drainProgress(cmd.ErrOrStderr(), d.node)
	d.show = show
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), d.deadline, errNotEmpty)
	defer cancel()
	err = d.follow(ctx, cl)
	done()
	late := errors.Is(err, errNotEmpty) || errors.Is(context.Cause(ctx), errNotEmpty)
	switch {
	case err == nil:
	case late && (!d.read || len(d.left) == 0):
		return &exitError{Code: exitTimedOut, Err: fmt.Errorf("node %s was told to give its seats up, and %s were over before it could be read which of them it still has; it keeps and serves those, cordoned. To go on, drain it again",
			d.node, human(d.deadline))}
	case late:
		return &exitError{Code: exitTimedOut, Err: fmt.Errorf("node %s still has %s after %s: %s; it keeps and serves them, cordoned. To go on, drain it again",
			d.node, count(len(d.left), "seat"), human(d.deadline), named(d.handles()))}
	case cmd.Context().Err() != nil:
		return fmt.Errorf("interrupted; node %s goes on giving its seats up. To call that off: tenure node uncordon %[1]s", d.node)
	default:
		return err
	}
	return out.drained(d, c.now().Sub(began))
}

var errNotEmpty = errors.New("the node is not empty yet")

func (d *draining) handles() []string { return slices.Sorted(maps.Keys(d.left)) }

// named lists seats, not too many of them.
func named(handles []string) string {
	shown := handles[:min(len(handles), seatsNamed)]
	text := strings.Join(shown, ", ")
	if more := len(handles) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// follow reads which seats the node has, and then what becomes of them. The list
// may take several answers; the events begin where the first of them stands, and
// what they say twice changes nothing.
func (d *draining) follow(ctx context.Context, cl *client) error {
	d.left = map[string]bool{}
	first, _, err := eachSeatPage(ctx, cl, map[string]any{"node": d.node}, func(page []apiSeat) error {
		for _, s := range page {
			d.left[s.Handle] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.read, d.had = true, len(d.left)
	after, err := strconv.ParseUint(first.Position, 10, 64)
	if err != nil {
		return fmt.Errorf("the node at %s says that it stands at position %s, which is none", cl.base, plain(first.Position))
	}
	d.show(d.handles())
	if len(d.left) == 0 && after >= d.from {
		return nil
	}
	return cl.watchFleet(ctx, after, d.event)
}

// event takes in one event and says whether the node is empty. A fence does not
// make it so: what was fenced may run there until its holder has let go.
func (d *draining) event(r events.Recorded) (bool, error) {
	before := len(d.left)
	switch e := r.Event.(type) {
	case events.LeaseClaimed:
		if err := d.claimed(e); err != nil {
			return false, err
		}
	case events.LeaseReleased:
		if e.Lease.Kind == events.KindSeat && e.Owner.NodeID() == d.node {
			delete(d.left, e.Lease.ID)
		}
	case events.NodeReported:
		if e.Lease == events.NodeLease(d.node) && r.Seq > d.from && !e.Node.Cordoned && !e.Node.Draining {
			return false, fmt.Errorf("the drain of node %s was called off at position %d by %s; it still has %s",
				d.node, r.Seq, plain(r.Meta.Actor), count(len(d.left), "seat"))
		}
	}
	if len(d.left) != before {
		d.show(d.handles())
	}
	return len(d.left) == 0 && r.Seq >= d.from, nil
}

func (d *draining) claimed(e events.LeaseClaimed) error {
	switch {
	case e.Lease.Kind == events.KindSeat && e.Owner.NodeID() == d.node:
		if !d.left[e.Lease.ID] {
			d.had++
		}
		d.left[e.Lease.ID] = true
	case e.Lease.Kind == events.KindSeat:
		delete(d.left, e.Lease.ID)
	case e.Lease == events.NodeLease(d.node):
		return fmt.Errorf("node %s was started again, which ends a drain: drain it again", d.node)
	}
	return nil
}

// drainProgress shows on a terminal what the node still has; elsewhere it says
// nothing.
func drainProgress(stderr io.Writer, node string) (show func([]string), done func()) {
	if !isTerminal(stderr) {
		return func([]string) {}, func() {}
	}
	return func(left []string) {
			fmt.Fprintf(stderr, "\r\x1b[K%s still has %s: %s", node, count(len(left), "seat"), named(left))
		}, func() {
			fmt.Fprint(stderr, "\r\x1b[K")
		}
}

func (o output) drained(d *draining, took time.Duration) error {
	if o.format != formatText {
		return o.json(struct {
			Node  string `json:"node"`
			Seats int    `json:"seats"`
			Took  string `json:"took"`
		}{d.node, d.had, writeISO(took)})
	}
	return o.table(nil, [][]string{{"drained", d.node}, {"gave up", count(d.had, "seat")}, {"took", human(took)}})
}
