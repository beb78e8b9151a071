package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fleetLimit is how long a test waits for a cluster on a busy machine.
const fleetLimit = 90 * time.Second

// quickly lets a fleet's nodes look around each second. The environment may set
// what the nodes' files leave open, and nothing else: the other two are traps.
var quickly = []string{"TENURE_SEAT__SWEEP_INTERVAL=1s", "TENURE_NODE__ID=trap", "TENURE_API__LISTEN=127.0.0.1:1"}

// startFleet starts a fleet and waits for its banner's moment: each node ready.
func startFleet(t *testing.T, dir string, nodes int, args ...string) *process {
	t.Helper()
	args = append([]string{"dev", "--nodes", strconv.Itoa(nodes), "--data-dir", dir, "--listen", "127.0.0.1:0"}, args...)
	p := launchIn(t, "", quickly, args...)
	for i := 1; i <= nodes; i++ {
		p.await(fleetLimit, fmt.Sprintf(`^node-%d \| .*msg=node_presence_claimed`, i))
	}
	p.url = nodeAddr(t, dir, 1)
	return p
}

func nodeAddr(t *testing.T, dir string, i int) string {
	t.Helper()
	return strings.TrimSpace(read(t, filepath.Join(dir, fleetNodeID(i), "addr")))
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// nodePID opens the process whose number DIR/node-i/pid has: a handle that no
// other process can come to have.
func nodePID(t *testing.T, dir string, i int) (pidfd int) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(dir, fleetNodeID(i), "pid"))))
	if err != nil {
		t.Fatal(err)
	}
	if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(pidfd) })
	return pidfd
}

// awaitEnd waits until the process has ended.
func awaitEnd(t *testing.T, pidfd int, limit time.Duration) {
	t.Helper()
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
	if err != nil || ready != 1 {
		t.Fatalf("a node is still running after %v (%v)", limit, err)
	}
}

// awaitCount waits until so many lines match.
func awaitCount(t *testing.T, p *process, n int, pattern string) {
	t.Helper()
	over := time.After(fleetLimit)
	for {
		_, news := p.logs.from(0)
		if p.logs.count(pattern) >= n {
			return
		}
		select {
		case <-news:
		case <-over:
			t.Fatalf("%d lines match %s, want %d", p.logs.count(pattern), pattern, n)
		}
	}
}

var (
	attachment = regexp.MustCompile(`msg=seat_(attached|detached) node=(\S+) seat=(\S+)`)
	ending     = regexp.MustCompile(`^(\S+) has ended`)
)

// awaitSpread waits until, by what these processes logged, the oldest first, the
// nodes that are named hold so many seats.
func awaitSpread(t *testing.T, want map[string]int, processes ...*process) {
	t.Helper()
	over := time.After(fleetLimit)
	news := make(chan struct{}, 1)
	stop := make(chan struct{})
	defer close(stop)
	for _, p := range processes {
		go func() { // wakes the count below; ends with it
			for seen := 0; ; {
				fresh, more := p.logs.from(seen)
				seen += len(fresh)
				select {
				case news <- struct{}{}:
				default:
				}
				select {
				case <-more:
				case <-stop:
					return
				}
			}
		}()
	}
	for {
		held := map[string]map[string]bool{}
		for node := range want {
			held[node] = map[string]bool{}
		}
		for _, p := range processes {
			all, _ := p.logs.from(0)
			for _, line := range all {
				if m := attachment.FindStringSubmatch(line); m != nil && held[m[2]] != nil {
					held[m[2]][m[3]] = m[1] == "attached"
				}
				if m := ending.FindStringSubmatch(line); m != nil {
					clear(held[m[1]])
				}
			}
		}
		got := map[string]int{}
		for node, seats := range held {
			for _, is := range seats {
				if is {
					got[node]++
				}
			}
		}
		if maps.Equal(got, want) {
			return
		}
		select {
		case <-news:
		case <-over:
			t.Fatalf("the nodes hold %v, want %v", got, want)
		}
	}
}

// awaitSeen reads, from one node, how many seats each live node holds, until that
// node's view shows what is wanted.
func awaitSeen(t *testing.T, p *process, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for deadline := time.Now().Add(20 * time.Second); !maps.Equal(got, want); {
		if time.Now().After(deadline) {
			t.Fatalf("node ls shows %v, want %v", got, want)
		}
		var list struct{ Nodes []apiNode }
		p.must(&list, "node", "ls", "-o", "json")
		clear(got)
		for _, n := range list.Nodes {
			if n.State == "READY" && n.SeatsHeld != nil {
				got[n.ID] = *n.SeatsHeld
			}
		}
	}
}

// TestFleetLosesANode: thirty seats on three processes settle at ten each. One
// is killed: by the log the others claim its seats within the TTL and two seconds
// of their last renewals, mail is worked on, the history is legal. The command
// that the supervisor prints brings it back, and the spread is even again within a
// minute, no seat moved twice. The supervisor killed, the nodes it started are gone (P2, L3, design §2:
// a fleet's embedded cluster lives through the loss of a server).
func TestFleetLosesANode(t *testing.T) {
	t.Parallel()
	began, dir := time.Now(), t.TempDir()
	p := startFleet(t, dir, 3, "--company", echoFile(t, 30))
	t.Logf("serves after %v", time.Since(began))
	even := map[string]int{"node-1": 10, "node-2": 10, "node-3": 10}
	awaitSpread(t, even, p)
	awaitSeen(t, p, even)
	t.Logf("settled after %v", time.Since(began))

	began = time.Now()
	killed := began
	victim := nodePID(t, dir, 2)
	if err := unix.PidfdSendSignal(victim, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	two := map[string]int{"node-1": 15, "node-3": 15}
	awaitSpread(t, two, p)
	t.Logf("the killed node's seats are held after %v", time.Since(began))
	awaitSeen(t, p, two)
	var done completionJSON
	p.must(&done, "send", seatName(0), "--wait", "-o", "json")
	p.must(nil, "audit")
	for _, name := range []string{"pid", "addr"} {
		if _, err := os.Stat(filepath.Join(dir, "node-2", name)); err == nil {
			t.Errorf("node-2 is dead and its %s is still there", name)
		}
	}

	if n := p.logs.count(`level=(WARN|ERROR) msg=broker_server`); n > 0 {
		t.Errorf("%d warnings of the embedded servers about what is routine in a cluster", n)
	}

	began = time.Now()
	command := regexp.MustCompile(` run --config (\S+)$`).FindStringSubmatch(p.await(fleetLimit, ` run --config `))
	back := launchIn(t, "", quickly[:1], "run", "--config", command[1])
	awaitSpread(t, map[string]int{"node-2": 10}, back)
	awaitSpread(t, even, p, back)
	t.Logf("brought back and even again after %v", time.Since(began))
	awaitSeen(t, p, even)
	judgeLossAndReturn(t, exportOf(t, p), "node-2", killed, fleetTTLSeconds*time.Second)

	others := []int{nodePID(t, dir, 1), nodePID(t, dir, 3)}
	p.kill()
	for _, pidfd := range others {
		awaitEnd(t, pidfd, 10*time.Second)
	}
}

// TestFleetKeepsItsData: four processes, of which the last carries no log, serve,
// and what they did is there after a restart: told to stop, each gave its seats
// back, so that nobody waits for a lease. Another number of nodes, or one, is
// refused on their directory and changes nothing there. A turn in flight at the
// end is waited for by all, also by nodes that are done; a second signal gives its
// seat back at once, a third kills what does not end.
func TestFleetKeepsItsData(t *testing.T) {
	t.Parallel()
	agent, dir := agentDir(t), t.TempDir()
	company := gated(t, "gate", agent)
	p := startFleet(t, dir, 4, "--company", company)
	p.url = nodeAddr(t, dir, 4)
	p.await(fleetLimit, `msg=seat_attached .*seat=sink`)
	var first, again completionJSON
	p.must(&first, "send", "sink", "--id", "job-1", "--wait", "-o", "json")
	if text := read(t, filepath.Join(dir, "node-4", "node.yaml")); !strings.Contains(text, "type: external") {
		t.Errorf("node-4 carries the log:\n%s", text)
	}
	if code := p.stop(); code != 0 {
		t.Fatalf("told to stop, the fleet ended with %d", code)
	}
	if n := p.logs.count(`msg=node_stopped node=\S+$`); n != 4 {
		t.Errorf("%d of 4 nodes stopped in order", n)
	}

	before := tree(t, dir)
	for args, want := range map[string]string{
		"--nodes 3": "holds a fleet of 4 nodes",
		"--nodes 1": "holds a fleet of 4 nodes",
		"--nodes 2": "write 1, or 3 and more",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"dev", "--data-dir", dir}, strings.Fields(args)...), nil, &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%s: got code %d and %q, want a sentence with %q", args, code, errs.String(), want)
		}
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("a refused start changed the directory: before\n%v\nafter\n%v", before, after)
	}

	began := time.Now()
	p = startFleet(t, dir, 4, "--company", company)
	p.await(fleetLimit, `msg=seat_attached .*seat=worker`)
	t.Logf("started again, seats are held after %v", time.Since(began))
	p.must(&again, "send", "sink", "--id", "job-1", "--wait", "-o", "json")
	if first.Completion == nil || again.Completion == nil || *first.Completion != *again.Completion {
		t.Errorf("job-1 is known as %+v, want the completion of the first start, %+v", again.Completion, first.Completion)
	}
	p.must(nil, "send", "worker", "--id", "job-2")
	line := p.await(fleetLimit, `msg=turn_started .*event=job-2`)
	p.signal(syscall.SIGTERM)
	awaitCount(t, p, 3, `msg=node_seats_returned`)
	if n := p.logs.count(`msg=node_stopped .*node=`); n != 0 {
		t.Errorf("%d nodes took the log away from one that still works", n)
	}
	stuck := 4
	if strings.HasPrefix(line, "node-4 ") {
		stuck = 1
	}
	frozen := nodePID(t, dir, stuck) // it cannot end any more
	if err := unix.PidfdSendSignal(frozen, unix.SIGSTOP, nil, 0); err != nil {
		t.Fatal(err)
	}
	hurried := time.Now()
	p.signal(syscall.SIGTERM)
	awaitCount(t, p, 4, `msg=node_seats_returned`)
	t.Logf("hurried, the seat of a turn in flight is given back after %v", time.Since(hurried))
	awaitCount(t, p, 3, `msg=node_stopped .*node=`)
	p.signal(syscall.SIGTERM)
	<-p.done
	awaitEnd(t, frozen, time.Second)
	if code := p.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("killed by a third signal, the fleet ended with %d, want %d", code, exitFailed)
	}
}

// tree lists a directory's files with their sizes and times.
func tree(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			files = append(files, fmt.Sprint(path, info.Size(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestFleetBadStarts: a node that cannot start ends the whole fleet with its exit
// code and its last words; one told to stop while it starts has not failed; none is
// started on a single node's directory.
func TestFleetBadStarts(t *testing.T) {
	t.Parallel()
	busy, port := busyPort(t)
	p := launch(t, "dev", "--nodes", "3", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:"+strconv.Itoa(port-1))
	<-p.done
	all, _ := p.logs.from(0)
	text := strings.Join(all, "\n")
	if code := p.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(text, "node-2 did not start") ||
		!strings.Contains(text, "\n  tenure: api.listen "+busy+": address already in use") {
		t.Errorf("got code %d and\n%s", code, text)
	}

	p = launch(t, "dev", "--nodes", "3", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0")
	for i := 1; i <= 3; i++ {
		p.await(fleetLimit, fmt.Sprintf(`^node-%d \| .*msg=broker_cluster_joining`, i))
	}
	if code := p.stop(); code != 0 {
		t.Errorf("told to stop while it was starting, the fleet ended with %d", code)
	}

	single := t.TempDir()
	if err := os.WriteFile(filepath.Join(single, "ID"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"dev", "--nodes", "3", "--data-dir", single}, nil, &out, &errs)
	if files := tree(t, single); code != exitUsage || !strings.Contains(errs.String(), "holds a single node") || len(files) != 2 {
		t.Errorf("on a single node's directory: got code %d, %q and %v", code, errs.String(), files)
	}
}

// busyPort listens on a port whose predecessor is free.
func busyPort(t *testing.T) (addr string, port int) {
	t.Helper()
	addrs, err := freePorts(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return addrs[0], l.Addr().(*net.TCPAddr).Port
}

// TestExampleFleet: the files in examples/fleet, as they are, make a fleet of
// three that serves, and of four.
func TestExampleFleet(t *testing.T) {
	t.Parallel()
	takeExamplePorts(t)
	files, err := filepath.Abs("../../examples/fleet")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start := func(name string, args ...string) *process {
		args = append([]string{"run", "--config", filepath.Join(files, name+".yaml")}, args...)
		return launchIn(t, dir, quickly[:1], args...)
	}
	var nodes []*process
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		nodes = append(nodes, start(name, "--company", filepath.Join(files, "company.yaml")))
	}
	nodes = append(nodes, start("node-4"))
	for i, p := range nodes {
		m := p.await(fleetLimit, apiLine.String())
		if p.url = apiLine.FindStringSubmatch(m)[1]; !strings.HasSuffix(p.url, fmt.Sprint(":843", i+1)) {
			t.Errorf("node %d serves at %s", i+1, p.url)
		}
	}
	nodes[3].await(fleetLimit, `msg=node_presence_claimed`)
	var done completionJSON
	nodes[3].must(&done, "send", "writer", "--wait", "-o", "json")
	if done.Completion == nil || done.Completion.Outcome != "done" {
		t.Errorf("sent through node 4: got %+v", done.Completion)
	}
	nodes[3].must(nil, "audit")
}

// takeExamplePorts keeps two runs of the tests on one machine from starting the
// example at the same time: its ports are its files'.
func takeExamplePorts(t *testing.T) {
	t.Helper()
	name := filepath.Join(os.TempDir(), "tenure-example-fleet.lock") //nolint:usetesting // shared by all runs on this machine
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
}
