package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/audit"
	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/events"
)

const (
	maxResumes  = 8 // connections that break one after another without an event
	resumeAfter = 500 * time.Millisecond
	maxDetail   = 160 // letters of what an event says, in text
)

// tail is one `event tail`.
type tail struct {
	stream string
	after  string // position as it was written; "" for the newest
	types  []string
	seats  []string

	cl   *client
	out  output
	last uint64 // position of the event that was seen last

	connected bool // once: what fails after it may come back

	prefix string // of the fleet's subjects, once connected
	each   func(events.Message) error
}

func (c *cli) eventTailCommand() *cobra.Command {
	t := &tail{}
	stream := word{value: string(events.StreamFleet), words: tailStreams}
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "follow events as they happen",
		Long: `Prints the events of one stream as they are stored, until Ctrl-C. FLEET begins with
the next event, others with their first, and all after the position of --after.
None is left out: when the connection breaks it goes on where it was.

Text has the position, when the broker stored it, the type, what it is about, and
what it says. -o jsonl has each event whole, as exports have it.`,
		Example: `  tenure event tail
  tenure event tail --after 0 --seat writer
  tenure event tail --type seat-claimed,seat-released -o jsonl
  tenure event tail --stream WORK`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t.stream = stream.value
			return c.tail(cmd, t)
		},
	}
	flags := cmd.Flags()
	flags.Var(&stream, "stream", "stream to follow: "+stream.choices())
	flags.StringVar(&t.after, "after", "", "begin after this position; 0 is the beginning (default the newest event of FLEET, the beginning of others)")
	flags.StringSliceVar(&t.types, "type", nil, "only events of these types, such as seat-claimed")
	flags.StringSliceVar(&t.seats, "seat", nil, "only events about these seats")
	complete(cmd, "stream", tailStreams)
	return cmd
}

var tailStreams = []string{string(events.StreamFleet), string(events.StreamCursor), string(events.StreamWork), string(events.StreamDead)}

func (c *cli) tail(cmd *cobra.Command, t *tail) error {
	if c.format == formatJSON {
		return usagef("--output: a stream has no end and so is no document; write -o jsonl")
	}
	if t.after != "" {
		after, err := strconv.ParseUint(t.after, 10, 64)
		if err != nil {
			return usagef("--after: %q is no position; write digits alone", t.after)
		}
		t.last = after
	}
	cl, err := c.client(cmd)
	if err != nil {
		return err
	}
	defer cl.close()
	for _, name := range t.types {
		if !slices.Contains(events.Names(), name) { // a newer build may have it
			cl.warn(fmt.Sprintf("this build knows no type of event %q%s", name, meant(strictyaml.Nearest(name, events.Names(), nearestNames))))
		}
	}
	t.cl, t.out, t.each = cl, c.output(cmd), t.show
	if err = t.begin(cmd.Context()); err == nil {
		err = t.follow(cmd.Context())
	}
	if cmd.Context().Err() != nil {
		return nil // Ctrl-C is how a follow ends
	}
	return err
}

// begin finds the newest event when no position was named. The others of a
// node's streams have no such number to ask for, and begin at their beginning.
func (t *tail) begin(ctx context.Context) error {
	if t.after != "" || t.stream != string(events.StreamFleet) {
		return nil
	}
	now, err := ask[struct{ AsOf asOf }](ctx, t.cl, `query { `+asOfFields+` }`, nil)
	if err != nil {
		return err
	}
	t.last, err = strconv.ParseUint(now.AsOf.Position, 10, 64)
	if err != nil {
		return fmt.Errorf("the node at %s says that it stands at position %s, which is none", t.cl.base, plain(now.AsOf.Position))
	}
	return nil
}

// follow reads until ctx ends, over connections that break: a node that is
// restarted comes back.
func (t *tail) follow(ctx context.Context) error {
	for broken := 0; ; broken++ {
		before := t.last
		err := t.read(ctx)
		if ctx.Err() != nil || !t.connected || !passing(err) {
			return err
		}
		if t.last > before {
			broken = 0
		}
		if broken == maxResumes {
			return err
		}
		t.cl.warn(fmt.Sprintf("%v; going on after position %d", err, t.last))
		if broken == 0 {
			continue
		}
		pause := time.NewTimer(resumeAfter << (broken - 1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// passing says that an error may be gone at the next try.
func passing(err error) bool {
	var lost *lostError
	var absent *absentError
	var said *apiError
	return errors.As(err, &lost) || errors.As(err, &absent) ||
		errors.As(err, &said) && said.Extensions.Code == codeUnavailable
}

// read follows one connection to its end.
func (t *tail) read(ctx context.Context) error {
	body, err := t.cl.follow(ctx, url.Values{
		"follow": {"true"}, "stream": {t.stream}, "after": {strconv.FormatUint(t.last, 10)},
	})
	if err != nil {
		return err
	}
	defer body.Close()
	t.connected = true
	in, err := audit.NewReader(body)
	if err == nil {
		t.prefix = in.Header().Prefix
	}
	for err == nil {
		var e audit.Entry
		if e, err = in.Next(); err == nil {
			t.last = max(t.last, e.Message.Seq)
			err = t.each(e.Message)
		}
	}
	var bad *audit.LineError
	switch {
	case errors.Is(err, io.EOF):
		return &lostError{fmt.Sprintf("the node at %s ended the stream; it may be stopping", t.cl.base)}
	case errors.As(err, &bad):
		return fmt.Errorf("what the node at %s sent is no stream of events that this build reads: %w", t.cl.base, err)
	}
	return err
}

// show prints an event, if it is one of those that are wanted.
func (t *tail) show(m events.Message) error {
	subject, seat := about(m.Subject)
	kind := m.Header.Get(events.HeaderType)
	if len(t.types) > 0 && !slices.Contains(t.types, kind) {
		return nil
	}
	if len(t.seats) > 0 && !slices.Contains(t.seats, seat) {
		return nil
	}
	if t.out.format == formatJSONL {
		_, err := t.out.w.Write(append(audit.AppendMessage(nil, m), '\n'))
		return err
	}
	_, err := fmt.Fprintf(t.out.w, "%8d  %s  %-20s  %-18s  %s\n", m.Seq,
		m.At.UTC().Format("2006-01-02T15:04:05.000Z"), plain(cmp.Or(kind, unknown)), plain(subject), detail(m.Data))
	return err
}

// about says what a subject is about, and the seat if it is about one.
func about(subject string) (text, seat string) {
	tokens := strings.Split(subject, ".")
	if len(tokens) < 3 {
		return subject, ""
	}
	switch rest := tokens[1:]; {
	case rest[0] == "fleet" && rest[1] == "lease" && len(rest) == 5:
		if rest[2] == string(events.KindSeat) {
			return rest[3], rest[3]
		}
		return rest[2] + ":" + rest[3], ""
	case rest[0] == "fleet" && len(rest) > 2 && rest[1] != "run":
		return rest[len(rest)-1], rest[len(rest)-1] // host, mailbox, saga
	case rest[0] == "fleet":
		return rest[1], ""
	case rest[1] == "_log":
		return rest[0], ""
	case rest[0] == "cursor" && len(rest) == 3: // of one of the seat's mailboxes
		return rest[1] + "." + rest[2], rest[1]
	default:
		return rest[1], rest[1]
	}
}

// gzipped are the fields of a company's revision that are no text.
var gzipped = []string{"document", "roster"}

// detail is what an event says, in one line: its values by name.
func detail(data []byte) string {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Sprintf("%d bytes", len(data))
	}
	parts := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		said := strings.Trim(string(values[name]), `"`)
		if slices.Contains(gzipped, name) {
			said = "…" // company show has it, and the rest of the event fits
		}
		parts = append(parts, name+"="+said)
	}
	said := []rune(strings.Join(parts, " "))
	if len(said) > maxDetail {
		said = append(said[:maxDetail:maxDetail], '…')
	}
	return plain(string(said))
}
