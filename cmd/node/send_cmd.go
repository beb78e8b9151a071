package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/events"
)

const (
	defaultWait = 2 * time.Minute
	maxWait     = 10 * time.Minute // the most that a node waits
	maxData     = events.MaxMailData
)

const sendMutation = `mutation($handle: ID!, $type: String!, $data: JSON!, $id: ID!, $conversation: String, $wait: Duration) {
  sendMessage(handle: $handle, type: $type, data: $data, id: $id, conversation: $conversation, wait: $wait) {
    id mailSequence completion { ` + completionFields + ` }
  }
}`

type sendFlags struct {
	mailType     string
	data         string
	id           string
	conversation string
	wait         time.Duration
}

func (c *cli) sendCommand() *cobra.Command {
	var f sendFlags
	cmd := &cobra.Command{
		Use:   "send HANDLE",
		Short: "send mail to a seat, and wait for what comes of it",
		Long: `Sends mail to a seat's inbox. It is kept whether or not anybody holds the seat
now, and it is worked on once, however often it is sent under the same --id.

--data is what the mail says: JSON as it is, @FILE, or - for stdin.

With --wait the command ends when the turn has completed and prints the
completion: exit code 0 when the turn is done, 1 when it failed, 4 when the time
was up. The mail stays sent. Only mail of the types task_assigned,
external_notification, a2a_request and a2a_message runs a turn.`,
		Example: `  tenure send writer --data '{"text":"write the release notes"}'
  tenure send writer --data @task.json --wait
  echo '{"text":"hello"}' | tenure send writer --data - --wait=5m -o json
  tenure send writer --data @task.json --id order-4711 --conversation acme-launch`,
		Args: oneHandle,
		RunE: func(cmd *cobra.Command, args []string) error { return c.send(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.mailType, "type", events.TaskAssigned, "type of the mail")
	flags.StringVar(&f.data, "data", "{}", "what the mail says: JSON, @FILE, or - for stdin")
	flags.StringVar(&f.id, "id", "", "event id, under which it is worked on once (default a new UUID)")
	flags.StringVar(&f.conversation, "conversation", "", "conversation that the mail belongs to")
	flags.DurationVar(&f.wait, "wait", 0, "wait for the completion: --wait for "+human(defaultWait)+", --wait=5m for another time")
	flags.Lookup("wait").NoOptDefVal = defaultWait.String()
	complete(cmd, "type", []string{events.TaskAssigned, events.ExternalNotification, events.A2ARequest, events.A2AMessage})
	return cmd
}

func (c *cli) send(cmd *cobra.Command, handle string, f sendFlags) error {
	variables, err := c.mail(cmd, handle, f)
	if err != nil {
		return err
	}
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	got, unseen, err := askPart[struct{ SendMessage sendResult }](cmd.Context(), cl, sendMutation, variables, f.wait)
	var lost *lostError
	if errors.As(err, &lost) {
		return fmt.Errorf("%w; the mail may be stored or not: send it again with --id %s, and it is worked on once", err, plain(fmt.Sprint(variables["id"])))
	}
	if err != nil {
		return err
	}
	return c.sent(cmd, got.SendMessage, unseen, handle, f.wait)
}

// mail is the mutation's variables. What is wrong with them is wrong usage, and
// nothing was sent.
func (c *cli) mail(cmd *cobra.Command, handle string, f sendFlags) (map[string]any, error) {
	waits := cmd.Flags().Changed("wait")
	switch {
	case events.ValidHandle(handle) != nil:
		return nil, usagef("%w", events.ValidHandle(handle))
	case waits && (f.wait <= 0 || f.wait > maxWait):
		return nil, usagef("--wait: %s is not above zero and at most %s", f.wait, human(maxWait))
	case waits && !events.Ledgered(f.mailType):
		return nil, usagef("--wait: mail of type %q runs no turn, so there is nothing to wait for", f.mailType)
	case cmd.Flags().Changed("id") && f.id == "":
		return nil, usagef("--id: an event id is not empty; leave the flag out for a new one")
	}
	data, err := readData(cmd.InOrStdin(), f.data)
	if err != nil {
		return nil, err
	}
	variables := map[string]any{"handle": handle, "type": f.mailType, "data": data, "id": f.id}
	if f.id == "" {
		// Minted here and not by the node, so that mail whose answer was lost can
		// be sent again as the same.
		variables["id"] = c.newID()
	}
	if f.conversation != "" {
		variables["conversation"] = f.conversation
	}
	if waits {
		variables["wait"] = writeISO(f.wait)
	}
	return variables, nil
}

// readData reads what --data names and holds it to be one JSON value.
func readData(stdin io.Reader, from string) (json.RawMessage, error) {
	var err error
	name, text := "--data", []byte(from)
	switch {
	case from == "-":
		name = "stdin"
		text, err = readBounded(stdin)
	case strings.HasPrefix(from, "@"):
		name = from[1:]
		var f *os.File
		if f, err = os.Open(name); err == nil {
			defer f.Close()
			text, err = readBounded(f)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	if len(text) > maxData {
		return nil, usagef("%s is over %d bytes, the most that mail may say", name, maxData)
	}
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && len(bytes.TrimSpace(text)) > 0 {
			return nil, usagef("%s is not JSON: %w, at byte %d; a text is JSON in double quotes: '\"hello\"'", name, err, syntax.Offset)
		}
		return nil, usagef("%s is not JSON: %w", name, err)
	}
	return value, nil
}

func readBounded(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxData+1)) }

// sent prints what became of the mail, as far as was waited for. unseen is why
// the node could not wait on.
func (c *cli) sent(cmd *cobra.Command, r sendResult, unseen error, handle string, wait time.Duration) error {
	out := c.output(cmd)
	if err := out.sent(r, handle); err != nil {
		return err
	}
	switch {
	case unseen != nil:
		return fmt.Errorf("the mail is sent, and what comes of it cannot be seen: %w", unseen)
	case wait == 0:
		return nil
	case r.Completion == nil:
		return &exitError{Code: exitTimedOut, Err: fmt.Errorf("the turn has not completed within %s; the mail is kept, and the same command with --id %s waits on", human(wait), plain(r.ID))}
	case r.Completion.Outcome != string(events.OutcomeDone):
		return fmt.Errorf("the turn on %s has %s and is not run again", plain(r.ID), plain(r.Completion.Outcome))
	}
	return nil
}

func (o output) sent(r sendResult, handle string) error {
	if o.format != formatText {
		return o.json(r)
	}
	rows := [][]string{{"sent", plain(r.ID)}, {"to", handle}, {"mail", plain(r.MailSequence)}}
	if done := r.Completion; done != nil {
		rows = append(rows, [][]string{
			{"outcome", plain(done.Outcome)},
			{"node", known(done.Node)},
			{"epoch", known(done.Epoch)},
			{"attempts", known(done.Attempts)},
			{"reply", done.reply()},
		}...)
		if done.Why != nil {
			rows = append(rows, []string{"why", plain(*done.Why)})
		}
	}
	return o.table(nil, rows)
}

// reply shows what the turn answered. Views keep no long ones.
func (c completion) reply() string {
	switch {
	case len(c.Reply) > 0 && string(c.Reply) != "null":
		var compact bytes.Buffer
		if err := json.Compact(&compact, c.Reply); err != nil {
			return unknown
		}
		return plain(compact.String())
	case c.ReplyBytes != nil && *c.ReplyBytes > 0:
		return fmt.Sprintf("%d bytes, more than is kept for queries", *c.ReplyBytes)
	}
	return none
}
