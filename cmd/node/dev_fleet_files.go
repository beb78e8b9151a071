package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// devNode is one node of a fleet on this machine.
type devNode struct {
	id         string
	dir        string // its data, its node file, and pid and addr while it runs
	file       string
	text       string // of the file
	carriesLog bool

	child *child
	url   chan string // gets the API's URL once it serves
	at    string      // that URL, once the node is ready
}

// devNodes is what a plan's nodes are, each with its node file's text.
func devNodes(plan *fleetPlan, dir, listen string, ttlSeconds int) ([]*devNode, error) {
	nodes := make([]*devNode, plan.Nodes)
	for i := range nodes {
		set, err := plan.settings(i+1, dir, listen, ttlSeconds)
		if err != nil {
			return nil, err
		}
		n := &devNode{
			id: set["node.id"], dir: set["data_dir"], file: filepath.Join(set["data_dir"], "node.yaml"),
			carriesLog: plan.carriesLog(i + 1), url: make(chan string, 1),
		}
		if n.text, err = nodeFileText(plan, n, set); err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

// writeFleet writes the plan, the node files and the company's document: a user
// sees what those of a fleet look like, and can start one node by hand.
func writeFleet(dir string, plan *fleetPlan, nodes []*devNode, doc *companyDoc) error {
	if err := plan.write(dir); err != nil {
		return fmt.Errorf("data directory %s: %w", dir, pathError(err))
	}
	// The demo company is for a fleet's first start: what another version of this
	// program has as one is no news to a fleet that runs.
	_, err := os.Stat(fleetCompanyFile(dir))
	if keep := err == nil && doc.first; !keep {
		if err := writeWhole(fleetCompanyFile(dir), doc.doc); err != nil {
			return fmt.Errorf("data directory %s: %w", dir, pathError(err))
		}
	}
	for _, n := range nodes {
		if err := os.MkdirAll(n.dir, 0o700); err != nil {
			return fmt.Errorf("data directory %s: %w", n.dir, pathError(err))
		}
		n.gone() // a killed supervisor leaves them behind
		if err := writeWhole(n.file, []byte(n.text)); err != nil {
			return fmt.Errorf("data directory %s: %w", n.dir, pathError(err))
		}
	}
	return nil
}

func fleetCompanyFile(dir string) string { return filepath.Join(dir, "company.yaml") }

// nodeFileText is a node file that sets what set does, after it was validated.
func nodeFileText(plan *fleetPlan, n *devNode, set map[string]string) (string, error) {
	flags := map[string]string{}
	for path, text := range set {
		flags[flagName(path)] = text
	}
	cfg, _, err := LoadConfig("", nil, flags)
	if err != nil {
		return "", &exitError{exitUsage, ofDev(err)}
	}
	var b strings.Builder
	fmt.Fprintf(&b, fleetFileHead, n.id, plan.Nodes, shellQuote(n.file))
	var fields []configField
	for _, f := range configFields {
		if _, is := set[f.path]; is {
			f.secret = false // this is where the secret is kept
			fields = append(fields, f)
		}
	}
	err = writeYAML(&b, fields, func(f configField) string { return yamlValue(f.value(&cfg)) + fleetFileNotes[f.path] })
	return b.String(), err
}

// fleetFileHead begins each node file.
const fleetFileHead = `# %[1]s, one of the %[2]d nodes of "tenure dev --nodes %[2]d", which writes this file
# anew at each start. By itself the node is started, or brought back, with
#
#   tenure run --config %[3]s
#
# Keep the file to yourself: whoever knows the secret in its URLs can join the
# fleet, as a server or as a node.

`

// fleetFileNotes say of some values why they are so.
var fleetFileNotes = map[string]string{
	"node.id":                        "  # stable over restarts; the server's name, and so its identity in the cluster",
	"stream.listen":                  "  # for the nodes that carry no log",
	"stream.replicas":                "  # copies of each stream; the log stands while more than half of its servers do",
	"stream.cluster.routes":          "  # every server, this one too; the same on each",
	"stream.urls":                    "  # the nodes that carry the log",
	"coordination.type":              "  # leases ride the stream that all nodes share",
	"coordination.lease_ttl_seconds": "  # a killed node's seats are taken after so long",
}

// fleetEnviron is the environment of the nodes: without the variables that would
// outvote their files. What the files leave open it may set.
func fleetEnviron(environ []string) []string {
	ours := map[string]bool{}
	for _, f := range configFields {
		left := f.path == "node.labels" || f.path == "logging.level" || strings.HasPrefix(f.path, "seat.")
		ours[envName(f.path)] = !left
	}
	var kept []string
	for _, pair := range environ {
		if name, _, _ := strings.Cut(pair, "="); !ours[name] {
			kept = append(kept, pair)
		}
	}
	return kept
}

// here notes that the node runs, for scripts: DIR/node-i/pid.
func (n *devNode) here() error {
	return os.WriteFile(filepath.Join(n.dir, "pid"), fmt.Appendln(nil, n.child.cmd.Process.Pid), 0o600)
}

// serves notes where the node's API answers: DIR/node-i/addr.
func (n *devNode) serves(url string) error {
	return os.WriteFile(filepath.Join(n.dir, "addr"), []byte(url+"\n"), 0o600)
}

// gone removes both: a number left behind may by now be another process's.
func (n *devNode) gone() {
	for _, name := range []string{"pid", "addr"} {
		if err := os.Remove(filepath.Join(n.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // the next start overwrites it
		}
	}
}

// shellQuote writes a word for a shell to be pasted into.
func shellQuote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:=@%+,", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
