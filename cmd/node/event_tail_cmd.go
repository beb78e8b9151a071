package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seat-tenure/tenure/audit"
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
}

func (c *cli) eventTailCommand() *cobra.Command {
	t := &tail{}
	stream := word{value: string(events.StreamFleet), words: tailStreams}
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "follow events as they happen",
		Long: `Prints the events of one stream as they are stored, until Ctrl-C. It begins with
the next event, or after the position of --after, and leaves none out: when the
connection breaks it goes on where it was.

Text has the position, when the broker stored it, the type, what it is about, and
what it says. -o jsonl has each event whole, as exports have it.`,
		Example: `  tenure event tail
  tenure event tail --after 0 --seat dev
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
	flags.StringVar(&t.after, "after", "", "begin after this position; 0 is the beginning (default the newest event)")
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
	t.cl, t.out = cl, c.output(cmd)
	err = t.follow(cmd.Context())
	if cmd.Context().Err() != nil {
		return nil // Ctrl-C is how a follow ends
	}
	return err
}

// follow reads until ctx ends, over connections that break.
func (t *tail) follow(ctx context.Context) error {
	for broken := 0; ; broken++ {
		before := t.last
		err := t.read(ctx)
		var lost *lostError
		if ctx.Err() != nil || !errors.As(err, &lost) {
			return err
		}
		if t.last > before {
			broken = 0
		}
		if broken == maxResumes {
			return err
		}
		t.cl.warn(fmt.Sprintf("%v; going on after position %d", lost, t.last))
		pause := time.NewTimer(resumeAfter << broken)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// read follows one connection to its end.
func (t *tail) read(ctx context.Context) error {
	query := url.Values{"follow": {"true"}, "stream": {t.stream}}
	if t.after != "" || t.last > 0 {
		query.Set("after", strconv.FormatUint(t.last, 10))
	}
	body, err := t.cl.follow(ctx, query)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), audit.MaxLine+1)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue // a sign of life
		}
		if err := t.line(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return &lostError{fmt.Sprintf("the node at %s ended the stream; it may be stopping", t.cl.base)}
}

// tailLine is an event as it is sent.
type tailLine struct {
	Stream  events.Stream   `json:"stream"`
	Seq     uint64          `json:"seq"`
	At      time.Time       `json:"at"`
	Subject string          `json:"subject"`
	Headers events.Header   `json:"headers"`
	Data    json.RawMessage `json:"data"`
	Base64  []byte          `json:"data_base64"`
}

func (t *tail) line(text []byte) error {
	var e tailLine
	if err := json.Unmarshal(text, &e); err != nil || e.Stream == "" {
		return fmt.Errorf("the node at %s sent a line that is no event: it may be of another version", t.cl.base)
	}
	t.last = max(t.last, e.Seq)
	subject, seat := about(e.Subject)
	if len(t.types) > 0 && !slices.Contains(t.types, e.Headers.Get(events.HeaderType)) {
		return nil
	}
	if len(t.seats) > 0 && !slices.Contains(t.seats, seat) {
		return nil
	}
	if t.out.format == formatJSONL {
		_, err := t.out.w.Write(append(slices.Clip(text), '\n'))
		return err
	}
	_, err := fmt.Fprintf(t.out.w, "%8d  %s  %-20s  %-18s  %s\n",
		e.Seq, e.At.UTC().Format("2006-01-02T15:04:05.000Z"), plain(cmp.Or(e.Headers.Get(events.HeaderType), unknown)), plain(subject), e.detail())
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
	default:
		return rest[1], rest[1]
	}
}

// detail is what an event says, in one line: its values by name.
func (e tailLine) detail() string {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(e.Data, &values); err != nil {
		if n := len(e.Data) + len(e.Base64); n > 0 {
			return fmt.Sprintf("%d bytes", n)
		}
		return none
	}
	parts := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name+"="+strings.Trim(string(values[name]), `"`))
	}
	said := []rune(strings.Join(parts, " "))
	if len(said) > maxDetail {
		said = append(said[:maxDetail:maxDetail], '…')
	}
	return plain(string(said))
}
