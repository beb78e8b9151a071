package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// outputFormat is how data is written.
type outputFormat string

const (
	formatText  outputFormat = "text"
	formatJSON  outputFormat = "json"  // one document, with as-of
	formatJSONL outputFormat = "jsonl" // one object a line, as they come
)

// String, Set and Type make the format a flag.
func (f *outputFormat) String() string { return string(*f) }

// Set takes one of the formats there are.
func (f *outputFormat) Set(s string) error {
	if !slices.Contains([]outputFormat{formatText, formatJSON, formatJSONL}, outputFormat(s)) {
		return fmt.Errorf("write text, json or jsonl")
	}
	*f = outputFormat(s)
	return nil
}

// Type names the flag's value in help.
func (f *outputFormat) Type() string { return "format" }

// output writes a command's data.
type output struct {
	format outputFormat
	w      io.Writer
	colour bool
}

// output is where cmd writes its data. Colour is for eyes only: on a terminal,
// unless NO_COLOR says otherwise (https://no-color.org).
func (c *cli) output(cmd *cobra.Command) output {
	w := cmd.OutOrStdout()
	return output{format: c.format, w: w, colour: os.Getenv("NO_COLOR") == "" && isTerminal(w)}
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// json writes v as one document, indented, or as one line for jsonl.
func (o output) json(v any) error {
	enc := json.NewEncoder(o.w)
	enc.SetEscapeHTML(false)
	if o.format == formatJSON {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// table writes rows in columns. It pads by itself since text/tabwriter counts
// the bytes that colour a word as part of it.
func (o output) table(header []string, rows [][]string) error {
	if header != nil {
		rows = slices.Concat([][]string{header}, rows)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(o.painted(cell))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(o.w, b.String())
	return err
}

// Colours of words that stand alone in a cell.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	reset  = "\x1b[0m"
)

var wordColours = map[string]string{
	"HELD": green, "READY": green, "ACTIVE": green, "done": green,
	"ESTABLISHING": yellow, "RELEASING": yellow, "UNOWNED": yellow, "DRAINING": yellow, "CORDONED": yellow,
	"UNPROVEN": red, "UNPLACEABLE": red, "LAPSED": red, "WITHDRAWN": red, "UNKNOWN": red, unknown: red, "failed": red,
}

func (o output) painted(cell string) string {
	if colour := wordColours[cell]; o.colour && colour != "" {
		return colour + cell + reset
	}
	return cell
}

// What a cell says when there is no value: what cannot be seen is never shown as
// empty, zero or idle.
const (
	unknown = "unknown"
	none    = "-"
)

// plain makes text of others fit for a terminal: a title or an id may hold
// anything, also what moves the cursor.
func plain(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

// list shows several values in one cell.
func list(values []string) string {
	if len(values) == 0 {
		return none
	}
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = plain(v)
	}
	return strings.Join(shown, ",")
}

// known shows a value that the node may not be able to see.
func known[T any](v *T) string {
	if v == nil {
		return unknown
	}
	return plain(fmt.Sprint(*v))
}

// given shows a value whose absence is an answer.
func given[T any](v *T) string {
	if v == nil {
		return none
	}
	return plain(fmt.Sprint(*v))
}

// ago shows how long ago t was. Clocks of machines differ, so a time ahead of
// ours is now.
func ago(t *time.Time, now time.Time) string {
	if t == nil {
		return unknown
	}
	return human(max(now.Sub(*t), 0)) + " ago"
}

// until shows a time to come, or that it is past.
func until(t *time.Time, now time.Time) string {
	if t != nil && t.After(now) {
		return "in " + human(t.Sub(now))
	}
	return ago(t, now)
}

// wallTime shows a moment to people and their clocks, if there is one.
func wallTime(t *time.Time) string {
	if t == nil {
		return none
	}
	return t.UTC().Format(time.RFC3339)
}

// humanISO shows a duration of the API's, if there is one.
func humanISO(iso *string) string {
	if iso == nil {
		return none
	}
	if d, ok := parseISO(*iso); ok {
		return human(d)
	}
	return plain(*iso)
}

// human writes a duration with the two units that matter.
func human(d time.Duration) string {
	switch s := int64(d / time.Second); {
	case d < 0:
		return "-" + human(-d)
	case d < time.Second && d > 0:
		return strconv.FormatInt(int64(max(d/time.Millisecond, 1)), 10) + "ms"
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 60*60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 24*60*60:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
	}
}
