package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/seat-tenure/tenure/company/strictyaml"
)

// sourceKind says which of the four places a value came from.
type sourceKind int

const (
	fromDefault sourceKind = iota
	fromFile
	fromEnv
	fromFlag
)

// Source is where an effective value came from.
type Source struct {
	Kind         sourceKind
	Name         string // the file, the variable or the flag; for a default the file that left it out
	Line, Column int    // in the file
}

func (s Source) String() string {
	switch s.Kind {
	case fromFile:
		return fmt.Sprintf("%s:%d:%d", s.Name, s.Line, s.Column)
	case fromEnv:
		return "environment " + s.Name
	case fromFlag:
		return "flag " + s.Name
	case fromDefault:
	}
	return "default"
}

// Sources is the source of every value, by path.
type Sources map[string]Source

// configLoader reads the sources in turn, each over the last.
type configLoader struct {
	config   Config
	sources  Sources
	bad      map[string]bool // paths whose value could not be read
	problems strictyaml.Problems
}

func (l *configLoader) refuse(p strictyaml.Problem) {
	l.problems = append(l.problems, p)
	l.bad[p.Path] = true
}

func (l *configLoader) readFile(path string) {
	doc, err := readNodeFile(path)
	if err != nil {
		message := err.Error()
		if pathErr := new(fs.PathError); errors.As(err, &pathErr) {
			message = "cannot be read: " + pathErr.Err.Error()
		}
		l.refuse(strictyaml.Problem{Source: path, Message: message, Fix: "name the node file, or none for the defaults"})
		return
	}
	root, report, ok := strictyaml.Parse(path, doc, maxNodeFile)
	if ok {
		l.readSection(path, root, "")
	}
	l.problems = append(l.problems, report.Problems()...)
}

// readNodeFile reads one byte more than is allowed, so that Parse sees that a
// file is too long without it being held whole.
func readNodeFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	doc, err := io.ReadAll(io.LimitReader(f, maxNodeFile+1))
	return doc, errors.Join(err, f.Close())
}

// readSection reads the fields whose paths begin with prefix, level by level.
func (l *configLoader) readSection(file string, n strictyaml.Node, prefix string) {
	leaves := map[string]configField{}
	var keys []string
	for _, f := range configFields {
		rest, ok := strings.CutPrefix(f.path, prefix)
		if !ok {
			continue
		}
		key, _, nested := strings.Cut(rest, ".")
		if !nested {
			leaves[key] = f
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	fields, _ := n.Fields(keys...)
	for _, key := range keys {
		value, ok := fields.Get(key)
		if !ok {
			continue
		}
		f, leaf := leaves[key]
		if !leaf {
			l.readSection(file, value, prefix+key+".")
			continue
		}
		if !setFromNode(f.at(&l.config), value) {
			l.bad[f.path] = true
			continue
		}
		l.sources[f.path] = Source{Kind: fromFile, Name: file, Line: value.Line(), Column: value.Column()}
	}
}

// readEnv reads TENURE_ variables. One with "__" can only be meant for a value
// here, so an unknown one is refused. Others may be somebody else's (TENURE_ADDR,
// or what an orchestrator makes of a service called tenure): of those, only a
// slip in a known name is refused.
func (l *configLoader) readEnv(env []string) {
	byName := map[string]configField{}
	bare := map[string]string{}
	for _, f := range configFields {
		name := envName(f.path)
		byName[name] = f
		bare[strings.ReplaceAll(name, "_", "")] = name
	}
	for _, pair := range slices.Sorted(slices.Values(env)) {
		name, text, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "TENURE_") {
			continue
		}
		if f, ok := byName[name]; ok {
			l.set(f, Source{Kind: fromEnv, Name: name}, name, text)
			continue
		}
		meant := bare[strings.ToUpper(strings.ReplaceAll(name, "_", ""))]
		switch {
		case meant != "":
			l.refuse(strictyaml.Problem{Source: name, Message: "sets nothing", Fix: "write " + meant + ", with two underscores between levels"})
		case strings.Contains(name, "__"):
			fix := "unset it"
			if near := strictyaml.Nearest(name, slices.Collect(maps.Keys(byName)), 1); len(near) == 1 {
				fix = "write " + near[0] + ", or unset it"
			}
			l.refuse(strictyaml.Problem{Source: name, Message: "sets nothing", Fix: fix})
		}
	}
}

func (l *configLoader) readFlags(flags map[string]string) {
	byName := map[string]configField{}
	for _, f := range configFields {
		byName[flagName(f.path)] = f
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		f, ok := byName[name]
		if !ok {
			l.refuse(strictyaml.Problem{Source: "--" + name, Message: "sets nothing in the node file", Fix: "remove it"})
			continue
		}
		l.set(f, Source{Kind: fromFlag, Name: "--" + name}, "--"+name, flags[name])
	}
}

func (l *configLoader) set(f configField, from Source, name, text string) {
	l.sources[f.path] = from
	if message, fix := setFromText(f.at(&l.config), text); message != "" {
		l.refuse(strictyaml.Problem{Source: name, Path: f.path, Message: message, Fix: fix})
		return
	}
	delete(l.bad, f.path) // what stands below it does not matter any more to the checks
}
