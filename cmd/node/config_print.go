package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seat-tenure/tenure/company/strictyaml"
)

// PrintConfig writes every effective value, and where each came from unless
// sources is nil. Passwords in URLs are hidden. The formats are text (one value
// a line), json and yaml; yaml is a node file again.
func PrintConfig(w io.Writer, c Config, sources Sources, format string) error {
	switch format {
	case "text":
		return printText(w, c, sources)
	case "json":
		return printJSON(w, c, sources)
	case "yaml":
		return printYAML(w, c, sources)
	}
	return fmt.Errorf("%q is no output format; write text, json or yaml", format)
}

func printText(w io.Writer, c Config, sources Sources) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range configFields {
		line := f.path + "\t" + textValue(f.value(&c))
		if sources != nil {
			line += "\t" + sources[f.path].String()
		}
		if _, err := fmt.Fprintln(t, line); err != nil {
			return err
		}
	}
	return t.Flush()
}

// printJSON writes the node file's shape; with sources, one object a path.
func printJSON(w io.Writer, c Config, sources Sources) error {
	type sourced struct {
		Value  any    `json:"value"`
		Source string `json:"source"`
	}
	root := map[string]any{}
	for _, f := range configFields {
		if sources != nil {
			root[f.path] = sourced{f.value(&c), sources[f.path].String()}
			continue
		}
		level := root
		parts := strings.Split(f.path, ".")
		for _, section := range parts[:len(parts)-1] {
			next, ok := level[section].(map[string]any)
			if !ok {
				next = map[string]any{}
				level[section] = next
			}
			level = next
		}
		level[parts[len(parts)-1]] = f.value(&c)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(root)
}

func printYAML(w io.Writer, c Config, sources Sources) error {
	return writeYAML(w, configFields, func(f configField) string {
		value := yamlValue(f.value(&c))
		if sources != nil {
			value += "  # " + sources[f.path].String()
		}
		return value
	})
}

// writeYAML writes fields as a node file, each with the text that value gives.
func writeYAML(w io.Writer, fields []configField, value func(configField) string) error {
	var open []string // the sections that stand open
	for _, f := range fields {
		parts := strings.Split(f.path, ".")
		sections, key := parts[:len(parts)-1], parts[len(parts)-1]
		same := 0
		for same < len(sections) && same < len(open) && sections[same] == open[same] {
			same++
		}
		for i := same; i < len(sections); i++ {
			if _, err := fmt.Fprintf(w, "%s%s:\n", strings.Repeat("  ", i), sections[i]); err != nil {
				return err
			}
		}
		open = sections
		if _, err := fmt.Fprintf(w, "%s%s: %s\n", strings.Repeat("  ", len(sections)), key, value(f)); err != nil {
			return err
		}
	}
	return nil
}

// value is what may be shown: a string, int, bool, []string or
// map[string]string; durations as people write them.
func (f configField) value(c *Config) any {
	switch at := f.at(c).(type) {
	case *string:
		return *at
	case *int:
		return *at
	case *bool:
		return *at
	case *time.Duration:
		return strictyaml.ShortDuration(*at)
	case *[]string:
		shown := make([]string, len(*at))
		for i, s := range *at {
			shown[i] = s
			if f.secret {
				shown[i] = redact(s)
			}
		}
		return shown
	case *map[string]string:
		return maps.Clone(*at)
	}
	panic(fmt.Sprintf("config: no way to show a %T", f.at(c)))
}

// textValue is yamlValue for people: text stands without quotes where it can.
func textValue(v any) string {
	if s, ok := v.(string); ok && s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
		return s
	}
	return yamlValue(v)
}

func yamlValue(v any) string {
	switch v := v.(type) {
	case string:
		return yamlText(v)
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = yamlText(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]string:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, yamlText(key)+": "+yamlText(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// plainYAML is text that YAML reads as text without quotes, whatever the reader: a
// word or a path.
var plainYAML = regexp.MustCompile(`^(\.{0,2}/|[A-Za-z])[A-Za-z0-9./_-]*$`)

func yamlText(s string) string {
	reserved := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if plainYAML.MatchString(s) && !slices.Contains(reserved, strings.ToLower(s)) {
		return s
	}
	quoted, err := json.Marshal(s) // a JSON string is a YAML string
	if err != nil {
		panic(fmt.Sprintf("config: text that JSON cannot write: %v", err)) // no string does that
	}
	return string(quoted)
}
