package robust_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	seats    = 12
	token    = "not-a-secret-of-anybody"
	secret   = "0f5a8d6c"
	sinkName = "sink.jsonl"
)

// world is one run: the fleet, the evidence and what is wrong so far.
type world struct {
	dir     string // logs, sink, exports: kept when the run fails
	tenure  string
	sink    string
	network bool // there are namespaces and small disks
	wall    bool // wall clocks can be stepped
	nodes   []*node
	waiters sync.WaitGroup
	began   time.Time
	// brokerAddr is where the brokers take clients.
	brokerAddr [brokers]string

	mu         sync.Mutex
	revision   int
	violations []string
	notes      []string
	transcript *os.File
	troubles   []trouble
}

func seatName(i int) string { return fmt.Sprintf("s-%02d", i+1) }

// say prints a line with its time, and keeps it beside the evidence.
func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("%s  %s\n", w.stamp(), fmt.Sprintf(format, args...))
	fmt.Fprint(os.Stderr, line)
	if w.transcript != nil {
		fmt.Fprint(w.transcript, line)
	}
}

func (w *world) stamp() string {
	return fmt.Sprintf("%7.1fs", time.Since(w.began).Seconds())
}

// fail notes a violation: something that was promised did not hold.
func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.violations = append(w.violations, text)
	w.mu.Unlock()
	w.say("VIOLATION %s", text)
}

// note says what is worth knowing and breaks no promise.
func (w *world) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.notes = append(w.notes, text)
	w.mu.Unlock()
	w.say("note: %s", text)
}

// newWorld lays out a fleet in dir and starts nothing.
func newWorld(dir string, network, wall bool) (*world, error) {
	w := &world{dir: dir, sink: filepath.Join(dir, sinkName), network: network, wall: wall, began: time.Now()}
	if err := os.WriteFile(w.sink, nil, 0o600); err != nil {
		return nil, err
	}
	var err error
	if w.transcript, err = os.Create(filepath.Join(dir, "transcript")); err != nil {
		return nil, err
	}
	for path, text := range map[string]string{w.tokens(): "robust:" + token, w.token(): token} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	if network {
		if err := openNetwork(); err != nil {
			return nil, err
		}
	}
	for i := range nodeCount {
		n, err := w.place(i)
		if err != nil {
			return nil, err
		}
		w.nodes = append(w.nodes, n)
	}
	return w, w.configure()
}

func (w *world) tokens() string { return filepath.Join(w.dir, "tokens") } // of the nodes
func (w *world) token() string  { return filepath.Join(w.dir, "token") }  // of a client

// place makes room for node i.
func (w *world) place(i int) (*node, error) {
	id := fmt.Sprintf("n%d", i+1)
	n := &node{
		i: i, id: id, ip: "127.0.0.1", dir: filepath.Join(w.dir, "disk-"+id), w: w, exits: map[string]int{}, apiPort: 8420,
		wallFile: filepath.Join(w.dir, "wall-"+id), clockFile: filepath.Join(w.dir, "clock-"+id),
	}
	if err := os.WriteFile(n.wallFile, make([]byte, 8), 0o600); err != nil {
		return nil, err
	}
	if err := n.bend(); err != nil {
		return nil, err
	}
	if !w.network {
		var err error
		n.apiPort, err = freePort()
		if err != nil {
			return nil, err
		}
		return n, os.MkdirAll(n.dir, 0o700)
	}
	if err := smallDisk(n.dir); err != nil {
		return nil, fmt.Errorf("a small disk for %s: %w", id, err)
	}
	var err error
	n.ns, n.ip, err = joinNetwork(w.dir, i)
	return n, err
}

// configure gives each node its flags, once all addresses are known.
func (w *world) configure() error {
	client, routes := make([]string, brokers), make([]string, brokers)
	for i := range brokers {
		client[i], routes[i] = w.nodes[i].ip+":4222", w.nodes[i].ip+":6222"
		if !w.network {
			for _, at := range []*string{&client[i], &routes[i]} {
				port, err := freePort()
				if err != nil {
					return err
				}
				*at = fmt.Sprintf("127.0.0.1:%d", port)
			}
		}
	}
	copy(w.brokerAddr[:], client)
	urls := func(scheme string, all []string) string {
		return scheme + "://node:" + secret + "@" + strings.Join(all, ","+scheme+"://node:"+secret+"@")
	}
	for i, n := range w.nodes {
		n.args = []string{
			"--node-id", n.id, "--data-dir", filepath.Join(n.dir, "data"), "--node-labels", "zone=" + zone(i),
			"--api-listen", fmt.Sprintf("%s:%d", n.ip, n.apiPort), "--api-tokens", w.tokens(),
			"--coordination-type", "embedded-kv", "--coordination-lease-ttl-seconds", fmt.Sprint(int(ttl.Seconds())),
			"--seat-sweep-interval", "1s",
		}
		if i >= brokers {
			n.args = append(n.args, "--stream-type", "external", "--stream-replicas", "3", "--stream-urls", urls("nats", client))
			continue
		}
		n.args = append(n.args, "--stream-type", "embedded", "--stream-replicas", "3", "--stream-listen", client[i],
			"--stream-cluster-name", "robust", "--stream-cluster-listen", routes[i], "--stream-cluster-routes", urls("nats-route", routes))
	}
	return nil
}

// zone is a label that a placement may ask for.
func zone(i int) string { return string(rune('a' + i%2)) }

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// company writes the document of the next revision and returns its file. What
// changes from one to the next: titles, one seat more or less, and which zone
// the last seat wants.
func (w *world) company() (string, error) {
	w.mu.Lock()
	w.revision++
	r := w.revision
	w.mu.Unlock()
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	doc := &strings.Builder{}
	fmt.Fprintf(doc, "company: {name: Acme}\nroles:\n")
	for i := range seats {
		fmt.Fprintf(doc, "  - {handle: %s, title: Worker %d, runner: {exec: [%q, %s, %q], timeout: 1m}", seatName(i), r, self, agentArg, w.sink)
		if i == seats-1 {
			fmt.Fprintf(doc, ", placement: {labels: {zone: %s}}", zone(r))
		}
		fmt.Fprintf(doc, "}\n")
	}
	if r%2 == 0 {
		fmt.Fprintf(doc, "  - {handle: extra, title: Extra, runner: {echo: {}}}\n")
	}
	path := filepath.Join(w.dir, fmt.Sprintf("company-%d.yaml", r))
	return path, os.WriteFile(path, []byte(doc.String()), 0o600)
}
