package measure

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Machine is what a figure depends on: nothing in it names the machine.
type Machine struct {
	Processor string            `json:"processor"`
	Cores     int               `json:"cores"`
	MemoryMB  int               `json:"memory_mb"`
	System    string            `json:"system"`
	Go        string            `json:"go"`
	Modules   map[string]string `json:"modules"`
	// Load is the machine's load average over a minute when the run began: what
	// else ran takes part in every absolute number.
	Load float64 `json:"load_at_start"`
}

// compared are the modules whose versions belong to the figures.
var compared = []string{
	"github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go", "github.com/dgraph-io/badger/v4",
	"go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/client/v3",
}

// Begin returns an empty report of this machine and today.
func Begin() Report {
	m := Machine{
		Processor: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Modules: map[string]string{},
	}
	if kb, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		m.MemoryMB = kb / 1024
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		m.Load, _ = strconv.ParseFloat(first, 64)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			for _, name := range compared {
				if dep.Path == name {
					m.Modules[name] = dep.Version
				}
			}
		}
	}
	return Report{Taken: time.Now().UTC().Format(time.DateOnly), Machine: m}
}

// field reads "key : value" from a file of the kernel's.
func field(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
