// Package nodes measures whole nodes: processes of the product as it is built,
// beside a broker in this process, asked from outside through their API and
// through the log.
package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Build builds the program into dir.
func Build(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "tenure")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, "github.com/seat-tenure/tenure/cmd/node")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return program, nil
}

// node is one process.
type node struct {
	cmd  *exec.Cmd
	url  string
	errs bytes.Buffer
	done chan struct{} // closed when it has ended
	end  error         // how; set before
}

// company is a company of that many seats that echo.
func company(dir string, seats int) (string, error) {
	var b strings.Builder
	b.WriteString("company: {name: Acme}\nroles:\n")
	for i := range seats {
		fmt.Fprintf(&b, "  - {handle: %s, title: Clerk, kind: agent, runner: {echo: {}}}\n", handle(i))
	}
	path := filepath.Join(dir, "company.yaml")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

func handle(i int) string { return fmt.Sprintf("s%05d", i) }

// start runs the program with these flags besides those every node here has.
func start(ctx context.Context, program, dataDir string, flags ...string) (*node, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	n := &node{url: "http://" + addr, done: make(chan struct{})}
	args := append([]string{"run", "--data-dir", dataDir, "--api-listen", addr, "--logging-level", "warn"}, flags...)
	n.cmd = exec.CommandContext(ctx, program, args...)
	n.cmd.Stderr = &n.errs
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(n.done)
		n.end = n.cmd.Wait()
	}()
	return n, nil
}

// stop tells the process to stop and waits until it has.
func (n *node) stop() error {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return n.ended()
}

// kill ends the process as a power cut would.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.ended()
}

func (n *node) ended() error {
	<-n.done
	if n.end != nil {
		return fmt.Errorf("the node ended: %w\n%s", n.end, n.errs.String())
	}
	return nil
}

// rss is how much memory of the process is resident, in bytes.
func (n *node) rss() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "VmRSS:"); is {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			return kb << 10, err
		}
	}
	return 0, errors.New("the kernel does not say how much memory the node has")
}

// ask asks the API and decodes the answer's data.
func (n *node) ask(ctx context.Context, query string, variables map[string]any, into any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	answer := struct {
		Data   any `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}{Data: into}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if len(answer.Errors) > 0 {
		return errors.New(answer.Errors[0].Message)
	}
	return nil
}

// pause waits that long, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

const (
	lookEvery = 50 * time.Millisecond
	upWithin  = 10 * time.Minute
)

// established waits until that many seats admit turns, and returns how long that
// took since began. The node tells of no edge from outside: it is asked.
func (n *node) established(ctx context.Context, began time.Time, seats int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	for {
		var answer struct {
			Fleet struct{ HeldCount int }
			Seats struct{ Edges []struct{} }
		}
		err := n.ask(ctx, `{fleet{heldCount} seats(filter:{state:ESTABLISHING},first:1){edges{cursor}}}`, nil, &answer)
		if err == nil && answer.Fleet.HeldCount >= seats && len(answer.Seats.Edges) == 0 {
			return time.Since(began), nil
		}
		select {
		case <-n.done:
			return 0, fmt.Errorf("the node ended early: %w", n.ended())
		default:
		}
		if pause(ctx, lookEvery) != nil {
			return 0, fmt.Errorf("%d of %d seats run after %v (%w)", answer.Fleet.HeldCount, seats, time.Since(began), err)
		}
	}
}
