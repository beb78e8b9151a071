package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/seat-tenure/tenure/company"
	"github.com/seat-tenure/tenure/company/strictyaml"
	"github.com/seat-tenure/tenure/examples"
)

// TestConfigProblems proves, message by message, that a bad configuration is
// answered with every problem of every source at once, each with its place and
// what to write, that local coordination beside a shared log is refused (N1),
// and that no message shows a password.
func TestConfigProblems(t *testing.T) {
	golden, err := filepath.Abs("testdata/config.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	datadriven.RunTest(t, golden, func(t *testing.T, d *datadriven.TestData) string {
		parts := map[string]string{}
		section := "file"
		for line := range strings.Lines(d.Input + "\n") {
			if name, ok := strings.CutPrefix(line, "%% "); ok {
				section = strings.TrimSpace(name)
				continue
			}
			parts[section] += line
		}
		path := ""
		if strings.TrimSpace(parts["file"]) != "" {
			path = "node.yaml"
			writeFile(t, path, parts["file"])
		}
		flags := map[string]string{}
		for _, line := range strings.Fields(parts["flags"]) {
			name, value, _ := strings.Cut(line, "=")
			flags[name] = value
		}
		c, sources, err := LoadConfig(path, strings.Fields(parts["env"]), flags)
		if err == nil {
			return "fine\n"
		}
		var problems strictyaml.Problems
		if !errors.As(err, &problems) || !reflect.ValueOf(c).IsZero() || sources != nil {
			t.Errorf("%s: got %T beside %+v, want problems alone", d.Pos, err, c)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: a message shows a password: %v", d.Pos, err)
		}
		return err.Error() + "\n"
	})
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sample is a text for each kind of value, as a variable or a flag takes it.
func sample(f configField) string {
	switch f.at(new(Config)).(type) {
	case *int:
		return "7"
	case *bool:
		return "false"
	case *time.Duration:
		return "7s"
	case *[]string:
		return "one,two"
	case *map[string]string:
		return "a=b,c=d"
	}
	return "other"
}

// TestConfigPrecedence proves for every value that each source is read and
// wins over those below it, and that its source says so.
func TestConfigPrecedence(t *testing.T) {
	for _, f := range configFields {
		text := sample(f)
		l := &configLoader{config: DefaultConfig(), sources: Sources{}, bad: map[string]bool{}}
		l.readEnv([]string{envName(f.path) + "=" + text})
		byEnv := f.value(&l.config)
		if got := l.sources[f.path].String(); got != "environment "+envName(f.path) || len(l.problems) > 0 {
			t.Errorf("%s: got source %s, problems %v; want %s", f.path, got, l.problems, envName(f.path))
		}
		l = &configLoader{config: DefaultConfig(), sources: Sources{}, bad: map[string]bool{}}
		l.readFlags(map[string]string{flagName(f.path): text})
		if got := f.value(&l.config); !reflect.DeepEqual(got, byEnv) {
			t.Errorf("%s: got %v by flag and %v by environment, want the same", f.path, got, byEnv)
		}
		defaults := DefaultConfig()
		if reflect.DeepEqual(byEnv, f.value(&defaults)) {
			t.Errorf("%s: got the default %v, want what was set", f.path, byEnv)
		}
	}
	t.Chdir(t.TempDir())
	writeFile(t, "node.yaml", "seat: {claim_limit_per_sweep: 5, release_limit_per_sweep: 5, sweep_interval: 6s}\n")
	c, sources, err := LoadConfig("node.yaml",
		[]string{"TENURE_SEAT__RELEASE_LIMIT_PER_SWEEP=6", "TENURE_SEAT__SWEEP_INTERVAL=7s"}, map[string]string{"seat-sweep-interval": "8s"})
	if err != nil {
		t.Fatal(err)
	}
	want := SeatSection{Limits: "adaptive", SweepInterval: 8 * time.Second, ClaimLimitPerSweep: 5, ReleaseLimitPerSweep: 6}
	if c.Seat != want {
		t.Errorf("got %+v, want %+v", c.Seat, want)
	}
	for path, want := range map[string]string{
		"seat.limits":                  "default",
		"seat.claim_limit_per_sweep":   "node.yaml:1:31",
		"seat.release_limit_per_sweep": "environment TENURE_SEAT__RELEASE_LIMIT_PER_SWEEP",
		"seat.sweep_interval":          "flag --seat-sweep-interval",
	} {
		if got := sources[path].String(); got != want {
			t.Errorf("%s: got source %q, want %q", path, got, want)
		}
	}
}

// TestConfigFieldsAreComplete proves that every value of Config stands in the
// table that file, environment, flags and print go by.
func TestConfigFieldsAreComplete(t *testing.T) {
	var c Config
	for _, f := range configFields {
		at := reflect.ValueOf(f.at(&c)).Elem()
		switch at.Kind() {
		case reflect.String:
			at.SetString("x")
		case reflect.Bool:
			at.SetBool(true)
		case reflect.Slice:
			at.Set(reflect.ValueOf([]string{"x"}))
		case reflect.Map:
			at.Set(reflect.ValueOf(map[string]string{"x": "x"}))
		default:
			at.SetInt(1)
		}
	}
	var walk func(v reflect.Value, name string)
	walk = func(v reflect.Value, name string) {
		if v.Kind() != reflect.Struct {
			if v.IsZero() {
				t.Errorf("%s is in no configField", name)
			}
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	}
	walk(reflect.ValueOf(c), "Config")
}

// TestExamples proves that the example node file is exactly the defaults, that
// its commented cluster is a good one, and that the example company has the
// five seats it promises.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "node.yaml", string(examples.AcmeNode))
	c, _, err := LoadConfig("node.yaml", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := DefaultConfig(); !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
	var cluster strings.Builder
	for line := range strings.Lines(string(examples.AcmeNode)) {
		if rest, ok := strings.CutPrefix(line, "  #   "); ok && !strings.Contains(line, "urls") && !strings.Contains(line, "credentials") {
			line = "  " + rest
		}
		cluster.WriteString(line)
	}
	writeFile(t, "node.yaml", cluster.String())
	c, _, err = LoadConfig("node.yaml", nil, map[string]string{"coordination-type": "embedded-kv", "stream-replicas": "3"})
	if err != nil {
		t.Fatalf("the commented cluster: %v", err)
	}
	if got := len(c.Stream.Cluster.Routes); got != 3 || !c.Clustered() {
		t.Errorf("the commented cluster: got %d routes, want 3", got)
	}
	acme, err := company.Parse("company.yaml", examples.AcmeCompany)
	if err != nil {
		t.Fatal(err)
	}
	if len(acme.AgentSeats()) != 5 || len(acme.Roles) != 6 {
		t.Errorf("got %d seats of %d roles, want 5 of 6", len(acme.AgentSeats()), len(acme.Roles))
	}
}

// TestConfigYAMLRoundTrip proves that what is printed as yaml is a node file
// that means the same, whatever the values hold.
func TestConfigYAMLRoundTrip(t *testing.T) {
	t.Chdir(t.TempDir())
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "true", "no", "null", "~", "012", "0x1f", "1e3", "5s", "a: b", "# x", "- a", "a,b", "10.0.0.1:6222", "*a", "&a", "'", `"`, "@", "ä\n\tb"}), rapid.String())
	rapid.Check(t, func(rt *rapid.T) {
		want := DefaultConfig()
		for _, f := range configFields {
			switch at := f.at(&want).(type) {
			case *string:
				*at = text.Draw(rt, f.path)
			case *[]string:
				*at = nil
				for range rapid.IntRange(0, 3).Draw(rt, f.path) {
					*at = append(*at, strings.ReplaceAll(text.Draw(rt, f.path), "@", ""))
				}
			case *map[string]string:
				*at = rapid.MapOfN(text, text, 0, 3).Draw(rt, f.path)
			case *bool:
				*at = rapid.Bool().Draw(rt, f.path)
			case *int:
				*at = rapid.IntRange(0, 1000).Draw(rt, f.path)
			case *time.Duration:
				*at = time.Duration(rapid.Int64Range(0, 1e14).Draw(rt, f.path))
			}
		}
		var out bytes.Buffer
		if err := PrintConfig(&out, want, Sources{}, "yaml"); err != nil {
			rt.Fatal(err)
		}
		root, report, ok := strictyaml.Parse("node.yaml", out.Bytes(), maxNodeFile)
		if !ok {
			rt.Fatalf("%v\n%s", report.Err(), out.String())
		}
		l := &configLoader{sources: Sources{}, bad: map[string]bool{}}
		l.readSection("node.yaml", root, "")
		for _, f := range configFields {
			got, want := fmt.Sprintf("%q", f.value(&l.config)), fmt.Sprintf("%q", f.value(&want))
			if got != want {
				rt.Fatalf("%s: got %s, want %s\n%s", f.path, got, want, out.String())
			}
		}
	})
}

// TestPrintConfigHidesSecrets proves that no format shows what a URL carries
// before its host, with or without sources, while the host stays readable.
func TestPrintConfigHidesSecrets(t *testing.T) {
	c := DefaultConfig()
	c.Stream.URLs = []string{"nats://user:hunter2@nats-1:4222", "tls://hunter2@nats-2", "ws://nats-3:80"}
	c.Stream.Cluster.Routes = []string{"user:hunter2@a:6222", "nats-route://user:hun@ter2@b:6222"}
	for _, format := range []string{"text", "json", "yaml"} {
		for _, sources := range []Sources{nil, {}} {
			var out bytes.Buffer
			if err := PrintConfig(&out, c, sources, format); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if strings.Contains(got, "hun") || strings.Contains(got, "user") {
				t.Errorf("%s: shows a secret:\n%s", format, got)
			}
			for _, host := range []string{"nats-1:4222", "nats-2", "ws://nats-3:80", "a:6222", "b:6222"} {
				if !strings.Contains(got, host) {
					t.Errorf("%s: got no %s in\n%s", format, host, got)
				}
			}
		}
	}
}

// runConfig runs `tenure config args` in the working directory.
func runConfig(t *testing.T, args ...string) (out string, code int, err error) {
	t.Helper()
	command := configCommand()
	var b bytes.Buffer
	command.SetOut(&b)
	command.SetErr(&b)
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(t.Context())
	return b.String(), exitCode(err), err
}

// TestConfigCommands proves what the two commands print and which code they end
// with: 0 fine, 2 called wrongly, 78 for a bad configuration.
func TestConfigCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	if out, code, err := runConfig(t, "check"); code != exitFine || !strings.Contains(out, "0 of 31 values set") {
		t.Errorf("check without a file: got %d %q %v", code, out, err)
	}
	if _, code, err := runConfig(t, "check", "-c", "missing.yaml"); code != exitBadConfig || !strings.Contains(err.Error(), "missing.yaml: cannot be read: no such file") {
		t.Errorf("check of a missing file: got %d %v, want 78", code, err)
	}
	writeFile(t, "node.yaml", "node: {id: node-7}\napi: {listen: nowhere}\n")
	if _, code, err := runConfig(t, "check"); code != exitBadConfig || err.Error() != `node.yaml:2:15: api.listen: "nowhere" is not host:port; write one such as 127.0.0.1:8420` {
		t.Errorf("check of node.yaml: got %d %v, want 78", code, err)
	}
	if _, code, _ := runConfig(t, "print", "-o", "xml"); code != exitUsage {
		t.Errorf("print -o xml: got %d, want 2", code)
	}
	if _, code, _ := runConfig(t, "check", "node.yaml"); code != exitUsage {
		t.Errorf("check with an argument: got %d, want 2", code)
	}
	out, code, err := runConfig(t, "print", "--sources", "-o", "json", "--api-listen", "127.0.0.1:9", "--logging-stderr")
	if code != exitFine {
		t.Fatalf("print: got %d %v", code, err)
	}
	var printed map[string]struct {
		Value  any
		Source string
	}
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatal(err)
	}
	if p := printed["api.listen"]; p.Value != "127.0.0.1:9" || p.Source != "flag --api-listen" {
		t.Errorf("api.listen: got %+v, want the flag's", p)
	}
	if p := printed["node.id"]; p.Value != "node-7" || p.Source != "node.yaml:1:12" {
		t.Errorf("node.id: got %+v, want the file's", p)
	}
	if len(printed) != len(configFields) {
		t.Errorf("got %d values, want %d", len(printed), len(configFields))
	}
}

// TestNodeFileIsBounded proves that a file without end is not read without end.
func TestNodeFileIsBounded(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "node.yaml", strings.Repeat("#", maxNodeFile+10))
	if _, _, err := LoadConfig("node.yaml", nil, nil); err == nil || !strings.Contains(err.Error(), "at most 1048576 are read") {
		t.Errorf("got %v, want its limit", err)
	}
}

// TestExitCode proves that the code of a wrapped exitError is found.
func TestExitCode(t *testing.T) {
	for want, err := range map[int]error{
		exitFine:   nil,
		exitFailed: errors.New("x"),
		exitWedged: fmt.Errorf("stop: %w", &exitError{Code: exitWedged, Err: errors.New("x")}),
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}
