// Package tenure_test holds the rules about the code as a whole: which package
// may import what (design §8), what the pure core may not touch, and that
// docs/conformance.md and the tests agree. Every rule says why it exists, so
// that a failure here can be acted on without asking anybody.
package tenure_test

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seat-tenure/tenure"

// pure are the packages that decide and fold: values in, values out. Whatever
// they are fed must give the same answer on every machine and for ever, since
// who holds a seat is recomputed from the log by every reader.
var pure = []string{"events", "placement", "aggregates", "sagas", "projections"}

// shell are the folders that may start goroutines and ask the clock.
var shell = []string{
	"clock", "commands", "broker", "badgerstore", "seat", "turn", "memory", "duty",
	"graph", "web", "cmd", "bench", "sim", "robust",
}

// folderRule is a row of the import table: what a folder, with all below it,
// may import of ours.
type folderRule struct {
	may []string
	why string
}

const everything = "*"

// folders is the table of design §8. A folder that is not in it may not exist;
// a row whose folder does not exist yet says where it will stand.
var folders = map[string]folderRule{
	"events":      {nil, "the vocabulary everything else speaks must not depend on its speakers"},
	"placement":   {[]string{"events"}, "share arithmetic is checked against a naive oracle; it can only be pure"},
	"aggregates":  {[]string{"events", "placement"}, "decisions are functions of folded events alone"},
	"sagas":       {[]string{"events", "aggregates"}, "a saga decides from facts and commands; who runs it is not its business"},
	"projections": {[]string{"events", "placement"}, "views fold events; a view that sees decisions could disagree with the log"},
	"audit":       {[]string{"events", "aggregates", "sagas", "projections"}, "an audit recomputes history and must work without a running node"},
	"company":     {[]string{"events"}, "the company document is read by every layer and may know none of them"},
	"clock":       {nil, "the clock seam sits under everything that waits"},
	"commands": {[]string{"events", "placement", "aggregates", "sagas", "projections", "company", "clock"},
		"the write shell takes the log as an interface of its own, so that any log will do"},
	"duty": {[]string{"events", "placement", "aggregates", "sagas", "projections", "audit", "company", "clock", "commands", "broker", "badgerstore"},
		"what one node does for the whole fleet holds leases of its own; it runs no seats and may not reach into the host"},
	"broker":      {[]string{"events", "clock"}, "everything NATS behind the vocabulary of events; it decides nothing"},
	"examples":    {nil, "files to copy, embedded in the binary"},
	"badgerstore": {[]string{"events", "projections"}, "everything Badger behind the reader interfaces of projections"},
	"seat": {[]string{"events", "placement", "aggregates", "sagas", "projections", "audit", "company", "clock", "commands", "broker", "badgerstore"},
		"the host runs seats; turns come to it through an interface of its own"},
	"turn": {[]string{"events", "placement", "aggregates", "sagas", "projections", "audit", "company", "clock", "commands", "broker", "badgerstore"},
		"a turn asks for admission through an interface; it may not reach into the host"},
	"memory": {[]string{"events", "placement", "aggregates", "sagas", "projections", "audit", "company", "clock", "commands", "broker", "badgerstore"},
		"a seat's memory is told about tenures; it may not reach into the host"},
	"graph": {[]string{"events", "placement", "aggregates", "sagas", "projections", "audit", "company", "clock", "commands"},
		"the API reads views and sends commands; broker, store and host come as interfaces"},
	"metrics": {[]string{"events", "placement", "projections", "seat", "turn"},
		"metrics are told by whoever acts, through the actor's own interface; nobody who acts knows them"},
	"web": {[]string{"events", "placement", "aggregates", "sagas", "projections", "audit", "company", "clock", "commands", "graph"},
		"the console talks to the API and to nothing behind it"},
	"cmd":    {[]string{everything}, "wiring"},
	"bench":  {[]string{everything}, "measures whatever there is"},
	"sim":    {[]string{everything}, "drives whatever there is"},
	"proof":  {nil, "puts faults into the source and runs what must notice; it knows files, not packages"},
	"robust": {[]string{everything}, "breaks whatever there is"},
}

// nobodyImports are folders that only the outside runs.
var nobodyImports = []string{"cmd", "bench", "sim", "proof", "robust"}

// thirdPartyRule says which folders may import the modules under a prefix.
type thirdPartyRule struct {
	prefix string
	in     []string
	tests  []string // folders whose tests may as well
	why    string
}

const (
	natsWhy  = "only broker/ speaks NATS: its pitfalls (stale direct gets, unfenced acks, two conflict codes) are handled there once"
	testsWhy = "a test library has no place in the product"
)

// thirdParty lists every module the code may import directly. The pure folders
// appear in no row.
var thirdParty = []thirdPartyRule{
	{"github.com/nats-io/", []string{"broker", "bench"}, []string{"cmd", "sim", "robust"}, natsWhy},
	{"github.com/ThreeDotsLabs/watermill", []string{"broker"}, nil, "only broker/ knows watermill: its reordering after a Nack and its lost acks must not leak"},
	{"github.com/dgraph-io/", []string{"badgerstore", "bench"}, nil, "only badgerstore/ knows Badger: rows and checkpoint share one transaction there"},
	{"github.com/99designs/gqlgen", []string{"graph"}, nil, "GraphQL ends at graph/"},
	{"github.com/vektah/gqlparser", []string{"graph"}, nil, "GraphQL ends at graph/"},
	{"github.com/gorilla/websocket", []string{"graph", "web"}, nil, "the API's transport"},
	{"github.com/spf13/", []string{"cmd"}, nil, "flags and commands are parsed in cmd/ alone"},
	{"github.com/mattn/go-isatty", []string{"cmd"}, nil, "only the CLI meets a terminal"},
	{"github.com/goccy/go-yaml", []string{"company", "cmd"}, nil, "YAML is for files that people write: company.yaml and node.yaml"},
	{"github.com/prometheus/", []string{"metrics"}, nil, "what a metric is called is decided in one place; whoever is measured knows an interface"},
	{"github.com/agnivade/levenshtein", []string{"company", "cmd"}, nil, "did-you-mean is for people who write files and commands"},
	{"github.com/google/uuid", append([]string{"company"}, shell...), nil, "ids are minted at the edge and travel inside commands; company/ derives an agent's from its name (G1)"},
	{"github.com/klauspost/compress", []string{"broker", "badgerstore", "cmd", "bench"}, nil, "compression belongs to what stores or ships"},
	{"golang.org/x/sync", shell, nil, "goroutines belong to the shell"},
	{"golang.org/x/time", shell, nil, "time belongs to the shell"},
	{"golang.org/x/sys", shell, nil, "system calls belong to the shell"},
	{"pgregory.net/rapid", nil, []string{everything}, testsWhy},
	{"go.uber.org/goleak", nil, []string{everything}, testsWhy},
	{"github.com/google/go-cmp", nil, []string{everything}, testsWhy},
	{"github.com/cockroachdb/datadriven", []string{"sim"}, []string{everything}, testsWhy + "; sim/, which nobody imports, reads its scripts with it"},
	{"github.com/anishathalye/porcupine", nil, []string{everything}, testsWhy},
}

// checks are all rules about source, each a function of the whole tree that
// returns what is wrong with it. arch_self_test.go proves that each can fail.
var checks = map[string]func(tree) []string{
	"folders":      checkFolders,
	"our imports":  checkOurImports,
	"third party":  checkThirdParty,
	"pure imports": checkPureImports,
	"goroutines":   checkGoStatements,
	"clock":        checkClock,
	"sleep":        checkSleep,
	"background":   checkBackground,
	"file size":    checkFileSize,
	"func size":    checkFuncSize,
	"package docs": checkPackageDocs,
	"names":        checkNames,
	"test package": checkTestPackages,
}

// TestArchitecture holds the tree against every rule of this file.
func TestArchitecture(t *testing.T) {
	whole := loadTree(t)
	if len(whole.packages) == 0 {
		t.Fatal("go list found no packages: the rules were held against nothing")
	}
	for name, check := range checks {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			for _, violation := range check(whole) {
				t.Error(violation)
			}
		})
	}
}

// TestArchitectureTableIsSound proves that the tables themselves keep what they
// promise: rows name rows, the arrow has no cycle, the pure folders stay pure.
func TestArchitectureTableIsSound(t *testing.T) {
	for folder, rule := range folders {
		if rule.why == "" {
			t.Errorf("folder %s has no reason", folder)
		}
		for _, imported := range rule.may {
			if imported == everything {
				continue
			}
			row, known := folders[imported]
			if !known {
				t.Errorf("folder %s may import %s, which is not in the table", folder, imported)
			}
			if slices.Contains(row.may, folder) {
				t.Errorf("%s and %s may import each other", folder, imported)
			}
			if slices.Contains(pure, folder) && !slices.Contains(pure, imported) {
				t.Errorf("pure folder %s may import %s, which is not pure", folder, imported)
			}
		}
	}
	for _, rule := range thirdParty {
		if rule.why == "" {
			t.Errorf("third-party row %s has no reason", rule.prefix)
		}
		for _, folder := range rule.in {
			if slices.Contains(pure, folder) {
				t.Errorf("third-party row %s names the pure folder %s", rule.prefix, folder)
			}
		}
	}
}
