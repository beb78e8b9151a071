package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const maxAtOnce = 100 // parked mail that one mutation decides about, as the API has it

const parkedFields = `position handle id type conversation mailSequence at reason attempts history { epoch end count why at } bytes clipped decided { how by reason at position mailSequence }`

const parkedQuery = `query($handle: ID!, $decided: Boolean, $first: Int, $after: String) {
  parkedMail(handle: $handle, decided: $decided, first: $first, after: $after) { ` + asOfFields + ` edges { node { ` + parkedFields + ` } } pageInfo { hasNextPage endCursor } }
}`

const parkedContentQuery = `query($handle: ID!, $position: Position!) {
  parkedContent(handle: $handle, position: $position) { position headers data raw }
}`

type parkedMail struct {
	Position     string    `json:"position"`
	Handle       string    `json:"handle"`
	ID           *string   `json:"id"`
	Type         *string   `json:"type"`
	Conversation *string   `json:"conversation"`
	MailSequence string    `json:"mailSequence"`
	At           time.Time `json:"at"`
	Reason       string    `json:"reason"`
	Attempts     int       `json:"attempts"`
	History      []struct {
		Epoch string     `json:"epoch"`
		End   string     `json:"end"`
		Count int        `json:"count"`
		Why   *string    `json:"why"`
		At    *time.Time `json:"at"`
	} `json:"history"`
	Bytes   int  `json:"bytes"`
	Clipped bool `json:"clipped"`
	Decided *struct {
		How          string    `json:"how"`
		By           string    `json:"by"`
		Reason       string    `json:"reason"`
		At           time.Time `json:"at"`
		Position     string    `json:"position"`
		MailSequence *string   `json:"mailSequence"`
	} `json:"decided"`
}

// became is what an operator made of it.
func (m parkedMail) became() string {
	if m.Decided == nil {
		return none
	}
	return plain(strings.ToLower(m.Decided.How) + " by " + m.Decided.By + ": " + m.Decided.Reason)
}

type parkedList struct {
	AsOf asOf         `json:"asOf"`
	Mail []parkedMail `json:"mail"`
}

func (c *cli) inboxParkedCommand() *cobra.Command {
	var decided bool
	var limit int
	cmd := &cobra.Command{
		Use:   "parked HANDLE [POSITION]",
		Short: "mail that was set aside, and why",
		Long: `Lists a seat's parked mail that nobody has decided about, newest first; with
--decided what was replayed or dropped, too. With a position it shows that one whole:
how its turns ended, its headers and what it says.`,
		Example: "  tenure inbox parked writer\n  tenure inbox parked writer 12\n  tenure inbox parked writer --decided -o jsonl",
		Args:    handleAndPositions("parked", 0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLimit(limit, maxPage); err != nil {
				return err
			}
			cl, err := c.client(cmd)
			if err != nil {
				return err
			}
			defer cl.close()
			if len(args) > 1 {
				return c.showParked(cmd, cl, args[0], args[1])
			}
			l, more, err := parkedOf(cmd, cl, map[string]any{"handle": args[0], "first": limit, "decided": decided})
			if err != nil {
				return err
			}
			if len(l.Mail) == 0 { // of a seat that there is, or of a word that was mistyped
				if _, err := mailboxOf(cmd, cl, args[0]); err != nil {
					return err
				}
			}
			if more != nil {
				cl.warn("there is more; show more with --limit")
			}
			return c.writeParked(cmd, l)
		},
	}
	cmd.Flags().BoolVar(&decided, "decided", false, "what was replayed or dropped, too")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most")
	return cmd
}

// parkedOf asks for one page; more is the cursor of the next, nil when there is none.
func parkedOf(cmd *cobra.Command, cl *client, variables map[string]any) (l parkedList, more *string, err error) {
	got, err := ask[struct{ ParkedMail connection[parkedMail] }](cmd.Context(), cl, parkedQuery, variables)
	if err != nil {
		return l, nil, err
	}
	l = parkedList{got.ParkedMail.AsOf, got.ParkedMail.nodes()}
	if got.ParkedMail.PageInfo.HasNextPage {
		more = got.ParkedMail.PageInfo.EndCursor
	}
	return l, more, nil
}

func (c *cli) writeParked(cmd *cobra.Command, l parkedList) error {
	return writeAsOf(c, cmd, listing[parkedMail]{
		whole: l, items: l.Mail,
		header: []string{"PARKED", "ID", "TYPE", "ATTEMPTS", "SINCE", "REASON", "DECIDED"},
		row: func(m parkedMail) []string {
			return []string{
				plain(m.Position), given(m.ID), given(m.Type), strconv.Itoa(m.Attempts),
				ago(&m.At, c.now()), plain(m.Reason), m.became(),
			}
		},
	}, l.AsOf)
}

// parkedContent is what one parked mail says.
type parkedContent struct {
	Position string              `json:"position"`
	Headers  map[string][]string `json:"headers"`
	Data     json.RawMessage     `json:"data"`
	Raw      *string             `json:"raw"`
}

func (c *cli) showParked(cmd *cobra.Command, cl *client, handle, position string) error {
	got, err := ask[struct {
		ParkedContent *parkedContent `json:"parkedContent"`
	}](cmd.Context(), cl, parkedContentQuery, map[string]any{"handle": handle, "position": position})
	if err != nil {
		return err
	}
	// What the view tells of it is one page that begins behind it, newest first.
	n, err := strconv.ParseUint(position, 10, 64)
	if err != nil {
		return err
	}
	l, _, err := parkedOf(cmd, cl, map[string]any{"handle": handle, "first": 1, "decided": true, "after": cursorAt("parked:", n+1)})
	if err != nil {
		return err
	}
	if got.ParkedContent == nil || len(l.Mail) == 0 || l.Mail[0].Position != position {
		return fmt.Errorf("no mail of %s is parked at %s; `tenure inbox parked %s --decided` lists what is", handle, position, handle)
	}
	out := c.output(cmd)
	if out.format != formatText {
		return out.json(struct {
			parkedMail
			Headers map[string][]string `json:"headers"`
			Data    json.RawMessage     `json:"data"`
			Raw     *string             `json:"raw"`
		}{l.Mail[0], got.ParkedContent.Headers, got.ParkedContent.Data, got.ParkedContent.Raw})
	}
	return out.parked(l.Mail[0], *got.ParkedContent)
}

func (o output) parked(m parkedMail, content parkedContent) error {
	rows := [][]string{
		{"parked", plain(m.Position)}, {"id", given(m.ID)}, {"type", given(m.Type)}, {"conversation", given(m.Conversation)},
		{"since", wallTime(&m.At)}, {"reason", plain(m.Reason)}, {"attempts", strconv.Itoa(m.Attempts)},
	}
	for _, h := range m.History {
		line := fmt.Sprintf("%d × %s at epoch %s", h.Count, plain(h.End), plain(h.Epoch))
		if h.Why != nil {
			line += ": " + plain(*h.Why)
		}
		rows = append(rows, []string{"attempt", line})
	}
	rows = append(rows, []string{"decided", m.became()})
	names := make([]string, 0, len(content.Headers))
	for name := range content.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rows = append(rows, []string{"header", plain(name + ": " + strings.Join(content.Headers[name], ", "))})
	}
	says := said(content.Data, m.Bytes)
	switch {
	case m.Clipped:
		says = fmt.Sprintf("%d bytes, too many to be kept", m.Bytes)
	case content.Raw != nil:
		if raw, err := base64.StdEncoding.DecodeString(*content.Raw); err == nil {
			says = plain(string(raw))
		}
	}
	return o.table(nil, append(rows, []string{"says", says}))
}

// cursorAt is the cursor of a list's item at that position: the API's lists go on
// behind positions that they never gave, too.
func cursorAt(kind string, position uint64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + strconv.FormatUint(position, 10)))
}

// before is the cursor behind which the list of waiting mail begins with that
// position.
func before(position string) any {
	n, err := strconv.ParseUint(position, 10, 64)
	if err != nil || n < 2 {
		return nil
	}
	return cursorAt("mail:", n-1)
}
