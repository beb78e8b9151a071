package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const maxWaitingPage = 100 // mail that one question lists, as the API has it

func (c *cli) inboxCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "inbox",
		Short: "mail that waits, and mail that was set aside",
		Long: `A seat's mail waits in its inbox until a turn on it has completed. Mail that cannot
be read, that is of a type which runs no turn, or on which 25 turns were started and
none completed, is set aside (parked) with the reason, and keeps no other mail from
flowing. It stays readable for 90 days, and is replayed or dropped by people.

Looking changes nothing.`,
		Example: "  tenure inbox ls writer\n  tenure inbox parked writer\n  tenure inbox replay writer --all --reason 'the provider is back'",
	}, c.inboxListCommand(), c.inboxPeekCommand(), c.inboxParkedCommand(), c.inboxReplayCommand(), c.inboxDropCommand())
}

const waitingFields = `position id type conversation source at state attempts run replayOf bytes undecodable`

const waitingQuery = `query($handle: ID!, $first: Int, $after: String) {
  waitingMail(handle: $handle, first: $first, after: $after) { edges { node { ` + waitingFields + ` } } pageInfo { hasNextPage endCursor } }
}`

const peekQuery = `query($handle: ID!, $first: Int, $after: String) {
  waitingMail(handle: $handle, first: $first, after: $after) { edges { node { ` + waitingFields + ` data } } pageInfo { hasNextPage endCursor } }
}`

type waitingMail struct {
	Position     string          `json:"position"`
	ID           *string         `json:"id"`
	Type         *string         `json:"type"`
	Conversation *string         `json:"conversation"`
	Source       *string         `json:"source"`
	At           time.Time       `json:"at"`
	State        string          `json:"state"`
	Attempts     int             `json:"attempts"`
	Run          *string         `json:"run"`
	ReplayOf     *string         `json:"replayOf"`
	Bytes        int             `json:"bytes"`
	Undecodable  *string         `json:"undecodable"`
	Data         json.RawMessage `json:"data,omitempty"`
}

// waits says in a word or two why it waits.
func (m waitingMail) waits() string {
	switch {
	case m.Undecodable != nil:
		return "unreadable"
	case m.Run != nil:
		return "held by " + plain(*m.Run)
	}
	return strings.ToLower(plain(m.State))
}

type waitingList struct {
	Mail []waitingMail `json:"mail"`
	More bool          `json:"more"`
}

func (c *cli) inboxListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "ls HANDLE",
		Short: "mail that waits in a seat's inbox",
		Long: `Lists the mail in a seat's inbox that is not settled, oldest first, from the broker
and the seat's cursor as they are now. STATE is unread, read (no turn was started on
it yet), running, failed (it comes again), held by a run, or unreadable.`,
		Example: "  tenure inbox ls writer\n  tenure inbox ls writer --limit 100 -o jsonl",
		Args:    oneHandle,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := validName(args[0]); err != nil {
				return err
			}
			if err := checkLimit(limit, maxWaitingPage); err != nil {
				return err
			}
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			l, err := waiting(cmd, cl, waitingQuery, map[string]any{"handle": args[0], "first": limit})
			if err != nil {
				return err
			}
			if l.More {
				cl.warn("there is more; show more with --limit")
			}
			return c.writeWaiting(cmd, l)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return cmd
}

// waiting asks for one page.
func waiting(cmd *cobra.Command, cl *client, query string, variables map[string]any) (waitingList, error) {
	got, err := ask[struct {
		WaitingMail *connection[waitingMail] // nil: there is no mailbox
	}](cmd.Context(), cl, query, variables)
	if err != nil {
		return waitingList{}, err
	}
	if got.WaitingMail == nil {
		return waitingList{}, fmt.Errorf("seat %s has no mailbox; `tenure seat ls` shows which seats there are", variables["handle"])
	}
	return waitingList{got.WaitingMail.nodes(), got.WaitingMail.PageInfo.HasNextPage}, nil
}

func (c *cli) writeWaiting(cmd *cobra.Command, l waitingList) error {
	return listing[waitingMail]{
		whole: l, items: l.Mail,
		header: []string{"MAIL", "ID", "TYPE", "CONVERSATION", "STATE", "ATTEMPTS", "SENT", "BYTES"},
		row: func(m waitingMail) []string {
			return []string{
				plain(m.Position), given(m.ID), given(m.Type), given(m.Conversation), m.waits(),
				strconv.Itoa(m.Attempts), ago(&m.At, c.now()), strconv.Itoa(m.Bytes),
			}
		},
	}.write(c.output(cmd))
}

func (c *cli) inboxPeekCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "peek HANDLE [POSITION]",
		Short: "what one mail says that waits",
		Long: `Shows one mail that waits in a seat's inbox, with what it says: the oldest, or the
one at that position.`,
		Example: "  tenure inbox peek writer\n  tenure inbox peek writer 4711 -o json | jq .data",
		Args:    handleAndPositions("ls", 0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			variables := map[string]any{"handle": args[0], "first": 1}
			if len(args) > 1 {
				variables["after"] = before(args[1])
			}
			l, err := waiting(cmd, cl, peekQuery, variables)
			switch {
			case err != nil:
				return err
			case len(l.Mail) == 0 && len(args) == 1:
				return fmt.Errorf("nothing waits in the inbox of %s", args[0])
			case len(l.Mail) == 0 || len(args) > 1 && l.Mail[0].Position != args[1]:
				return fmt.Errorf("no mail of %s waits at %s; it is settled, or another's", args[0], args[1])
			}
			return c.output(cmd).waiting(l.Mail[0])
		},
	}
}

func (o output) waiting(m waitingMail) error {
	if o.format != formatText {
		return o.json(m)
	}
	rows := [][]string{
		{"mail", plain(m.Position)}, {"id", given(m.ID)}, {"type", given(m.Type)}, {"conversation", given(m.Conversation)},
		{"source", given(m.Source)}, {"sent", wallTime(&m.At)}, {"state", m.waits()}, {"attempts", strconv.Itoa(m.Attempts)},
	}
	if m.Undecodable != nil {
		rows = append(rows, []string{"why", plain(*m.Undecodable)})
	}
	return o.table(nil, append(rows, []string{"says", said(m.Data, m.Bytes)}))
}

// said shows what mail says on one line.
func said(data json.RawMessage, size int) string {
	var compact bytes.Buffer
	if len(data) == 0 || string(data) == "null" && size != len("null") || json.Compact(&compact, data) != nil {
		return fmt.Sprintf("%d bytes that are no JSON", size)
	}
	return plain(compact.String())
}

// handleAndPositions takes a seat and at least few and at most many positions, which
// the verb list shows.
func handleAndPositions(list string, few, many int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < 1+few || len(args) > 1+many {
			return usagef("a seat's handle and %d to %d positions are wanted, not %s; write: %s",
				few, many, count(len(args), "argument"), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		if err := validName(args[0]); err != nil {
			return err
		}
		for i, position := range args[1:] {
			// As it is listed: "012" would be another word for 12, and not found by it.
			n, err := strconv.ParseUint(position, 10, 64)
			if err != nil || n == 0 || strconv.FormatUint(n, 10) != position {
				return usagef("%q is no position; `%s` lists them", position, "tenure inbox "+list+" "+args[0])
			}
			if slices.Contains(args[1:1+i], position) {
				return usagef("position %s stands there twice", position)
			}
		}
		return nil
	}
}
