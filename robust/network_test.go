package robust_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// The network of a run: a bridge in the harness's own namespace, one namespace a
// node, and one nftables set of pairs whose packets the bridge drops in that
// direction. The harness sits on the bridge, so no cut keeps it from a node.
const (
	bridgeIP = "10.77.0.1"
	rules    = `table bridge robust {
	set cuts { type ipv4_addr . ipv4_addr; }
	chain forward { type filter hook forward priority 0; policy accept; ip saddr . ip daddr @cuts drop; }
}`
)

// networkTools are what a network takes, with the Debian package of each.
var networkTools = map[string]string{"ip": "iproute2", "nft": "nftables", "nsenter": "util-linux", "unshare": "util-linux"}

// missingTools says which tools are not there, as words for a person.
func missingTools() string {
	var missing []string
	for tool, pkg := range networkTools {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, fmt.Sprintf("%s (Debian package %s)", tool, pkg))
		}
	}
	return strings.Join(missing, ", ")
}

// isolated is a command that runs this program again, alone with its mounts and
// its network. Both vanish with it, whatever ends it.
func isolated(env ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd.SysProcAttr = attr
	return cmd
}

func sh(stdin string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// openNetwork makes the bridge in a process that isolated started.
func openNetwork() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, c := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "add", "br0", "type", "bridge"},
		{"ip", "addr", "add", bridgeIP + "/24", "dev", "br0"},
		{"ip", "link", "set", "br0", "up"},
	} {
		if err := sh("", c...); err != nil {
			return err
		}
	}
	return sh(rules, "nft", "-f", "-")
}

// joinNetwork makes a node's namespace, kept by the file it returns, and wires
// it to the bridge.
func joinNetwork(dir string, i int) (ns, ip string, err error) {
	ns, ip = filepath.Join(dir, fmt.Sprintf("net-%d", i+1)), fmt.Sprintf("10.77.0.%d", 11+i)
	if err := os.WriteFile(ns, nil, 0o600); err != nil {
		return "", "", err
	}
	port := fmt.Sprintf("port%d", i+1)
	for _, c := range [][]string{
		{"unshare", "--net=" + ns, "true"},
		{"ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", ns},
		{"ip", "link", "set", port, "master", "br0", "up"},
		{"nsenter", "--net=" + ns, "ip", "link", "set", "lo", "up"},
		{"nsenter", "--net=" + ns, "ip", "addr", "add", ip + "/24", "dev", "eth0"},
		{"nsenter", "--net=" + ns, "ip", "link", "set", "eth0", "up"},
	} {
		if err := sh("", c...); err != nil {
			return "", "", err
		}
	}
	return ns, ip, nil
}

// smallDisk mounts a disk that can be filled.
func smallDisk(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syscall.Mount("robust", dir, "tmpfs", 0, "size=768m,mode=0700")
}

// way is one direction of a connection between two nodes.
type way struct{ from, to int }

// cut drops, or lets pass again, what goes these ways.
func (w *world) cut(ways []way, drop bool) error {
	verb, text := "delete", &strings.Builder{}
	if drop {
		verb = "add"
	}
	for _, d := range ways {
		// Adding what is there changes nothing; deleting what is not is an error.
		if !drop {
			fmt.Fprintf(text, "add element bridge robust cuts { %s . %s }\n", w.nodes[d.from].ip, w.nodes[d.to].ip)
		}
		fmt.Fprintf(text, "%s element bridge robust cuts { %s . %s }\n", verb, w.nodes[d.from].ip, w.nodes[d.to].ip)
	}
	return sh(text.String(), "nft", "-f", "-")
}
