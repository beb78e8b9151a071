package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (c *cli) mailboxCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "mailbox",
		Short: "what seats are sent, and what becomes of a removed seat's mail",
		Long: `A seat's mailbox keeps what it is sent until that is settled, whoever holds the seat,
and when nobody does. The mailbox of a seat that the company has removed is kept for
a grace, then retired: deleted, with its mail. The seat's memory stays.`,
		Example: "  tenure mailbox ls --state absent\n  tenure mailbox retire writer --now --reason 'never to come back'",
	}, c.mailboxListCommand(), c.mailboxShowCommand(), c.mailboxRetireCommand())
}

const mailboxFields = `handle agentId state pending oldestAge parked absentSince retiresAt refused retirementId retirementStep`

type apiMailbox struct {
	Handle         string     `json:"handle"`
	AgentID        string     `json:"agentId"`
	State          string     `json:"state"`
	Pending        *int       `json:"pending"`
	OldestAge      *string    `json:"oldestAge"`
	Parked         *int       `json:"parked"`
	AbsentSince    *time.Time `json:"absentSince"`
	RetiresAt      *time.Time `json:"retiresAt"`
	Refused        *string    `json:"refused"`
	RetirementID   *string    `json:"retirementId"`
	RetirementStep *string    `json:"retirementStep"`
}

// number shows a count that may not be known.
func number(n *int) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

type mailboxList struct {
	AsOf      asOf         `json:"asOf"`
	Mailboxes []apiMailbox `json:"mailboxes"`
}

func (c *cli) mailboxListCommand() *cobra.Command {
	var state string
	var limit int
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "mailboxes, with what waits in them",
		Long: `Lists mailboxes by handle. PENDING is the mail that is kept, OLDEST the age of the
first message in the inbox that is not settled, PARKED what was set aside. RETIRES is
when a sweep will find the grace of a removed seat over, HELD BY what keeps it then:
held (a node has not let go of the seat), or protocol (a node of an older one is alive).
The last three are empty for a seat that the company has.`,
		Example: "  tenure mailbox ls\n  tenure mailbox ls --state absent -o json | jq '.mailboxes[].retiresAt'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(limit, maxPage); err != nil {
				return err
			}
			variables := map[string]any{"first": limit}
			if state != "" {
				switch state = strings.ToUpper(state); state {
				case "ACTIVE", "ABSENT", "RETIRING", "RETIRED":
					variables["filter"] = map[string]any{"state": state}
				default:
					return usagef("--state: write active, absent, retiring or retired")
				}
			}
			return c.listMailboxes(cmd, variables)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those that are active, absent, retiring or retired")
	cmd.Flags().IntVar(&limit, "limit", 100, "how many at most")
	return cmd
}

const mailboxesQuery = `query($filter: MailboxFilter, $first: Int) {
  mailboxes(filter: $filter, first: $first) { ` + asOfFields + ` edges { node { ` + mailboxFields + ` } } pageInfo { hasNextPage endCursor } }
}`

func (c *cli) listMailboxes(cmd *cobra.Command, variables map[string]any) error {
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	got, err := ask[struct{ Mailboxes connection[apiMailbox] }](cmd.Context(), cl, mailboxesQuery, variables)
	if err != nil {
		return err
	}
	if err := c.writeMailboxes(cmd, mailboxList{got.Mailboxes.AsOf, got.Mailboxes.nodes()}); err != nil {
		return err
	}
	if got.Mailboxes.PageInfo.HasNextPage {
		cl.warn("there are more; show more with --limit")
	}
	return nil
}

func (c *cli) writeMailboxes(cmd *cobra.Command, l mailboxList) error {
	return writeAsOf(c, cmd, listing[apiMailbox]{
		whole: l, items: l.Mailboxes,
		header: []string{"MAILBOX", "STATE", "PENDING", "OLDEST", "PARKED", "ABSENT SINCE", "RETIRES", "HELD BY"},
		row: func(m apiMailbox) []string {
			return []string{
				plain(m.Handle), plain(m.State), number(m.Pending), humanISO(m.OldestAge), number(m.Parked),
				wallTime(m.AbsentSince), wallTime(m.RetiresAt), given(m.Refused),
			}
		},
	}, l.AsOf)
}

type mailboxShown struct {
	AsOf    asOf        `json:"asOf"`
	Mailbox *apiMailbox `json:"mailbox"`
}

const mailboxQuery = `query($handle: ID!) { ` + asOfFields + ` mailbox(handle: $handle) { ` + mailboxFields + ` } }`

// mailboxOf reads one mailbox; an error when there is none.
func mailboxOf(cmd *cobra.Command, cl *client, handle string) (mailboxShown, error) {
	got, err := ask[mailboxShown](cmd.Context(), cl, mailboxQuery, map[string]any{"handle": handle})
	if err == nil && got.Mailbox == nil {
		err = fmt.Errorf("no mailbox of %q was ever registered; `tenure mailbox ls` lists those that were", handle)
	}
	return got, err
}

func (c *cli) mailboxShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show HANDLE",
		Short:   "one mailbox",
		Long:    "Shows one mailbox: what waits in it, and how far its retirement is if its seat was removed.",
		Example: "  tenure mailbox show writer",
		Args:    oneHandle,
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			got, err := mailboxOf(cmd, cl, args[0])
			if err != nil {
				return err
			}
			out, m := c.output(cmd), got.Mailbox
			if out.format != formatText {
				return out.json(got)
			}
			if err := out.table(nil, [][]string{
				{"mailbox", plain(m.Handle)}, {"agent", plain(m.AgentID)}, {"state", plain(m.State)},
				{"pending", number(m.Pending)}, {"oldest", humanISO(m.OldestAge)}, {"parked", number(m.Parked)},
				{"absent since", wallTime(m.AbsentSince)}, {"retires", wallTime(m.RetiresAt)}, {"held by", given(m.Refused)},
				{"retirement", given(m.RetirementID)}, {"step", given(m.RetirementStep)},
			}); err != nil {
				return err
			}
			c.standing(cmd, got.AsOf)
			return nil
		},
	}
}

func (c *cli) mailboxRetireCommand() *cobra.Command {
	var a act
	var now bool
	cmd := &cobra.Command{
		Use:   "retire HANDLE",
		Short: "delete a removed seat's mailbox",
		Long: `Deletes the mailbox of a seat that the company has removed, with its mail, as a sweep
does when the grace is over; with --now without waiting for the rest of it. It is
refused while the company has the seat, while a node still holds it, and while a node
of an older lease protocol is alive. The seat's memory stays. It cannot be undone.

A mailbox whose MAIL stream was swapped for another is retired in no other way than
with --now: what the lost stream had for it is given up.`,
		Example: "  tenure mailbox retire writer --now --reason 'never to come back'\n  tenure mailbox retire writer --now --dry-run",
		Args:    oneHandle,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			got, err := mailboxOf(cmd, cl, args[0])
			if err != nil {
				return err
			}
			what := fmt.Sprintf("delete the mailbox of %s (%s) with %s mails", args[0], strings.ToLower(got.Mailbox.State), number(got.Mailbox.Pending))
			if a.dryRun {
				if err := c.retirable(cmd, cl, got.Mailbox, now); err != nil {
					return err
				}
				return c.output(cmd).would(what, got.AsOf)
			}
			if err := c.confirm(cmd, &a, what); err != nil {
				return err
			}
			op, err := operate(cmd, cl, "$handle: ID!, $now: Boolean, $reason: String!", "retireMailbox(handle: $handle, now: $now, reason: $reason)",
				map[string]any{"handle": args[0], "now": now, "reason": a.reason})
			if err != nil {
				return err
			}
			return c.output(cmd).accepted("retire the mailbox of "+args[0], op)
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "do not wait for what is left of the grace")
	a.add(cmd)
	return cmd
}

const removedSeatQuery = `query($handle: ID!) { seat(handle: $handle) { state owner expiresAt } }`

// retirable says why a retirement would be refused, as far as the node's view
// tells; what judges it when it is asked for is the log.
func (c *cli) retirable(cmd *cobra.Command, cl *client, m *apiMailbox, now bool) error {
	got, err := ask[struct{ Seat *apiSeatInFull }](cmd.Context(), cl, removedSeatQuery, map[string]any{"handle": m.Handle})
	if err != nil {
		return err
	}
	s, why := got.Seat, "" // no seat: the log has never named it
	held := s != nil && s.Owner != nil && (s.ExpiresAt == nil || s.ExpiresAt.After(c.now()))
	switch {
	case s != nil && s.State != "REMOVED":
		why = "the company has the seat"
	case m.State == "RETIRED":
		why = "the mailbox is retired already"
	case m.State == "RETIRING":
		why = fmt.Sprintf("it is being retired already (%s, %s)", given(m.RetirementID), given(m.RetirementStep))
	case !now && m.RetiresAt == nil:
		why = "no sweep has seen the seat missing yet; --now does not wait for one"
	case !now && m.RetiresAt.After(c.now()):
		why = fmt.Sprintf("the grace goes on until %s; --now does not wait for the rest", wallTime(m.RetiresAt))
	case held:
		why = fmt.Sprintf("node %s still holds the seat", s.node())
	default:
		return nil
	}
	return fmt.Errorf("would be refused: %s: %s", plain(m.Handle), why)
}
